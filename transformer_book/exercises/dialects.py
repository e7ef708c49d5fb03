"""Graders of the chapter on other people's code."""

import re

import torch

from transformer_book.exercises.grading import Grader, Seen
from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.model.embeddings import sinusoid_table
from transformer_lib.model.masks import causal_mask

check_unpack = Grader(
    "PyTorch's in_proj_weight (3 * d_model, d_model) -> the matrices of query, key and "
    "value, each (d_model, d_model)",
    cases=lambda: [(torch.randn(18, 6),)],
    # A tensor of three matrices will do as well.
    run=lambda answer, weight: (
        tuple(found) if getattr(found := answer(weight), "ndim", 0) == 3 else found
    ),
    solution=lambda weight: weight.chunk(3),
    right="Three blocks of rows: query, key, value.",
    mistakes={
        "columns are split; the three are joined along their outputs, the rows.":
            lambda weight: weight.chunk(3, dim=1),
        "keys and values are swapped; the order is query, key, value.":
            lambda weight: weight.view(3, 6, 6)[[0, 2, 1]],
        "the order is reversed; it is query, key, value.":
            lambda weight: weight.chunk(3)[::-1],
        "the matrices are transposed; nn.Linear stores (out, in), as they come.":
            lambda weight: weight.view(3, 6, 6).mT,
        "every third row is taken; the three stand one below the other.":
            lambda weight: weight.view(6, 3, 6).transpose(0, 1),
    },
)  # fmt: skip

_KEYS = (
    *(f"attention.{name}" for name in ("fc_q.weight", "fc_k.weight", "fc_v.weight")),
    *(
        f"{name}.{kind}"
        for name in ("attention.fc", "ff.fc1", "ff.fc2", "attention_ln", "ff_ln")
        for kind in ("weight", "bias")
    ),
)


def _convert_key(key):
    """The cross-walk's own answer, for one key."""
    (found,) = convert_weights({key: torch.ones(3)}, "post", "transformer_lib")
    return found


def _unless(start, hasty):
    """Right for all keys but those of one part, where a rule catches too much."""
    return lambda key: hasty(key) if start in key else _convert_key(key)


def _swap_maps(key):
    return _convert_key(re.sub(r"fc([12])\b", lambda m: f"fc{3 - int(m[1])}", key))


check_key = Grader(
    "a key of their encoder layers -> the library's",
    cases=lambda: [(f"encoder.layers.{n}.{key}",) for n in (0, 3, 11) for key in _KEYS],
    solution=_convert_key,
    right="Every key of the encoder layers has found its partner.",
    mistakes={
        "it is unchanged.": Seen(lambda found, key: found == key, lambda key: key),
        "the library calls the weight of a norm its gain.": Seen(
            lambda found, key: (
                found
                == _convert_key(key).replace("gain", "weight")
                != (_convert_key(key))
            ),
            lambda key: _convert_key(key).replace("gain", "weight"),
        ),
        "the rule for `attention` caught `attention_ln` as well.": Seen(
            lambda found, key: "self_attn_ln" in found,
            _unless("attention_ln", lambda key: key.replace("attention", "self_attn")),
        ),
        "the rule for `ff` caught `ff_ln` as well.":
            Seen(lambda found, key: "feed_forward_ln" in found,
                 _unless("ff_ln", lambda key: key.replace("ff", "feed_forward"))),
        "the rule for `fc` caught a longer name as well.":
            Seen(lambda found, key: "out_proj" in found and ".fc." not in key,
                 _unless("fc_", lambda key: key.replace("fc", "out_proj"))),
        "expand comes first, then contract.": Seen(
            lambda found, key: (
                {"expand", "contract"} & {*found.split(".")}
                and found != _convert_key(key)
                or None
            ),
            _swap_maps,
        ),
        "the number of the layer is lost.":
            Seen(lambda found, key: key.split(".")[2] not in found.split("."),
                 lambda key: _convert_key(key).replace("layers.3.", "layers.0.")),
    },
)  # fmt: skip

check_table = Grader(
    "the paper's table of positions (length, d_model), sines and cosines in turn -> "
    "the same in Marian's order, all sines first",
    cases=lambda: [(sinusoid_table(5, 8),)],
    solution=lambda table: torch.cat([table[:, 0::2], table[:, 1::2]], dim=1),
    right="All sines, then all cosines, and every position in its place.",
    mistakes={
        "the table is unchanged; sines and cosines still take turns.":
            lambda table: table.clone(),
        "all cosines come first; Marian begins with the sines.":
            lambda table: torch.cat([table[:, 1::2], table[:, 0::2]], dim=1),
        "halves of the columns are dealt out in turn; this goes the other way.":
            lambda table: torch.stack([table[:, :4], table[:, 4:]], -1).flatten(1),
        "rows are reordered; positions stay, the columns move.":
            lambda table: torch.cat([table[0::2], table[1::2]]),
    },
)  # fmt: skip


def _join(key_padding_mask, attn_mask):
    return ~key_padding_mask[:, None, None, :] & (attn_mask == 0)


_PADDED = torch.tensor([[False] * 4, [True, False, False, True]])

check_join = Grader(
    "key_padding_mask (batch, length), True = ignore; attn_mask (length, length), "
    "0 or -inf -> one boolean mask (batch, 1, length, length), True = may attend",
    cases=lambda: [
        (_PADDED.clone(), torch.zeros(4, 4).masked_fill(~causal_mask(4), float("-inf")))
    ],
    solution=_join,
    right="One mask: a query may attend where neither of theirs hides the key.",
    mistakes={
        "it's inverted; True must mean that the query may attend.":
            lambda padding, added: ~_join(padding, added),
        "the padding mask still means True = ignore; turn it around.":
            lambda padding, added: _join(~padding, added),
        "the additive mask is read the wrong way; 0 means that a query may attend.":
            lambda padding, added: _join(padding, 1.0 * (added == 0)),
        "a key is hidden only if both masks hide it; one of them is enough.":
            lambda padding, added: ~padding[:, None, None, :] | (added == 0),
        "padding is not hidden; join both masks.":
            lambda padding, added: (added == 0).expand(2, 1, 4, 4),
        "the future is not hidden; join both masks.":
            lambda padding, added: ~padding[:, None, None, :].expand(2, 1, 4, 4),
        "padding hides queries here, not keys; it belongs on the last axis.":
            lambda padding, added: ~padding[:, None, :, None] & (added == 0),
        "the axis for the heads is missing; the batch would be mistaken for it.":
            lambda padding, added: _join(padding, added)[:, 0],
    },
)  # fmt: skip
