"""Attention against PyTorch's, and the rules it keeps."""

import math

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, copy_attention, draw_parameters, gradients
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_book.other_code import convert_mask
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.attention import (
    MultiHeadAttention,
    eager_attention,
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
    ours, _ = scaled_dot_product_attention(*qkv, mask)
    theirs = F.scaled_dot_product_attention(*qkv, mask)
    torch.testing.assert_close(ours, theirs, **EXACT)
    torch.testing.assert_close(gradients(ours, qkv), gradients(theirs, qkv), **EXACT)


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


def test_weights_are_probabilities_and_zero_where_hidden() -> None:
    mask = make_mask()
    _, weights = scaled_dot_product_attention(*make_qkv(), mask)
    assert (weights[~mask] == 0).all()
    expected = mask.any(-1).double()  # a row without keys sums to 0
    torch.testing.assert_close(weights.sum(-1), expected, **EXACT)
    assert 0 < expected.mean() < 1


def test_future_keys_do_not_change_the_past() -> None:
    query, key, value = (x.detach().clone() for x in make_qkv(q_len=K_LEN))
    before, _ = scaled_dot_product_attention(query, key, value, causal_mask(K_LEN))
    key[..., -1, :] = value[..., -1, :] = 99.0
    after, _ = scaled_dot_product_attention(query, key, value, causal_mask(K_LEN))
    assert torch.equal(before[..., :-1, :], after[..., :-1, :])
    assert not torch.equal(before[..., -1, :], after[..., -1, :])  # the test can fail


@pytest.mark.parametrize("hide_all", [False, True])
def test_a_query_without_keys_gets_zeros_and_never_nan(hide_all) -> None:
    qkv = make_qkv()
    mask = make_mask()
    if hide_all:
        mask[1] = False
    output, weights = scaled_dot_product_attention(*qkv, mask)
    assert (output[1, :, 2] == 0).all() and (weights[1, :, 2] == 0).all()
    assert (output[0] != 0).all()
    assert all(gradient.isfinite().all() for gradient in gradients(output, qkv))


def test_large_scores_do_not_overflow() -> None:
    query, key, value = (x.detach() for x in make_qkv())
    output, weights = scaled_dot_product_attention(1e4 * query, 1e4 * key, value)
    assert output.isfinite().all() and weights.max() == 1


@BOTH_PATHS
def test_a_batch_of_no_sentences_and_values_of_no_width_stay_so(open_path) -> None:
    output = run(MultiHeadAttention(6, 2), [torch.zeros(0, 5, 6)] * 3, None, open_path)
    assert output.shape == (0, 5, 6)
    none = torch.zeros(0, 5, 4)
    assert scaled_dot_product_attention(none, none, none)[0].shape == (0, 5, 4)
    value = torch.zeros(2, 7, 0)
    output, _ = scaled_dot_product_attention(
        torch.ones(2, 5, 4), torch.ones(2, 7, 4), value
    )
    assert output.shape == (2, 5, 0)


def test_heads_have_biases_and_drop_nothing_unless_one_asks() -> None:
    attention = MultiHeadAttention(6, 2)
    assert sum(p.numel() for p in attention.parameters()) == 4 * (6 * 6 + 6)
    assert attention.dropout == 0.0
    x = torch.randn(2, 5, 4)
    _, weights = scaled_dot_product_attention(x, x, x)
    output, _ = scaled_dot_product_attention(x, x, x)
    assert torch.equal(output, weights @ x)


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
    copy_attention(ours, theirs)
    mask = make_mask().logical_or(torch.arange(K_LEN) == 1) if masked else None
    blocked = None
    if mask is not None:
        blocked = convert_mask(mask, "attend", "ignore").flatten(0, 1)
    expected, _ = theirs(*inputs, attn_mask=blocked, need_weights=False)
    output = run(ours, inputs, mask, open_path)
    torch.testing.assert_close(output, expected, **EXACT)
    torch.testing.assert_close(
        gradients(output, inputs), gradients(expected, inputs), **EXACT
    )
    torch.testing.assert_close(
        gradients(output, [ours.out_proj.weight, ours.out_proj.bias]),
        gradients(expected, [theirs.out_proj.weight, theirs.out_proj.bias]),
        **EXACT,
    )


def test_gradients_of_the_projections_equal_pytorchs() -> None:
    ours = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS))
    theirs = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True).double()
    copy_attention(ours, theirs)
    inputs = make_inputs()
    projections = [ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]
    joined = torch.cat(gradients(ours(*inputs), projections))
    (expected,) = gradients(theirs(*inputs)[0], [theirs.in_proj_weight])
    torch.testing.assert_close(joined, expected, **EXACT)


def test_weights_of_all_heads_equal_pytorchs() -> None:
    ours = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS))
    theirs = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True).double()
    copy_attention(ours, theirs)
    inputs = make_inputs()
    with record_attention(ours) as maps:
        ours(*inputs)
    _, expected = theirs(*inputs, average_attn_weights=False)
    assert maps[""].shape == (BATCH, N_HEADS, Q_LEN, K_LEN)
    torch.testing.assert_close(maps[""], expected.detach(), **EXACT)


@pytest.mark.parametrize("heads_in_mask", [1, N_HEADS])
def test_both_paths_agree_with_rows_that_have_no_key(heads_in_mask) -> None:
    attention = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS))
    inputs, mask = make_inputs(), make_mask(heads_in_mask)
    fused = run(attention, inputs, mask, open_path=False)
    shown = run(attention, inputs, mask, open_path=True)
    torch.testing.assert_close(fused, shown, **EXACT)
    torch.testing.assert_close(fused[1, 2], attention.out_proj.bias)  # zeros, mapped
    for output in (fused, shown):
        assert all(g.isfinite().all() for g in gradients(output, inputs))


@pytest.mark.parametrize(
    "shape", [(1, K_LEN), (Q_LEN, 1), (Q_LEN, K_LEN), (1, N_HEADS, 1, K_LEN)]
)
def test_a_mask_of_smaller_axes_broadcasts_on_both_paths(shape) -> None:
    torch.manual_seed(0)
    attention, inputs = MultiHeadAttention(D_MODEL, N_HEADS).double(), make_inputs()
    mask = torch.rand(shape) < 0.6
    whole = mask.expand(BATCH, N_HEADS, Q_LEN, K_LEN)
    expected = run(attention, inputs, whole, open_path=False)
    for open_path in (False, True):
        output = run(attention, inputs, mask, open_path)
        torch.testing.assert_close(output, expected, **EXACT)
    other = run(attention, inputs, ~whole, open_path=False)
    assert not torch.allclose(other, expected, atol=1e-3)  # the mask is used


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


def test_splitting_and_joining_heads_are_inverse() -> None:
    attention = MultiHeadAttention(D_MODEL, N_HEADS)
    x = torch.arange(BATCH * Q_LEN * D_MODEL).view(BATCH, Q_LEN, D_MODEL)
    heads = attention.split_heads(x)
    assert heads.shape == (BATCH, N_HEADS, Q_LEN, D_HEAD)
    assert torch.equal(heads[1, 2, 4], x[1, 4, 2 * D_HEAD : 3 * D_HEAD])
    assert torch.equal(attention.join_heads(heads), x)


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


@pytest.mark.parametrize("with_gradient", [True, False])
def test_bfloat16_agrees_with_single_precision(with_gradient) -> None:
    torch.manual_seed(0)
    attention = draw_parameters(MultiHeadAttention(D_MODEL, N_HEADS)).float()
    x = torch.randn(2, 5, D_MODEL)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    expected = attention(x, x, x, mask)
    with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(with_gradient):
        output = attention(x, x, x, mask)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("batch", [1, 16, 33])
def test_numbers_are_pytorchs_bit_for_bit_whatever_the_batch(batch) -> None:
    attention = MultiHeadAttention(D_MODEL, N_HEADS).eval()
    x = torch.randn(batch, 2, D_MODEL)
    with torch.no_grad():
        heads = [
            attention.split_heads(projection(x))
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        ]
        output = F.scaled_dot_product_attention(*heads)
        expected = attention.out_proj(attention.join_heads(output))
        assert torch.equal(attention(x, x, x), expected)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_eager_attention_multiplies_twice_with_dropout_too(dropout) -> None:
    q, k, v = (torch.randn(2, 3, 5, 8) for _ in range(3))
    with FlopCounterMode(display=False) as counter:
        eager_attention(q, k, v, None, dropout)
    assert counter.get_total_flops() == 2 * (2 * 2 * 3 * 5 * 5 * 8)
