"""The drawing of the model is wired as the model is, and shows the model's numbers."""

import pytest
import torch
from drawn_charts import SRC, TGT, TOKENS, drawn, make_model, marks, number, sample

from transformer_book.charts.model_flow import model_boxes, record_flow

BOXES = model_boxes(2, 3)
NAMES = [box.name for box in BOXES]
MEMORY = "encoder 1: add & norm after feed-forward"


def shown(box: str, numbers: str = "output") -> str:
    """The SVG after a reader has chosen a box and what to show of it."""
    chosen = [{"q": NAMES.index(box)}]
    return drawn(sample("model_explorer"), box=chosen, numbers=numbers)


def cells(svg: str) -> dict[tuple[str, str], float]:
    found = marks(svg, "value")
    return {(mark["token"], mark["column"]): number(mark["value"]) for mark in found}


def test_every_wire_carries_what_the_module_really_got() -> None:
    model, got = make_model(), {}
    flow = record_flow(model, SRC, TGT)
    parts = [box for box in BOXES if box.part]
    for box in parts:
        model.get_submodule(box.part).register_forward_hook(
            lambda _, inputs, __, name=box.name: got.update({name: inputs})
        )
    model(SRC, TGT)
    for box in parts:
        wires = [flow[name] for name in box.inputs.values()]
        if box.label == "add & norm":
            norm = model.get_submodule(box.part).norm
            torch.testing.assert_close(norm(sum(wires)), flow[box.name])
        else:
            for wire, received in zip(wires, got[box.name], strict=False):
                torch.testing.assert_close(wire, received)
    assert sum(box.label == "add & norm" for box in parts) == 2 * 2 + 3 * 3


def test_memory_goes_to_every_decoder_layer() -> None:
    crosses = [box for box in BOXES if box.label == "cross-attention"]
    assert [list(box.inputs.values())[1] for box in crosses] == [MEMORY] * 3
    lines = [
        layer["data"]["values"]
        for layer in sample("model_explorer")["vconcat"][0]["layer"]
        if layer["mark"].get("style") == "memory mark"
        and layer["mark"]["type"] == "line"
    ]
    assert len({point["line"] for point in lines[0]}) == len(lines) * 3 == 3


def test_the_last_boxes_are_the_logits_and_their_softmax() -> None:
    model = make_model()
    flow = record_flow(model, SRC, TGT)
    logits = model(SRC, TGT).detach()
    torch.testing.assert_close(flow["lm_head"], logits)
    torch.testing.assert_close(flow["softmax"], logits.softmax(dim=-1))


def test_nothing_stays_in_the_model_and_nothing_drops_out() -> None:
    model = make_model(dropout=0.5).train()
    before = {name: vars(module).copy() for name, module in model.named_modules()}
    first, second = (record_flow(model, SRC, TGT) for _ in range(2))
    assert torch.equal(first["softmax"], second["softmax"])
    assert not any(part._forward_hooks for part in model.modules())
    assert {name: vars(module) for name, module in model.named_modules()} == before


@pytest.mark.parametrize("head", [0, 1])
def test_the_chosen_attention_weights_are_drawn(head: int) -> None:
    name = "decoder 2: cross-attention"
    weights = record_flow(make_model(), SRC, TGT)[f"{name}, weights"][0, head]
    found = cells(shown(name, f"weights of head {head}"))
    assert len(found) == weights.numel()
    for i, query in enumerate(TOKENS[1]):
        for j, key in enumerate(TOKENS[0]):
            expected = weights[i, j].item()
            assert found[query, key] == pytest.approx(expected, abs=1e-3)


def test_logits_have_the_vocabulary_as_columns() -> None:
    logits = record_flow(make_model(), SRC, TGT)["lm_head"][0]
    found = cells(shown("lm_head"))
    assert found["x", "t7"] == pytest.approx(logits[1, 7].item(), abs=1e-3)
    assert len(found) == logits.numel()


def test_the_second_input_of_cross_attention_is_the_memory() -> None:
    svg = shown("decoder 0: cross-attention", "second input")
    memory = record_flow(make_model(), SRC, TGT)[MEMORY]
    assert cells(svg)["c", "5"] == pytest.approx(memory[0, 2, 5].item(), abs=1e-3)
    assert "in: key, value (memory) (1, 5, 6)" in svg


def test_a_box_without_such_numbers_says_so() -> None:
    svg = shown("source ids", "weights of head 0")
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
    assert f"rows: target tokens, columns: {columns}<" in shown(box, numbers)


def test_ids_are_written_out() -> None:
    assert ">7</text>" in shown("source ids")


def test_every_box_can_be_chosen_without_a_mouse() -> None:
    (box,) = (p for p in sample("model_explorer")["params"] if p["name"] == "box")
    assert box["bind"]["labels"] == NAMES
    assert len(set(NAMES)) == len(NAMES)


def test_a_pre_norm_model_is_wired_in_another_way() -> None:
    with pytest.raises(ValueError, match="norm_first is True"):
        record_flow(make_model(norm_first=True), SRC, TGT)
