"""The graders of the training chapter: right answers pass, wrong ones are named."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises.training import (
    check_accumulation,
    check_plan,
    check_schedule,
    check_token_loss,
)
from transformer_lib.training.schedule import learning_rate

GRADERS = [check_token_loss, check_schedule, check_accumulation, check_plan]


def token_loss(logits, tgt_out, pad_id):
    return F.cross_entropy(logits.mT, tgt_out, ignore_index=pad_id)


def accumulate(model, batches, *, divisor="tokens", zero="once"):
    n_all = sum((tgt_out != 0).sum() for _, tgt_out in batches)
    if zero == "once":
        model.zero_grad()
    for ids, tgt_out in batches:
        if zero == "always":
            model.zero_grad()
        loss = F.cross_entropy(model(ids).mT, tgt_out, ignore_index=0, reduction="sum")
        n_own = (tgt_out != 0).sum()
        n_positions = sum(t.numel() for _, t in batches)
        parts = {
            "tokens": n_all,
            "nothing": 1,
            "own": n_own,
            "mean of means": n_own * len(batches),
            "positions": n_positions,
        }
        (loss / parts[divisor]).backward()


def plan(memory, fixed, a_token, step_tokens):
    return math.ceil(step_tokens / math.floor((memory - fixed) / a_token))


ANSWERS = [token_loss, learning_rate, accumulate, plan]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


def each_loss(logits, tgt_out):
    return F.cross_entropy(logits.mT, tgt_out, reduction="none")


WRONG_LOSSES = {
    "padding is counted": lambda x, y, pad: each_loss(x, y).mean(),
    "but counted in the mean": lambda x, y, pad: (each_loss(x, y) * (y != pad)).mean(),
    "every sentence counts the same": lambda x, y, pad: torch.stack(
        [token_loss(a[None], b[None], pad) for a, b in zip(x, y, strict=True)]
    ).mean(),
    "the sum": lambda x, y, pad: each_loss(x, y)[y != pad].sum(),
    "sign": lambda x, y, pad: -token_loss(x, y, pad),
    "logarithm is missing": lambda x, y, pad: (
        -x.softmax(-1).gather(-1, y[..., None])[..., 0][y != pad].mean()
    ),
    "bits": lambda x, y, pad: token_loss(x, y, pad) / math.log(2),
    "runs over the positions": lambda x, y, pad: (
        -x.log_softmax(1).gather(-1, y[..., None])[..., 0][y != pad].mean()
    ),
    "no softmax": lambda x, y, pad: (
        -x.gather(-1, y[..., None])[..., 0][y != pad].mean()
    ),
    "some numbers are off": lambda x, y, pad: token_loss(x, y, pad) + 0.1,
    "shape": lambda x, y, pad: each_loss(x, y),
}


@pytest.mark.parametrize("message", WRONG_LOSSES)
def test_a_wrong_loss_is_named(message) -> None:
    feedback = check_token_loss(WRONG_LOSSES[message])
    assert feedback.status == "wrong"
    assert message in feedback.message


WRONG_RATES = {
    "the smaller one": lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
    "the width is missing": lambda s, d, w: min(s**-0.5, s * w**-1.5),
    "the wrong way": lambda s, d, w: d**0.5 * min(s**-0.5, s * w**-1.5),
    "the root is missing": lambda s, d, w: min(s**-0.5, s * w**-1.5) / d,
    "warmup^-1.5": lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-0.5),
    "some numbers are off": lambda s, d, w: 2.0,
}


@pytest.mark.parametrize("message", WRONG_RATES)
def test_a_wrong_rate_is_named(message) -> None:
    feedback = check_schedule(WRONG_RATES[message])
    assert feedback.status == "wrong"
    assert message in feedback.message


def joined(model, batches):
    for ids, tgt_out in batches * 2:
        token_loss(model(ids), tgt_out, 0).backward()


def only_looked(model, batches):
    for ids, _ in batches:
        model(ids)


WRONG_GRADIENTS = {
    "the sum of the losses": lambda m, b: accumulate(m, b, divisor="nothing"),
    "a mean of the batches' means": lambda m, b: accumulate(
        m, b, divisor="mean of means"
    ),
    "means are added": lambda m, b: accumulate(m, b, divisor="own"),
    "only the last batch": lambda m, b: accumulate(m, b, zero="always"),
    "padding is counted": lambda m, b: accumulate(m, b, divisor="positions"),
    "an earlier step": lambda m, b: accumulate(m, b, zero="never"),
    "once and alone": joined,
    "no gradient": only_looked,
}


@pytest.mark.parametrize("message", WRONG_GRADIENTS)
def test_a_wrong_gradient_is_named(message) -> None:
    feedback = check_accumulation(WRONG_GRADIENTS[message])
    assert feedback.status == "wrong"
    assert message in feedback.message


WRONG_PLANS = {
    "takes its share": lambda m, f, a, s: plan(m, 0.0, a, s),
    "round up": lambda m, f, a, s: max(1, int(s * a / (m - f))),
    "but so do": lambda m, f, a, s: plan(m, f, a, s) + 1,
    "a whole number": lambda m, f, a, s: float(plan(m, f, a, s)),
}


@pytest.mark.parametrize("message", WRONG_PLANS)
def test_a_wrong_plan_is_named(message) -> None:
    feedback = check_plan(WRONG_PLANS[message])
    assert feedback.status == "wrong"
    assert message in feedback.message
