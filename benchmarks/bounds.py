"""What decoding cannot take less than: the time to read and to multiply the weights."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from decoders import LONGEST_SOURCE, Setting

from transformer_lib.fast.linear import PreparedLinear
from transformer_lib.model.config import TransformerConfig


def fastest(work: Callable[[], Any], n: int = 20) -> float:
    """Return the seconds of the fastest of n runs."""
    found = []
    for _ in range(n):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def measure_machine(config: TransformerConfig) -> dict[str, float]:
    """Measure how fast the machine reads and multiplies.

    Returns:
        bytes_per_second: read from as much memory as the decoder's weights take up,
            by a sum or by a product with a vector, whichever is faster.
        flops: floating-point operations a second of a large matrix product, PyTorch's
            own or oneDNN's, whichever is faster.
    """
    data = torch.randn(sum(matrices(config)) // 1024, 1024)
    vector, square = torch.randn(1024), torch.randn(2048, 2048)
    multiply = PreparedLinear(square, None).multiply(len(square))
    reading = min(fastest(lambda: data @ vector), fastest(data.sum))
    with torch.inference_mode():
        product = min(
            fastest(lambda: square @ square), fastest(lambda: multiply(square))
        )
    return {
        "bytes_per_second": data.nbytes / reading,
        "flops": 2 * 2048**3 / product,
    }


def matrices(config: TransformerConfig) -> tuple[int, int]:
    """Count the weights that a step multiplies by: in the layers, in the output.

    Cross-attention's keys and values are projected before the first step.
    """
    d_model = config.d_model
    layer = 6 * d_model**2 + 2 * d_model * config.d_ff
    return config.n_decoder_layers * layer, d_model * config.tgt_vocab_size


def lower_bound(setting: Setting, machine: Mapping[str, float]) -> float:
    """Return the milliseconds below which a token cannot be had.

    All weights are read once for each token and multiplied by each row; the keys and
    values of the target so far, half of it on average, and of the source are read too.
    """
    config, n_weights = setting.config, sum(matrices(setting.config))
    rows = setting.batch * setting.n_beams
    kept = rows * setting.n_tokens / 2 + setting.batch * LONGEST_SOURCE
    n_read = n_weights + 2 * config.n_decoder_layers * config.d_model * kept
    reading = 4 * n_read / machine["bytes_per_second"]
    return 1000 * max(reading, 2 * n_weights * rows / machine["flops"])
