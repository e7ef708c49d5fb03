"""Weights that fit are loaded and averaged; others are refused by name."""

import pytest
import torch
from small_models import make_model

from transformer_lib.weights import average_tensors, load_weights


def weights_of(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


NAME = "decoder.norm.gain"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({NAME: None}, f"a file has no {NAME}, but the model does"),
        ({"pooler.bias": torch.ones(1)}, "a file has pooler.bias, but the model does"),
        ({NAME: torch.ones(9)}, r"gain has shape \(9,\) in a file, but \(6,\) in the"),
        ({NAME: torch.ones(6).char()}, f"a file: {NAME} holds torch.int8, no weights"),
        ({NAME: torch.ones(6) / 0}, f"a file: {NAME} holds NaN or infinity"),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_change_nothing(changes, message):
    model = make_model(norm_first=True)
    before = weights_of(model)
    given = weights_of(make_model(seed=1, norm_first=True)) | changes
    given = {name: tensor for name, tensor in given.items() if tensor is not None}
    with pytest.raises(ValueError, match=message):
        load_weights(model, given, "a file")
    assert all(torch.equal(before[n], p) for n, p in weights_of(model).items())


def test_the_average_keeps_the_type_and_sums_in_float64():
    big, small = torch.tensor([1e8]), torch.tensor([4.0])  # float32 drops each 4
    states = [{"a": big, "b": -big}] + [{"a": small, "b": -small}] * 3
    average = average_tensors(states)
    assert average["a"].dtype == torch.float32
    assert average["a"] == -average["b"] == torch.tensor((1e8 + 12) / 4)
    assert average["a"] != 1e8 / 4 and states[0]["a"] == 1e8
