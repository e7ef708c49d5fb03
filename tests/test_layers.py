"""Feed-forward network, encoder layer and decoder layer against PyTorch's."""

import pytest
import torch
import torch.nn.functional as F
from reference import (
    EXACT,
    copy_decoder_layer,
    copy_encoder_layer,
    draw_parameters,
    gradients,
)
from torch import Tensor, nn

from transformer_book.other_code import as_convolution, convert_mask
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    SublayerConnection,
    layer_norm,
)
from transformer_lib.model.masks import causal_mask, padding_mask

BATCH, SRC_LEN, TGT_LEN, D_MODEL, N_HEADS, D_FF = 2, 7, 5, 12, 3, 17
SRC_IDS = torch.tensor([[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 0, 0, 0]])
TGT_IDS = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 0, 0]])
VARIANTS = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
THEIRS = {"swish": F.silu}  # PyTorch knows the others by name
ACTIVATIONS = pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
MASKED = pytest.mark.parametrize("masked", [False, True], ids=["no mask", "masks"])


def make_x(length: int, width: int = D_MODEL) -> Tensor:
    torch.manual_seed(length)
    return torch.randn(BATCH, length, width, dtype=torch.float64, requires_grad=True)


def make_encoder_layer(norm_first: bool, activation: str = "relu") -> EncoderLayer:
    layer = EncoderLayer(
        MultiHeadAttention(D_MODEL, N_HEADS),
        FeedForward(D_MODEL, D_FF, activation),
        dropout=0.0,
        norm_first=norm_first,
    )
    return draw_parameters(layer)


def make_decoder_layer(norm_first: bool, activation: str = "relu") -> DecoderLayer:
    layer = DecoderLayer(
        MultiHeadAttention(D_MODEL, N_HEADS),
        MultiHeadAttention(D_MODEL, N_HEADS),
        FeedForward(D_MODEL, D_FF, activation),
        dropout=0.0,
        norm_first=norm_first,
    )
    return draw_parameters(layer)


def blocked(ids: Tensor) -> Tensor:
    """PyTorch's key_padding_mask: (batch, length), True = ignore."""
    return convert_mask(padding_mask(ids, 0), "attend", "ignore").flatten(1)


def test_feed_forward_is_equation_2() -> None:
    ffn, x = draw_parameters(FeedForward(D_MODEL, D_FF)), make_x(SRC_LEN)
    hidden = torch.clamp(x @ ffn.expand.weight.T + ffn.expand.bias, min=0)
    expected = hidden @ ffn.contract.weight.T + ffn.contract.bias
    torch.testing.assert_close(ffn(x), expected, **EXACT)


@ACTIVATIONS
def test_feed_forward_is_two_convolutions_of_kernel_size_1(activation) -> None:
    ffn = draw_parameters(FeedForward(D_MODEL, D_FF, activation)).eval()
    x = make_x(SRC_LEN)
    convolved = as_convolution(ffn)(x.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(convolved, ffn(x), **EXACT)


def test_feed_forward_treats_every_position_alike() -> None:
    ffn, x = draw_parameters(FeedForward(D_MODEL, D_FF)), make_x(SRC_LEN)
    order = torch.randperm(SRC_LEN)
    torch.testing.assert_close(ffn(x[:, order]), ffn(x)[:, order], **EXACT)


def test_gelu_differs_from_relu() -> None:
    x = torch.linspace(-3, 3, 7)
    assert torch.equal(FeedForward(2, 2, "gelu").activation(x), F.gelu(x))
    assert torch.equal(FeedForward(2, 2).activation(x), F.relu(x))


def test_activation_dropout_works_while_training() -> None:
    ffn, x = draw_parameters(FeedForward(D_MODEL, D_FF, dropout=0.5)), make_x(SRC_LEN)
    assert not torch.equal(ffn(x), ffn(x))
    assert torch.equal(ffn.eval()(x), ffn(x))


@VARIANTS
@ACTIVATIONS
@MASKED
def test_encoder_layer_equals_pytorchs(norm_first, activation, masked) -> None:
    ours, x = make_encoder_layer(norm_first, activation), make_x(SRC_LEN)
    theirs = nn.TransformerEncoderLayer(
        D_MODEL,
        N_HEADS,
        D_FF,
        0.0,
        THEIRS.get(activation, activation),
        batch_first=True,
        norm_first=norm_first,
    ).double()
    copy_encoder_layer(ours, theirs)
    output = ours(x, padding_mask(SRC_IDS, 0) if masked else None)
    expected = theirs(x, src_key_padding_mask=blocked(SRC_IDS) if masked else None)
    torch.testing.assert_close(output, expected, **EXACT)
    mine = [x, ours.feed_forward.expand.weight, ours.self_attn_connection.norm.gain]
    other = [x, theirs.linear1.weight, theirs.norm1.weight]
    torch.testing.assert_close(
        gradients(output, mine), gradients(expected, other), **EXACT
    )


@VARIANTS
@ACTIVATIONS
@MASKED
def test_decoder_layer_equals_pytorchs(norm_first, activation, masked) -> None:
    ours = make_decoder_layer(norm_first, activation)
    x, memory = make_x(TGT_LEN), make_x(SRC_LEN)
    theirs = nn.TransformerDecoderLayer(
        D_MODEL,
        N_HEADS,
        D_FF,
        0.0,
        THEIRS.get(activation, activation),
        batch_first=True,
        norm_first=norm_first,
    ).double()
    copy_decoder_layer(ours, theirs)
    our_masks, their_masks = (), {}
    if masked:
        tgt_mask = padding_mask(TGT_IDS, 0) & causal_mask(TGT_LEN)
        our_masks = (padding_mask(SRC_IDS, 0), tgt_mask)
        their_masks = {
            "tgt_mask": ~causal_mask(TGT_LEN),
            "tgt_key_padding_mask": blocked(TGT_IDS),
            "memory_key_padding_mask": blocked(SRC_IDS),
        }
    output, expected = ours(x, memory, *our_masks), theirs(x, memory, **their_masks)
    torch.testing.assert_close(output, expected, **EXACT)
    mine = [x, memory, ours.cross_attn_connection.norm.bias]
    other = [x, memory, theirs.norm2.bias]
    torch.testing.assert_close(
        gradients(output, mine), gradients(expected, other), **EXACT
    )


def test_an_encoder_of_another_width_can_be_attended_to() -> None:
    cross = MultiHeadAttention(D_MODEL, N_HEADS, d_inputs=(D_MODEL, 20, 20))
    layer = DecoderLayer(
        MultiHeadAttention(D_MODEL, N_HEADS), cross, FeedForward(D_MODEL, D_FF)
    ).double()
    memory = make_x(SRC_LEN, width=20)
    assert layer(make_x(TGT_LEN), memory).shape == (BATCH, TGT_LEN, D_MODEL)


@VARIANTS
def test_a_sentence_of_padding_leaves_layers_finite(norm_first) -> None:
    src_mask = torch.ones(BATCH, 1, 1, SRC_LEN, dtype=torch.bool)
    src_mask[1] = False
    x, memory = make_x(TGT_LEN), make_x(SRC_LEN)
    encoded = make_encoder_layer(norm_first)(memory, src_mask)
    output = make_decoder_layer(norm_first)(x, encoded, src_mask)
    for tensor in (output, *gradients(output, [x, memory])):
        assert tensor.isfinite().all()


def test_a_layer_that_is_not_told_otherwise_is_the_papers() -> None:
    sizes = (D_MODEL, N_HEADS)
    attention, other = MultiHeadAttention(*sizes), MultiHeadAttention(*sizes)
    feed_forward = FeedForward(D_MODEL, D_FF)
    layers = (
        EncoderLayer(attention, feed_forward),
        DecoderLayer(attention, other, feed_forward),
    )
    parts = [part for layer in layers for part in layer.children()]
    connections = [part for part in parts if isinstance(part, SublayerConnection)]
    assert len(connections) == 2 + 3
    for part in (*connections, SublayerConnection(D_MODEL)):
        assert (part.norm_first, part.dropout.p) == (False, 0.1)
        assert part.norm.eps == nn.LayerNorm(D_MODEL).eps
    assert isinstance(feed_forward.activation, nn.ReLU)
    assert feed_forward.dropout.p == 0.0
    x = 1e-3 * torch.randn(2, D_MODEL)  # so small that the epsilon matters
    ones, zeros = torch.ones(D_MODEL), torch.zeros(D_MODEL)
    expected = F.layer_norm(x, (D_MODEL,))
    torch.testing.assert_close(layer_norm(x, ones, zeros), expected)
    torch.testing.assert_close(LayerNorm(D_MODEL)(x), expected)
