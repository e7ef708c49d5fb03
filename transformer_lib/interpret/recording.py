"""Look inside a model while it runs, without changing its signatures."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from transformer_lib.data.batches import pad_batch
from transformer_lib.generation.constraints import without_dropout
from transformer_lib.interpret.interventions import watched
from transformer_lib.model.layers import DecoderLayer, EncoderLayer
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
        model: any module that holds MultiHeadAttention, or one itself.

    Returns:
        For a `with` block: a dictionary, filled while the model runs. It has for each
        attention, by its name in the model ("" if it is the model itself), the weights
        of its latest pass, detached, of shape (batch, n_heads, q_len, k_len). They are
        probabilities, before dropout.
    """
    return watched(model, lambda attention, weights, values: weights)


@contextmanager
def record_hidden_states(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the output of every encoder and decoder layer inside the `with` block.

    Args:
        model: any module that holds encoder or decoder layers.

    Yields:
        A dictionary, filled while the model runs: for each layer, by its name in the
        model, the output of its latest pass, detached: (batch, length, d_model).
    """
    states: dict[str, Tensor] = {}
    handles = [
        layer.register_forward_hook(
            lambda _module, _inputs, output, name=name: states.update(
                {name: output.detach()}
            )
        )
        for name, layer in model.named_modules()
        if isinstance(layer, EncoderLayer | DecoderLayer)
    ]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


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
        src: (batch, src_len), source ids, padded with the config's pad_id.
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
