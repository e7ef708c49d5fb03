"""Graders of the chapter on dialects."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_tensor,
    right,
    unanswered,
    wrong,
)
from transformer_lib.model.embeddings import sinusoid_table

_KEYS = {
    "attention.fc_q.weight": "self_attn.q_proj.weight",
    "attention.fc_k.weight": "self_attn.k_proj.weight",
    "attention.fc_v.weight": "self_attn.v_proj.weight",
    "attention.fc.weight": "self_attn.out_proj.weight",
    "attention.fc.bias": "self_attn.out_proj.bias",
    "ff.fc1.weight": "feed_forward.expand.weight",
    "ff.fc1.bias": "feed_forward.expand.bias",
    "ff.fc2.weight": "feed_forward.contract.weight",
    "ff.fc2.bias": "feed_forward.contract.bias",
    "attention_ln.weight": "self_attn_connection.norm.gain",
    "attention_ln.bias": "self_attn_connection.norm.bias",
    "ff_ln.weight": "feed_forward_connection.norm.gain",
    "ff_ln.bias": "feed_forward_connection.norm.bias",
}


def check_unpack(answer: Callable[[Tensor], Sequence[Tensor]]) -> Feedback:
    """Grade the unpacking of PyTorch's joined projections.

    Args:
        answer: takes in_proj_weight (3 * d_model, d_model); returns the matrices of
            query, key and value, each (d_model, d_model).
    """
    d_model = 6
    packed = torch.arange(3.0 * d_model * d_model).view(3 * d_model, d_model)
    result = call(answer, packed.clone())
    if problem := unanswered(result):
        return problem
    if isinstance(result, Tensor) and result.dim() == 3:
        result = tuple(result)
    if not isinstance(result, Sequence) or len(result) != 3:
        return wrong("expected three matrices, those of query, key and value.")
    if all(
        isinstance(part, Tensor) and part.shape == (3 * d_model, d_model // 3)
        for part in result
    ):
        return wrong(
            "columns are cut; the three are joined along their outputs, which are rows."
        )
    for part in result:
        if problem := check_tensor(part, (d_model, d_model)):
            return problem
    found = torch.stack(tuple(result))
    blocks = packed.view(3, d_model, d_model)
    mistakes = {
        "keys and values are swapped; the order is query, key, value.": (
            blocks[[0, 2, 1]]
        ),
        "the order is reversed; it is query, key, value.": blocks.flip(0),
        "the matrices are transposed; nn.Linear stores (out, in), as they come.": (
            blocks.mT
        ),
        "every third row is taken; the three stand one below the other.": (
            packed.view(d_model, 3, d_model).transpose(0, 1)
        ),
    }
    if torch.equal(found, blocks):
        return right("Three blocks of rows: query, key, value.")
    for message, mistake in mistakes.items():
        if torch.equal(found, mistake):
            return wrong(message)
    return wrong("these are not the rows of query, key and value.")


def check_key(answer: Callable[[str], str]) -> Feedback:
    """Grade the translation of the post's keys into the library's.

    Args:
        answer: takes a key of the post's encoder layers; returns the library's.
    """
    for layer in (0, 3, 11):
        for theirs, ours in _KEYS.items():
            start = f"encoder.layers.{layer}."
            found = call(answer, start + theirs)
            if problem := _judge_key(start + theirs, start + ours, found):
                return problem
    return right("Every key of the encoder layers has found its partner.")


def check_table(answer: Callable[[Tensor], Tensor]) -> Feedback:
    """Grade the table of positions in Marian's order.

    Args:
        answer: takes the paper's table (length, d_model), sines and cosines in turn;
            returns it with all sines first.
    """
    table = sinusoid_table(5, 8)
    result = call(answer, table.clone())
    if problem := check_tensor(result, (5, 8)):
        return problem
    sines, cosines = table[:, 0::2], table[:, 1::2]
    mistakes = {
        "the table is unchanged; sines and cosines still take turns.": table,
        "all cosines come first; Marian begins with the sines.": (
            torch.cat([cosines, sines], dim=1)
        ),
        "halves of the columns are dealt out in turn; this goes the other way.": (
            torch.stack([table[:, :4], table[:, 4:]], dim=-1).flatten(1)
        ),
        "rows are reordered; positions stay, the columns move.": (
            torch.cat([table[0::2], table[1::2]])
        ),
    }
    if torch.equal(result, torch.cat([sines, cosines], dim=1)):
        return right("All sines, then all cosines, and every position in its place.")
    for message, mistake in mistakes.items():
        if torch.equal(result, mistake):
            return wrong(message)
    return wrong("the first four columns should be the sines of the paper's table.")


def _judge_key(key: str, expected: str, found: object) -> Feedback | None:
    """Compare one translated key with the right one; None if it is right."""
    if found is None or found is Ellipsis:
        return NOT_ATTEMPTED
    if isinstance(found, Feedback):
        return wrong(f"{key}: {found.message}")
    if not isinstance(found, str):
        return wrong(f"expected a string, but got {type(found).__name__}.")
    if found == expected:
        return None
    hints: Mapping[str, bool] = {
        "it is unchanged": found == key,
        "the library calls the weight of a norm its gain": (
            found == expected.replace(".gain", ".weight")
        ),
        "the rule for `attention` caught `attention_ln` as well": (
            "self_attn_ln" in found
        ),
        "the rule for `ff` caught `ff_ln` as well": "feed_forward_ln" in found,
        "the rule for `fc` caught a longer name as well": "out_proj" in found
        and "out_proj" not in expected,
        "expand comes first, then contract": (
            {"expand", "contract"} & set(found.split("."))
            and "feed_forward" in expected
        ),
        "the number of the layer is lost": key.split(".")[2] not in found.split("."),
    }
    hint = next((hint for hint, true in hints.items() if true), "")
    return wrong(
        f"{key} became {found}, not {expected}" + (f": {hint}." if hint else ".")
    )
