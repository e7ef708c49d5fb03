"""Attention against PyTorch's, and the rules it keeps."""

import math

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters, gradients
from torch import Tensor, nn

from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.masks import causal_mask

BATCH, N_HEADS, Q_LEN, K_LEN, D_HEAD, D_VALUE = 2, 3, 5, 7, 11, 13
D_MODEL = N_HEADS * D_HEAD
BOTH_PATHS = pytest.mark.parametrize("open_path", [False, True], ids=["fused", "open"])


def make_qkv(q_len: int = Q_LEN) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shapes = [(q_len, D_HEAD), (K_LEN, D_HEAD), (K_LEN, D_VALUE)]
    return tuple(
        torch.randn(BATCH, N_HEADS, *shape, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    )


def make_mask(heads: int = N_HEADS) -> Tensor:
    """A random mask; in the second sentence one query has no key left."""
    mask = torch.rand(BATCH, heads, Q_LEN, K_LEN) < 0.6
    mask[0, ..., 0] = True
    mask[1, :, 2] = False
    return mask


def make_inputs(d_inputs=(D_MODEL, D_MODEL, D_MODEL)) -> list[Tensor]:
    torch.manual_seed(0)
    lengths = (Q_LEN, K_LEN, K_LEN)
    return [
        torch.randn(BATCH, length, width, dtype=torch.float64, requires_grad=True)
        for length, width in zip(lengths, d_inputs, strict=True)
    ]


def run(attention: MultiHeadAttention, inputs, mask, open_path: bool) -> Tensor:
    if not open_path:
        return attention(*inputs, mask)
    with record_attention(attention):
        return attention(*inputs, mask)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_and_its_gradients_equal_pytorchs(masked) -> None:
    qkv = make_qkv()
    mask = make_mask() if masked else None
    ours, weights = scaled_dot_product_attention(*qkv, mask)
    theirs = F.scaled_dot_product_attention(*qkv, mask)
    torch.testing.assert_close(ours, theirs, **EXACT)
    found = gradients(ours, qkv)
    torch.testing.assert_close(found, gradients(theirs, qkv), **EXACT)
    assert all(gradient.isfinite().all() for gradient in found)
    if masked:  # a row without keys gets zeros
        assert (weights[~mask] == 0).all() and (ours[1, :, 2] == 0).all()
        sums = mask.any(-1).double()
        torch.testing.assert_close(weights.sum(-1), sums, **EXACT)
        assert 0 < sums.mean() < 1


def test_attention_equals_loops_over_single_numbers() -> None:
    query, key, value = (x[0, 0].detach() for x in make_qkv())
    output, weights = scaled_dot_product_attention(query, key, value)
    for i in range(Q_LEN):
        scores = [
            sum(query[i, d] * key[j, d] for d in range(D_HEAD)) / math.sqrt(D_HEAD)
            for j in range(K_LEN)
        ]
        exps = [math.exp(score) for score in scores]
        row = torch.tensor([e / sum(exps) for e in exps], dtype=torch.float64)
        torch.testing.assert_close(weights[i], row, **EXACT)
        torch.testing.assert_close(output[i], row @ value, **EXACT)


def test_future_keys_do_not_change_the_past() -> None:
    query, key, value = (x.detach().clone() for x in make_qkv(q_len=K_LEN))
    before, _ = scaled_dot_product_attention(query, key, value, causal_mask(K_LEN))
    key[..., -1, :] = value[..., -1, :] = 99.0
    after, _ = scaled_dot_product_attention(query, key, value, causal_mask(K_LEN))
    assert torch.equal(before[..., :-1, :], after[..., :-1, :])
    assert not torch.equal(before[..., -1, :], after[..., -1, :])  # the test can fail


def copy_weights(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Give PyTorch's attention our weights."""
    state = theirs.state_dict()
    weights = [ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]
    if theirs.in_proj_weight is None:  # widths differ
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        state |= dict(zip(names, weights, strict=True))
    else:
        state["in_proj_weight"] = torch.cat(weights)
    if ours.q_proj.bias is not None:
        biases = [ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]
        state["in_proj_bias"] = torch.cat(biases)
    state["out_proj.weight"] = ours.out_proj.weight
    state["out_proj.bias"] = ours.out_proj.bias
    theirs.load_state_dict(state)


@BOTH_PATHS
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("d_inputs", [None, (D_MODEL, 10, 17)])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_attention_equals_pytorchs(
    open_path, masked, d_inputs, bias
) -> None:
    inputs = make_inputs(d_inputs or (D_MODEL,) * 3)
    ours = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS, d_inputs, bias))
    _, kdim, vdim = d_inputs or (None, None, None)
    theirs = nn.MultiheadAttention(
        D_MODEL, N_HEADS, kdim=kdim, vdim=vdim, batch_first=True
    ).double()
    copy_weights(ours, theirs)
    mask = make_mask().logical_or(torch.arange(K_LEN) == 1) if masked else None
    blocked = None if mask is None else ~mask.flatten(0, 1)  # True = ignore
    expected, weights = theirs(*inputs, attn_mask=blocked, average_attn_weights=False)
    output = run(ours, inputs, mask, open_path)
    torch.testing.assert_close(output, expected, **EXACT)
    mine = [*inputs, ours.out_proj.weight, ours.out_proj.bias]
    other = [*inputs, theirs.out_proj.weight, theirs.out_proj.bias]
    torch.testing.assert_close(
        gradients(output, mine), gradients(expected, other), **EXACT
    )
    with record_attention(ours) as maps:
        ours(*inputs, mask)
    torch.testing.assert_close(maps[""], weights.detach(), **EXACT)


@pytest.mark.parametrize("heads_in_mask", [1, N_HEADS])
def test_both_paths_agree_with_rows_that_have_no_key(heads_in_mask) -> None:
    attention = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS))
    inputs, mask = make_inputs(), make_mask(heads_in_mask)
    fused = run(attention, inputs, mask, open_path=False)
    shown = run(attention, inputs, mask, open_path=True)
    torch.testing.assert_close(fused, shown, **EXACT)
    torch.testing.assert_close(fused[1, 2], attention.out_proj.bias)  # zeros, mapped


@BOTH_PATHS
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_no_precision_and_no_dropout_makes_nan(open_path, dropout, dtype) -> None:
    attention = MultiHeadAttention(D_MODEL, N_HEADS, dropout=dropout).to(dtype)
    inputs = [x.detach().to(dtype).requires_grad_() for x in make_inputs()]
    output = run(attention, inputs, make_mask(), open_path)
    assert torch.equal(output[1, 2], attention.out_proj.bias)
    assert not torch.equal(output[1, 1], attention.out_proj.bias)
    assert all(g.isfinite().all() for g in gradients(output, inputs))


@BOTH_PATHS
def test_dropout_acts_on_weights_while_training_only(open_path) -> None:
    attention = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.5))
    inputs = make_inputs()
    torch.manual_seed(1)
    first, second = (run(attention, inputs, None, open_path) for _ in range(2))
    assert not torch.equal(first, second)
    attention.eval()
    first, second = (run(attention, inputs, None, open_path) for _ in range(2))
    assert torch.equal(first, second)
