"""The graders of the generation chapter: right answers pass, wrong ones are named."""

import pytest
import torch

from transformer_lib.exercises.generation import (
    check_beam_step,
    check_cut,
    check_nucleus,
)
from transformer_lib.generation.sampling import SamplingConfig


def cut(ids, eos_id, pad_id):
    out = ids.clone()
    for row in out:
        ends = (row == eos_id).nonzero()[:, 0].tolist()
        if ends:
            row[ends[0] + 1 :] = pad_id
    return out


def beam_step(totals, log_probs, eos_id):
    found = [
        ((totals[beam] + log_probs[beam, token]).item(), beam, token)
        for beam in range(log_probs.size(0))
        for token in range(log_probs.size(1))
        if token != eos_id
    ]
    best = sorted(found, reverse=True)[: len(totals)]
    return torch.tensor([[beam, token] for _, beam, token in best])


def nucleus(probabilities, p):
    return SamplingConfig(top_p=p).probabilities(probabilities.log()[None])[0]


ANSWERS = {
    check_cut: cut,
    check_beam_step: beam_step,
    check_nucleus: nucleus,
}


@pytest.mark.parametrize(("grader", "answer"), ANSWERS.items())
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


def after_end(ids, eos_id):
    return (ids == eos_id).long().cumsum(dim=1) > 0


def cut_at_last(ids, eos_id, pad_id, spare=True):
    out = ids.clone()
    for row in out:
        ends = (row == eos_id).nonzero()[:, 0].tolist()
        if ends or not spare:
            row[ends[-1] + 1 if ends else 0 :] = pad_id
    return out


def cut_in_place(ids, eos_id, pad_id):
    return ids.copy_(cut(ids, eos_id, pad_id))


def cut_all(ids, eos_id, pad_id):
    return torch.where(ids == eos_id, ids, torch.full_like(ids, pad_id))


def scores_of(totals, log_probs, eos_id):
    scores = totals[:, None] + log_probs
    scores[:, eos_id] = -torch.inf
    return scores


def own_child(totals, log_probs, eos_id, in_order=True):
    best = scores_of(totals, log_probs, eos_id).max(dim=1)
    pairs = torch.stack([torch.arange(3), best.indices], dim=1)
    return pairs if in_order else pairs[best.values.argsort(descending=True)]


def top(probabilities, n, scaled=True):
    out = torch.zeros_like(probabilities)
    tokens = probabilities.topk(n).indices
    out[tokens] = probabilities[tokens]
    return out / out.sum() if scaled else out


def in_order_of_numbers(probabilities, p):
    before = probabilities.cumsum(0) - probabilities
    kept = probabilities.masked_fill(before >= p, 0)
    return kept / kept.sum()


WRONG = {
    check_cut: {
        "the end token is gone": lambda x, e, p: x.masked_fill(after_end(x, e), p),
        "not at its last": cut_at_last,
        "a row without an end": lambda x, e, p: cut_at_last(x, e, p, spare=False),
        "all rows are cut": cut_all,
        "replace what follows": lambda x, e, p: x.masked_fill(x == e, p),
        "return a copy": cut_in_place,
        "row 0 should be": lambda x, e, p: x + 1,
        "expected shape": lambda x, e, p: x[:, :2],
    },
    check_beam_step: {
        "has ended": lambda t, x, e: beam_step(t, x, -1),
        "add totals": lambda t, x, e: beam_step(0 * t, x, e),
        "every beam keeps one child, and": own_child,
        "every beam keeps one child; all": lambda t, x, e: own_child(t, x, e, False),
        "exchanged": lambda t, x, e: beam_step(t, x, e).flip(1),
        "order is turned": lambda t, x, e: beam_step(t, x, e).flip(0),
        "only the first beam": lambda t, x, e: torch.stack(
            [torch.zeros(3).long(), scores_of(t, x, e)[0].topk(3).indices], dim=1
        ),
        "row 0 should be": lambda t, x, e: torch.zeros(3, 2).long(),
    },
    check_nucleus: {
        "the token that crosses p": lambda x, p: top(x, 2),
        "scaled to a sum of 1": lambda x, p: top(x, 3, scaled=False),
        "one token too many": lambda x, p: top(x, 4),
        "in the order of their numbers": in_order_of_numbers,
        "each token keeps its own place": lambda x, p: (
            top(x, 3).sort(descending=True).values
        ),
        "nothing is cut off": lambda x, p: x,
        "this is greedy search": lambda x, p: top(x, 1),
        "p = 1 should keep": lambda x, p: top(x, 3),
    },
}


@pytest.mark.parametrize(
    ("grader", "message"),
    [(grader, message) for grader, wrong in WRONG.items() for message in wrong],
)
def test_a_wrong_answer_is_named(grader, message) -> None:
    feedback = grader(WRONG[grader][message])
    assert feedback.status == "wrong"
    assert message in feedback.message
