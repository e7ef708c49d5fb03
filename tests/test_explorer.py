"""The picture of the whole model: each box has its numbers and its code."""

import ast
import inspect
import re
import textwrap

import pytest
import torch

from transformer_book import explorer, pencil
from transformer_book.diagrams import model_map
from transformer_book.diagrams.canvas import written
from transformer_lib import record_attention

PARTS = {part.name: part for part in explorer.model_parts()}
HTML = explorer.explorer("The map.")
CARDS = dict(re.findall(r'id="(box-[^"]+)">(.*?)</details>', HTML, re.DOTALL))


def card(part: explorer.Part) -> str:
    return CARDS[part.anchor]


def run() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Run the model with hooks of our own: module -> output, attention -> weights."""
    model, got = pencil.model(), {}
    for name, module in model.named_modules():
        module.register_forward_hook(
            lambda _, __, output, name=name: got.update({name: output})
        )
    with torch.no_grad(), record_attention(model) as maps:
        model(pencil.ids(pencil.SOURCE), pencil.ids(f"<bos> {pencil.TARGET}"))
    return got, dict(maps)


def test_each_box_of_the_map_is_a_link_to_its_card() -> None:
    assert set(model_map().places) == set(PARTS)
    links = re.findall(r'<a href="#([^"]+)" aria-label="([^"]+)"', HTML)
    assert [anchor for anchor, _ in links] == list(CARDS)
    assert len(links) == len(PARTS) == len(set(links))


OUTPUTS = {
    "source positions": "src_embeddings",
    "target positions": "tgt_embeddings",
    "encoder: self-attention": "encoder.layers.0.self_attn",
    "encoder: feed-forward": "encoder.layers.0.feed_forward",
    "encoder: add & norm after feed-forward": "encoder",
    "decoder: self-attention": "decoder.layers.0.self_attn",
    "decoder: cross-attention": "decoder.layers.0.cross_attn",
    "decoder: add & norm after feed-forward": "decoder",
    "lm_head": "lm_head",
}


@pytest.mark.parametrize(("name", "module"), OUTPUTS.items())
def test_the_numbers_are_those_of_a_forward_pass(name: str, module: str) -> None:
    (got, maps), part = run(), PARTS[name]
    torch.testing.assert_close(part.output, got[module][0])
    found = re.findall(r"<td[^>]*>(?:\S+ )?([\d.−]+)</td>", card(part))
    numbers = got[module][0].flatten().tolist()
    if name == "lm_head":
        numbers = got[module][0].topk(explorer.BEST).values.flatten().tolist()
    if module in maps:
        numbers += maps[module].flatten().tolist()
    assert found == [written(round(number, 2) + 0.0, 2) for number in numbers]


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_the_code_is_in_the_source_and_the_count_in_the_card(part) -> None:
    told = [told for told in explorer.TOLD.values() if told[2] in part.code]
    [(_, origin, _)] = [one for one in told if one[1].__qualname__ == part.origin]
    source = textwrap.dedent(inspect.getsource(origin))
    statements = [ast.dump(n) for n in ast.walk(ast.parse(source))]
    [shown] = ast.parse(part.code).body
    assert ast.dump(shown) in statements
    assert f"<li>{part.n_parameters or 'no'} parameters" in card(part)


def test_the_counts_add_up_to_the_model() -> None:
    own = sum(part.n_parameters for part in PARTS.values() if not part.shared)
    one = PARTS["lm_head"].n_parameters
    assert own + one == sum(p.numel() for p in pencil.model().parameters())


def test_a_line_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no line with 'self.magic'"):
        explorer.code_line(explorer.Embeddings, "self.magic")
