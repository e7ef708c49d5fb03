"""Each source document's model, expressed with the library's parts.

Every test writes the document's computation out in plain tensor operations, in that
document's own order and layout, and compares the library's model with it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from reference import EXACT, draw_parameters
from torch import Tensor, nn

from transformer_book.documents import DOCUMENTS
from transformer_book.other_code.dialects import as_convolution
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.layers import FeedForward
from transformer_lib.model.transformer import Transformer

SMALL = {"d_model": 6, "n_heads": 3, "d_ff": 10, "n_encoder_layers": 2,
         "n_decoder_layers": 3, "dropout": 0.0, "attention_dropout": 0.0,
         "activation_dropout": 0.0, "src_vocab_size": 13, "tgt_vocab_size": 13,
         "max_len": 9}  # fmt: skip
INF = float("inf")


def small(name: str, **changes) -> TransformerConfig:
    return replace(DOCUMENTS[name], **{**SMALL, **changes})


def make_ids(pad_id: int) -> tuple[Tensor, Tensor]:
    src = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, pad_id, pad_id]])
    tgt_in = torch.tensor([[2, 3, 10, 4], [2, 9, 6, pad_id]])
    return src, tgt_in


def attend(layer: MultiHeadAttention, query, key, value, bias: Tensor) -> Tensor:
    """Head by head, with an additive mask, as all five documents describe it."""
    inputs = ((query, layer.q_proj), (key, layer.k_proj), (value, layer.v_proj))
    heads = []
    for rows in torch.arange(layer.d_model).chunk(layer.n_heads):
        q, k, v = (
            nn.functional.linear(
                x, p.weight[rows], None if p.bias is None else p.bias[rows]
            )
            for x, p in inputs
        )
        scores = torch.einsum("bqd,bkd->bqk", q, k) / layer.d_head**0.5 + bias
        heads.append(torch.einsum("bqk,bkd->bqd", scores.softmax(-1), v))
    return layer.out_proj(torch.cat(heads, dim=-1))


def feed_forward(ffn: FeedForward) -> Callable[[Tensor], Tensor]:
    return lambda x: ffn.contract(ffn.expand(x).clamp(min=0))


def normalize(norm, x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    variance = centered.pow(2).mean(-1, keepdim=True)
    return centered / (variance + norm.eps).sqrt() * norm.gain + norm.bias


def additive_masks(src: Tensor, tgt_in: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """0 and -infinity: (batch, 1, src_len) and (batch, tgt_len, tgt_len)."""
    future = torch.full((tgt_in.size(1),) * 2, -INF).triu(1).double()
    pads = torch.zeros(tgt_in.shape).double().masked_fill(tgt_in == pad_id, -INF)
    src_bias = torch.zeros(src.shape).double().masked_fill(src == pad_id, -INF)
    return src_bias[:, None], future + pads[:, None]


def written_out(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    """The logits, layer by layer; norms stand where the configuration puts them."""
    pre_norm = model.config.norm_first
    src_bias, tgt_bias = additive_masks(src, tgt_in, model.config.pad_id)

    def connect(connection, x, sublayer):
        if pre_norm:
            return x + sublayer(normalize(connection.norm, x))
        return normalize(connection.norm, x + sublayer(x))

    def itself(layer, bias):
        return lambda x: attend(layer.self_attn, x, x, x, bias)

    x = model.src_embeddings(src)
    for layer in model.encoder.layers:
        x = connect(layer.self_attn_connection, x, itself(layer, src_bias))
        x = connect(layer.feed_forward_connection, x, feed_forward(layer.feed_forward))
    memory = normalize(model.encoder.norm, x) if pre_norm else x
    x = model.tgt_embeddings(tgt_in)
    for layer in model.decoder.layers:
        x = connect(layer.self_attn_connection, x, itself(layer, tgt_bias))
        cross = partial(attend, layer.cross_attn, key=memory, value=memory)
        x = connect(layer.cross_attn_connection, x, partial(cross, bias=src_bias))
        x = connect(layer.feed_forward_connection, x, feed_forward(layer.feed_forward))
    return model.lm_head(normalize(model.decoder.norm, x) if pre_norm else x)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("fairseq", {}),
        ("fairseq", {"norm_first": True}),
        ("post", {}),
        ("dummies", {}),
        ("revisited", {}),
    ],
)
def test_the_documents_model_is_ours(name, changes) -> None:
    model = draw_parameters(Transformer(small(name, **changes)))
    src, tgt_in = make_ids(model.config.pad_id)
    expected = written_out(model, src, tgt_in)
    torch.testing.assert_close(model(src, tgt_in), expected, **EXACT)


def test_the_lectures_classifier() -> None:
    model = draw_parameters(
        EncoderClassifier(small("lecture", n_encoder_layers=1, n_decoder_layers=0), 2)
    )
    ids = make_ids(pad_id=1)[0][:1]  # one review without padding: it has no mask
    table = model.embeddings.positions(torch.arange(5)).double()
    tokens = model.embeddings.tokens.weight[ids]
    x = normalize(model.embeddings.norm, tokens + table)
    (layer,) = model.encoder.layers
    convolution = as_convolution(layer.feed_forward)
    nothing = torch.zeros(1, dtype=torch.float64)
    attended = attend(layer.self_attn, x, x, x, nothing)
    x = normalize(layer.self_attn_connection.norm, x + attended)
    convolved = convolution(x.transpose(1, 2)).transpose(1, 2)
    x = normalize(layer.feed_forward_connection.norm, x + convolved)
    expected = model.head(torch.max(x, dim=1).values)
    torch.testing.assert_close(model(ids), expected, **EXACT)


def test_the_posts_positions_and_the_tied_outputs() -> None:
    post, dummies = (Transformer(small(name)) for name in ("post", "dummies"))
    tgt_in = make_ids(pad_id=0)[1]
    added = post.tgt_embeddings.tokens.weight[tgt_in]
    added = added + post.tgt_embeddings.positions.table[:4]
    torch.testing.assert_close(post.tgt_embeddings(tgt_in), added)
    assert post.lm_head.bias is not None
    assert dummies.lm_head.weight is dummies.tgt_embeddings.tokens.weight
    assert dummies.lm_head.weight is not dummies.src_embeddings.tokens.weight
