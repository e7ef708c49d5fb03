"""Each chart draws the numbers that it was given, for every choice of the reader."""

from itertools import product

import numpy as np
import pytest
import torch
from drawn_charts import SRC, TGT, draw, drawn, make_model, marks, number

from transformer_book import charts
from transformer_book.charts.masks import BLOCKS as MASKED
from transformer_book.charts.model_flow import model_boxes, record_flow
from transformer_lib import sinusoid_table

SIDES = {"source": ["die", "Katze", "die"], "target": ["<bos>", "cat"]}  # one twice
SOURCE, TARGET = SIDES.values()
MAPS = draw(5, 2, 3).softmax(dim=-1)
QUERY, KEY = draw(7, 3), draw(7, 3, seed=1)
STATES = {"a": draw(3, 5), "b": draw(3, 5, seed=1)}
TABLE = sinusoid_table(7, 4)
BOXES, FLOW = model_boxes(2, 3), record_flow(make_model(), SRC, TGT)


def cosines(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=-1)


ATTENTION = charts.attention_explorer(MAPS, TARGET, SOURCE)
DIVISOR = charts.divisor_explorer(QUERY, KEY, "abcdefg", start=2)
SIMILARITY = charts.similarity_explorer(STATES, SOURCE)

# A chart, what the reader chooses, and the numbers of a field that must be drawn then.
# fmt: off
CHOICES = [
    (ATTENTION, {}, "weight", MAPS[0]),
    (ATTENTION, {"head": "4"}, "weight", MAPS[3]),
    (DIVISOR, {"q": 4, "power": -4}, "weight", (16 * QUERY[4] @ KEY.T).softmax(-1)),
    (DIVISOR, {"power": 9}, "weight", (QUERY[2] @ KEY.T / 512).softmax(-1)),
    (SIMILARITY, {}, "cosine", cosines(STATES["a"])),
    (SIMILARITY, {"vectors": "b"}, "cosine", cosines(STATES["b"])),
    (charts.position_explorer(TABLE), {"chosen": 5}, "dot product", TABLE @ TABLE[5]),
]
# fmt: on


@pytest.mark.parametrize(("chart", "choices", "field", "expected"), CHOICES)
def test_the_chosen_numbers_are_drawn(chart, choices, field: str, expected) -> None:
    found = [number(mark[field]) for mark in marks(drawn(chart, **choices), field)]
    np.testing.assert_allclose(found, expected.detach().flatten(), atol=1e-3)


def test_the_text_says_what_is_drawn() -> None:
    pale = charts.attention_explorer(MAPS / 100, TARGET, SOURCE)
    assert "with values from 0.0 to 1.0" in drawn(pale)


def test_repeated_tokens_stay_apart_and_a_row_is_chosen_without_a_mouse() -> None:
    assert drawn(ATTENTION).count(">die</text>") == 2
    binds = {p["name"]: p.get("bind") for p in ATTENTION.to_dict()["params"]}
    assert binds["row"]["labels"] == ["all", "1: <bos>", "2: cat"]


@pytest.mark.parametrize(
    ("block", "hide_padding", "hide_future", "source"),
    [*product(MASKED, [False, True], [False, True], [2, 0])],
)
def test_the_drawn_mask_hides_padding_keys_and_the_future(
    block, hide_padding, hide_future, source
) -> None:
    lengths = {"source": source, "target": 1}
    choices = {"hide_padding": hide_padding, "hide_future": hide_future, **lengths}
    svg = drawn(charts.mask_explorer(SOURCE, TARGET), block=block, **choices)
    q_side, k_side = MASKED[block]
    q_len, k_len = len(SIDES[q_side]), len(SIDES[k_side])
    causal = hide_future and block == "decoder self-attention"
    expected = []
    for query, key in product(range(q_len), range(k_len)):
        why = ["padding key"] * (hide_padding and key >= lengths[k_side])
        why += ["future"] * (causal and key > query)
        said = "hidden: " + ", ".join(why) if why else "may attend"
        expected.append((f"{query}", f"{key}", said, "×" if why else "✓"))
    fields = ("query", "key", "reason", "sign")
    found = [tuple(mark[field] for field in fields) for mark in marks(svg, "sign")]
    assert sorted(found) == expected
    n_padding = sum(len(SIDES[side]) - lengths[side] for side in (q_side, k_side))
    assert svg.count("><pad></text>") == n_padding


# --- what is recorded of a model -----------------------------------------------------


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


def test_recording_drops_nothing_out_and_leaves_no_hook() -> None:
    model = make_model(dropout=0.5).train()
    flow = record_flow(model, SRC, TGT)
    assert all(torch.equal(numbers, FLOW[name]) for name, numbers in flow.items())
    assert not any(part._forward_hooks for part in model.modules())


def test_a_model_of_another_wiring_is_refused() -> None:
    with pytest.raises(ValueError, match="norm_first is True"):
        record_flow(make_model(norm_first=True), SRC, TGT)
