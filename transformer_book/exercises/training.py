"""Graders of the chapter on training."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import Grader, Mistake, Seen

PAD = 0
_TGT_OUT = [[3, 4, 5, 2, 0], [6, 2, 0, 0, 0], [4, 3, 6, 5, 2]]


def _mean(each, real):
    return each[real].mean()


def _token_loss(
    logits, tgt_out, pad_id, log_probs=lambda x: x.log_softmax(-1), reduce=_mean
):
    each = log_probs(logits).gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)
    return -reduce(each, tgt_out != pad_id)


check_token_loss = Grader(
    "logits (batch, tgt_len, vocabulary), tgt_out (batch, tgt_len), pad_id -> mean "
    "cross-entropy of the real tokens, a scalar in nats",
    cases=lambda: [(2 * torch.randn(3, 5, 7), torch.tensor(_TGT_OUT), PAD)],
    solution=_token_loss,
    right="Nats per real token, whatever the padding.",
    mistakes={
        "padding is counted: leave its positions out of sum and count.":
            {"reduce": lambda each, real: each.mean()},
        "padding is left out of the sum, but counted in the mean.":
            {"reduce": lambda each, real: (each * real).mean()},
        "every sentence counts the same here; every token should.":
            {"reduce": lambda each, real: ((each * real).sum(1) / real.sum(1)).mean()},
        "this is the sum; divide by the number of real tokens.":
            {"reduce": lambda each, real: each[real].sum()},
        "the sign is missing: a loss is minus the logarithm.":
            {"reduce": lambda each, real: -_mean(each, real)},
        "the logarithm is missing.": {"log_probs": lambda x: x.softmax(-1)},
        "the loss is in bits; the natural logarithm gives nats.":
            {"reduce": lambda each, real: _mean(each, real) / math.log(2)},
        "softmax runs over the positions; it belongs to the vocabulary.":
            {"log_probs": lambda x: x.log_softmax(1)},
        "there is no softmax: logits are no log-probabilities.":
            {"log_probs": lambda x: x},
    },
)  # fmt: skip


def _rate(step, d_model, warmup, smallest=min, width=-0.5, rise=-1.5):
    return d_model**width * smallest(step**-0.5, step * warmup**rise)


check_schedule = Grader(
    "step (from 1), d_model, warmup -> the learning rate of equation 3",
    cases=lambda: [(1, 512, 4000), (10_000, 256, 4000), (50, 64, 50)],
    solution=_rate,
    right="Up in a line, down as a root, and narrow models faster.",
    atol=1e-12,
    mistakes={
        "this is the larger of the two branches; take the smaller one.":
            {"smallest": max},
        "the width is missing: the factor d_model^-0.5.": {"width": 0},
        "the width goes the wrong way: wide models take smaller steps.": {"width": 0.5},
        "the root is missing: d_model^-0.5, not d_model^-1.": {"width": -1},
        "the branch of the warm-up should be step * warmup^-1.5.": {"rise": -0.5},
    },
)  # fmt: skip


class _TinyModel(nn.Module):
    """Embedding and one map; notes how many positions it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 4))
        self.head = nn.Parameter(torch.randn(7, 4))
        self.sizes: list[int] = []

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
    return [
        (model, [*zip(map(torch.tensor, ids), map(torch.tensor, tgt_out), strict=True)])
    ]


def _run_accumulation(answer, model, batches):
    """All gradients; a missing one counts as zero."""
    answer(model, batches)
    sizes = [ids.numel() for ids, _ in batches]
    if model.sizes and model.sizes != sizes:
        raise Mistake(
            f"the model was called on {model.sizes} positions; each batch goes through "
            f"it once and alone: {sizes}."
        )
    pairs = ((p, p.grad) for p in model.parameters())
    gradients = [(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs]
    return torch.cat(gradients) if model.sizes else None


def _accumulate(model, batches, divide_by=lambda n, n_all: n_all, zero="once"):
    """Divide each batch's summed loss by the real tokens of all batches."""
    n_all = sum((tgt_out != PAD).sum() for _, tgt_out in batches)
    if zero == "once":
        model.zero_grad()
    for ids, tgt_out in batches:
        if zero == "always":
            model.zero_grad()
        loss = F.cross_entropy(
            model(ids).mT, tgt_out, ignore_index=PAD, reduction="sum"
        )
        (loss / divide_by((tgt_out != PAD).sum(), n_all)).backward()


check_accumulation = Grader(
    "a model from ids (batch, length) to logits (batch, length, vocabulary), a list of "
    "(ids, tgt_out) with padding 0 -> nothing; leaves in the parameters the gradient "
    "of the mean loss over all real tokens, with one forward pass a batch",
    cases=_draw_batches,
    run=_run_accumulation,
    solution=_accumulate,
    right="The gradient of the joined batch, in a third of the memory.",
    mistakes={
        "this is the sum of the losses; divide by the real tokens of all batches.":
            {"divide_by": lambda n, n_all: 1},
        "this is a mean of the batches' means: the words of the small batch count more "
        "than the others.": {"divide_by": lambda n, n_all: 3 * n},
        "the batches' means are added; divide each sum by the tokens of all batches.":
            {"divide_by": lambda n, n_all: n},
        "only the last batch is left: set the gradient to zero once, at the start.":
            {"zero": "always"},
        "padding is counted as tokens.": {"divide_by": lambda n, n_all: 16},
        "the gradient of an earlier step is still in it: begin with zero_grad.":
            {"zero": "never"},
        "the model was called on [6, 6, 4, 6, 6, 4] positions; each batch goes through "
        "it once and alone: [6, 6, 4].":
            lambda model, batches: _accumulate(model, batches * 2),
        "no gradient was computed: call backward on each loss.":
            lambda model, batches: [model(ids) for ids, _ in batches],
    },
)  # fmt: skip


def _plan(memory, fixed, a_token, step_tokens, round_=math.ceil):
    return round_(step_tokens / math.floor((memory - fixed) / a_token))


check_training_plan = Grader(
    "memory and fixed, in MiB, a_token, in MiB for one target token, step_tokens -> "
    "the smallest number of equal batches that share the step and fit",
    cases=lambda: [
        (12_288.0, 962.0, 0.573, 25_000),
        (1_000.0, 500.0, 0.5, 2_000),
        (1_000.0, 500.0, 0.5, 1_000),
        (900.0, 500.0, 0.5, 1_001),
    ],
    solution=_plan,
    right="It fits, and no batch is smaller than it has to be.",
    mistakes={
        "the fixed part takes its share of memory first.":
            lambda memory, fixed, *given: _plan(memory, 0.0, *given),
        "{} batches do not fit; round up, not down or to the nearest.":
            Seen(lambda result, *case: result if result < _plan(*case) else None,
                 partial(_plan, round_=round)),
        "{} batches fit, but so do {}.":
            Seen(lambda result, *case: (
                     (result, _plan(*case)) if result > _plan(*case) else None),
                 lambda *given: _plan(*given) + 1),
    },
)  # fmt: skip
