"""The chart of the cache shows what an uncached pass computes, step by step."""

import pytest
import torch
from drawn_charts import SRC, TGT, TOKENS, drawn, make_model, marks, number, sample

from transformer_book.charts.cache import BLOCKS, record_cache, tokens_of_keys
from transformer_lib import Transformer, record_attention
from transformer_lib.generation import IncrementalDecoder
from transformer_lib.interpret.kernels import named_attentions
from transformer_lib.model import fused_attention


def test_the_recorded_weights_are_those_of_one_uncached_pass() -> None:
    model = make_model()
    with torch.no_grad(), record_attention(model.decoder) as maps:
        model(SRC, TGT)
    recorded = record_cache(model, SRC, TGT)
    assert [entries.block for entries in recorded] == list(BLOCKS) * 3
    for entries in recorded:
        expected = maps[f"layers.{entries.layer}.{entries.block}"][0]
        torch.testing.assert_close(entries.weights, expected)


def test_the_recorded_source_keys_are_projections_of_the_memory() -> None:
    model = make_model()
    memory = model.encode(SRC)
    for entries in record_cache(model, SRC, TGT):
        if entries.block == "cross_attn":
            attention = model.decoder.layers[entries.layer].cross_attn
            projections = attention.k_proj, attention.v_proj
            for kept, project in zip(entries.keys_values, projections, strict=True):
                expected = attention.split_heads(project(memory))[0]
                torch.testing.assert_close(kept, expected)


@pytest.mark.parametrize("part", ["keys", "values"])
def test_the_chosen_entries_are_drawn(part: str) -> None:
    svg = drawn(sample("cache_explorer"), step=3, layer="1", head=1, part=part)
    found = {
        (mark["token"], int(mark["feature"])): number(mark["value"])
        for mark in marks(svg, "value")
    }
    number_of = ["keys", "values"].index(part)
    upper, lower = record_cache(make_model(), SRC, TGT)[2:4]
    for entries, names in ((upper, TOKENS[1][:3]), (lower, TOKENS[0])):
        for position, name in enumerate(names):
            for k, value in enumerate(entries.keys_values[number_of, 1, position]):
                assert found[name, k] == pytest.approx(value.item(), abs=1e-3)
    assert len(found) == (3 + 5) * 3


@pytest.mark.parametrize("step", [1, 4])
def test_a_step_reads_what_is_there_and_nothing_else(step: int) -> None:
    svg = drawn(sample("cache_explorer"), step=step, layer="2", head=0)
    upper, lower = record_cache(make_model(), SRC, TGT)[4:]
    found = {mark["token"]: number(mark["weight"]) for mark in marks(svg, "weight")}
    names = [*TOKENS[1][:step], *TOKENS[0]]
    assert list(found) == names
    weights = [*upper.weights[0, step - 1, :step], *lower.weights[0, step - 1]]
    for name, weight in zip(names, weights, strict=True):
        assert found[name] == pytest.approx(weight.item(), abs=1e-3)
    assert svg.count(">(free)</text>") == 4 - step


def test_the_title_counts_the_entries() -> None:
    svg = drawn(sample("cache_explorer"), step=3)
    assert ">step 3 reads y at position 2<" in svg
    assert ">self-attention: 2 kept, 1 new, 1 free<" in svg
    assert ">cross-attention: 5 kept, none new<" in svg
    assert ">cross-attention: 0 kept, 5 new<" in drawn(sample("cache_explorer"), step=1)


def start(model: Transformer, n_beams: int = 1) -> IncrementalDecoder:
    decoder = IncrementalDecoder(model)
    decoder.prefill(SRC, n_beams)
    return decoder


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_the_tokens_of_a_cache_are_read_back(norm_first: bool) -> None:
    rows = torch.tensor([[1, 4, 4], [1, 4, 9], [1, 10, 4]])
    decoder = start(make_model(norm_first=norm_first), n_beams=3)
    decoder.read(rows)
    assert torch.equal(tokens_of_keys(decoder), rows)
    decoder.reorder(torch.tensor([[2, 0, 0]]))
    assert torch.equal(tokens_of_keys(decoder), rows[[2, 0, 0]])


@torch.no_grad()
def test_keys_at_a_wrong_position_belong_to_no_token() -> None:
    decoder = start(make_model())
    decoder.cache.positions = lambda ids: torch.zeros_like(ids[0])
    for token in TGT.split(1, dim=1):
        decoder.read(token)
    with pytest.raises(ValueError, match="belongs to no token"):
        tokens_of_keys(decoder)


def test_the_model_is_left_as_it_was_and_drops_nothing_out() -> None:
    model = make_model(dropout=0.5).train()
    first, second = (record_cache(model, SRC, TGT) for _ in range(2))
    assert torch.equal(first[0].weights, second[0].weights)
    assert model.training
    assert {each.kernel for _, each in named_attentions(model)} == {fused_attention}
