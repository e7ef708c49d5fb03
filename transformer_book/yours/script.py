"""A reader's parts in words, and as a file that does the same with PyTorch."""

import ast
from collections.abc import Mapping

from transformer_book.yours import reader
from transformer_book.yours.parts import PARTS, PREAMBLE
from transformer_book.yours.reader import Problem

MODEL = "multi30k-de-en"

_INTRODUCTION = """\
# A translation on your own code, in Python with PyTorch.
# In Colab, fetch the book's library first, in a cell of its own:
#     %pip install -q "git+https://github.com/OWNER/REPO"
"""
_BEGIN = """\
from transformer_book.yours.parts import build
from transformer_lib import load
"""
_END = """\
# The book's model with your code in it, and its trained weights in 8 bits, as pages
# have them
translator = load({model!r})
model = build(
    translator.model.config,
    {{
{own}
    }},
)
model.load_state_dict(translator.model.state_dict())
with torch.no_grad():
    for weight in set(model.parameters()):
        if weight.dim() == 2:
            scales = weight.abs().amax(dim=1, keepdim=True) / 127
            scales[scales == 0] = 1 / 127
            weight.copy_((weight / scales).round() * scales)
model.eval()

tokenizer = translator.tokenizer
src = torch.tensor([tokenizer.encode({sentence!r})])
with torch.no_grad():
    target = greedy_decode(
        model, src, tokenizer.bos_id, tokenizer.eos_id, max_len={max_len}
    )
print(tokenizer.decode(target))
"""


def say(parts: Mapping[str, str]) -> str:
    """Return what a translation is told to be made of.

    Args:
        parts: the text of each part that is the reader's.
    """
    if not parts:
        return "All of it is the book's."
    if parts.keys() >= PARTS.keys():
        n_lines = sum(map(reader.count_lines, parts.values()))
        return f"This sentence was translated by your code alone: {n_lines} lines."
    owned = ", ".join(PARTS[name].owned for name in PARTS if name in parts)
    return f"{owned[0].upper()}{owned[1:]}; the rest is the book's."


def as_script(parts: Mapping[str, str], sentence: str, model: str = MODEL) -> str:
    """Return a file that translates a sentence on a reader's parts; or a notebook cell.

    Args:
        parts: the text of each part that is the reader's.
        sentence: in the source language.
        model: the name of a shipped one.

    Raises:
        Problem: two texts give a name to different things, and a file has one of each.
    """
    texts = {name: reader.read(parts[name]).strip() for name in PARTS if name in parts}
    _require_different_names(texts)
    if "search" not in texts:
        texts["search"] = PARTS["search"].solution.strip()
    blocks = [
        f"# --- {PARTS[name].title} ---\n\n{text}\n" for name, text in texts.items()
    ]
    own = [x for name in parts if name != "search" for x in PARTS[name].defines]
    end = _END.format(
        model=model,
        own="\n".join(f'        "{name}": {name},' for name in own),
        sentence=sentence.strip(),
        max_len=128,
    )
    return "\n\n".join([_INTRODUCTION + PREAMBLE + _BEGIN, *blocks, end])


def _require_different_names(texts: Mapping[str, str]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for part, text in texts.items():
        for node in ast.parse(text).body:
            name, code = getattr(node, "name", None), ast.dump(node)
            if name is None:
                continue
            other, same = seen.setdefault(name, (part, code))
            if same != code:
                raise Problem(
                    f"{reader.named(other)} and {PARTS[part].owned} both define "
                    f"{name}, and not alike: give one of them another name, since a "
                    "file has only one of each."
                )
