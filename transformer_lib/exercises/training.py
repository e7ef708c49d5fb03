"""Graders of the chapter on training."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_integer,
    compare,
    right,
    wrong,
)

PAD = 0


def check_token_loss(answer: Callable[[Tensor, Tensor, int], Tensor]) -> Feedback:
    """Grade the mean cross-entropy of the real target tokens.

    Args:
        answer: takes logits (batch, tgt_len, vocabulary), tgt_out (batch, tgt_len) and
            pad_id; returns a scalar, in nats.
    """
    logits = 2 * _draw(3, 5, 7)
    tgt_out = torch.tensor([[3, 4, 5, 2, 0], [6, 2, 0, 0, 0], [4, 3, 6, 5, 2]])
    result = call(answer, logits.clone(), tgt_out.clone(), PAD)
    real = tgt_out != PAD
    each = F.cross_entropy(logits.mT, tgt_out, reduction="none")
    probabilities = logits.softmax(-1).gather(-1, tgt_out[..., None])[..., 0]
    over_time = -logits.log_softmax(dim=1).gather(-1, tgt_out[..., None])[..., 0]
    expected = each[real].mean()
    mistakes = {
        "padding is counted: leave its positions out of sum and count.": each.mean(),
        "padding is left out of the sum, but counted in the mean.": (
            (each * real).mean()
        ),
        "every sentence counts the same here; every token should.": (
            ((each * real).sum(1) / real.sum(1)).mean()
        ),
        "this is the sum; divide by the number of real tokens.": each[real].sum(),
        "the sign is missing: a loss is minus the logarithm.": -expected,
        "the logarithm is missing.": -probabilities[real].mean(),
        "the loss is in bits; the natural logarithm gives nats.": (
            expected / math.log(2)
        ),
        "the softmax runs over the positions; it belongs to the vocabulary.": (
            over_time[real].mean()
        ),
        "there is no softmax: logits are no log-probabilities.": (
            -logits.gather(-1, tgt_out[..., None])[..., 0][real].mean()
        ),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("Nats per real token, whatever the padding.")


def check_schedule(answer: Callable[[int, int, int], float]) -> Feedback:
    """Grade the learning rate of equation 3.

    Args:
        answer: takes step (from 1), d_model and warmup; returns the rate.
    """
    for step, d_model, warmup in ((1, 512, 4000), (10_000, 256, 4000), (50, 64, 50)):
        result = call(answer, step, d_model, warmup)
        if isinstance(result, (int, float)):
            result = torch.tensor(float(result), dtype=torch.float64)
        low, high = sorted((step**-0.5, step * warmup**-1.5))
        width = d_model**-0.5
        mistakes = {
            "this is the larger of the two branches; take the smaller one.": (
                width * high
            ),
            "the width is missing: the factor d_model^-0.5.": low,
            "the width goes the wrong way: wide models take smaller steps.": low
            / width,
            "the root is missing: d_model^-0.5, not d_model^-1.": low / d_model,
            "the branch of the warm-up should be step * warmup^-1.5.": (
                width * min(step**-0.5, step * warmup**-0.5)
            ),
        }
        expected = torch.tensor(width * low, dtype=torch.float64)
        if problem := compare(result, expected, _tensors(mistakes), atol=1e-12):
            if problem.status == "wrong":
                where = f"step {step}, d_model {d_model}, warmup {warmup}"
                return wrong(f"{where}: {problem.message}")
            return problem
    return right("Up in a line, down as a root, and narrow models faster.")


def check_accumulation(
    answer: Callable[[nn.Module, Sequence[tuple[Tensor, Tensor]]], object],
) -> Feedback:
    """Grade the gradient of several batches, added up one batch at a time.

    Args:
        answer: takes a model from ids (batch, length) to logits (batch, length,
            vocabulary) and a list of (ids, tgt_out) with padding 0; leaves in the
            parameters the gradient of the mean loss over all real tokens. The list is
            longer than memory allows to join: one forward pass a batch.
    """
    model, batches = _TinyModel(), _batches()
    for parameter in model.parameters():  # what an earlier step has left behind
        parameter.grad = torch.ones_like(parameter)
    result = call(answer, model, batches)
    if isinstance(result, Feedback):
        return result
    if not model.sizes:
        return NOT_ATTEMPTED
    found = _flat(model)
    if model.sizes != [ids.numel() for ids, _ in batches]:
        return wrong(
            f"the model was called on {model.sizes} positions; each batch goes "
            f"through it once and alone: {[ids.numel() for ids, _ in batches]}."
        )
    n_tokens = [int((tgt_out != PAD).sum()) for _, tgt_out in batches]
    sums = [_gradient(*batch) for batch in batches]
    total = sum(sums)
    means = sum(each / n for each, n in zip(sums, n_tokens, strict=True))
    n_all, old = sum(n_tokens), torch.ones_like(total)
    mistakes = {
        "this is the sum of the losses; divide by the real tokens of all batches.": (
            total
        ),
        "this is a mean of the batches' means: the words of the small batch count more "
        "than the others.": means / len(batches),
        "the batches' means are added; divide each sum by the tokens of all batches.": (
            means
        ),
        "only the last batch is left: set the gradient to zero once, at the start.": (
            sums[-1] / n_all
        ),
        "padding is counted as tokens.": total / sum(t.numel() for _, t in batches),
        "the gradient of an earlier step is still in it: begin with zero_grad.": (
            total / n_all + old
        ),
    }
    if problem := compare(found, total / n_all, mistakes):
        if torch.equal(found, old):
            return wrong("no gradient was computed: call backward on each loss.")
        return problem
    return right("The gradient of the joined batch, in a third of the memory.")


def check_plan(answer: Callable[[float, float, float, int], object]) -> Feedback:
    """Grade the plan of a step that has to fit into a memory.

    Args:
        answer: takes memory and fixed, in MiB, a_token, in MiB for one target token,
            and step_tokens; returns the number of equal batches that share the step,
            an integer, as small as possible.
    """
    cases = [(12_288.0, 962.0, 0.573, 25_000), (1_000.0, 500.0, 0.5, 2_000),
             (1_000.0, 500.0, 0.5, 1_000), (900.0, 500.0, 0.5, 1_001)]  # fmt: skip
    for memory, fixed, a_token, step_tokens in cases:
        result = call(answer, memory, fixed, a_token, step_tokens)
        if problem := check_integer(result):
            return problem
        expected = _fewest(memory - fixed, a_token, step_tokens)
        where = f"{memory:g} MiB, {fixed:g} fixed, {step_tokens:,} tokens"
        if result == _fewest(memory, a_token, step_tokens) != expected:
            return wrong(f"{where}: the fixed part takes its share of memory first.")
        if 0 <= result < expected:
            return wrong(
                f"{where}: {result} batches do not fit; round up, not down or to the "
                "nearest."
            )
        if result != expected:
            return wrong(f"{where}: {result} batches fit, but so do {expected}.")
    return right("It fits, and no batch is smaller than it has to be.")


class _TinyModel(nn.Module):
    """Embedding and one map, in float64; notes how many positions it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(_draw(7, 4, seed=1))
        self.head = nn.Parameter(_draw(7, 4, seed=2))
        self.sizes: list[int] = []

    def forward(self, ids: Tensor) -> Tensor:
        self.sizes.append(ids.numel())
        return self.table[ids] @ self.head.T


def _batches() -> list[tuple[Tensor, Tensor]]:
    """Return three batches of 5, 6 and 3 real tokens."""
    ids = [[[1, 3, 4], [1, 5, 2]], [[1, 6, 3, 4, 5, 3]], [[1, 3], [1, 2]]]
    labels = [[[3, 4, 2], [5, 2, 0]], [[6, 3, 4, 5, 3, 2]], [[3, 2], [2, 0]]]
    pairs = zip(ids, labels, strict=True)
    return [(torch.tensor(read), torch.tensor(said)) for read, said in pairs]


def _gradient(ids: Tensor, tgt_out: Tensor) -> Tensor:
    """Return the gradient of the summed loss of one batch."""
    model = _TinyModel()
    logits = model(ids).mT
    F.cross_entropy(logits, tgt_out, ignore_index=PAD, reduction="sum").backward()
    return _flat(model)


def _flat(model: nn.Module) -> Tensor:
    """Join all gradients; a missing one counts as zero."""
    pairs = ((p, p.grad) for p in model.parameters())
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten()
                      for p, g in pairs])  # fmt: skip


def _fewest(room: float, a_token: float, step_tokens: int) -> int:
    return math.ceil(step_tokens / math.floor(room / a_token))


def _draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _tensors(mistakes: Mapping[str, float]) -> dict[str, Tensor]:
    return {k: torch.tensor(v, dtype=torch.float64) for k, v in mistakes.items()}
