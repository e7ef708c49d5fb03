"""The charts of all maps and of all heads draw what was put into them."""

import re
from itertools import product

import altair
import pytest
import torch
import vl_convert

from transformer_lib.charts.attention import (
    SentenceMaps,
    head_type_explorer,
    sentence_explorer,
)

SOURCES = [["a", "b", "<eos>"], ["c", "<eos>"]]
READ = [["<bos>", "x"], ["<bos>", "y", "x", "y"]]
PRODUCED = [["x", "<eos>"], ["y", "x", "y", "<eos>"]]
N_HEADS, N_LAYERS = 3, {"encoder": 2, "decoder": 1}
SHAPES = {"encoder self_attn": (0, 0), "decoder self_attn": (1, 1),
          "decoder cross_attn": (1, 0)}  # fmt: skip


def sentence(number: int, seed: int) -> SentenceMaps:
    generator = torch.Generator().manual_seed(10 * seed + number)
    lengths = len(SOURCES[number]), len(READ[number])
    maps = {}
    for name, (q, k) in SHAPES.items():
        side, part = name.split()
        for layer in range(N_LAYERS[side]):
            shape = 1, N_HEADS, lengths[q], lengths[k]
            weights = torch.randn(*shape, generator=generator).softmax(dim=-1)
            maps[f"{side}.layers.{layer}.{part}"] = weights
    links = {(1, 0)} if number == 0 else {(0, 2)}
    return SentenceMaps(SOURCES[number], READ[number], PRODUCED[number], maps, links)


def models() -> dict[str, list[SentenceMaps]]:
    return {
        name: [sentence(number, seed) for number in range(2)]
        for seed, name in enumerate(("trained", "untrained"))
    }


def drawn(chart, **choices) -> list[dict[str, str]]:
    """What the labels of the drawn cells say, after a reader has set the inputs."""
    spec = chart.to_dict()
    for param in spec["params"]:
        if param["name"] in choices:
            param["value"] = choices.pop(param["name"])
    assert not choices, f"no such inputs: {choices}"
    svg = vl_convert.vegalite_to_svg(spec)
    labels = re.findall(r'aria-label="([^"]*: [^"]*)" role="graphics-symbol"', svg)
    cells = [dict(p.split(": ", 1) for p in label.split("; ")) for label in labels]
    return [cell for cell in cells if "weight" in cell or "mean weight" in cell]


def weights_of(cells: list[dict[str, str]]) -> dict[tuple[int, int], float]:
    return {(int(c["query"]), int(c["key"])): float(c["weight"]) for c in cells}


def test_both_charts_are_valid_vega_lite() -> None:
    for chart in (sentence_explorer(models()), head_type_explorer(TABLE)):
        altair.Chart.from_dict(chart.to_dict(), validate=True)


@pytest.mark.parametrize("model", ["trained", "untrained"])
@pytest.mark.parametrize(
    ("block", "name"),
    [
        ("encoder self-attention", "encoder.layers.1.self_attn"),
        ("decoder self-attention", "decoder.layers.0.self_attn"),
        ("cross-attention", "decoder.layers.0.cross_attn"),
    ],
)
def test_the_chosen_map_is_drawn(model: str, block: str, name: str) -> None:
    layer = int(name.split(".")[2])
    choice = {"model": model, "sentence": 2, "block": block, "layer": layer, "head": 2}
    found = weights_of(drawn(sentence_explorer(models()), **choice))
    expected = models()[model][1].maps[name][0, 2]
    assert set(found) == set(product(*map(range, expected.shape)))
    for cell, weight in found.items():
        assert weight == pytest.approx(expected[cell].item(), abs=6e-4)


def test_a_layer_that_the_decoder_lacks_shows_its_last() -> None:
    choice = {"sentence": 1, "block": "cross-attention", "head": 0}
    chart = sentence_explorer(models())
    last = weights_of(drawn(chart, layer=0, **choice))
    assert last and weights_of(drawn(chart, layer=1, **choice)) == last


def test_gold_links_are_framed_in_the_row_that_produces_the_word() -> None:
    chart = sentence_explorer(models())
    framed = [
        (c["query"], c["key"])
        for c in drawn(chart, sentence=1, block="cross-attention")
        if c["gold link"] == "yes"
    ]
    assert set(framed) == {("0", "1")}  # row 0 reads <bos> and produces x
    others = drawn(chart, sentence=1, block="encoder self-attention")
    assert others and all(cell["gold link"] == "no" for cell in others)


@pytest.mark.parametrize(("rows", "names"), [("read", READ), ("produced", PRODUCED)])
def test_rows_are_named_by_what_they_read_or_produce(rows, names) -> None:
    spec = sentence_explorer(models()).to_dict()
    chosen = {"rows": rows, "sentence": 2, "block": "cross-attention"}
    for param in spec["params"]:
        param["value"] = chosen.get(param["name"], param.get("value"))
    texts = re.findall(r">([^<>]+)</text>", vl_convert.vegalite_to_svg(spec))
    shown = [text.replace("&lt;", "<").replace("&gt;", ">") for text in texts]
    wanted = names[1] + SOURCES[1]
    assert all(shown.count(name) >= wanted.count(name) for name in wanted)
    first = "<bos>" if rows == "produced" else None
    assert first not in shown


def test_a_sentence_can_be_chosen_without_a_mouse() -> None:
    params = sentence_explorer(models()).to_dict()["params"]
    (numbers,) = (p for p in params if p["name"] == "sentence")
    assert numbers["bind"]["options"] == [1, 2]
    assert numbers["bind"]["labels"] == ["1: x <eos> …", "2: y x y …"]


def test_models_must_show_the_same_sentences() -> None:
    both = models()
    with pytest.raises(ValueError, match="the same sentences, not {'a': 2, 'b': 1}"):
        sentence_explorer({"a": both["trained"], "b": both["trained"][:1]})
    with pytest.raises(ValueError, match="model 'b' has another sentence 0"):
        sentence_explorer({"a": both["trained"], "b": both["trained"][::-1]})
    with pytest.raises(ValueError, match="not {}"):
        sentence_explorer({})


def test_what_does_not_fit_is_refused() -> None:
    good = sentence(0, 0)
    for name in ("encoder.self_attn", "decoder.layers.0.linear"):
        bad = SentenceMaps(good.source, good.read, good.produced, {name: [[[[1.0]]]]})
        with pytest.raises(ValueError, match=f"'{name}' is no attention"):
            sentence_explorer({"a": [bad]})
    short = SentenceMaps(good.source[1:], good.read, good.produced, good.maps)
    with pytest.raises(ValueError, match=r"3 rows \(queries\), but 2 q_tokens"):
        sentence_explorer({"a": [short]})
    heads = {name: maps[:, :2] for name, maps in good.maps.items()}
    fewer = SentenceMaps(good.source, good.read, good.produced, heads)
    with pytest.raises(ValueError, match="3 heads, but encoder.layers.0"):
        sentence_explorer({"a": [good], "b": [fewer]})


TABLE = {
    "trained": {
        "previous": {"encoder 0.0": 0.7, "cross 0.0": 0.1},
        "alignment": {"cross 0.0": 0.55},
    },
    "untrained": {
        "previous": {"encoder 0.0": 0.2, "cross 0.0": 0.1},
        "alignment": {"cross 0.0": 0.15},
    },
}


@pytest.mark.parametrize(
    ("model", "threshold", "typed"),
    [
        ("trained", 0.5, {("encoder 0.0", "previous"), ("cross 0.0", "alignment")}),
        ("trained", 0.6, {("encoder 0.0", "previous")}),
        ("untrained", 0.5, set()),
    ],
)
def test_heads_over_the_threshold_are_framed(model, threshold, typed) -> None:
    chart = head_type_explorer(TABLE)
    cells = drawn(chart, model=model, threshold=threshold)
    found = {
        (c["head"], c["relation"]): float(c["weight"])
        for c in cells
    }  # fmt: skip
    expected = {
        (head, relation): weight
        for relation, heads in TABLE[model].items()
        for head, weight in heads.items()
    }
    assert found == expected
    framed = {
        (c["head"], c["relation"]) for c in cells if c["type of the head"] == "yes"
    }
    assert framed == typed
    spec = chart.to_dict()
    for param in spec["params"]:
        param["value"] = {"model": model, "threshold": threshold}[param["name"]]
    assert f">{len(typed)} of 2 heads<" in vl_convert.vegalite_to_svg(spec)


def test_weights_outside_0_to_1_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lies in 0\.\.1, but .*cross"):
        head_type_explorer({"a": {"same": {"cross": 1.2}}})
    with pytest.raises(ValueError, match="at least 1 weight"):
        head_type_explorer({})
