"""Layer norm against PyTorch's, and where the residual connection puts it."""

import pytest
import torch
from reference import EXACT, copy_norm, draw_parameters, gradients
from torch import nn

from transformer_lib.model.layers import LayerNorm, SublayerConnection, layer_norm

SHAPE = (2, 5, 7)


def make_x() -> torch.Tensor:
    torch.manual_seed(0)
    return (3 * torch.randn(SHAPE, dtype=torch.float64) + 2).requires_grad_()


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.1])
def test_layer_norm_and_its_gradients_equal_pytorchs(eps) -> None:
    x, ours = make_x(), draw_parameters(LayerNorm(7, eps))
    theirs = nn.LayerNorm(7, eps).double()
    copy_norm(ours, theirs)
    written_out = layer_norm(x, ours.gain, ours.bias, eps)
    torch.testing.assert_close(ours(x), theirs(x), **EXACT)
    torch.testing.assert_close(written_out, theirs(x), **EXACT)
    expected = gradients(theirs(x), [x, theirs.weight, theirs.bias])
    for output in (ours(x), written_out):
        torch.testing.assert_close(
            gradients(output, [x, ours.gain, ours.bias]), expected, **EXACT
        )


def test_a_fresh_layer_norm_gives_mean_0_and_biased_variance_1() -> None:
    y = LayerNorm(7, eps=1e-12).double()(make_x())
    torch.testing.assert_close(y.mean(-1), torch.zeros(2, 5).double(), **EXACT)
    ones = torch.ones(2, 5).double()
    torch.testing.assert_close(y.var(-1, unbiased=False), ones, **EXACT)


def test_equal_features_give_the_bias_and_no_nan() -> None:
    norm = draw_parameters(LayerNorm(7))
    x = torch.full((1, 7), 4.0, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(norm(x)[0], norm.bias, **EXACT)
    assert gradients(norm(x), [x])[0].isfinite().all()


def test_post_norm_normalizes_the_sum_and_pre_norm_the_input() -> None:
    x, double = make_x(), lambda x: 2 * x
    post = SublayerConnection(7, dropout=0.0).double()
    pre = SublayerConnection(7, dropout=0.0, norm_first=True).double()
    torch.testing.assert_close(post(x, double), post.norm(3 * x), **EXACT)
    torch.testing.assert_close(pre(x, double), x + 2 * pre.norm(x), **EXACT)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_takes_from_the_sublayer_and_not_from_the_residual(norm_first) -> None:
    x = make_x()
    connection = SublayerConnection(7, dropout=0.5, norm_first=norm_first).double()
    connection.norm = nn.Identity()
    torch.manual_seed(1)
    added = connection(x, torch.ones_like) - x
    assert set(added.detach().round(decimals=6).unique().tolist()) == {0.0, 2.0}
    connection.eval()
    torch.testing.assert_close(connection(x, torch.ones_like), x + 1, **EXACT)
