"""Each chart draws the numbers that it was given, for every choice of the reader."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from drawn_charts import (
    DIFFERENCES,
    EN,
    HEADS,
    LENGTHS,
    MEASURES,
    PLANS,
    STACKS,
    STEPS,
    TABLES,
    draw,
    drawn,
    marks,
    number,
    sample,
    two_models,
)

from transformer_book.charts.attention import BLOCKS
from transformer_book.charts.beam_search import FATES
from transformer_book.charts.variants import SMALLEST
from transformer_lib import charts, sinusoid_table
from transformer_lib.model.masks import causal_mask, padding_mask
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


def param(chart, name: str) -> dict:
    (found,) = (p for p in chart.to_dict()["params"] if p["name"] == name)
    return found


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


class TestAttention:
    def chart(self):
        layers = {"layer 0": MAPS[0], "layer 1": MAPS[1]}
        return charts.attention_explorer(layers, TARGET, SOURCE)

    def test_the_chosen_head_and_layer_are_drawn(self) -> None:
        svg = drawn(self.chart(), layer="layer 1", head=3)
        assert_shows(svg, MAPS[1][3])
        assert svg.count(">die</text>") == 2  # repeated tokens stay apart

    def test_a_single_layer_needs_no_choice_of_layer(self) -> None:
        chart = charts.attention_explorer(MAPS[0], TARGET, SOURCE)
        bound = [p["name"] for p in chart.to_dict()["params"] if "bind" in p]
        assert bound == ["head", "row"]
        assert_shows(drawn(chart, head=4), MAPS[0][4])

    @pytest.mark.parametrize("head", [0, 3])
    def test_the_chart_opens_with_the_head_asked_for(self, head: int) -> None:
        chart = charts.attention_explorer(MAPS[0], TARGET, SOURCE, head=head)
        assert param(chart, "head")["value"] == head
        assert_shows(drawn(chart), MAPS[0][head])
        default = charts.attention_explorer(MAPS[0], TARGET, SOURCE)
        assert param(default, "head")["value"] == 0

    def test_weights_keep_the_scale_from_0_to_1(self) -> None:
        faint = charts.attention_explorer(MAPS[0] / 100, TARGET, SOURCE)
        assert "with values from 0.0 to 1.0" in drawn(faint)

    def test_every_row_can_be_chosen_without_a_mouse(self) -> None:
        bind = param(self.chart(), "row")["bind"]
        assert bind["options"] == [None, 0, 1]
        assert bind["labels"] == ["all", "0: <bos>", "1: cat"]


class TestSentences:
    chart = charts.sentence_explorer(two_models())

    @pytest.mark.parametrize("model", ["trained", "untrained"])
    @pytest.mark.parametrize(
        ("block", "name"),
        [
            ("encoder self-attention", "encoder.layers.1.self_attn"),
            ("decoder self-attention", "decoder.layers.0.self_attn"),
            ("cross-attention", "decoder.layers.0.cross_attn"),
        ],
    )
    def test_the_chosen_map_is_drawn(self, model: str, block: str, name: str) -> None:
        choices = {"model": model, "sentence": 2, "block": block, "head": 2}
        svg = drawn(self.chart, layer=int(name.split(".")[2]), **choices)
        assert_shows(svg, two_models()[model][1].maps[name][0, 2])

    def test_a_layer_that_the_decoder_lacks_shows_its_last(self) -> None:
        last, beyond = (cells(drawn(self.chart, layer=layer)) for layer in (0, 1))
        assert last and beyond == last

    def test_gold_links_are_framed_in_the_row_that_produces_the_word(self) -> None:
        svg = drawn(self.chart, sentence=1)
        gold = {cell for cell, says in cells(svg, "gold link").items() if says == "yes"}
        assert gold == {(0, 1)}  # row 0 reads <bos> and produces x
        assert len(marks(svg, "gold link")) == 2 * 3 + len(gold)  # cells and frames
        svg = drawn(self.chart, sentence=1, block="encoder self-attention")
        assert set(cells(svg, "gold link").values()) == {"no"}

    @pytest.mark.parametrize(
        ("rows", "first"), [("read", "<bos>"), ("produced", "das")]
    )
    def test_rows_are_named_by_what_they_read_or_produce(self, rows, first) -> None:
        svg = drawn(self.chart, rows=rows, sentence=2)
        names = getattr(two_models()["trained"][1], rows)
        assert all(f">{name}</text>" in svg for name in [*names, *EN])
        assert (">&lt;bos>" in svg or "><bos></text>" in svg) == (first == "<bos>")

    def test_a_sentence_can_be_chosen_without_a_mouse(self) -> None:
        bind = param(self.chart, "sentence")["bind"]
        assert bind["options"] == [1, 2]
        assert bind["labels"] == ["1: x <eos> …", "2: das Tier überquerte …"]


@pytest.mark.parametrize(
    ("model", "threshold", "typed"),
    [
        ("trained", 0.5, {("encoder 0.0", "previous"), ("cross 0.0", "alignment")}),
        ("trained", 0.6, {("encoder 0.0", "previous")}),
        ("untrained", 0.5, set()),
    ],
)
def test_heads_over_the_threshold_are_framed(model, threshold, typed) -> None:
    svg = drawn(sample("head_type_explorer"), model=model, threshold=threshold)
    found = marks(svg, "mean weight")
    assert {(m["head"], m["relation"]): number(m["mean weight"]) for m in found} == {
        (head, relation): weight
        for relation, heads in HEADS[model].items()
        for head, weight in heads.items()
    }
    framed = {
        (m["head"], m["relation"]) for m in found if m["type of the head"] == "yes"
    }
    assert framed == typed
    assert f">{len(typed)} of 2 heads<" in svg


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

    @pytest.mark.parametrize("block", BLOCKS)
    @pytest.mark.parametrize("hide_padding", [False, True])
    @pytest.mark.parametrize("hide_future", [False, True])
    @pytest.mark.parametrize(("source", "target"), [(2, 1), (0, 2), (3, 0)])
    def test_the_drawn_mask_follows_the_inputs(
        self,
        block: str,
        hide_padding: bool,
        hide_future: bool,
        source: int,
        target: int,
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
        assert y["scale"]["domain"] == [0, pytest.approx(largest)]


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


class TestBeamSearch:
    @pytest.mark.parametrize("step", range(4))
    def test_branches_up_to_the_chosen_step_are_drawn(self, step: int) -> None:
        svg = drawn(sample("beam_tree"), step=step)
        found = [(m["target"], number(m["log-probability"]), m["fate"])
                 for m in marks(svg, "log-probability")]  # fmt: skip
        expected = [(" ".join(b.target), b.log_prob, b.fate)
                    for branches in STEPS[:step] for b in branches]  # fmt: skip
        assert sorted(found) == sorted(expected)
        assert svg.count('aria-roledescription="rule mark"') == len(expected)

    def test_lines_lead_from_the_parent(self) -> None:
        root, *rows = sample("beam_tree")["data"]["values"]
        assert (root["rank"], root["token"]) == (2.5, "<bos>")
        ranks = {row["target"]: row["rank"] for row in rows}
        for row in rows:
            before = row["target"].rpartition(" ")[0]
            assert row["parent"] == (ranks[before] if before else 2.5)
        assert {row["parent"] for row in rows} == {1, 2, 3, 2.5}

    def test_each_fate_has_a_color_and_a_sign_of_its_own(self) -> None:
        colors, signs = zip(*FATES.values(), strict=True)
        assert len(set(colors)) == len(set(signs)) == len(FATES) == 3


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
