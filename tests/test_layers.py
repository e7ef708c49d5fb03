"""Layer norm against PyTorch's, and where the residual connection drops out.

The layers that are made of them stand against PyTorch's in `test_model`.
"""

import pytest
import torch
from reference import EXACT, draw_parameters, gradients
from torch import nn

from transformer_lib.model.layers import LayerNorm, SublayerConnection, layer_norm


def make_x() -> torch.Tensor:
    torch.manual_seed(0)
    return (3 * torch.randn(2, 5, 7, dtype=torch.float64) + 2).requires_grad_()


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.1])
def test_layer_norm_and_its_gradients_equal_pytorchs(eps) -> None:
    x, ours = make_x(), draw_parameters(LayerNorm(7, eps))
    theirs = nn.LayerNorm(7, eps).double()
    theirs.load_state_dict({"weight": ours.gain, "bias": ours.bias})
    expected = gradients(theirs(x), [x, theirs.weight, theirs.bias])
    for output in (ours(x), layer_norm(x, ours.gain, ours.bias, eps)):
        torch.testing.assert_close(output, theirs(x), **EXACT)
        torch.testing.assert_close(
            gradients(output, [x, ours.gain, ours.bias]), expected, **EXACT
        )


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
