"""Graders of the chapter on other people's code."""

import re

import torch

from transformer_book.exercises.grading import grader
from transformer_lib import sinusoid_table


@grader(
    lambda: [(torch.randn(18, 6),)],
    "Three blocks of rows: query, key, value.",
    ("columns are split; the three are joined along their outputs, the rows.",
     lambda weight: weight.chunk(3, dim=1)),
    ("the order is query, key, value.", lambda weight: weight.view(3, 6, 6)[[0, 2, 1]]),
    run=lambda answer, weight: (
        tuple(found) if getattr(found := answer(weight), "ndim", 0) == 3 else found),
)  # fmt: skip
def check_unpack(weight):
    """Take PyTorch's in_proj_weight (3 * d_model, d_model) apart.

    -> the matrices of query, key and value, each (d_model, d_model).
    """
    return weight.chunk(3)


_NAMES = {
    "attention.fc_q": "self_attn.q_proj",
    "attention.fc_k": "self_attn.k_proj",
    "attention.fc_v": "self_attn.v_proj",
    "attention.fc": "self_attn.out_proj",
    "ff.fc1": "feed_forward.expand",
    "ff.fc2": "feed_forward.contract",
    "attention_ln": "self_attn_connection.norm",
    "ff_ln": "feed_forward_connection.norm",
}
_SWAPPED = {"ff.fc1": "feed_forward.contract", "ff.fc2": "feed_forward.expand"}


@grader(
    lambda: [
        (f"encoder.layers.{n}.{name}.{kind}",)
        for n in (0, 3, 11) for name in _NAMES for kind in ("weight", "bias")
    ],
    "Every key of the encoder layers has found its partner.",
    ("the library calls the weight of a norm its gain.", {"gain": "weight"}),
    ("expand comes first, then contract.", {"names": _NAMES | _SWAPPED}),
)  # fmt: skip
def check_key(key, names=_NAMES, gain="gain"):
    """A key of their encoder layers -> the library's."""
    layer, name, kind = re.fullmatch(r"(.*\.\d+)\.(.+)\.(\w+)", key).groups()
    kind = gain if name.endswith("_ln") and kind == "weight" else kind
    return f"{layer}.{names[name]}.{kind}"


@grader(
    lambda: [(sinusoid_table(5, 8),)],
    "All sines, then all cosines, and every position in its place.",
    ("all cosines come first; Marian begins with the sines.",
     lambda table: check_table.solve(table).roll(4, dims=1)),
    ("halves of the columns are dealt out in turn; this goes the other way.",
     lambda table: torch.stack([table[:, :4], table[:, 4:]], -1).flatten(1)),
)  # fmt: skip
def check_table(table):
    """The paper's table of positions in Marian's order.

    (length, d_model), sines and cosines in turn -> the same, all sines first.
    """
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


_PADDING = [[False] * 4, [True, False, False, True]]


@grader(
    lambda: [(torch.tensor(_PADDING), torch.full((4, 4), -torch.inf).triu(1))],
    "One mask: a query may attend where neither of theirs hides the key.",
    ("it's inverted; True must mean that the query may attend.",
     lambda *given: ~check_join.solve(*given)),
    ("join both masks: one hides padding, the other hides the future.",
     lambda padding, added: check_join.solve(padding & False, added)),
    ("padding hides queries here, not keys; it belongs on the last axis.",
     lambda padding, added: ~padding[:, None, :, None] & (added == 0)),
)  # fmt: skip
def check_join(key_padding_mask, attn_mask):
    """Make one mask of two.

    key_padding_mask (batch, length), True = ignore; attn_mask (length, length), 0 or
    -inf -> one boolean mask (batch, 1, length, length), True = may attend.
    """
    return ~key_padding_mask[:, None, None, :] & (attn_mask == 0)
