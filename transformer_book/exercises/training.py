"""Graders of the chapter on training."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import grader
from transformer_lib import pad_batch

_TGT_OUT = [[3, 4, 5, 2, 0], [6, 2, 0, 0, 0], [4, 3, 6, 5, 2]]


def _mean_of_real(each, real):
    return each[real].mean()


@grader(
    lambda: [(2 * torch.randn(3, 5, 7), torch.tensor(_TGT_OUT), 0)],
    "Nats per real token, whatever the padding.",
    ("leave padding out of the sum and out of the count.",
     {"reduce": lambda each, real: each.mean()},
     {"reduce": lambda each, real: (each * real).mean()}),
    ("every sentence counts the same here; every token should.",
     {"reduce": lambda each, real: ((each * real).sum(1) / real.sum(1)).mean()}),
    ("the sign is missing: a loss is minus the logarithm.",
     lambda *given: -check_token_loss.solve(*given)),
    ("the vocabulary needs a log-softmax: logits are no log-probabilities.",
     {"log_probs": torch.softmax}, {"log_probs": lambda x, dim: x}),
)  # fmt: skip
def check_token_loss(
    logits, tgt_out, pad_id, log_probs=torch.log_softmax, reduce=_mean_of_real
):
    """The mean cross-entropy of the real tokens.

    logits (batch, tgt_len, vocabulary), tgt_out (batch, tgt_len), pad_id -> a scalar in
    nats.
    """
    each = log_probs(logits, -1).gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)
    return -reduce(each, tgt_out != pad_id)


@grader(
    lambda: [(1, 512, 4000), (10_000, 256, 4000), (50, 64, 50)],
    "Up in a line, down as a root, and narrow models faster.",
    ("this is the larger of the two branches; take the smaller one.",
     {"smallest": max}),
    ("the factor of the width is d_model^-0.5.",
     {"width": 0}, {"width": 0.5}, {"width": -1}),
    ("the branch of the warm-up should be step * warmup^-1.5.", {"rise": -0.5}),
    atol=1e-12,
)  # fmt: skip
def check_schedule(step, d_model, warmup, smallest=min, width=-0.5, rise=-1.5):
    """A step (from 1), d_model, warmup -> the learning rate of equation 3."""
    return d_model**width * smallest(step**-0.5, step * warmup**rise)


def _draw_batches():
    """Three batches of 5, 6 and 3 real tokens, and what an earlier step has left."""
    ids = [[[1, 3, 4], [1, 5, 2]], [[1, 6, 3, 4, 5, 3]], [[1, 3], [1, 2]]]
    tgt_out = [[[3, 4, 2], [5, 2, 0]], [[6, 3, 4, 5, 3, 2]], [[3, 2], [2, 0]]]
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    pairs = zip(map(torch.tensor, ids), map(torch.tensor, tgt_out), strict=True)
    return [(model, [*pairs])]


def _join(batches):
    """One batch of all, with more padding."""
    columns = zip(*batches, strict=True)
    return [pad_batch([row.tolist() for x in each for row in x], 0) for each in columns]


def _run_accumulation(answer, model, batches):
    """All gradients, and how many positions the model read at once."""
    sizes = []
    model.register_forward_pre_hook(lambda _, given: sizes.append(given[0].numel()))
    answer(model, batches)
    gradients = (parameter.grad for parameter in model.parameters())
    return (*gradients, max(sizes)) if sizes else None


@grader(
    _draw_batches,
    "The gradient of the joined batch, in a third of the memory.",
    ("this is the sum of the losses; divide by the real tokens of all batches.",
     {"divisor": lambda n, n_all: 1}),
    ("batches of few words count as much as others; divide each batch's sum by the "
     "tokens of all batches.",
     {"divisor": lambda n, n_all: 3 * n}, {"divisor": lambda n, n_all: n}),
    ("only the last batch is left: set the gradient to zero once, at the start.",
     lambda model, batches: [
         check_accumulation.solve(model, [batch], lambda n, n_all: 14)
         for batch in batches]),
    ("the gradient of an earlier step is still in it: begin with zero_grad.",
     {"begin": lambda model: None}),
    ("only one batch at a time fits into memory; add up their gradients.",
     lambda model, batches: check_accumulation.solve(model, [_join(batches)])),
    run=_run_accumulation,
)  # fmt: skip
def check_accumulation(
    model, batches, divisor=lambda n, n_all: n_all, begin=nn.Module.zero_grad
):
    """Leave in the parameters the gradient of the mean loss over all real tokens.

    A model from ids (batch, length) to logits (batch, length, vocabulary), a list of
    (ids, tgt_out) with padding 0 -> nothing; with one forward pass a batch.
    """
    n_all = sum((tgt_out != 0).sum() for _, tgt_out in batches)
    begin(model)
    for ids, tgt_out in batches:
        logits, n = model(ids).mT, (tgt_out != 0).sum()
        loss = F.cross_entropy(logits, tgt_out, ignore_index=0, reduction="sum")
        (loss / divisor(n, n_all)).backward()


@grader(
    lambda: [
        (12_288.0, 962.0, 0.573, 25_000), (1_000.0, 500.0, 0.5, 2_000),
        (900.0, 500.0, 0.5, 1_001), (100.0, 20.0, 30.0, 8),
    ],
    "It fits, and no batch is smaller than it has to be.",
    ("the fixed part takes its share of memory first.",
     lambda memory, fixed, *given: check_training_plan.solve(memory, 0.0, *given)),
    ("that many batches do not fit; round up, not down or to the nearest.",
     {"whole": round}, {"whole": math.floor}),
    ("one batch less fits, too.", {"whole": lambda ratio: math.floor(ratio) + 1}),
    ("a token can't be split: round down how many fit into a batch.",
     {"fitting": float}),
)  # fmt: skip
def check_training_plan(
    memory, fixed, a_token, step_tokens, whole=math.ceil, fitting=math.floor
):
    """The smallest number of equal batches that share the step and fit.

    memory and fixed, in MiB, a_token, in MiB for one target token, step_tokens -> a
    whole number.
    """
    return whole(step_tokens / fitting((memory - fixed) / a_token))
