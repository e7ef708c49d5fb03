"""Graders of the chapter on training."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import Seen, grader

_TGT_OUT = [[3, 4, 5, 2, 0], [6, 2, 0, 0, 0], [4, 3, 6, 5, 2]]


@grader(
    cases=lambda: [(2 * torch.randn(3, 5, 7), torch.tensor(_TGT_OUT), 0)],
    right="Nats per real token, whatever the padding.",
    mistakes=lambda solve: {
        "leave padding out of the sum and out of the count.":
            [{"reduce": lambda each, real: each.mean()},
             {"reduce": lambda each, real: (each * real).mean()}],
        "every sentence counts the same here; every token should.":
            {"reduce": lambda each, real: ((each * real).sum(1) / real.sum(1)).mean()},
        "this is the sum; divide by the number of real tokens.":
            {"reduce": lambda each, real: each[real].sum()},
        "the sign is missing: a loss is minus the logarithm.":
            lambda *given: -solve(*given),
        "the vocabulary needs a log-softmax: logits are no log-probabilities.":
            [{"log_probs": lambda x: x.softmax(-1)},
             {"log_probs": lambda x: x.log_softmax(1)},
             {"log_probs": lambda x: x}],
    },
)  # fmt: skip
def check_token_loss(
    logits,
    tgt_out,
    pad_id,
    log_probs=lambda x: x.log_softmax(-1),
    reduce=lambda each, real: each[real].mean(),
):
    """The mean cross-entropy of the real tokens.

    logits (batch, tgt_len, vocabulary), tgt_out (batch, tgt_len), pad_id -> a scalar in
    nats.
    """
    each = log_probs(logits).gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)
    return -reduce(each, tgt_out != pad_id)


@grader(
    cases=lambda: [(1, 512, 4000), (10_000, 256, 4000), (50, 64, 50)],
    right="Up in a line, down as a root, and narrow models faster.",
    atol=1e-12,
    mistakes=lambda solve: {
        "this is the larger of the two branches; take the smaller one.":
            {"smallest": max},
        "the factor of the width is d_model^-0.5.":
            [{"width": 0}, {"width": 0.5}, {"width": -1}],
        "the branch of the warm-up should be step * warmup^-1.5.": {"rise": -0.5},
    },
)  # fmt: skip
def check_schedule(step, d_model, warmup, smallest=min, width=-0.5, rise=-1.5):
    """A step (from 1), d_model, warmup -> the learning rate of equation 3."""
    return d_model**width * smallest(step**-0.5, step * warmup**rise)


class _TinyModel(nn.Module):
    """Embedding and one map; notes how many positions it was given."""

    def __init__(self):
        super().__init__()
        self.table, self.head = (nn.Parameter(torch.randn(7, 4)) for _ in range(2))
        self.sizes = []

    def forward(self, ids):
        """(batch, length) -> logits (batch, length, 7)."""
        self.sizes.append(ids.numel())
        return self.table[ids] @ self.head.T


def _draw_batches():
    """Three batches of 5, 6 and 3 real tokens, and what an earlier step has left."""
    ids = [[[1, 3, 4], [1, 5, 2]], [[1, 6, 3, 4, 5, 3]], [[1, 3], [1, 2]]]
    tgt_out = [[[3, 4, 2], [5, 2, 0]], [[6, 3, 4, 5, 3, 2]], [[3, 2], [2, 0]]]
    model = _TinyModel()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    pairs = zip(map(torch.tensor, ids), map(torch.tensor, tgt_out), strict=True)
    return [(model, [*pairs])]


def _run_accumulation(answer, model, batches):
    """All gradients; a missing one counts as zero."""
    answer(model, batches)
    pairs = ((p, p.grad) for p in model.parameters())
    gradients = [(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs]
    return torch.cat(gradients) if model.sizes else None


@grader(
    cases=_draw_batches,
    run=_run_accumulation,
    right="The gradient of the joined batch, in a third of the memory.",
    mistakes=lambda solve: {
        "this is the sum of the losses; divide by the real tokens of all batches.":
            {"divisor": lambda n, n_all: 1},
        "batches of few words count as much as others; divide each batch's sum by the "
        "tokens of all batches.":
            [{"divisor": lambda n, n_all: 3 * n}, {"divisor": lambda n, n_all: n}],
        "only the last batch is left: set the gradient to zero once, at the start.":
            lambda model, batches: solve(model, batches, before_each=model.zero_grad),
        "the gradient of an earlier step is still in it: begin with zero_grad.":
            {"begin": lambda model: None},
    },
)  # fmt: skip
def check_accumulation(
    model,
    batches,
    divisor=lambda n, n_all: n_all,
    begin=nn.Module.zero_grad,
    before_each=lambda: None,
):
    """Leave in the parameters the gradient of the mean loss over all real tokens.

    A model from ids (batch, length) to logits (batch, length, vocabulary), a list of
    (ids, tgt_out) with padding 0 -> nothing; with one forward pass a batch.
    """
    n_all = sum((tgt_out != 0).sum() for _, tgt_out in batches)
    begin(model)
    for ids, tgt_out in batches:
        before_each()
        logits, n = model(ids).mT, (tgt_out != 0).sum()
        loss = F.cross_entropy(logits, tgt_out, ignore_index=0, reduction="sum")
        (loss / divisor(n, n_all)).backward()


@grader(
    cases=lambda: [
        (12_288.0, 962.0, 0.573, 25_000),
        (1_000.0, 500.0, 0.5, 2_000),
        (1_000.0, 500.0, 0.5, 1_000),
        (900.0, 500.0, 0.5, 1_001),
    ],
    right="It fits, and no batch is smaller than it has to be.",
    mistakes=lambda solve: {
        "the fixed part takes its share of memory first.":
            lambda memory, fixed, *given: solve(memory, 0.0, *given),
        "{} batches do not fit; round up, not down or to the nearest.":
            Seen(lambda result, *case: result < solve(*case) and [result],
                 [{"whole": round}]),
        "{} batches fit, but so do {}.":
            Seen(lambda result, *case: result > solve(*case) and (result, solve(*case)),
                 [lambda *given: solve(*given) + 1]),
    },
)  # fmt: skip
def check_training_plan(memory, fixed, a_token, step_tokens, whole=math.ceil):
    """The smallest number of equal batches that share the step and fit.

    memory and fixed, in MiB, a_token, in MiB for one target token, step_tokens -> a
    whole number.
    """
    return whole(step_tokens / math.floor((memory - fixed) / a_token))
