"""Graders of the chapter on the decoder and cross-attention."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.exercises.decoder_layers import (
    check_incremental,
    check_pre_norm_layer,
    named,
    same,
)
from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_tensor,
    right,
    wrong,
)

__all__ = [
    "check_alignment",
    "check_incremental",
    "check_pre_norm_layer",
    "check_shift",
]


def check_shift(answer: Callable[[Tensor, int], Tensor]) -> Feedback:
    """Grade the decoder's input made from the target.

    Args:
        answer: takes target (batch, length), which ends with the end token and
            padding, and bos_id; returns (batch, length).
    """
    target = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])  # 2 ends, 0 pads
    given = target.clone()
    result = call(answer, given, 1)
    if isinstance(result, Tensor) and result.shape in ((2, 4), (2, 6)):
        return wrong(
            f"expected shape (2, 5), but got {tuple(result.shape)}: a token comes in "
            "front, and the last one leaves."
        )
    if problem := check_tensor(result, (2, 5)):
        return problem
    if not torch.equal(given, target):
        return wrong("the target itself was changed; return a new tensor.")
    expected = torch.cat([torch.ones(2, 1, dtype=torch.long), target[:, :-1]], dim=1)
    if torch.equal(result, expected):
        return right("Every position reads the token before the one it must predict.")
    mistakes = {
        "nothing is shifted: every position would read its own answer.": target,
        "the last column came to the front, as roll does: the padded row now begins "
        "with <pad>. Put bos_id there.": target.roll(1, dims=1),
        "this is shifted left: every position would read a token after its answer.": (
            target.roll(-1, dims=1)
        ),
        "the first word is overwritten, but nothing moved.": torch.cat(
            [expected[:, :1], target[:, 1:]], dim=1
        ),
    }
    if problem := named(result, mistakes):
        return problem
    if not (result[:, 0] == 1).all():
        return wrong("every row must begin with bos_id.")
    row, column = (result != expected).nonzero()[0].tolist()
    return wrong(
        f"row {row}, position {column} reads {result[row, column].item()}, but the "
        f"token before its answer is {expected[row, column].item()}."
    )


def check_alignment(
    answer: Callable[[Sequence[Tensor], int, int], Tensor],
) -> Feedback:
    """Grade the source position that each target position looks at most.

    Args:
        answer: takes one tensor (batch, n_heads, tgt_len, src_len) a layer, the
            number of the layer and how many of the first heads to average; returns
            indices (batch, tgt_len).
    """
    generator = torch.Generator().manual_seed(11)
    scores = 3 * torch.randn(3, 2, 4, 5, 7, generator=generator)
    maps, layer, n_heads = list(scores.softmax(dim=-1)), 1, 3
    result = call(answer, maps, layer, n_heads)
    if isinstance(result, Tensor) and (found := _FOUND.get(tuple(result.shape))):
        return wrong(f"expected shape (2, 5), but got {tuple(result.shape)}: {found}")
    if problem := check_tensor(result, (2, 5)):
        return problem

    chosen = maps[layer]
    if same(result, _look(chosen[:, :n_heads])):
        return right("One layer, its first heads, one source word for each position.")
    averaged = torch.stack(maps).mean(dim=0)
    mistakes = {
        "all heads were averaged; take the first n_heads only.": chosen,
        "the last heads were taken; fairseq keeps the first.": chosen[:, -n_heads:],
        "only the head with the number n_heads was taken; average those before it.": (
            chosen[:, n_heads:]
        ),
        "only head 0 was taken; average the first n_heads.": chosen[:, :1],
        "this is the last layer; take the one asked for.": maps[-1][:, :n_heads],
        "all layers were averaged; take one.": averaged[:, :n_heads],
    }
    mistakes = {message: _look(weights) for message, weights in mistakes.items()}
    if problem := named(result, mistakes):
        return problem
    return wrong("some positions look elsewhere; compare with equation (7.2).")


_FOUND = {  # what an answer of this shape has done
    (2, 5, 7): "these are weights; return the index of the largest.",
    (2, 4, 5): "the heads are still apart; average over dim 1.",
    (2, 7): "the source is kept; take argmax over the last axis.",
}


def _look(weights: Tensor) -> Tensor:
    """(batch, n_heads, tgt_len, src_len) -> the most weighted position of each row."""
    return weights.mean(dim=1).argmax(dim=-1)
