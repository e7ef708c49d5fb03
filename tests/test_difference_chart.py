"""Habits of other dialects, taken over, and the chart of what they change."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer_lib.charts.dialects import (
    HABITS,
    SMALLEST,
    difference_explorer,
    take_over,
)
from transformer_lib.model.presets import PRESETS
from transformer_lib.model.transformer import Transformer

SRC, TGT_IN = torch.tensor([[3, 4, 2, 0]]), torch.tensor([[1, 5, 6]])


def make_model() -> Transformer:
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 20, "max_len": 9, "pad_id": 0}
    sizes |= {"src_vocab_size": 7, "tgt_vocab_size": 7}
    sizes |= {"n_encoder_layers": 2, "n_decoder_layers": 1}
    torch.manual_seed(0)
    return Transformer(replace(PRESETS["fairseq"], **sizes)).double().eval()


@pytest.mark.parametrize("habit", HABITS)
def test_only_the_first_habit_changes_nothing(habit) -> None:
    model = make_model()
    before = model(SRC, TGT_IN)
    take_over(model, habit)
    change = (model(SRC, TGT_IN) - before).norm() / before.norm()
    assert (change < 1e-12) == (habit == next(iter(HABITS)))


def test_the_unbiased_variance_is_that_of_std() -> None:
    model = make_model()
    norm = model.encoder.layers[0].self_attn_connection.norm
    take_over(model, "unbiased variance")
    norm.eps = 1e-30
    x = torch.randn(5, 12).double()
    expected = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
    torch.testing.assert_close(norm(x), expected)


def test_the_divisor_becomes_half_of_the_width() -> None:
    model = make_model()
    attention = model.encoder.layers[0].self_attn
    before = attention.q_proj.weight / math.sqrt(4)
    take_over(model, "divisor d_model / 2")
    torch.testing.assert_close(attention.q_proj.weight / math.sqrt(4), before * 2 / 6)


def test_an_unknown_habit_and_a_model_without_the_part_are_refused() -> None:
    with pytest.raises(ValueError, match="habit must be one of .*'GELU'.*'gelu'"):
        take_over(make_model(), "gelu")
    with pytest.raises(ValueError, match="Linear holds no FeedForward"):
        take_over(nn.Linear(2, 2), "GELU")


def test_the_chart_shows_powers_of_ten_for_a_width_to_choose() -> None:
    values = {"a": 1e-3, "b": 0.0}
    chart = difference_explorer({16: values, 64: {"a": 1e-4, "b": 0.1}}, limit=1e-10)
    spec = chart.to_dict()
    rows = next(d for d in spec["layer"][1]["data"]["values"] if d["width"] == "64")
    assert rows == {"width": "64", "change": "a", "power": -4.0}
    powers = [row["power"] for row in spec["layer"][1]["data"]["values"]]
    assert powers == [-3.0, math.log10(SMALLEST), -4.0, -1.0]
    assert spec["layer"][0]["data"]["values"] == [{"power": -10.0}]
    (param,) = [p for p in spec["params"] if p["name"] == "width"]
    assert param["bind"]["options"] == ["16", "64"]
