"""Graders of the chapter on other people's code."""

import re

import torch

from transformer_book.exercises.grading import grader
from transformer_lib import sinusoid_table


def _run_unpack(answer, weight):
    """The three matrices; a tensor of three is as good as a tuple."""
    matrices = answer(weight)
    return tuple(matrices) if getattr(matrices, "ndim", 0) == 3 else matrices


@grader(
    cases=lambda: [(torch.randn(18, 6),)],
    right="Three blocks of rows: query, key, value.",
    run=_run_unpack,
)
def check_unpack(weight):
    """Take PyTorch's in_proj_weight (3 * d_model, d_model) apart.

    -> the matrices of query, key and value, each (d_model, d_model).
    """
    return weight.chunk(3)


check_unpack.mistake(
    "columns are split; the three are joined along their outputs, the rows.",
    lambda weight: weight.chunk(3, dim=1),
)
check_unpack.mistake(
    "the order is query, key, value.", lambda weight: weight.view(3, 6, 6)[[0, 2, 1]]
)


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


@grader(
    cases=lambda: [
        (f"encoder.layers.{n}.{name}.{kind}",)
        for n in (0, 3, 11)
        for name in _NAMES
        for kind in ("weight", "bias")
    ],
    right="Every key of the encoder layers has found its partner.",
)
def check_key(key):
    """A key of their encoder layers -> the library's."""
    layer, name, kind = re.fullmatch(r"(.*\.\d+)\.(.+)\.(\w+)", key).groups()
    if name.endswith("_ln") and kind == "weight":
        kind = "gain"
    return f"{layer}.{_NAMES[name]}.{kind}"


def _exchange_layers(key):
    other = {"fc1": "fc2", "fc2": "fc1"}
    return check_key.solve(re.sub("fc[12]", lambda name: other[name[0]], key))


check_key.mistake(
    "the library calls the weight of a norm its gain.",
    lambda key: check_key.solve(key).replace("gain", "weight"),
)
check_key.mistake("expand comes first, then contract.", _exchange_layers)


@grader(
    cases=lambda: [(sinusoid_table(5, 8),)],
    right="All sines, then all cosines, and every position in its place.",
)
def check_table(table):
    """The paper's table of positions in Marian's order.

    (length, d_model), sines and cosines in turn -> the same, all sines first.
    """
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


check_table.mistake(
    "all cosines come first; Marian begins with the sines.",
    lambda table: torch.cat([table[:, 1::2], table[:, 0::2]], dim=1),
)
check_table.mistake(
    "halves of the columns are dealt out in turn; this goes the other way.",
    lambda table: torch.stack([table[:, :4], table[:, 4:]], dim=-1).flatten(1),
)


_PADDING = [[False] * 4, [True, False, False, True]]


@grader(
    cases=lambda: [(torch.tensor(_PADDING), torch.full((4, 4), -torch.inf).triu(1))],
    right="One mask: a query may attend where neither of theirs hides the key.",
)
def check_join(key_padding_mask, attn_mask):
    """Make one mask of two.

    key_padding_mask (batch, length), True = ignore; attn_mask (length, length), 0 or
    -inf -> one boolean mask (batch, 1, length, length), True = may attend.
    """
    return ~key_padding_mask[:, None, None, :] & (attn_mask == 0)


check_join.mistake(
    "it's inverted; True must mean that the query may attend.",
    lambda padding, added: ~check_join.solve(padding, added),
)
check_join.mistake(
    "join both masks: one hides padding, the other hides the future.",
    lambda padding, added: check_join.solve(padding & False, added),
)
check_join.mistake(
    "padding hides queries here, not keys; it belongs on the last axis.",
    lambda padding, added: ~padding[:, None, :, None] & (added == 0),
)
