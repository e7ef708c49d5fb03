"""The detour for few rows gives what PyTorch's linear layer gives."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib import linear as module
from transformer_lib.linear import FEW_ROWS, Linear


@pytest.mark.parametrize(
    "shape", [(1, 5), (1, 1, 5), (2, 5), (2, 3, 5), (8, 5), (9, 5)]
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_out", [3, 5, 11])
def test_results_are_those_of_pytorch(shape, bias, d_out) -> None:
    torch.manual_seed(0)
    layer, x = Linear(5, d_out, bias=bias), torch.randn(shape)
    with torch.inference_mode():
        found = layer(x)
    expected = F.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert found.shape == (*shape[:-1], d_out)


def test_the_detour_is_taken_for_few_rows_of_a_search(monkeypatch) -> None:
    taken = []
    original = module.F.linear
    monkeypatch.setattr(
        module.F, "linear", lambda *given: taken.append("direct") or original(*given)
    )
    layer = Linear(5, 11)
    with torch.no_grad():
        layer(torch.randn(2, 5))
    with torch.inference_mode():
        layer(torch.randn(FEW_ROWS + 1, 5))
        layer.double()(torch.randn(2, 5).double())
        assert taken == ["direct"] * 3
        layer.float()(torch.randn(FEW_ROWS, 5))
    assert taken == ["direct"] * 3


def test_parameters_are_pytorchs() -> None:
    torch.nn.Linear(5, 11).load_state_dict(Linear(5, 11).state_dict())
