"""Training: what is predicted, how wrong it is, how fast to learn, and the loop.

The loop at the end is the whole of it. `lightning_module` runs the same parts on other
devices and in several processes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from transformer_lib.data.batches import Batch
from transformer_lib.model.transformer import Transformer


def split_target(target: Tensor) -> tuple[Tensor, Tensor]:
    """Cut a target into what the decoder reads and what it must predict.

    Position i of the first is the token before position i of the second.

    Args:
        target: (batch, tgt_len + 1), rows of bos, words, eos, then padding.

    Returns:
        tgt_in: (batch, tgt_len), all but the last column. A row that ends early keeps
            its eos here; what the decoder says after it is compared with padding, that
            is, with nothing.
        tgt_out: (batch, tgt_len), all but the first column.

    Raises:
        ValueError: target has fewer than two columns.
    """
    if target.dim() != 2 or target.size(1) < 2:
        raise ValueError(
            "target must be (batch, length) with at least bos and one more token, "
            f"not of shape {tuple(target.shape)}"
        )
    return target[:, :-1], target[:, 1:]


def shift_right(tgt_out: Tensor, bos_id: int) -> Tensor:
    """Make the decoder's input from what it must predict, as the paper puts it.

    The same as `split_target` by another route, for targets stored without bos: every
    row moves one place to the right, its last token falls off, bos comes in.

    Args:
        tgt_out: (batch, tgt_len), rows of words, eos, then padding.
        bos_id: the token that starts every sentence. Fairseq puts its eos here.

    Returns:
        tgt_in: (batch, tgt_len)
    """
    tgt_in = tgt_out.roll(1, dims=1)  # the last column comes round to the front
    tgt_in[:, 0] = bos_id
    return tgt_in


def label_smoothed_loss(
    logits: Tensor, tgt_out: Tensor, pad_id: int, smoothing: float = 0.1
) -> Tensor:
    """Add up the cross-entropy of all real target tokens (section 5.4 of the paper).

    The model is asked for the right token with probability 1 - smoothing, and for any
    token at all, the right one included, with the rest in equal shares. It is a sum, so
    that the losses of several batches add up; divided by the number of real tokens it
    is `F.cross_entropy(..., ignore_index=pad_id, label_smoothing=smoothing)`.

    Args:
        logits: (..., tgt_vocab_size)
        tgt_out: (...), the ids to be predicted.
        pad_id: the id that is no prediction to be judged.
        smoothing: share of probability given away, at least 0 and below 1.

    Returns:
        A scalar, in nats.

    Raises:
        ValueError: shapes do not fit, or smoothing is out of range.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, not {smoothing}")
    if logits.shape[:-1] != tgt_out.shape:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} do not belong to tgt_out of shape "
            f"{tuple(tgt_out.shape)}"
        )
    # Mixed precision makes logits of 16 bits: too few to add up thousands of tokens.
    log_probs = _at_least_float32(logits).log_softmax(dim=-1)
    right = log_probs.gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)  # (...)
    nats = -(1 - smoothing) * right
    if smoothing:
        nats = nats - smoothing * log_probs.mean(dim=-1)
    return nats.masked_fill(tgt_out == pad_id, 0.0).sum()


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """Return the lowest loss a perfect model can have, in nats per token.

    It is the entropy of the smoothed target: a model that gives exactly these
    probabilities still pays for their uncertainty.

    Args:
        vocab_size: number of target tokens, at least 1.
        smoothing: share of probability given away, at least 0 and below 1.

    Raises:
        ValueError: a value is out of range.
    """
    if vocab_size < 1 or not 0 <= smoothing < 1:
        raise ValueError(
            "vocab_size must be at least 1 and smoothing at least 0 and below 1, not "
            f"{vocab_size} and {smoothing}"
        )
    other = smoothing / vocab_size
    right = 1 - smoothing + other
    floor = -right * math.log(right)
    return floor - (vocab_size - 1) * other * math.log(other) if other else floor


def learning_rate(step: int, d_model: int, warmup: int, scale: float = 1.0) -> float:
    """Return the paper's learning rate (equation 3): up in a line, down as a root.

    scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). The peak is at step
    `warmup` and is scale / sqrt(d_model * warmup).

    Args:
        step: number of the step, from 1.
        d_model: width of the model: wider ones take smaller steps.
        warmup: steps until the peak; 4,000 in the paper.
        scale: a factor of our own; 1 in the paper.

    Raises:
        ValueError: step, d_model or warmup is below 1.
    """
    if min(step, d_model, warmup) < 1:
        raise ValueError(
            "step, d_model and warmup must be at least 1, not "
            f"{step}, {d_model} and {warmup}"
        )
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def make_optimizer(model: nn.Module) -> Adam:
    """Return Adam as in section 5.3; its rate is set before every step."""
    return Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Let the next step be taken with this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """Score a batch with the right words before each position given; nats, summed.

    That the model reads the reference and not its own words is called teacher forcing.
    """
    pad_id = model.config.pad_id
    real = batch.tgt_out != pad_id
    logits = model(batch.src, batch.tgt_in)[real]  # (n_tokens, tgt_vocab_size)
    return label_smoothed_loss(logits, batch.tgt_out[real], pad_id, smoothing)


def train_step(
    model: Transformer,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    smoothing: float = 0.1,
    max_norm: float = math.inf,
) -> float:
    """Take one step on several batches as if they were one.

    Each batch's gradient is added to the last one's, so that only one batch has to fit
    into memory. All are divided by the number of tokens of all: a mean of the batches'
    means would give the words of a small batch more weight.

    Args:
        model: in training mode; its weights change in place.
        optimizer: of the model's parameters, with the learning rate set.
        batches: what to learn from in this step, at least one.
        smoothing: of the labels.
        max_norm: a longer gradient is scaled down to this length.

    Returns:
        The loss before the step, in nats per target token.

    Raises:
        ValueError: there is no batch, or the gradient is not finite.
    """
    if not batches:
        raise ValueError("a step needs at least 1 batch, but got 0")
    n_tokens = sum(batch.n_tokens for batch in batches)
    optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        loss = batch_loss(model, batch, smoothing) / n_tokens
        loss.backward()  # adds to what is there
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if not torch.isfinite(norm):
        raise ValueError(f"the gradient's norm is {norm.item()} at a loss of {total}")
    optimizer.step()
    return total


def train(
    model: Transformer,
    steps: Iterable[Sequence[Batch]],
    warmup: int,
    rate_scale: float = 1.0,
    smoothing: float = 0.1,
) -> Iterator[float]:
    """Train a model, one step each time a loss is asked for.

    Args:
        model: its weights change in place.
        steps: the batches of every step.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        smoothing: of the labels.

    Yields:
        The loss of each step, in nats per target token.
    """
    optimizer = make_optimizer(model)
    model.train()
    for step, batches in enumerate(steps, start=1):
        rate = learning_rate(step, model.config.d_model, warmup, rate_scale)
        set_learning_rate(optimizer, rate)
        yield train_step(model, optimizer, batches, smoothing)
