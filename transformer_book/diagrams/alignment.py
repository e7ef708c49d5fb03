"""Two sentences side by side, and lines from each target word to where it looked.

The reader chooses a sentence, and points at a word to see its weights. It is done with
style sheets alone, so it works without scripts, without a network and on a phone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from torch import Tensor

from transformer_book.diagrams.canvas import (
    Canvas,
    color,
    display_bundle,
    mime_bundle,
)

ROW, TOP = 34, 40  # height of a word's row; room for the titles
LEFT, RIGHT, WIDTH = 172, 292, 410  # the columns' inner edges, and the whole
FAINT = 0.12  # weights below this are not drawn until the reader points at a word


@dataclass(frozen=True)
class Aligned:
    """A sentence, its translation, and where every word of it looked.

    Attributes:
        source: its tokens.
        gloss: what each means, "" for none.
        target: tokens of the translation.
        weights: (len(target), len(source)), each row sums to 1.
    """

    source: Sequence[str]
    gloss: Sequence[str]
    target: Sequence[str]
    weights: Tensor


def show_alignments(sentences: Sequence[Aligned], alt: str) -> None:
    """Display the sentences, one at a time, for the reader to choose from.

    Args:
        sentences: at least one.
        alt: the picture in words.
    """
    first = _Drawing(sentences[0]).canvas.svg(alt)
    display_bundle(mime_bundle(first, alt, page=alignment_page(sentences, alt)))


def alignment_page(sentences: Sequence[Aligned], alt: str) -> str:
    """Return all sentences as one piece of HTML, with a button for each."""
    buttons, panels, rules = [], [], []
    for number, sentence in enumerate(sentences):
        name = f"alignment-{number}"
        checked = " checked" if number == 0 else ""
        title = escape(_text(sentence.source))
        buttons.append(
            f'<input type="radio" name="alignment" id="{name}"{checked}>'
            f'<label for="{name}" lang="de">{title}</label>'
        )
        panels.append(f'<div class="panel {name}">{_Drawing(sentence).page()}</div>')
        rules.append(f".alignment:has(#{name}:checked) .{name}{{display:block}}")
    return (
        f'<div class="alignment" role="group" aria-label="{escape(alt)}">\n'
        f"<style>{_STYLE}{''.join(rules)}</style>\n"
        f'<div class="choices">{"".join(buttons)}</div>\n'
        + "\n".join(panels)
        + "\n</div>"
    )


class _Drawing:
    """One sentence pair: the source on the left, the target on the right."""

    def __init__(self, sentence: Aligned) -> None:
        self.sentence = sentence
        rows = max(len(sentence.source), len(sentence.target))
        self.canvas = Canvas(WIDTH, TOP + rows * ROW + 6)
        self._columns()
        for row in range(len(sentence.target)):
            self._lines(self.canvas, row, FAINT)

    def page(self) -> str:
        """The drawing with a group for each target word, to be pointed at."""
        sentence, groups = self.sentence, []
        for row, word in enumerate(sentence.target):
            layer = Canvas(WIDTH, self.canvas.height)
            self._lines(layer, row, 0.02)
            weights = sentence.weights[row].tolist()
            for column, weight in enumerate(weights):
                if weight >= 0.02:
                    y = self._height(column, len(sentence.source))
                    layer.text(LEFT + 34, y - 9, f"{weight:.0%}", "source", size=12)
            ranked = sorted(zip(weights, sentence.source, strict=True), reverse=True)
            said = ", ".join(f"{name} {weight:.0%}" for weight, name in ranked[:3])
            y = self._height(row, len(sentence.target))
            area = (
                f'<rect class="hit" x="{RIGHT - 4}" y="{y - ROW / 2:g}" rx="5" '
                f'width="{_chip(word) + 8:g}" height="{ROW}"/>'
            )
            groups.append(
                f'<g class="word" tabindex="0" role="img" '
                f'aria-label="{escape(f"{word} looks at {said}")}">{area}'
                f'<g class="look">{"".join(layer.parts)}</g></g>'
            )
        svg = self.canvas.svg("").replace('role="img" aria-label=""', 'role="group"')
        return svg.replace("</svg>", "".join(groups) + "</svg>")

    def _height(self, index: int, count: int) -> float:
        rows = max(len(self.sentence.source), len(self.sentence.target))
        return TOP + (index + 0.5 + (rows - count) / 2) * ROW

    def _columns(self) -> None:
        canvas, sentence = self.canvas, self.sentence
        canvas.text(LEFT, 18, "German", "source", anchor="end", bold=True)
        canvas.text(RIGHT, 18, "English", "target", anchor="start", bold=True)
        for index, (word, gloss) in enumerate(
            zip(sentence.source, sentence.gloss, strict=True)
        ):
            y = self._height(index, len(sentence.source))
            width = _chip(word)
            canvas.box(LEFT - width, y - 13, width, 26, word, "source", size=15)
            if gloss:
                place = (LEFT - width - 8, y)
                canvas.text(*place, gloss, size=13, anchor="end", italic=True)
        for index, word in enumerate(sentence.target):
            y = self._height(index, len(sentence.target))
            width = _chip(word)
            canvas.box(RIGHT, y - 13, width, 26, word, "target", size=15)

    def _lines(self, canvas: Canvas, row: int, least: float) -> None:
        sentence = self.sentence
        y = self._height(row, len(sentence.target))
        for column, weight in enumerate(sentence.weights[row].tolist()):
            if weight >= least:
                other = self._height(column, len(sentence.source))
                strength = weight if least == FAINT else 0.3 + 0.7 * weight
                canvas.parts.append(
                    f'<line class="link" x1="{LEFT + 3}" y1="{other:g}" '
                    f'x2="{RIGHT - 3}" y2="{y:g}" style="stroke:{color("memory")};'
                    f'stroke-width:{0.8 + 5 * weight:.1f};opacity:{strength:.2f}"/>'
                )


def _chip(word: str) -> float:
    """The width of a word's box."""
    return max(30, 9.4 * len(word) + 14)


def _text(tokens: Sequence[str]) -> str:
    """Tokens as a sentence, without a space before a comma or full stop."""
    text = " ".join(token for token in tokens if not token.startswith("<"))
    return text.replace(" ,", ",").replace(" .", ".")


_STYLE = f"""
.alignment{{max-width:{WIDTH}px}}
.alignment .choices{{display:flex;flex-wrap:wrap;gap:6px;margin-bottom:8px}}
.alignment input{{position:absolute;opacity:0}}
.alignment label{{border:1px solid {color("source")};border-radius:6px;
padding:4px 10px;cursor:pointer;font-size:.9em}}
.alignment input:checked+label{{background:{color("source")};color:{color("page")}}}
.alignment input:focus-visible+label{{outline:3px solid {color("highlight")}}}
.alignment .panel{{display:none}}
.alignment .hit{{fill:transparent;cursor:pointer}}
.alignment .look{{display:none;pointer-events:none}}
.alignment .word:is(:hover,:focus) .look{{display:inline}}
.alignment .word:is(:hover,:focus) .hit{{stroke:{color("highlight")};stroke-width:2}}
.alignment .word:focus{{outline:none}}
.alignment svg:has(.word:is(:hover,:focus))>.link{{display:none}}
""".strip()
