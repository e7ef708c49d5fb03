"""Each chart draws the numbers that it was given, for every choice of the reader."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from drawn_charts import (
    DIFFERENCES,
    EN,
    LENGTHS,
    MEASURES,
    PLANS,
    SRC,
    STACKS,
    TABLES,
    TGT,
    draw,
    drawn,
    make_model,
    marks,
    number,
    sample,
)

from transformer_book import charts
from transformer_book.charts.cache import BLOCKS, record_cache, tokens_of_keys
from transformer_book.charts.masks import BLOCKS as MASKED
from transformer_book.charts.model_flow import model_boxes, record_flow
from transformer_book.charts.variants import SMALLEST
from transformer_lib import causal_mask, padding_mask, record_attention, sinusoid_table
from transformer_lib.generation import IncrementalDecoder
from transformer_lib.training.loop import learning_rate

SIDES = {"source": ["die", "Katze", "die"], "target": ["<bos>", "cat"]}  # one twice
SOURCE, TARGET = SIDES.values()
MAPS = [draw(5, 2, 3, seed=seed).softmax(dim=-1) for seed in range(2)]
QUERY, KEY = draw(7, 3), draw(7, 3, seed=1)
STATES = {"a": draw(3, 5), "b": draw(3, 5, seed=1)}
TABLE = sinusoid_table(7, 4)
MODEL = make_model()
FLOW, CACHE = record_flow(MODEL, SRC, TGT), record_cache(MODEL, SRC, TGT)


def cosines(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=-1)


def curves(measure: str, n_layers: int) -> torch.Tensor:
    return torch.cat([MEASURES[measure][n_layers][stack] for stack in STACKS])


def entries(step: int, layer: int, head: int, part: int) -> torch.Tensor:
    """What a step reads: entries of self-attention, then of cross-attention."""
    own, cross = (each.keys_values[part, head] for each in CACHE[2 * layer :][:2])
    return torch.cat([own[:step], cross])


def read_weights(step: int, layer: int, head: int) -> torch.Tensor:
    own, cross = (each.weights[head, step - 1] for each in CACHE[2 * layer :][:2])
    return torch.cat([own[:step], cross])


def box(name: str) -> list[dict[str, int]]:
    """The choice of a box of the model."""
    return [{"q": [box.name for box in BOXES].index(name)}]


def weights_of(head: int) -> torch.Tensor:
    return FLOW["decoder 2: cross-attention, weights"][0, head]


BOXES = model_boxes(2, 3)
MEMORY = "encoder 1: add & norm after feed-forward"
ATTENTION = charts.attention_explorer(
    {f"layer {i}": maps for i, maps in enumerate(MAPS)}, TARGET, SOURCE, head=1
)
DIVISOR = charts.divisor_explorer(QUERY, KEY, EN[:7], start=2)
SIMILARITY = charts.similarity_explorer(STATES, SOURCE)
DEPTH, ENTRIES, WHOLE = map(
    sample, ("depth_explorer", "cache_explorer", "model_explorer")
)
OTHER_BLOCK = {"step": 3, "layer": "1", "head": 1}

# A chart, what the reader chooses, and the numbers of a field that must be drawn then.
# fmt: off
CHOICES = [
    (ATTENTION, {}, "weight", MAPS[0][1]),
    (ATTENTION, {"layer": "layer 1", "head": 3}, "weight", MAPS[1][3]),
    (DIVISOR, {"q": 4, "power": -4}, "weight", (16 * QUERY[4] @ KEY.T).softmax(-1)),
    (DIVISOR, {"power": 9}, "weight", (QUERY[2] @ KEY.T / 512).softmax(-1)),
    (SIMILARITY, {"layer": "a"}, "cosine", cosines(STATES["a"])),
    (SIMILARITY, {"layer": "b"}, "cosine", cosines(STATES["b"])),
    (charts.position_explorer(TABLE), {"chosen": 5}, "dot product", TABLE @ TABLE[5]),
    (DEPTH, {"layers": "2"}, "gradient", curves("gradient", 2)),
    (DEPTH, {"layers": "5"}, "variance", curves("variance", 5)),
    (ENTRIES, {**OTHER_BLOCK, "part": "keys"}, "value", entries(3, 1, 1, 0)),
    (ENTRIES, {**OTHER_BLOCK, "part": "values"}, "value", entries(3, 1, 1, 1)),
    (ENTRIES, {"step": 1, "layer": "2"}, "weight", read_weights(1, 2, 0)),
    (ENTRIES, {"step": 4, "layer": "2"}, "weight", read_weights(4, 2, 0)),
    (WHOLE, {"box": box("decoder 2: cross-attention"), "numbers": "weights of head 0"},
     "value", weights_of(0)),
    (WHOLE, {"box": box("decoder 2: cross-attention"), "numbers": "weights of head 1"},
     "value", weights_of(1)),
    (WHOLE, {"box": box("decoder 0: cross-attention"), "numbers": "second input"},
     "value", FLOW[MEMORY]),
    (WHOLE, {"box": box("lm_head")}, "value", FLOW["lm_head"]),
    (WHOLE, {"box": box("source ids"), "numbers": "weights of head 0"},
     "value", torch.empty(0)),
]
# fmt: on


@pytest.mark.parametrize(("chart", "choices", "field", "expected"), CHOICES)
def test_the_chosen_numbers_are_drawn(chart, choices, field: str, expected) -> None:
    found = [number(mark[field]) for mark in marks(drawn(chart, **choices), field)]
    np.testing.assert_allclose(found, expected.detach().flatten(), atol=1e-3)


OUT = "rows: target tokens, columns: "
CROSS, SELF = "decoder 0: cross-attention", "decoder 0: self-attention"
# fmt: off
SAYINGS = [
    (ENTRIES, {"step": 3}, ">step 3 reads y at position 2<"),
    (ENTRIES, {"step": 3}, ">self-attention: 2 kept, 1 new, 1 free<"),
    (ENTRIES, {"step": 3}, ">cross-attention: 5 kept, none new<"),
    (ENTRIES, {"step": 1}, "source: 3; token: d"),
    (WHOLE, {"box": box("lm_head")}, "token: x; column: t7"),
    (ENTRIES, {"step": 1}, ">cross-attention: 0 kept, 5 new<"),
    (WHOLE, {"box": box(CROSS)}, "in: key, value (memory) (1, 5, 6)"),
    (WHOLE, {"box": box("source ids"), "numbers": "weights of head 0"},
     "this box has no weights of head 0"),
    (WHOLE, {"box": box(CROSS), "numbers": "weights of head 1"}, OUT + "source tokens"),
    (WHOLE, {"box": box(SELF), "numbers": "weights of head 1"}, OUT + "target tokens"),
    (WHOLE, {"box": box("decoder 0: feed-forward")}, OUT + "features"),
    (WHOLE, {"box": box("softmax")}, OUT + "vocabulary"),
    (WHOLE, {"box": box("source ids")}, ">7</text>"),
    (charts.attention_explorer(MAPS[0] / 100, TARGET, SOURCE), {},
     "with values from 0.0 to 1.0"),
]
# fmt: on


@pytest.mark.parametrize(("chart", "choices", "text"), SAYINGS)
def test_the_text_says_what_is_drawn(chart, choices, text: str) -> None:
    assert text in drawn(chart, **choices)


def test_repeated_tokens_stay_apart_and_a_row_is_chosen_without_a_mouse() -> None:
    assert drawn(ATTENTION).count(">die</text>") == 2
    binds = {p["name"]: p.get("bind") for p in ATTENTION.to_dict()["params"]}
    assert binds["row"]["labels"] == ["all", "0: <bos>", "1: cat"]
    binds = {p["name"]: p.get("bind") for p in WHOLE["params"]}
    assert binds["box"]["labels"] == [box.name for box in BOXES]
    assert len({box.name for box in BOXES}) == len(BOXES)


@pytest.mark.parametrize(("d_model", "warmup"), [(256, 500), (1024, 7_300)])
def test_the_chosen_schedule_is_equation_3(d_model: int, warmup: int) -> None:
    svg = drawn(sample("schedule_explorer"), d_model=f"{d_model}", warmup=warmup)
    points = marks(svg, "learning rate")
    assert len(points) == 81
    for point in points:  # labels have two digits
        expected = learning_rate(int(number(point["step"])), d_model, warmup)
        assert number(point["learning rate"]) == pytest.approx(expected, rel=5e-2)


def test_a_panel_keeps_its_axis_for_all_depths() -> None:
    for panel in DEPTH["vconcat"]:
        y = panel["encoding"]["y"]
        largest = max(curves(y["title"], n_layers).max().item() for n_layers in (2, 5))
        assert y["scale"]["domain"] == [0, pytest.approx(largest, abs=1e-4)]


@pytest.mark.parametrize(
    ("block", "hide_padding", "hide_future", "source"),
    [*product(MASKED, [False, True], [False, True], [2, 0])],
)
def test_the_drawn_mask_is_that_of_the_library(
    block, hide_padding, hide_future, source
) -> None:
    lengths = {"source": source, "target": 1}
    choices = {"hide_padding": hide_padding, "hide_future": hide_future, **lengths}
    svg = drawn(charts.mask_explorer(SOURCE, TARGET), block=block, **choices)
    q_side, k_side = MASKED[block]
    q_len, k_len = len(SIDES[q_side]), len(SIDES[k_side])
    ids = (torch.arange(k_len) < lengths[k_side]).long()[None]
    real = padding_mask(ids, pad_id=0)[0, 0] | (not hide_padding)
    causal = hide_future and block == "decoder self-attention"
    past = causal_mask(k_len) if causal else torch.ones(1, 1, dtype=torch.bool)
    real, past = real.expand(q_len, k_len), past.expand(q_len, k_len)
    expected = []
    for query, key in product(range(q_len), range(k_len)):
        why = [word for word, mask in (("padding key", real), ("future", past))
               if not mask[query, key]]  # fmt: skip
        said = "hidden: " + ", ".join(why) if why else "may attend"
        expected.append((f"{query}", f"{key}", said, "×" if why else "✓"))
    fields = ("query", "key", "reason", "sign")
    found = [tuple(mark[field] for field in fields) for mark in marks(svg, "sign")]
    assert sorted(found) == expected
    n_padding = sum(len(SIDES[side]) - lengths[side] for side in (q_side, k_side))
    assert svg.count("><pad></text>") == n_padding


# A grouping, a score, and what is said of its groups, in the given order.
@pytest.mark.parametrize(
    ("grouping", "score", "expected"),
    [
        ("length", "chrF2", [["zebra", "50.0", "47.0", "53.0", "7"],
                             ["ape", "60.0", "57.0", "63.0", "5"]]),
        ("length", "BLEU", [["zebra", "30.0", "27.0", "33.0", "7"],
                            ["ape", "98.7", "95.7", "100.0", "7"]]),
        ("overlap", "BLEU", [["few words", "1.5", "0.0", "4.5", "7"]]),
    ],
)  # fmt: skip
def test_the_chosen_scores_are_drawn_within_their_scale(
    grouping, score, expected
) -> None:
    chart = charts.score_explorer(TABLES)
    points = marks(drawn(chart, grouped_by=grouping, score=score), "to")
    fields = ("group", "score", "from", "to", "sentences")
    said = [[point[field] for field in fields] for point in points]
    assert said[: len(expected)] == expected  # the intervals; the dots say the same


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("batch", [1, 2])
def test_rows_and_padding_are_drawn(side: str, batch: int) -> None:
    svg = drawn(sample("batch_explorer"), side=side, batch=batch)
    found = [(m["kind"], int(m["positions"])) for m in marks(svg, "positions")]
    expected = []
    for plan, batches in PLANS.items():
        sizes = [LENGTHS[row][side == "target"] for row in batches[batch - 1]]
        for size in sizes:
            expected += [("token", size), ("padding", max(sizes) - size)]
        share = 1 - sum(sizes) / (len(sizes) * max(sizes))
        assert f">{plan}: {share:.0%} padding<" in svg
    assert found == expected


def test_axes_hold_the_largest_batch_and_batches_are_spread_over_the_plan() -> None:
    for panel in sample("batch_explorer")["vconcat"]:
        encoding = panel["layer"][0]["encoding"]
        assert encoding["x"]["scale"]["domain"] == [0, 11]
        assert encoding["y"]["scale"]["domain"] == [3.5, 0.5]
    chart = charts.batch_explorer({"one": [[row] for row in range(5)]}, LENGTHS, 3)
    rows = chart.to_dict()["data"]["values"]
    assert [r["number"] for r in rows if r["side"] == "source"] == [1, 3, 5]


def test_differences_are_powers_of_ten_and_a_line_marks_the_limit() -> None:
    spec = sample("difference_explorer")
    points = marks(drawn(spec, d_model="16"), "change")
    found = {point["change"]: number(point["change of the logits"]) for point in points}
    assert found == {"a": -3, "b": math.log10(SMALLEST)}
    assert len(spec["data"]["values"]) == sum(map(len, DIFFERENCES.values()))
    assert spec["layer"][0]["data"]["values"] == [{"power": -10.0}]


# --- what the charts of the cache and of the model record ---------------------------


def test_the_recorded_cache_is_that_of_one_uncached_pass() -> None:
    with torch.no_grad(), record_attention(MODEL.decoder) as maps:
        MODEL(SRC, TGT)
    memory = MODEL.encode(SRC)
    assert [each.block for each in CACHE] == [*BLOCKS] * 3
    for each in CACHE:
        expected = maps[f"layers.{each.layer}.{each.block}"][0]
        torch.testing.assert_close(each.weights, expected)
        if each.block == "cross_attn":
            attention = MODEL.decoder.layers[each.layer].cross_attn
            projected = attention.k_proj(memory), attention.v_proj(memory)
            expected = torch.cat([attention.split_heads(x) for x in projected])
            torch.testing.assert_close(each.keys_values, expected)


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_the_tokens_of_a_cache_are_read_back(norm_first: bool) -> None:
    rows = torch.tensor([[1, 4, 4], [1, 4, 9], [1, 10, 4]])
    decoder = IncrementalDecoder(make_model(norm_first=norm_first))
    decoder.prefill(SRC, 3)
    decoder.read(rows)
    assert torch.equal(tokens_of_keys(decoder), rows)
    decoder.reorder(torch.tensor([[2, 0, 0]]))
    assert torch.equal(tokens_of_keys(decoder), rows[[2, 0, 0]])
    wrong = IncrementalDecoder(decoder.model)
    wrong.prefill(SRC)
    wrong.cache.positions = lambda ids: torch.zeros_like(ids[0])
    for token in TGT.split(1, dim=1):
        wrong.read(token)
    with pytest.raises(ValueError, match="belongs to no token"):
        tokens_of_keys(wrong)


def test_every_wire_carries_what_the_module_really_got() -> None:
    model, got = make_model(), {}
    parts = [box for box in BOXES if box.part]
    for box in parts:
        model.get_submodule(box.part).register_forward_hook(
            lambda _, inputs, __, name=box.name: got.update({name: inputs})
        )
    logits = model(SRC, TGT)
    torch.testing.assert_close(FLOW["lm_head"], logits)
    torch.testing.assert_close(FLOW["softmax"], logits.softmax(dim=-1))
    for box in parts:
        wires = [FLOW[name] for name in box.inputs.values()]
        if box.label == "add & norm":
            norm = model.get_submodule(box.part).norm
            torch.testing.assert_close(norm(sum(wires)), FLOW[box.name])
        else:
            for wire, received in zip(wires, got[box.name], strict=False):
                torch.testing.assert_close(wire, received)
    assert sum(box.label == "add & norm" for box in parts) == 2 * 2 + 3 * 3


def test_memory_goes_to_every_decoder_layer() -> None:
    crosses = [box for box in BOXES if box.label == "cross-attention"]
    assert [[*box.inputs.values()][1] for box in crosses] == [MEMORY] * 3
    (lines,) = (
        layer["data"]["values"]
        for layer in WHOLE["vconcat"][0]["layer"]
        if (layer["mark"].get("style"), layer["mark"]["type"])
        == ("memory mark", "line")
    )
    assert len({point["line"] for point in lines}) == 3
    with pytest.raises(ValueError, match="norm_first is True"):  # wired otherwise
        record_flow(make_model(norm_first=True), SRC, TGT)


@pytest.mark.parametrize("record", [record_cache, record_flow])
def test_recording_drops_nothing_out_and_leaves_the_model_as_it_was(record) -> None:
    model = make_model(dropout=0.5).train()
    before = {name: vars(module).copy() for name, module in model.named_modules()}
    first, second = (record(model, SRC, TGT) for _ in range(2))
    for one, same in zip(numbers_of(first), numbers_of(second), strict=True):
        assert torch.equal(one, same)
    assert not any(part._forward_hooks for part in model.modules())
    assert {name: vars(module) for name, module in model.named_modules()} == before


def numbers_of(record) -> list[torch.Tensor]:
    if isinstance(record, dict):
        return [*record.values()]
    return [each.weights for each in record]
