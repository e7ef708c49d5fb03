"""Graders of the chapter on training."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import grader
from transformer_lib import pad_batch

_TGT_OUT = [[3, 4, 5, 2, 0], [6, 2, 0, 0, 0], [4, 3, 6, 5, 2]]


@grader(
    cases=lambda: [(2 * torch.randn(3, 5, 7), torch.tensor(_TGT_OUT), 0)],
    right="Nats per real token, whatever the padding.",
)
def check_token_loss(logits, tgt_out, pad_id):
    """The mean cross-entropy of the real tokens.

    logits (batch, tgt_len, vocabulary), tgt_out (batch, tgt_len), pad_id -> a scalar in
    nats.
    """
    losses = -_of_targets(logits.log_softmax(-1), tgt_out)
    return losses[tgt_out != pad_id].mean()


def _of_targets(numbers, tgt_out):
    """Those of the tokens that had to be predicted, (batch, tgt_len)."""
    return numbers.gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)


def _padding_counted(logits, tgt_out, pad_id):
    return -_of_targets(logits.log_softmax(-1), tgt_out).mean()


def _padding_in_the_count(logits, tgt_out, pad_id):
    losses = -_of_targets(logits.log_softmax(-1), tgt_out)
    return (losses * (tgt_out != pad_id)).mean()


def _mean_of_sentences(logits, tgt_out, pad_id):
    losses, real = -_of_targets(logits.log_softmax(-1), tgt_out), tgt_out != pad_id
    return ((losses * real).sum(1) / real.sum(1)).mean()


def _with_softmax_only(logits, tgt_out, pad_id):
    return -_of_targets(logits.softmax(-1), tgt_out)[tgt_out != pad_id].mean()


def _with_bare_logits(logits, tgt_out, pad_id):
    return -_of_targets(logits, tgt_out)[tgt_out != pad_id].mean()


check_token_loss.mistake(
    "leave padding out of the sum and out of the count.",
    _padding_counted,
    _padding_in_the_count,
)
check_token_loss.mistake(
    "every sentence counts the same here; every token should.", _mean_of_sentences
)
check_token_loss.mistake(
    "the sign is missing: a loss is minus the logarithm.",
    lambda *case: -check_token_loss.solve(*case),
)
check_token_loss.mistake(
    "the vocabulary needs a log-softmax: logits are no log-probabilities.",
    _with_softmax_only,
    _with_bare_logits,
)


@grader(
    cases=lambda: [(1, 512, 4000), (10_000, 256, 4000), (50, 64, 50)],
    right="Up in a line, down as a root, and narrow models faster.",
    atol=1e-12,
)
def check_schedule(step, d_model, warmup):
    """A step (from 1), d_model, warmup -> the learning rate of equation 3."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


check_schedule.mistake(
    "this is the larger of the two branches; take the smaller one.",
    lambda step, d_model, warmup: d_model**-0.5 * max(step**-0.5, step * warmup**-1.5),
)
check_schedule.mistake(
    "the factor of the width is d_model^-0.5.",
    lambda step, d_model, warmup: min(step**-0.5, step * warmup**-1.5),
    lambda step, d_model, warmup: d_model**0.5 * min(step**-0.5, step * warmup**-1.5),
    lambda step, d_model, warmup: min(step**-0.5, step * warmup**-1.5) / d_model,
)
check_schedule.mistake(
    "the branch of the warm-up should be step * warmup^-1.5.",
    lambda step, d_model, warmup: d_model**-0.5 * min(step**-0.5, step * warmup**-0.5),
)


def _draw_batches():
    """Three batches of 5, 6 and 3 real tokens, and what an earlier step has left."""
    ids = [[[1, 3, 4], [1, 5, 2]], [[1, 6, 3, 4, 5, 3]], [[1, 3], [1, 2]]]
    tgt_out = [[[3, 4, 2], [5, 2, 0]], [[6, 3, 4, 5, 3, 2]], [[3, 2], [2, 0]]]
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    pairs = zip(map(torch.tensor, ids), map(torch.tensor, tgt_out), strict=True)
    return [(model, [*pairs])]


def _run_accumulation(answer, model, batches):
    """All gradients, and how many positions the model read at once."""
    sizes = []
    model.register_forward_pre_hook(lambda _, inputs: sizes.append(inputs[0].numel()))
    answer(model, batches)
    gradients = (parameter.grad for parameter in model.parameters())
    return (*gradients, max(sizes)) if sizes else None


@grader(
    cases=_draw_batches,
    right="The gradient of the joined batch, in a third of the memory.",
    run=_run_accumulation,
)
def check_accumulation(model, batches):
    """Leave in the parameters the gradient of the mean loss over all real tokens.

    A model from ids (batch, length) to logits (batch, length, vocabulary), a list of
    (ids, tgt_out) with padding 0 -> nothing; with one forward pass a batch.
    """
    n_tokens = sum((tgt_out != 0).sum() for _, tgt_out in batches)
    model.zero_grad()
    for ids, tgt_out in batches:
        (_sum_of_losses(model, ids, tgt_out) / n_tokens).backward()


def _sum_of_losses(model, ids, tgt_out):
    return F.cross_entropy(model(ids).mT, tgt_out, ignore_index=0, reduction="sum")


def _mean_loss(model, ids, tgt_out):
    return F.cross_entropy(model(ids).mT, tgt_out, ignore_index=0)


def _not_divided(model, batches):
    model.zero_grad()
    for batch in batches:
        _sum_of_losses(model, *batch).backward()


def _mean_of_means(model, batches):
    model.zero_grad()
    for batch in batches:
        (_mean_loss(model, *batch) / len(batches)).backward()


def _sum_of_means(model, batches):
    model.zero_grad()
    for batch in batches:
        _mean_loss(model, *batch).backward()


def _always_zeroed(model, batches):
    for batch in batches:
        model.zero_grad()
        (_sum_of_losses(model, *batch) / 14).backward()


def _never_zeroed(model, batches):
    for batch in batches:
        (_sum_of_losses(model, *batch) / 14).backward()


def _one_large_batch(model, batches):
    ids, tgt_out = (
        pad_batch([row.tolist() for tensor in tensors for row in tensor], 0)
        for tensors in zip(*batches, strict=True)
    )
    check_accumulation.solve(model, [(ids, tgt_out)])


check_accumulation.mistake(
    "this is the sum of the losses; divide by the real tokens of all batches.",
    _not_divided,
)
check_accumulation.mistake(
    "batches of few words count as much as others; divide each batch's sum by the "
    "tokens of all batches.",
    _mean_of_means,
    _sum_of_means,
)
check_accumulation.mistake(
    "only the last batch is left: set the gradient to zero once, at the start.",
    _always_zeroed,
)
check_accumulation.mistake(
    "the gradient of an earlier step is still in it: begin with zero_grad.",
    _never_zeroed,
)
check_accumulation.mistake(
    "only one batch at a time fits into memory; add up their gradients.",
    _one_large_batch,
)


@grader(
    cases=lambda: [
        (12_288.0, 962.0, 0.573, 25_000),
        (1_000.0, 500.0, 0.5, 2_000),
        (900.0, 500.0, 0.5, 1_001),
        (100.0, 20.0, 30.0, 8),
    ],
    right="It fits, and no batch is smaller than it has to be.",
)
def check_training_plan(memory, fixed, a_token, step_tokens):
    """The smallest number of equal batches that share the step and fit.

    memory and fixed, in MiB, a_token, in MiB for one target token, step_tokens -> a
    whole number.
    """
    batch_tokens = math.floor((memory - fixed) / a_token)
    return math.ceil(step_tokens / batch_tokens)


def _ratio(memory, fixed, a_token, step_tokens):
    """The number of batches, before it is rounded."""
    return step_tokens / math.floor((memory - fixed) / a_token)


check_training_plan.mistake(
    "the fixed part takes its share of memory first.",
    lambda memory, fixed, *others: check_training_plan.solve(memory, 0.0, *others),
)
check_training_plan.mistake(
    "that many batches do not fit; round up, not down or to the nearest.",
    lambda *case: round(_ratio(*case)),
    lambda *case: math.floor(_ratio(*case)),
)
check_training_plan.mistake(
    "one batch less fits, too.", lambda *case: math.floor(_ratio(*case)) + 1
)
check_training_plan.mistake(
    "a token can't be split: round down how many fit into a batch.",
    lambda memory, fixed, a_token, step_tokens: math.ceil(
        step_tokens / ((memory - fixed) / a_token)
    ),
)
