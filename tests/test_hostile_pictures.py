"""Plots and charts of anything: the documented picture or the documented error."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import altair
import matplotlib.pyplot as plt
import pytest
import torch
from hostile_values import attempt, fast, with_one_replaced
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_lib as tl
from transformer_book.charts.attention import SentenceMaps
from transformer_book.charts.beam_search import Branch
from transformer_book.charts.masks import mask_cells
from transformer_book.charts.parts import join_numbers, quoted
from transformer_book.charts.translator import trace_translation
from transformer_lib import charts, plots
from transformer_lib.evaluation.accuracy import Accuracy
from transformer_lib.evaluation.scores import Score
from transformer_lib.plots.ratios import plot_ratios

pytestmark = pytest.mark.slow  # as a whole

WEIGHTS = torch.full((2, 2), 0.5)
MASK = torch.ones(2, 2, dtype=torch.bool)
AB = ["a", "b"]
TOKENS = {"q_tokens": AB, "k_tokens": AB}
LABELS = {"x_label": "x", "y_label": "y"}
MAPS = {"encoder.layers.0.self_attn": WEIGHTS[None, None],
        "decoder.layers.0.cross_attn": WEIGHTS[None, None]}  # fmt: skip


def tree(**branch: Any) -> Any:
    return charts.beam_tree([[Branch(**branch)]])


def sentence(**maps: Any) -> Any:
    return charts.sentence_explorer({"model": [SentenceMaps(**maps)]})


CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plot_attention": (plots.plot_attention, {"weights": WEIGHTS, **TOKENS}),
    "plot_attention_heads": (plots.plot_attention_heads,
                             {"weights": WEIGHTS[None], **TOKENS, "titles": ["a"]}),
    "plot_mask": (plots.plot_mask, {"mask": MASK, **TOKENS}),
    "plot_masks": (plots.plot_masks, {"masks": {"m": MASK}, **TOKENS}),
    "plot_matrix": (plots.plot_matrix, {"matrix": WEIGHTS, "row_names": AB}),
    "plot_scores": (plots.plot_scores, {"scores": WEIGHTS, **TOKENS}),
    "plot_lines": (lambda **more: plots.plot_lines(**more, **LABELS),
                   {"x": [1, 2], "curves": {"a": [1, 2]}}),
    "plot_bars": (lambda **more: plots.plot_bars(**more, **LABELS),
                  {"labels": AB, "values": [1, 2]}),
    "plot_histograms": (lambda **more: plots.plot_histograms(**more, x_label="x"),
                        {"samples": {"a": [1, 2]}, "n_bins": 4}),
    "plot_spread": (lambda **more: plots.plot_spread(**more, x_label="x"),
                    {"rows": {"a": [1.0, 2.0]}}),
    "plot_ratios": (lambda **more: plot_ratios(**more, x_label="x"),
                    {"rows": {"a": {"m": 1.5}}}),
    "attention_explorer": (charts.attention_explorer,
                           {"maps": WEIGHTS[None], **TOKENS, "head": 0}),
    "divisor_explorer": (charts.divisor_explorer,
                         {"query": WEIGHTS, "key": WEIGHTS, "tokens": AB, "start": 0}),
    "head_type_explorer": (charts.head_type_explorer,
                           {"scores": {"m": {"r": {"h": 0.5}}}}),
    "sentence_explorer": (sentence, {"source": AB, "read": AB, "produced": AB,
                                     "maps": MAPS}),
    "mask_explorer": (charts.mask_explorer, {"src_tokens": AB, "tgt_tokens": AB,
                                             "pad_token": "p"}),
    "mask_cells": (mask_cells, {"q_len": 2, "k_len": 2, "n_real": 1, "causal": True}),
    "batch_explorer": (charts.batch_explorer,
                       {"plans": {"a": [[0]]}, "lengths": [(1, 2)], "n_batches": 1}),
    "depth_explorer": (charts.depth_explorer, {"measures": {"m": {1: {"s": [1.0]}}}}),
    "score_explorer": (charts.score_explorer,
                       {"tables": {"t": {"g": [Score("B", 1.0, 0.5, 2.0, "", 2)]}}}),
    "similarity_explorer": (charts.similarity_explorer,
                            {"states": {"a": WEIGHTS}, "tokens": AB}),
    "position_explorer": (charts.position_explorer, {"table": WEIGHTS}),
    "schedule_explorer": (charts.schedule_explorer, {"n_steps": 2000}),
    "difference_explorer": (charts.difference_explorer,
                            {"differences": {8: {"a": 1.0}}, "limit": 0.1}),
    "beam_tree": (charts.beam_tree, {"steps": [[Branch(("a",), -1.0, "kept")]],
                                     "root": "<bos>"}),
    "Branch": (tree, {"target": ("a",), "log_prob": -1.0, "fate": "kept"}),
}  # fmt: skip


@settings(fast, max_examples=20)
@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_any_picture_of_anything(name, data) -> None:
    function, good = CALLS[name]
    arguments, _ = with_one_replaced(data, good)
    try:
        picture = attempt(function, **arguments)
        if isinstance(picture, altair.TopLevelMixin):
            spec = json.dumps(picture.to_dict(validate=False), allow_nan=False)
            assert "NaN" not in spec
    finally:
        plt.close("all")


@pytest.mark.parametrize("name", CALLS)
def test_what_is_replaced_was_good(name) -> None:
    function, good = CALLS[name]
    assert function(**good) is not None
    plt.close("all")


# --- cases that once went wrong ---------------------------------------------------


@pytest.mark.parametrize("token", ["$x^2$", "$\\frac{$", "a$b$c", "\u202eabc"])
def test_a_token_is_no_formula(token) -> None:
    pictures = [
        plots.plot_attention(WEIGHTS, [token, "b"], ["a", token]),
        plots.plot_masks({"m": MASK}, [token, "b"], ["a", token]),
        plots.plot_matrix(WEIGHTS, row_names=[token, "b"]),
    ]
    for figure in pictures:
        figure.savefig(io.BytesIO(), format="svg")  # where formulas are read
        shown = figure.axes[0].get_yticklabels()
        assert token in [label.get_text() for label in shown]
        assert not any(label.get_parse_math() for label in shown)
    plt.close("all")


@pytest.mark.parametrize("name", ["it's", 'a "b"', "back\\slash", "two\nlines"])
def test_a_quote_in_a_name_ends_no_expression(name) -> None:
    chart = charts.batch_explorer({name: [[0]]}, [(1, 2)], 1)
    [panel] = chart.to_dict()["vconcat"]
    text = json.dumps(panel)
    assert json.dumps(f"datum.plan == {quoted(name)} ")[1:-1] in text
    inside = quoted(name)[1:-1].replace("\\\\", "").replace("\\'", "")
    assert "'" not in inside
    assert "\n" not in inside


def test_a_number_that_is_none_has_no_place_in_a_picture() -> None:
    for wrong in math.nan, math.inf:
        with pytest.raises(ValueError, match=r"'a' must be finite, .* at \(1,"):
            plots.plot_lines([1, 2], {"a": [1, wrong]}, "x", "y")
        with pytest.raises(ValueError, match=r"m of a must be from -inf to inf, not "):
            plot_ratios({"a": {"m": wrong}}, "x")
        with pytest.raises(ValueError, match="number 1 of 2 is "):
            join_numbers([0.5, wrong])
        score = Score("B", wrong, 0.5, 2.0, "", 2)
        if math.isnan(wrong):  # infinity is cut off where the scale ends
            with pytest.raises(ValueError, match="value is nan in by t, group g, "):
                charts.score_explorer({"t": {"g": [score]}})
    with pytest.raises(TypeError, match=r"x must be numbers, not \['1', '2'\]"):
        plots.plot_lines(["1", "2"], {"a": [1, 2]}, "x", "y")
    plots.plot_matrix(torch.tensor([[1.0, math.nan]]))  # gray, as documented
    plt.close("all")


def test_a_chart_of_masks_is_bounded() -> None:
    with pytest.raises(ValueError, match="src_tokens must be at most 64, not 3000"):
        charts.mask_explorer(["a"] * 3000, AB)


def test_a_trace_is_of_one_text() -> None:
    translator = tl.load("grammar")
    with pytest.raises(TypeError, match="sentence must be a str, not 3"):
        trace_translation(translator, 3)
    with pytest.raises(ValueError, match="n_beams must be from 1 to "):
        trace_translation(translator, "I sleep", 10**6)


def test_an_accuracy_is_a_share() -> None:
    for n_right, n_texts in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"{n_right} right answers of {n_texts} "):
            Accuracy(n_right, n_texts)
    with pytest.raises(TypeError, match=r"n_right must be an integer, not 1\.5"):
        Accuracy(1.5, 2)
