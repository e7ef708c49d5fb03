"""Our translators as two graphs of ONNX, which run without Python.

The graphs are traced from the model itself: the encoder as it is, and the decoder with
a cache whose keys and values come in as inputs and go out as results.
"""

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lib.generation.constraints import without_dropout
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import Transformer

ENCODER, DECODER_STEP = "encoder.onnx", "decoder_step.onnx"


class Encoding(nn.Module):
    """Read the source, and compute what every step of the decoder attends to.

    Args:
        model: whose encoder it is.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor) -> Tensor:
        """(batch, src_len), ids -> the memory's keys and values.

        They are (n_decoder_layers, 2, batch, n_heads, src_len, d_head).
        """
        memory = self.model.encode(src, padding_mask(src, self.model.config.pad_id))
        kept = []
        for layer in self.model.decoder.layers:
            attention = layer.cross_attn
            projections = attention.k_proj, attention.v_proj
            kept += [attention.split_heads(project(memory)) for project in projections]
        return torch.stack(kept).unflatten(0, (-1, 2))


class DecodingStep(nn.Module):
    """Read one token, and score the next one.

    Args:
        model: whose decoder it is.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, ids: Tensor, src: Tensor, memory: Tensor, past: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Go one step on.

        Args:
            ids: (batch, 1), the last token of each target.
            src: (batch, src_len), source ids.
            memory: what `Encoding` returned.
            past: (n_decoder_layers, 2, batch, n_heads, length, d_head), keys and values
                of the tokens before.

        Returns:
            logits: (batch, vocab_size)
            present: as past, one token longer.
        """
        mask = padding_mask(src, self.model.config.pad_id)
        cache = GivenCache(self.model, memory, past)
        nothing_new = memory.new_zeros(src.size(0), 0, self.model.config.d_model)
        features = self.model.decode(ids, nothing_new, mask, cache=cache)
        return self.model.lm_head(features[:, -1]), torch.stack(cache.present)


class GivenCache:
    """The protocol `Cache` on keys and values that are given.

    Args:
        model: whose decoder asks.
        memory: keys and values of the memory, of each layer.
        past: keys and values of the targets, of each layer.

    Attributes:
        present: keys and values with those of the new tokens, of each layer.
    """

    def __init__(self, model: Transformer, memory: Tensor, past: Tensor) -> None:
        layers = model.decoder.layers
        self.length = past.size(4)
        self.past = {layer.self_attn: past[i] for i, layer in enumerate(layers)}
        self.source = GivenSource(
            {layer.cross_attn: memory[i] for i, layer in enumerate(layers)}
        )
        self.present: list[Tensor] = []

    def positions(self, ids: Tensor) -> Tensor:
        """Return the positions of new tokens (batch, n_new): (n_new,)."""
        return self.length + torch.arange(ids.size(1), device=ids.device)

    def update(
        self, attention: MultiHeadAttention, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return keys and values (batch, n_heads, length, d_head) of all tokens."""
        new = torch.stack([key, value])
        self.present.append(torch.cat([self.past[attention], new], dim=3))
        keys, values = self.present[-1]
        return keys, values


class GivenSource:
    """Keys and values of the memory, which never change.

    Args:
        kept: for each attention (2, batch, n_heads, src_len, d_head).
    """

    def __init__(self, kept: dict[MultiHeadAttention, Tensor]) -> None:
        self.kept = kept

    def update(
        self, attention: MultiHeadAttention, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what is kept; key and value are of length 0."""
        keys, values = self.kept[attention]
        return keys, values


def to_onnx(model: Transformer, folder: Path) -> None:
    """Write the two graphs of a model, with weights in single precision.

    Args:
        model: in either mode; the graphs have no dropout.
        folder: where ENCODER and DECODER_STEP are written.

    Raises:
        ImportError: onnx or onnxscript is not installed.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"graphs are written by onnx and onnxscript: {error}"
        ) from error
    src = torch.full((2, 3), (model.config.pad_id + 1) % model.config.src_vocab_size)
    batch, src_len, length = (
        torch.export.Dim(n) for n in ("batch", "src_len", "length")
    )
    with without_dropout(model), torch.no_grad():
        encoding, step = Encoding(model), DecodingStep(model)
        memory = encoding(src)
        past = memory[:, :, :, :, :2]
        of_source = {0: batch, 1: src_len}
        of_memory = {2: batch, 4: src_len}
        _write_graph(
            encoding, {"src": src}, {"src": of_source}, ["memory"], folder / ENCODER
        )
        _write_graph(
            step,
            {"ids": src[:, :1], "src": src, "memory": memory, "past": past},
            {
                "ids": {0: batch},
                "src": of_source,
                "memory": of_memory,
                "past": {2: batch, 4: length},
            },
            ["logits", "present"],
            folder / DECODER_STEP,
        )


def _write_graph(
    module: nn.Module,
    inputs: dict[str, Tensor],
    sizes: dict[str, dict[int, torch.export.Dim]],
    outputs: list[str],
    path: Path,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            torch.onnx.export(
                module.eval(),
                kwargs=inputs,
                f=path,
                input_names=list(inputs),
                output_names=outputs,
                dynamic_shapes=sizes,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        finally:
            logging.disable(logging.NOTSET)
