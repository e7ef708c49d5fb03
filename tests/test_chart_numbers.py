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
    STACKS,
    TABLES,
    draw,
    drawn,
    marks,
    number,
    sample,
)

from transformer_book import charts
from transformer_book.charts.masks import BLOCKS
from transformer_book.charts.variants import SMALLEST
from transformer_lib import causal_mask, padding_mask, sinusoid_table
from transformer_lib.training.loop import learning_rate

SOURCE = ["die", "Katze", "die"]  # a token twice, as in real sentences
TARGET = ["<bos>", "cat"]
SIDES = {"source": SOURCE, "target": TARGET}
MAPS = [draw(5, 2, 3, seed=seed).softmax(dim=-1) for seed in range(2)]


def cells(svg: str, field: str = "weight") -> dict[tuple[int, int], str]:
    """(query, key) -> what the label of the drawn cell says about a field."""
    found = marks(svg, field)
    return {(int(mark["query"]), int(mark["key"])): mark[field] for mark in found}


def assert_shows(svg: str, expected: torch.Tensor) -> None:
    """The cells show the map (q_len, k_len), rounded to three decimals."""
    found = cells(svg)
    assert set(found) == set(product(*map(range, expected.shape)))
    for cell, weight in found.items():
        assert number(weight) == pytest.approx(expected[cell].item(), abs=6e-4)


QUERY, KEY = draw(7, 3), draw(7, 3, seed=1)
STATES = {"a": draw(3, 5), "b": draw(3, 5, seed=1)}
TABLE = sinusoid_table(7, 4)


def cosines(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=-1)


def curves(measure: str, n_layers: int) -> torch.Tensor:
    return torch.cat([MEASURES[measure][n_layers][stack] for stack in STACKS])


# A chart, what the reader chooses, and the numbers of a field that must be drawn then.
# fmt: off
CHOICES = [
    (charts.divisor_explorer(QUERY, KEY, EN[:7]), {"q": 4, "power": -4},
     "weight", (16 * QUERY[4] @ KEY.T).softmax(dim=-1)),
    (charts.divisor_explorer(QUERY, KEY, EN[:7], start=2), {"power": 9},
     "weight", (QUERY[2] @ KEY.T / 512).softmax(dim=-1)),
    (charts.similarity_explorer(STATES, SOURCE), {"layer": "a"},
     "cosine", cosines(STATES["a"])),
    (charts.similarity_explorer(STATES, SOURCE), {"layer": "b"},
     "cosine", cosines(STATES["b"])),
    (charts.position_explorer(TABLE), {"chosen": 5}, "dot product", TABLE @ TABLE[5]),
    (charts.depth_explorer(MEASURES), {"layers": "2"},
     "gradient", curves("gradient", 2)),
    (charts.depth_explorer(MEASURES), {"layers": "5"},
     "variance", curves("variance", 5)),
]
# fmt: on


@pytest.mark.parametrize(("chart", "choices", "field", "expected"), CHOICES)
def test_the_chosen_numbers_are_drawn(chart, choices, field: str, expected) -> None:
    found = [number(mark[field]) for mark in marks(drawn(chart, **choices), field)]
    np.testing.assert_allclose(found, expected.flatten(), atol=6e-4)


@pytest.mark.parametrize(("d_model", "warmup"), [(256, 500), (1024, 7_300)])
def test_the_chosen_schedule_is_equation_3(d_model: int, warmup: int) -> None:
    svg = drawn(sample("schedule_explorer"), d_model=f"{d_model}", warmup=warmup)
    points = {number(p["step"]): number(p["learning rate"])
              for p in marks(svg, "learning rate")}  # fmt: skip
    assert len(points) == 81
    for step, rate in points.items():  # labels have two digits
        assert rate == pytest.approx(
            learning_rate(int(step), d_model, warmup), rel=5e-2
        )


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_chosen_head_and_layer_are_drawn(n_layers: int) -> None:
    layers = {f"layer {i}": MAPS[i] for i in range(n_layers)}
    chart = charts.attention_explorer(layers, TARGET, SOURCE, head=1)
    assert_shows(drawn(chart), MAPS[0][1])
    chosen = {"layer": "layer 1"} if n_layers == 2 else {}
    svg = drawn(chart, head=3, **chosen)
    assert_shows(svg, MAPS[n_layers - 1][3])
    assert svg.count(">die</text>") == 2  # repeated tokens stay apart
    bound = {p["name"]: p["bind"] for p in chart.to_dict()["params"] if "bind" in p}
    assert list(bound) == ["layer"] * (n_layers == 2) + ["head", "row"]
    assert bound["row"]["labels"] == ["all", "0: <bos>", "1: cat"]  # without a mouse


def test_weights_keep_the_scale_from_0_to_1() -> None:
    faint = charts.attention_explorer(MAPS[0] / 100, TARGET, SOURCE)
    assert "with values from 0.0 to 1.0" in drawn(faint)


class TestMasks:
    chart = charts.mask_explorer(SOURCE, TARGET)

    @pytest.mark.parametrize("block", BLOCKS)
    def test_the_stored_masks_are_those_of_the_library(self, block: str) -> None:
        q_len, k_len = (len(SIDES[side]) for side in BLOCKS[block])
        rows = [
            r for r in self.chart.to_dict()["data"]["values"] if r["block"] == block
        ]
        decoder = block == "decoder self-attention"
        assert len(rows) == 2 * (2 if decoder else 1) * (k_len + 1)
        for row in rows:
            ids = torch.full((1, k_len), 9)
            ids[0, : row["real keys"]] = 5
            mask = torch.ones(1, 1, q_len, k_len, dtype=torch.bool)
            if row["padding mask"]:
                mask = mask & padding_mask(ids, pad_id=9)
            if row["causal mask"]:
                mask = mask & causal_mask(k_len)
            stored = [[cell == "a" for cell in line] for line in row["cells"].split()]
            assert torch.equal(torch.tensor(stored), mask[0, 0]), row

    @pytest.mark.parametrize(
        ("block", "hide_padding", "hide_future", "source", "target"),
        [*product(BLOCKS, [False, True], [False, True], [2, 0], [1])],
    )
    def test_the_drawn_mask_follows_the_inputs(
        self, block, hide_padding, hide_future, source, target
    ) -> None:
        lengths = {"source": source, "target": target}
        choices = {"hide_padding": hide_padding, "hide_future": hide_future, **lengths}
        svg = drawn(self.chart, block=block, **choices)
        q_side, k_side = BLOCKS[block]
        causal = hide_future and block == "decoder self-attention"
        expected = {}
        for query, key in product(range(len(SIDES[q_side])), range(len(SIDES[k_side]))):
            padding = hide_padding and key >= lengths[k_side]
            why = ["padding key"] * padding + ["future"] * (causal and key > query)
            expected[query, key] = "hidden: " + ", ".join(why) if why else "may attend"
        assert cells(svg, "reason") == expected
        signs = {cell: "×" if why[0] == "h" else "✓" for cell, why in expected.items()}
        assert cells(svg, "sign") == signs
        n_padding = sum(len(SIDES[side]) - lengths[side] for side in (q_side, k_side))
        assert svg.count("><pad></text>") == n_padding


def test_a_panel_keeps_its_axis_for_all_depths() -> None:
    for panel in sample("depth_explorer")["vconcat"]:
        y = panel["encoding"]["y"]
        largest = max(curves(y["title"], n_layers).max().item() for n_layers in (2, 5))
        assert y["scale"]["domain"] == [0, pytest.approx(largest, abs=1e-4)]


class TestScores:
    def points(self, grouping: str, name: str) -> list[dict[str, str]]:
        chart = charts.score_explorer(TABLES)
        found = marks(drawn(chart, grouped_by=grouping, score=name), "to")
        return found[: len(TABLES[grouping])]  # the intervals; the dots say the same

    def test_the_chosen_groups_and_score_are_drawn_in_the_given_order(self) -> None:
        points = self.points("length", "chrF2")
        fields = ("group", "score", "from", "to", "sentences")
        said = [[point[field] for field in fields] for point in points]
        assert said == [
            ["zebra", "50.0", "47.0", "53.0", "7"],
            ["ape", "60.0", "57.0", "63.0", "5"],
        ]
        assert [p["group"] for p in self.points("overlap", "BLEU")] == ["few words"]

    def test_an_interval_ends_where_the_scale_ends(self) -> None:
        assert self.points("length", "BLEU")[1]["to"] == "100.0"
        assert self.points("overlap", "BLEU")[0]["from"] == "0.0"


class TestBatches:
    @pytest.mark.parametrize("side", ["source", "target"])
    @pytest.mark.parametrize("batch", [1, 2])
    def test_rows_and_padding_are_drawn(self, side: str, batch: int) -> None:
        svg = drawn(sample("batch_explorer"), side=side, batch=batch)
        found = [(int(m["row"]), m["kind"], int(m["positions"]))
                 for m in marks(svg, "positions")]  # fmt: skip
        expected = []
        for plan, batches in PLANS.items():
            sizes = [LENGTHS[row][side == "target"] for row in batches[batch - 1]]
            for row, size in enumerate(sizes, start=1):
                expected.append((row, "token", size))
                expected.append((row, "padding", max(sizes) - size))
            share = 1 - sum(sizes) / (len(sizes) * max(sizes))
            assert f">{plan}: {share:.0%} padding<" in svg
        assert found == expected

    def test_axes_hold_the_largest_batch(self) -> None:
        for panel in sample("batch_explorer")["vconcat"]:
            encoding = panel["layer"][0]["encoding"]
            assert encoding["x"]["scale"]["domain"] == [0, 11]
            assert encoding["y"]["scale"]["domain"] == [3.5, 0.5]

    def test_batches_are_spread_over_the_plan(self) -> None:
        plan = [[row] for row in range(5)]
        chart = charts.batch_explorer({"one": plan}, LENGTHS, n_batches=3)
        rows = chart.to_dict()["data"]["values"]
        assert [r["number"] for r in rows if r["side"] == "source"] == [1, 3, 5]


def test_differences_are_powers_of_ten_and_a_line_marks_the_limit() -> None:
    svg = drawn(sample("difference_explorer"), d_model="16")
    found = {
        m["change"]: number(m["change of the logits"]) for m in marks(svg, "change")
    }
    assert found == {"a": -3, "b": math.log10(SMALLEST)}
    rows = sample("difference_explorer")["data"]["values"]
    assert len(rows) == sum(map(len, DIFFERENCES.values()))
    line = sample("difference_explorer")["layer"][0]
    assert line["data"]["values"] == [{"power": -10.0}]
