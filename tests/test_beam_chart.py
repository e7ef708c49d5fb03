"""The chart of beam search draws the branches of every step up to the chosen one."""

import re
from html import unescape

import pytest
import vl_convert

from transformer_lib.charts.beams import FATES, Branch, beam_tree

STEPS = [
    [Branch(("a",), -0.5, "kept"), Branch(("b",), -0.9, "kept"),
     Branch(("<eos>",), -3.0, "pruned")],
    [Branch(("b", "<eos>"), -1.1, "finished"), Branch(("a", "c"), -1.2, "kept"),
     Branch(("b", "c"), -1.4, "kept"), Branch(("a", "d"), -1.5, "pruned")],
    [Branch(("b", "c", "<eos>"), -1.6, "finished")],
]  # fmt: skip


def svg_of(step: int) -> str:
    spec = beam_tree(STEPS).to_dict()
    (param,) = [param for param in spec["params"] if param["name"] == "step"]
    assert param["bind"]["max"] == len(STEPS) == param["value"]
    param["value"] = step
    return vl_convert.vegalite_to_svg(spec)


@pytest.mark.parametrize("step", range(4))
def test_branches_up_to_the_chosen_step_are_drawn(step) -> None:
    pattern = r'fate: (\w+); target: ([^"]*); log-probability: ([^"]*)"'
    found = re.findall(pattern, svg_of(step))
    drawn = [(unescape(t), float(p.replace("−", "-")), f) for f, t, p in found]
    expected = [(" ".join(b.target), b.log_prob, b.fate)
                for branches in STEPS[:step] for b in branches]  # fmt: skip
    assert sorted(drawn) == sorted(expected)


def test_lines_lead_from_the_parent() -> None:
    rows = beam_tree(STEPS).to_dict()["data"]["values"]
    assert (rows[0]["place"], rows[0]["token"]) == (2.5, "<bos>")
    parents = {row["target"]: row["parent"] for row in rows[1:]}
    places = {row["target"]: row["place"] for row in rows[1:]}
    for target, parent in parents.items():
        before = target.rpartition(" ")[0]
        assert parent == (places[before] if before else 2.5)
    assert {parents["a c"], parents["b c"]} == {1, 2}


def test_a_line_is_drawn_for_each_branch() -> None:
    n_lines = svg_of(3).count('aria-roledescription="rule mark"')
    assert n_lines == sum(map(len, STEPS))
    assert svg_of(0).count('aria-roledescription="rule mark"') == 0


def test_every_row_has_what_the_table_of_the_page_shows() -> None:
    spec = beam_tree(STEPS).to_dict()
    fields = {field for field, _ in spec["usermeta"]["columns"]}
    assert all(fields <= row.keys() for row in spec["data"]["values"])


def test_each_fate_has_a_color_and_a_sign_of_its_own() -> None:
    colors, signs = zip(*FATES.values(), strict=True)
    assert len(set(colors)) == len(set(signs)) == len(FATES) == 3


def test_what_is_no_search_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 step"):
        beam_tree([])
    with pytest.raises(ValueError, match=r"step 1: -0\.1 stands after -0\.5"):
        beam_tree([[STEPS[0][0], Branch(("b",), -0.1, "kept")]])
    with pytest.raises(ValueError, match="fate must be one of kept, .* not lost"):
        beam_tree([[Branch(("a",), -0.5, "lost")]])
    with pytest.raises(ValueError, match=r"step 2: .*'<eos>', 'x'.* not kept"):
        beam_tree([STEPS[0], [Branch(("<eos>", "x"), -4.0, "kept")]])
