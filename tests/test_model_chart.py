"""The drawing of the model is wired as the model is, and shows the model's numbers."""

import html
import json
import re
from dataclasses import replace

import altair
import pytest
import torch
import vl_convert

from transformer_lib.charts.model import model_explorer
from transformer_lib.charts.model_flow import model_boxes, record_flow
from transformer_lib.charts.parts import mime_bundle
from transformer_lib.model.presets import PRESETS
from transformer_lib.model.transformer import Transformer

SMALL = {"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 6, "n_heads": 2}
SMALL |= {"d_ff": 10, "n_encoder_layers": 2, "n_decoder_layers": 3}
SRC, TGT = torch.tensor([[3, 5, 7, 2]]), torch.tensor([[1, 4, 6]])
TOKENS = (["a", "b", "c", "<eos>"], ["<bos>", "d", "e"])
VOCABULARY = [f"t{number}" for number in range(11)]


def make_model(**changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(replace(PRESETS["paper-base"], **SMALL, **changes)).eval()


def make_chart() -> altair.VConcatChart:
    return model_explorer(make_model(), SRC, TGT, TOKENS, VOCABULARY)


def drawn(box: str, numbers: str = "output") -> str:
    """The SVG after a reader has chosen a box and what it shall show."""
    spec = make_chart().to_dict()
    names = [each.name for each in model_boxes(2, 3)]
    for param in spec["params"]:
        if param["name"] == "box":
            param["value"] = [{"q": names.index(box)}]
        if param["name"] == "numbers":
            param["value"] = numbers
    return vl_convert.vegalite_to_svg(spec)


def cells(svg: str) -> dict[tuple[str, str], float]:
    pattern = r"value: ([^;\"]+); token: ([^;]+); column: ([^;\"]+)"
    found = re.findall(pattern, html.unescape(svg))
    return {(row, column): number(value) for value, row, column in found}


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def test_every_wire_carries_what_the_module_really_got() -> None:
    model, got = make_model(), {}
    flow, boxes = record_flow(model, SRC, TGT), model_boxes(2, 3)
    for box in boxes:
        if box.part:
            model.get_submodule(box.part).register_forward_hook(
                lambda _, inputs, __, name=box.name: got.update({name: inputs})
            )
    model(SRC, TGT)
    for box in boxes:
        if not box.part or box.label == "add & norm":
            continue
        for wire, received in zip(box.inputs.values(), got[box.name], strict=False):
            torch.testing.assert_close(flow[wire], received)


def test_add_and_norm_adds_its_two_wires() -> None:
    model = make_model()
    flow = record_flow(model, SRC, TGT)
    norms = [box for box in model_boxes(2, 3) if box.label == "add & norm"]
    assert len(norms) == 2 * 2 + 3 * 3
    for box in norms:
        x, output = (flow[name] for name in box.inputs.values())
        norm = model.get_submodule(box.part).norm
        torch.testing.assert_close(norm(x + output), flow[box.name])


def test_memory_goes_to_every_decoder_layer() -> None:
    crosses = [box for box in model_boxes(2, 3) if box.label == "cross-attention"]
    assert len(crosses) == 3
    memory = "encoder 1: add & norm after feed-forward"
    assert {list(box.inputs.values())[1] for box in crosses} == {memory}
    lines = make_chart().to_dict()["vconcat"][0]["layer"][0]["data"]["values"]
    assert len({line["line"] for line in lines if line["kind"] == "memory"}) == 3


def test_the_last_boxes_are_the_logits_and_their_softmax() -> None:
    model = make_model()
    flow = record_flow(model, SRC, TGT)
    logits = model(SRC, TGT).detach()
    torch.testing.assert_close(flow["lm_head"], logits)
    torch.testing.assert_close(flow["softmax"], logits.softmax(dim=-1))


def test_nothing_stays_in_the_model() -> None:
    model = make_model()
    record_flow(model, SRC, TGT)
    assert not any(part._forward_hooks for part in model.modules())
    assert all(getattr(p, "on_weights", None) is None for p in model.modules())


@pytest.mark.parametrize("head", [0, 1])
def test_the_chosen_attention_weights_are_drawn(head: int) -> None:
    name = "decoder 2: cross-attention"
    weights = record_flow(make_model(), SRC, TGT)[f"{name}, weights"][0, head]
    found = cells(drawn(name, f"weights of head {head}"))
    for i, query in enumerate(TOKENS[1]):
        for j, key in enumerate(TOKENS[0]):
            expected = weights[i, j].item()
            assert found[query, key] == pytest.approx(expected, abs=1e-3)
    assert len(found) == 12


def test_logits_have_the_vocabulary_as_columns() -> None:
    logits = record_flow(make_model(), SRC, TGT)["lm_head"][0]
    found = cells(drawn("lm_head"))
    assert found["d", "t7"] == pytest.approx(logits[1, 7].item(), abs=1e-3)
    assert len(found) == 3 * 11


def test_the_second_input_of_cross_attention_is_the_memory() -> None:
    svg = drawn("decoder 0: cross-attention", "second input")
    memory = record_flow(make_model(), SRC, TGT)[
        "encoder 1: add & norm after feed-forward"
    ]
    found = cells(svg)
    assert found["c", "5"] == pytest.approx(memory[0, 2, 5].item(), abs=1e-3)
    assert "in: key, value (memory) (1, 4, 6)" in svg


def test_a_box_without_such_numbers_says_so() -> None:
    svg = drawn("source ids", "weights of head 0")
    assert "this box has no weights of head 0" in svg
    assert not cells(svg)


@pytest.mark.parametrize(
    ("box", "numbers", "columns"),
    [
        ("decoder 0: cross-attention", "weights of head 1", "source tokens"),
        ("decoder 0: self-attention", "weights of head 1", "target tokens"),
        ("decoder 0: feed-forward", "output", "features"),
        ("softmax", "output", "vocabulary"),
    ],
)
def test_the_title_says_what_rows_and_columns_are(box, numbers, columns) -> None:
    assert f"rows: target tokens, columns: {columns}<" in drawn(box, numbers)


def test_ids_are_written_out() -> None:
    assert ">7</text>" in drawn("source ids")


def test_every_box_can_be_chosen_without_a_mouse() -> None:
    (box,) = (p for p in make_chart().to_dict()["params"] if p["name"] == "box")
    assert box["bind"]["labels"] == [each.name for each in model_boxes(2, 3)]
    assert len(set(box["bind"]["labels"])) == len(box["bind"]["labels"])


def test_the_stored_chart_is_valid_small_and_the_same_each_time() -> None:
    first, second = (mime_bundle(make_chart(), "A model.") for _ in range(2))
    assert first == second
    (spec,) = (value for key, value in first.items() if "vegalite" in key)
    altair.Chart.from_dict(spec, validate=True)
    assert len(json.dumps(spec)) < 100_000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: model_explorer(make_model(), SRC, TGT, TOKENS, VOCABULARY[1:]),
            "11 token ids, but 10 names",
        ),
        (
            lambda: model_explorer(make_model(), SRC, TGT, TOKENS[::-1], VOCABULARY),
            "4 source ids, but 3 names",
        ),
        (
            lambda: record_flow(make_model(), SRC.expand(2, -1), TGT),
            r"src must hold 1 sentence.*\(2, 4\)",
        ),
        (
            lambda: record_flow(make_model(norm_first=True), SRC, TGT),
            "norm_first is True",
        ),
        (lambda: record_flow(make_model().train(), SRC, TGT), r"model\.eval\(\)"),
    ],
)
def test_bad_input_is_refused(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
