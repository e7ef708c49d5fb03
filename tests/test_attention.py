"""Attention against PyTorch's, and the rules it keeps."""

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters, gradients
from torch import Tensor, nn

import transformer_lib as tl

BATCH, N_HEADS, Q_LEN, K_LEN, D_HEAD, D_VALUE = 2, 3, 5, 7, 11, 13
D_MODEL = N_HEADS * D_HEAD
WIDTHS = (D_MODEL,) * 3
BOTH_PATHS = pytest.mark.parametrize("open_path", [False, True], ids=["fused", "open"])


def draw(*axes: int, widths: tuple[int, ...]) -> list[Tensor]:
    """Queries, keys and values of these widths."""
    torch.manual_seed(0)
    return [
        torch.randn(*axes, length, width, dtype=torch.float64, requires_grad=True)
        for length, width in zip((Q_LEN, K_LEN, K_LEN), widths, strict=True)
    ]


def make_mask() -> Tensor:
    """A random mask; in the second sentence one query has no key left."""
    mask = torch.rand(BATCH, N_HEADS, Q_LEN, K_LEN) < 0.6
    mask[0, ..., 0] = True
    mask[1, :, 2] = False
    return mask


def run(attention: tl.MultiHeadAttention, inputs, mask, open_path: bool) -> Tensor:
    if not open_path:
        return attention(*inputs, mask)
    with tl.record_attention(attention):
        return attention(*inputs, mask)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_and_its_gradients_equal_pytorchs(masked):
    qkv = draw(BATCH, N_HEADS, widths=(D_HEAD, D_HEAD, D_VALUE))
    mask = make_mask() if masked else None
    ours, weights = tl.scaled_dot_product_attention(*qkv, mask)
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


def copy_weights(ours: tl.MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Give PyTorch's attention our weights."""
    state, parts = theirs.state_dict(), (ours.q_proj, ours.k_proj, ours.v_proj)
    if theirs.in_proj_weight is None:  # widths differ
        for name, part in zip("qkv", parts, strict=True):
            state[f"{name}_proj_weight"] = part.weight
    else:
        state["in_proj_weight"] = torch.cat([part.weight for part in parts])
    if ours.q_proj.bias is not None:
        state["in_proj_bias"] = torch.cat([part.bias for part in parts])
    state["out_proj.weight"] = ours.out_proj.weight
    state["out_proj.bias"] = ours.out_proj.bias
    theirs.load_state_dict(state)


@BOTH_PATHS
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("d_inputs", [None, (D_MODEL, 10, 17)])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_attention_equals_pytorchs(open_path, masked, d_inputs, bias):
    inputs = draw(BATCH, widths=d_inputs or WIDTHS)
    ours = draw_parameters(tl.MultiHeadAttention(D_MODEL, N_HEADS, d_inputs, bias))
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
    with tl.record_attention(ours) as maps:
        ours(*inputs, mask)
    torch.testing.assert_close(maps[""], weights.detach(), **EXACT)


@BOTH_PATHS
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_no_precision_and_no_dropout_makes_nan(open_path, dropout, dtype):
    attention = tl.MultiHeadAttention(D_MODEL, N_HEADS, dropout=dropout).to(dtype)
    inputs = [x.detach().to(dtype).requires_grad_() for x in draw(BATCH, widths=WIDTHS)]
    output = run(attention, inputs, make_mask(), open_path)
    assert torch.equal(output[1, 2], attention.out_proj.bias)
    assert not torch.equal(output[1, 1], attention.out_proj.bias)
    assert all(g.isfinite().all() for g in gradients(output, inputs))


@BOTH_PATHS
def test_dropout_acts_on_weights_while_training_only(open_path):
    attention = draw_parameters(tl.MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.5))
    inputs = draw(BATCH, widths=WIDTHS)
    torch.manual_seed(1)
    first, second = (run(attention, inputs, None, open_path) for _ in range(2))
    assert not torch.equal(first, second)
    attention.eval()
    first, second = (run(attention, inputs, None, open_path) for _ in range(2))
    assert torch.equal(first, second)
