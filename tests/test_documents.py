"""Each source document's model, expressed with the library's parts.

Every test writes the document's computation out in plain tensor operations, in that
document's own order and layout, and compares the library's model with it.
"""

from dataclasses import replace

import torch
from reference import EXACT, draw_parameters
from torch import Tensor, nn

from transformer_book.documents import DOCUMENTS
from transformer_book.other_code import as_convolution
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.layers import DecoderLayer, EncoderLayer, FeedForward
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Decoder, Encoder, Transformer

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


def feed_forward(ffn: FeedForward, x: Tensor) -> Tensor:
    return ffn.contract(ffn.expand(x).clamp(min=0))


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


def post_norm_model(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    src_bias, tgt_bias = additive_masks(src, tgt_in, model.config.pad_id)
    x = model.src_embeddings(src)
    for layer in model.encoder.layers:
        norm_1 = layer.self_attn_connection.norm
        norm_2 = layer.feed_forward_connection.norm
        x = normalize(norm_1, x + attend(layer.self_attn, x, x, x, src_bias))
        x = normalize(norm_2, x + feed_forward(layer.feed_forward, x))
    memory, x = x, model.tgt_embeddings(tgt_in)
    for layer in model.decoder.layers:
        norm_1 = layer.self_attn_connection.norm
        norm_2 = layer.cross_attn_connection.norm
        norm_3 = layer.feed_forward_connection.norm
        x = normalize(norm_1, x + attend(layer.self_attn, x, x, x, tgt_bias))
        crossed = attend(layer.cross_attn, x, memory, memory, src_bias)
        x = normalize(norm_2, x + crossed)
        x = normalize(norm_3, x + feed_forward(layer.feed_forward, x))
    return model.lm_head(x)


def pre_norm_model(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    src_bias, tgt_bias = additive_masks(src, tgt_in, model.config.pad_id)
    x = model.src_embeddings(src)
    for layer in model.encoder.layers:
        y = normalize(layer.self_attn_connection.norm, x)
        x = x + attend(layer.self_attn, y, y, y, src_bias)
        y = normalize(layer.feed_forward_connection.norm, x)
        x = x + feed_forward(layer.feed_forward, y)
    memory = normalize(model.encoder.norm, x)
    x = model.tgt_embeddings(tgt_in)
    for layer in model.decoder.layers:
        y = normalize(layer.self_attn_connection.norm, x)
        x = x + attend(layer.self_attn, y, y, y, tgt_bias)
        y = normalize(layer.cross_attn_connection.norm, x)
        x = x + attend(layer.cross_attn, y, memory, memory, src_bias)
        y = normalize(layer.feed_forward_connection.norm, x)
        x = x + feed_forward(layer.feed_forward, y)
    return model.lm_head(normalize(model.decoder.norm, x))


def test_the_fairseq_edition_both_norm_orders() -> None:
    for norm_first, written in ((False, post_norm_model), (True, pre_norm_model)):
        model = draw_parameters(Transformer(small("fairseq", norm_first=norm_first)))
        src, tgt_in = make_ids(pad_id=1)
        expected = written(model, src, tgt_in)
        torch.testing.assert_close(model(src, tgt_in), expected, **EXACT)


def test_the_fairseq_edition_features_hidden_states_and_alignment() -> None:
    model = draw_parameters(Transformer(small("fairseq")))
    src, tgt_in = make_ids(pad_id=1)
    src_mask = padding_mask(src, 1)
    tgt_mask = padding_mask(tgt_in, 1) & causal_mask(4)
    with record_attention(model) as maps, record_hidden_states(model) as states:
        memory = model.encode(src, src_mask)
        features = model.decode(tgt_in, memory, src_mask, tgt_mask)
    torch.testing.assert_close(model.lm_head(features), model(src, tgt_in), **EXACT)
    inner_states = [states[f"decoder.layers.{i}"].transpose(0, 1) for i in range(3)]
    torch.testing.assert_close(inner_states[-1].transpose(0, 1), features, **EXACT)
    assert inner_states[0].shape == (4, 2, 6)  # time first
    alignment = maps["decoder.layers.2.cross_attn"][:, :2].mean(dim=1)  # first 2 heads
    assert alignment.shape == (2, 4, 5)
    torch.testing.assert_close(alignment.sum(-1), torch.ones(2, 4).double(), **EXACT)


def test_the_fairseq_edition_counts_positions_past_padding() -> None:
    model = draw_parameters(Transformer(small("fairseq")))
    left_padded = torch.tensor([[1, 1, 5, 6, 2]])
    positions = ((left_padded != 1).cumsum(-1) - 1).clamp(min=0)
    src_mask = padding_mask(left_padded, 1)
    shifted = model.encoder(model.src_embeddings(left_padded, positions), src_mask)
    alone = model.encode(left_padded[:, 2:])
    torch.testing.assert_close(shifted[:, 2:], alone, **EXACT)


def test_the_fairseq_edition_encoder_and_decoder_of_different_width() -> None:
    encoder = Encoder([EncoderLayer(MultiHeadAttention(10, 2), FeedForward(10, 7))])
    layer = DecoderLayer(
        MultiHeadAttention(6, 3),
        MultiHeadAttention(6, 3, d_inputs=(6, 10, 10)),
        FeedForward(6, 7),
    )
    memory = encoder(torch.randn(2, 5, 10))
    features = Decoder([layer])(torch.randn(2, 4, 6), memory)
    assert nn.Linear(6, 8)(features).shape == (2, 4, 8)  # project_out_dim


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


def test_the_from_scratch_posts_model() -> None:
    model = draw_parameters(Transformer(small("post")))
    src, tgt_in = make_ids(pad_id=0)
    logits = model(src, tgt_in)
    torch.testing.assert_close(logits, post_norm_model(model, src, tgt_in), **EXACT)
    embeddings = model.tgt_embeddings
    added = embeddings.tokens.weight[tgt_in] + embeddings.positions.table[:4]
    torch.testing.assert_close(embeddings(tgt_in), added, **EXACT)
    assert model.lm_head.bias is not None


def test_transformer_for_dummies_ties_and_masks() -> None:
    model = draw_parameters(Transformer(small("dummies")))
    src, tgt_in = make_ids(pad_id=0)
    logits = model(src, tgt_in)
    torch.testing.assert_close(logits, post_norm_model(model, src, tgt_in), **EXACT)
    assert model.lm_head.weight is model.tgt_embeddings.tokens.weight
    assert model.lm_head.weight is not model.src_embeddings.tokens.weight


def test_the_annotated_transformer_revisited_is_pre_norm() -> None:
    model = draw_parameters(Transformer(small("revisited")))
    src, tgt_in = make_ids(pad_id=0)
    written = pre_norm_model(model, src, tgt_in)
    torch.testing.assert_close(model(src, tgt_in), written, **EXACT)
    wrong_place = model.eval()
    wrong_place.encoder.norm = None
    assert (wrong_place(src, tgt_in) - written).abs().max() > 1e-3
