"""Look inside a model while it runs, without changing its signatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from transformer_lib.data.batches import pad_batch
from transformer_lib.generation.constraints import without_dropout
from transformer_lib.interpret.interventions import watched
from transformer_lib.model.transformer import Transformer


def record_attention(model: nn.Module) -> AbstractContextManager[dict[str, Tensor]]:
    """Collect the attention weights of every forward pass inside the `with` block.

    ```python
    with record_attention(model) as maps:
        model(src, tgt_in)
    maps["decoder.layers.0.cross_attn"]  # (batch, n_heads, tgt_len, src_len)
    ```

    Inside the block, attention is eager instead of fused; the results are the same to
    rounding. Nothing is kept in the model afterwards.

    Args:
        model: any module that holds attentions, or one itself.

    Returns:
        For a `with` block: a dictionary, filled while the model runs. It has for each
        attention, by its name in the model ("" if it is the model itself), the weights
        of its latest pass, detached, of shape (batch, n_heads, q_len, k_len). They are
        probabilities, before dropout.

    Raises:
        ValueError: the model holds no attention.
    """
    return watched(model, lambda attention, weights, values: weights)


@contextmanager
def record_hidden_states(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the output of every layer inside the `with` block.

    Args:
        model: any module that holds layers, that is modules with a self-attention:
            encoder layers, decoder layers, those of a language model.

    Yields:
        A dictionary, filled while the model runs: for each layer, by its name in the
        model, the output of its latest pass, detached: (batch, length, d_model).

    Raises:
        ValueError: the model holds no layer.
    """
    states: dict[str, Tensor] = {}
    modules = model.named_modules()
    layers = {name: part for name, part in modules if hasattr(part, "self_attn")}
    if not layers:
        raise ValueError(f"{type(model).__name__} holds no layer with a self-attention")
    handles = [
        layer.register_forward_hook(_Recorder(states, name))
        for name, layer in layers.items()
    ]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


class _Recorder:
    """A hook that keeps a layer's output. A copy of the model is not recorded."""

    def __init__(self, states: dict[str, Tensor], name: str) -> None:
        self.states, self.name = states, name

    def __call__(self, _layer: nn.Module, _inputs: tuple, output: Tensor) -> None:
        self.states[self.name] = output.detach()

    def __deepcopy__(self, _memo: dict) -> _Recorder:
        return _Recorder({}, self.name)


@torch.no_grad()
def source_attention(
    model: Transformer,
    src: Tensor,
    targets: Sequence[Sequence[int]],
    bos_id: int,
    layer: int = -1,
) -> list[Tensor]:
    """Say how much each source token had to do with each token of a target.

    The targets are read once more, all tokens at once. So a search carries no weights
    along, and every target can be asked about, whoever wrote it.

    Args:
        model: in either mode.
        src: (batch, src_len), source ids, padded with pad_id on the right.
        targets: for each sentence the ids of a target, as in `Hypothesis.ids`.
        bos_id: the token that every target starts with.
        layer: of the decoder, whose cross-attention is asked.

    Returns:
        For each sentence (tgt_len, src_len): row i holds the weights with which token i
        was chosen, the mean over the heads. Rows sum to 1; columns to the coverage of
        the source tokens.
    """
    read = [[bos_id, *ids[:-1]] for ids in targets]
    tgt_in = pad_batch(read, model.config.pad_id).to(src.device)
    attention = model.decoder.layers[layer].cross_attn
    with without_dropout(model), record_attention(attention) as maps:
        model(src, tgt_in)
    weights = maps[""].mean(dim=1)  # (batch, tgt_len, src_len)
    return [rows[: len(ids)] for rows, ids in zip(weights, targets, strict=True)]
