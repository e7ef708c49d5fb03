"""Look inside a model while it runs, without changing its signatures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import DecoderLayer, EncoderLayer


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every forward pass inside the `with` block.

    ```python
    with record_attention(model) as maps:
        model(src, tgt_in)
    maps["decoder.layers.0.cross_attn"]  # (batch, n_heads, tgt_len, src_len)
    ```

    Inside the block, attention is computed in the open instead of by the fused kernel;
    the results are the same to rounding. Nothing is kept in the model afterwards.

    Args:
        model: any module that holds MultiHeadAttention, or one itself.

    Yields:
        A dictionary, filled while the model runs: for each attention, by its name in
        the model ("" if it is the model itself), the weights of its latest pass,
        detached, of shape (batch, n_heads, q_len, k_len). They are probabilities,
        before dropout.

    Raises:
        ValueError: the model holds no MultiHeadAttention.
    """
    attentions = _parts(model, MultiHeadAttention)
    maps: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[Tensor], None]:
        def on_weights(weights: Tensor) -> None:
            maps[name] = weights.detach()

        return on_weights

    before = {name: attention.on_weights for name, attention in attentions.items()}
    try:
        for name, attention in attentions.items():
            attention.on_weights = keep(name)
        yield maps
    finally:
        for name, attention in attentions.items():
            attention.on_weights = before[name]


@contextmanager
def record_hidden_states(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the output of every encoder and decoder layer inside the `with` block.

    Args:
        model: any module that holds encoder or decoder layers.

    Yields:
        A dictionary, filled while the model runs: for each layer, by its name in the
        model, the output of its latest pass, detached: (batch, length, d_model).

    Raises:
        ValueError: the model holds no layer.
    """
    states: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, tuple, Tensor], None]:
        def on_forward(module: nn.Module, inputs: tuple, output: Tensor) -> None:
            states[name] = output.detach()

        return on_forward

    layers = _parts(model, EncoderLayer, DecoderLayer)
    handles = [
        layer.register_forward_hook(keep(name)) for name, layer in layers.items()
    ]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


def _parts(model: nn.Module, *kinds: type[nn.Module]) -> dict[str, nn.Module]:
    """Return the parts of these kinds by name, or say that there are none."""
    parts = {name: m for name, m in model.named_modules() if isinstance(m, kinds)}
    if not parts:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{type(model).__name__} holds no {names} to record")
    return parts
