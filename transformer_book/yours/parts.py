"""The nine parts of the machine that a reader writes, one in a chapter.

    space = namespace("attention")          # what a reader's source finds
    exec(source, space)
    answer = answer_of("attention", space)  # {"scaled_dot_product_attention": …}
    PARTS["attention"].grader(answer)       # a Feedback
    model = build(config, answer)           # the model, with this in its place

Whoever wants to write another part adds it to `names.DEFINES`, to the graders, and to
the table below.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from transformer_book.yours.graders import GRADERS, PartGrader
from transformer_book.yours.names import (
    DEFINES,
    answer_of,
    book_sources,
    namespace,
    solution_of,
)
from transformer_book.yours.source import open_stub
from transformer_lib.model import attention, embeddings, layers, masks, transformer
from transformer_lib.model.config import TransformerConfig

__all__ = [
    "COUNTS",
    "PADDING",
    "PARTS",
    "PREAMBLE",
    "Part",
    "Try",
    "answer_of",
    "build",
    "error_of",
    "namespace",
    "program",
    "runs",
]

# Tokens of padding behind a sentence while the masks are a reader's, as in a batch with
# a longer one: without them, a padding mask has nothing to do.
PADDING = 4
COUNTS = Path(__file__).with_name("counts.json")  # `experiments.mistakes` writes it


@dataclass(frozen=True)
class Try:
    """A mistake that a reader can try with one tap.

    Attributes:
        label: what is done: "leave out √d".
        source: the solution with this mistake.
        why: what it does in the model, in a sentence.
        changed: how many of forty sentences get another translation, see
            `experiments.mistakes`; None if nobody has counted.
    """

    label: str
    source: str
    why: str
    changed: int | None


@dataclass(frozen=True)
class Part:
    """A part of the machine that a reader writes.

    Attributes:
        name: its key in PARTS.
        chapter: the notebook it is written in, without suffix.
        title: what it is.
        owned: what a translation that it has made is told: "your attention".
        boxes: what it computes on the map of the machine.
        defines: the names that a source must define.
        solution: a source that is right.
        stub: the source that a reader begins with.
        grader: takes what `answer_of` returns.
        tries: three mistakes.
        opening: the sentence that is translated first: as many of the mistakes as can
            be change it.
    """

    name: str
    chapter: str
    title: str
    owned: str
    boxes: tuple[str, ...]
    defines: tuple[str, ...]
    solution: str
    stub: str
    grader: PartGrader
    tries: tuple[Try, Try, Try]
    opening: str


# What a part is: its chapter, title, the words for "yours", its places on the
# map; then its three mistakes: label, what is replaced, by what.
_TABLE = {
    "positions": (
        "01_embeddings",
        "Positions",
        "your positions",
        ("positions",),
        ("count from 1", "arange(n_positions)", "arange(1, n_positions + 1)"),
        ("the same at every position", "arange(n_positions)", "zeros(n_positions)"),
        (
            "all sines first, then the cosines",
            "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)",
            "torch.cat([angle.sin(), angle.cos()], dim=-1)",
        ),
    ),
    "attention": (
        "02_scaled_dot_product_attention",
        "Attention",
        "your attention",
        ("self_attn", "cross_attn"),
        ("leave out √d", " / math.sqrt(query.size(-1))", ""),
        ("softmax over the queries", "softmax(dim=-1)", "softmax(dim=-2)"),
        ("the key instead of the value", "weights @ value", "weights @ key"),
    ),
    "heads": (
        "03_multi_head_attention",
        "Several heads",
        "your heads",
        ("self_attn", "cross_attn"),
        (
            "split with a view alone",
            "x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)",
            "x.reshape(x.size(0), self.n_heads, x.size(1), self.d_head)",
        ),
        (
            "half as many heads",
            "self.d_model, self.n_heads = d_model, n_heads",
            "self.d_model, self.n_heads = d_model, (n_heads := n_heads // 2)",
        ),
        (
            "leave out the last projection",
            "self.out_proj(self.join_heads(output))",
            "self.join_heads(output)",
        ),
    ),
    "masks": (
        "04_masks",
        "Masks",
        "your masks",
        ("masks",),
        ("no causal mask", ".tril()", ""),
        ("the causal mask upside down", ".tril()", ".triu()"),
        ("padding is seen", "ids != pad_id", "ids == ids"),
    ),
    "sublayers": (
        "05_layer_norm_and_residuals",
        "Norm, feed-forward, residual",
        "your norm, feed-forward network and residual connections",
        ("norm", "feed_forward", "residual"),
        (
            "nothing is added",
            "x + self.dropout(sublayer(self.norm(x)))",
            "self.dropout(sublayer(self.norm(x)))",
        ),
        ("post-norm for pre-norm", "if self.norm_first", "if not self.norm_first"),
        ("leave out ReLU", "self.activation(self.expand(x))", "self.expand(x)"),
    ),
    "encoder": (
        "06_encoder",
        "The encoder layer",
        "your encoder layer",
        ("encoder",),
        (
            "no feed-forward network",
            "return self.feed_forward_connection(x, self.feed_forward)",
            "return x",
        ),
        (
            "one norm for both halves",
            "return self.feed_forward_connection(",
            "return self.self_attn_connection(",
        ),
        (
            "attention without residual connection",
            "self.self_attn_connection(x, lambda x: self.self_attn(x, x, x, src_mask))",
            "self.self_attn(x, x, x, src_mask)",
        ),
    ),
    "decoder": (
        "07_decoder_and_cross_attention",
        "The decoder layer, shifting",
        "your decoder layer",
        ("decoder",),
        (
            "never look at the source",
            "self.cross_attn(x, memory, memory, src_mask)",
            "self.cross_attn(x, x, x, tgt_mask)",
        ),
        (
            "look across before looking back",
            "x = self.self_attn_connection(x, look_back)\n"
            "        x = self.cross_attn_connection(x, look_across)",
            "x = self.cross_attn_connection(x, look_across)\n"
            "        x = self.self_attn_connection(x, look_back)",
        ),
        (
            "shift by nothing",
            "torch.cat([torch.full_like(target[:, :1], bos_id), "
            "target[:, :-1]], dim=1)",
            "target.clone()",
        ),
    ),
    "model": (
        "08_full_transformer",
        "The whole model",
        "your model",
        ("lm_head", "encoder", "decoder"),
        (
            "no norm after the encoder",
            "return self.encoder(self.src_embeddings(src), src_mask)",
            "x = self.src_embeddings(src)\n"
            "        for layer in self.encoder.layers:\n"
            "            x = layer(x, src_mask)\n"
            "        return x",
        ),
        (
            "no scale, no positions in the target",
            "self.tgt_embeddings(tgt_in)",
            "self.tgt_embeddings.tokens(tgt_in)",
        ),
        (
            "softmax at the end",
            "self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))",
            "self.lm_head(\n"
            "            self.decode(tgt_in, memory, src_mask, tgt_mask)\n"
            "        ).softmax(dim=-1)",
        ),
    ),
    "search": (
        "11_generating_a_translation",
        "Greedy search",
        "your search",
        ("search",),
        ("take the second best", ".argmax()", ".topk(2).indices[1]"),
        ("never end", "target[-1] != eos_id and ", ""),
        ("read the last token only", "tensor([target])", "tensor([target[-1:]])"),
    ),
}


# What each mistake does in the model.
_WHY = {
    "count from 1": "Each token gets the vector of the position after its own. The "
    "distances between tokens stay as they were.",
    "the same at every position": "The encoder can’t tell the order of the words any "
    "more: for it, a sentence is a bag of words.",
    "all sines first, then the cosines": "Each position still has a vector of its own, "
    "but the trained matrices expect sines and cosines in turns.",
    "leave out √d": "The scores are larger than in training, so softmax gives more of "
    "the weight to the best keys and less to all others.",
    "softmax over the queries": "The weights of a query don’t sum to 1 any more: each "
    "key deals out one whole among the queries, whether they need it or not.",
    "the key instead of the value": "A key says what a token can be found by. What it "
    "has to give stands in its value, and the next matrices were trained on that.",
    "split with a view alone": "A view cuts the numbers in the order in which they are "
    "stored: each head gets all of a few tokens, not a slice of every token.",
    "half as many heads": "Two neighboring heads become one: their scores are added, "
    "and both must look at the same places.",
    "leave out the last projection": "The heads’ outputs stand side by side, but "
    "nothing turns them into the features that the next layer was trained on.",
    "no causal mask": "Earlier positions now also read the words after them, which "
    "they never did in training.",
    "the causal mask upside down": "Each position reads itself and what comes after. "
    "The last one, which predicts the next word, reads nothing but itself.",
    "padding is seen": "The words give a part of their attention to the padding, "
    "though it stands for nothing.",
    "nothing is added": "A sub-layer writes only a correction. With nothing to add it "
    "to, the word itself is lost.",
    "post-norm for pre-norm": "The same weights, but each norm now stands behind the "
    "addition and rescales what was to pass unchanged.",
    "leave out ReLU": "Without ReLU, nothing is switched off: the two matrices are "
    "one linear map.",
    "no feed-forward network": "Each token still gathers from the others, but the "
    "layer computes nothing from what it has gathered.",
    "one norm for both halves": "The network reads x by the gain and bias of the "
    "attention’s norm, and was trained with those of its own.",
    "attention without residual connection": "The attention reads x without its norm, "
    "and what it returns takes the place of x.",
    "never look at the source": "The decoder never reads the German sentence: it can "
    "only go on from its own words.",
    "look across before looking back": "Each attention now reads what the other one "
    "was to read, and their weights were trained in the other order.",
    "shift by nothing": "In each step, the last token that the decoder reads is the "
    "end of the sentence, after which it never had to predict anything.",
    "no norm after the encoder": "The decoder reads the encoder’s sums as they are, "
    "and was trained on normalized ones.",
    "no scale, no positions in the target": "The decoder reads its words without the "
    "factor √d_model, and doesn’t know where they stand.",
    "softmax at the end": "Softmax keeps the order of the logits: the largest stays "
    "the largest, and greedy search takes the same token.",
    "take the second best": "Each step takes a word that the model finds less likely, "
    "and all later steps must go on from it.",
    "never end": "After the end token, the loop asks for more, until max_len is "
    "reached.",
    "read the last token only": "The decoder reads its last word alone, so it can’t "
    "know what it has translated already.",
}


def _make_part(name: str, stored: dict[str, dict[str, Any]]) -> Part:
    *about, boxes, one, two, three = _TABLE[name]
    changed, opening = (stored.get(key, {}) for key in ("changed", "openings"))
    solution, changed, tries = solution_of(name), changed.get(name, {}), []
    for label, old, new in (one, two, three):
        if solution.count(old) != 1:
            raise ValueError(f"{old!r} stands {solution.count(old)} times in {name}")
        source = solution.replace(old, new)
        tries.append(Try(label, source, _WHY[label], changed.get(label)))
    return Part(
        name,
        *about,
        boxes=boxes,
        defines=DEFINES[name],
        solution=solution,
        stub=open_stub(solution),
        grader=GRADERS[name],
        tries=tuple(tries),
        opening=opening.get(name, ""),
    )


_STORED = json.loads(COUNTS.read_text("utf-8")) if COUNTS.is_file() else {}
PARTS = {name: _make_part(name, _STORED) for name in DEFINES}


def build(config: TransformerConfig, own: dict[str, Any]) -> nn.Module:
    """Make the Transformer with a reader's definitions in the place of the book's.

    Args:
        config: sizes and choices.
        own: any of the names that the parts define. What they call in turn is looked
            up where they were defined: in the `namespace()` of their source.

    Returns:
        The model, with random weights.
    """
    names = namespace()
    names.update(own)
    return names["Transformer"](config)


def runs(part: str, answer: dict[str, Any]) -> bool:
    """Whether an answer, right or wrong, returns the right shapes."""
    return PARTS[part].grader.runs(answer)


def error_of(part: str, answer: dict[str, Any]) -> Exception | None:
    """Return what an answer raises when it is graded, with its traceback."""
    return PARTS[part].grader.error_of(answer)


_IMPORTS = """\
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""


# The same names in Python with PyTorch, for a part that is saved.
_MODULES = (attention, embeddings, layers, masks, transformer)
PREAMBLE = f"{_IMPORTS}\n" + "".join(
    f"from {module.__name__} import *\n" for module in _MODULES
)

_RUN = """\
book = load("multi30k-de-en")  # its weights and its tokenizer
model = Transformer(book.model.config)
model.load_state_dict(book.model.state_dict())
model.eval()
bos_id, eos_id = book.tokenizer.bos_id, book.tokenizer.eos_id
for text in ["Im Schnee spielt ein Hund."]:
    src = torch.tensor([book.tokenizer.encode(text)])
    with torch.inference_mode():
        ids = greedy_decode(model, src, bos_id, eos_id, src.size(1) + 50)
    print(book.tokenizer.decode([int(token) for token in ids]))
"""


def program(sources: dict[str, str]) -> str:
    """Write a file that translates by a reader's parts, in Python with PyTorch.

    Args:
        sources: of some parts, or of all, by name.

    Returns:
        The imports; what is the book's; the reader's parts; a translation.
    """
    written = {name for part in sources for name in DEFINES[part]}
    book = [text for name, text in book_sources().items() if name not in written]
    blocks = [
        f"{_IMPORTS}\nfrom transformer_lib import load",
        "# The book's.",
        *book,
        *(
            f"# Yours: {part}.\n\n\n{sources[part].strip()}"
            for part in PARTS
            if part in sources
        ),
        _RUN,
    ]
    return "\n\n\n".join(blocks)
