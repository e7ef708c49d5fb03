"""The German of the book has its meaning in English beside it."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

from transformer_book.charts.machine import MIME
from transformer_book.gloss import WORD, gloss, meaning

BOOK = Path(__file__).parent.parent / "book"
GERMAN = "ein eine einen einem einer der die das den dem zwei drei im am ist"
ENGLISH = "a and are at by head is it layer not of row side that the to what which"


def cells() -> list[nbformat.NotebookNode]:
    notebooks = (nbformat.read(path, 4) for path in sorted(BOOK.glob("*.ipynb")))
    return [cell for each in notebooks for cell in each.cells if cell.source]


def german_texts() -> set[str]:
    """Return the texts in code that are German by their small words."""
    found = set()
    for cell in (each for each in cells() if each.cell_type == "code"):
        source = re.sub(r"^( *)[%!].*", r"\1pass", cell.source, flags=re.M)
        tree = ast.parse(source)
        formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for each in formatted for part in ast.walk(each)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in parts:
                continue
            text = node.value if isinstance(node.value, str) else ""
            words = {*map(str.lower, WORD.findall(text))}
            is_german = words & {*GERMAN.split()} and not words & {*ENGLISH.split()}
            if is_german and len(words) > 1:
                found.add(re.sub(r"<\w+>|\{\}", "", text))
    return found


def test_every_german_text_of_the_notebooks_has_a_gloss() -> None:
    texts = german_texts()
    assert len(texts) > 40  # they are found
    missing = {}
    for text in texts:
        if "▁" in text:  # in pieces
            text = text.replace(" ", "").replace("▁", " ")
        try:
            gloss(text)
        except KeyError as error:
            missing[text] = error.args[0]
    assert not missing


def test_every_sentence_of_a_machine_has_a_meaning() -> None:
    outputs = [output for cell in cells() for output in cell.get("outputs", [])]
    machines = [each.data[MIME] for each in outputs if MIME in each.get("data", {})]
    sources = {json.loads(each["stored"])["trace"]["source"] for each in machines}
    assert len(sources) > 1
    assert all(map(meaning, sources))


@pytest.mark.parametrize(
    ("sentence", "pairs"),
    [
        ("Ein Kind spielt.", "Ein/a Kind/child spielt/plays"),
        ("der Mann", "der/the Mann/man"),
        ("Sie holt oft die Frau ab.",
         "Sie/she holt/picks oft/often die/the Frau/woman ab/up"),
        ("", ""),
    ],
)  # fmt: skip
def test_words_mean_what_they_mean_there(sentence: str, pairs: str) -> None:
    assert " ".join(f"{word}/{english}" for word, english in gloss(sentence)) == pairs


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(KeyError, match="quux"):
        gloss("Ein Quux schläft.")


def test_capitals_and_the_full_stop_do_not_count() -> None:
    assert meaning("im schnee spielt ein hund") == "A dog is playing in the snow."
    assert not meaning("Ein Quux schläft.")
