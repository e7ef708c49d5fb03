"""What a decoder's cache holds, read back from its numbers."""

import torch
from torch import Tensor

from transformer_lib.generation import IncrementalDecoder


def tokens_of_keys(decoder: IncrementalDecoder) -> Tensor:
    """Say which tokens a decoder has read, from the keys of its first layer.

    There a key depends on its token and position alone. So every token is projected
    at every position, and the nearest key tells.

    Args:
        decoder: that has read at least 1 token.

    Returns:
        (n_rows, length), ids.

    Raises:
        ValueError: a key belongs to no token at its position.
    """
    model, layer = decoder.model, decoder.model.decoder.layers[0]
    every = torch.arange(model.config.tgt_vocab_size)[:, None]
    x = model.tgt_embeddings(every.expand(-1, decoder.length))
    if layer.self_attn_connection.norm_first:
        x = layer.self_attn_connection.norm(x)
    keys = layer.self_attn.split_heads(layer.self_attn.k_proj(x))
    kept = decoder.cache[layer.self_attn][0]  # (n_rows, n_heads, length, d_head)
    kept, keys = (each.permute(2, 0, 1, 3).flatten(2) for each in (kept, keys))
    gaps, tokens = torch.cdist(kept, keys).min(dim=-1)  # (length, n_rows)
    if (gaps > 1e-3 * keys.norm(dim=-1).max()).any():
        raise ValueError("a key in the cache belongs to no token at its position")
    return tokens.T
