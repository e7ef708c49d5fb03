"""Loss, schedule and loop against PyTorch's, and gradients of parts against a whole."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, gradients
from small_models import BOS, EOS, PAD
from small_models import make_model as make_small
from torch import Tensor

from transformer_lib import Transformer, label_smoothed_loss, learning_rate
from transformer_lib.data import Batch
from transformer_lib.runs import classification
from transformer_lib.runs.recipe import ClassifierTraining
from transformer_lib.training import (
    batch_loss,
    make_optimizer,
    shift_right,
    train,
    train_step,
)
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import split_target
from transformer_lib.training.schedule import set_learning_rate

VOCAB = 11
SRC = torch.tensor([[3, 5, 10, 7, 2], [4, 4, 2, 0, 0], [9, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 3, 10, 4, 2], [1, 9, 2, 0, 0], [1, 8, 5, 2, 0]])
N_TOKENS = 9


def make_model(dropout: float = 0.0) -> Transformer:
    sizes = {"src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB}
    return make_small(**sizes, tie_embeddings="all", dropout=dropout).train()


def make_batch(rows: slice = slice(None)) -> Batch:
    tgt_in, tgt_out = split_target(TARGET[rows])
    return Batch(SRC[rows], tgt_in, tgt_out, int((tgt_out != PAD).sum()))


def make_logits() -> Tensor:
    torch.manual_seed(0)
    return 3 * torch.randn(3, 4, VOCAB, dtype=torch.float64, requires_grad=True)


# --- loss -----------------------------------------------------------------------------


def test_both_ways_to_shift_agree() -> None:
    tgt_in, tgt_out = split_target(TARGET)
    assert tgt_in.tolist()[1] == [BOS, 9, EOS, PAD]
    assert tgt_out.tolist()[1] == [9, EOS, PAD, PAD]
    assert torch.equal(shift_right(tgt_out, BOS), tgt_in)
    assert tgt_out.tolist() == TARGET[:, 1:].tolist()  # the argument is left alone


@pytest.mark.parametrize("pad_id", [PAD, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_equals_pytorchs(smoothing, pad_id) -> None:
    logits, tgt_out = make_logits(), TARGET[:, 1:]
    tgt_out = tgt_out.masked_fill(tgt_out == PAD, pad_id)
    mine = label_smoothed_loss(logits, tgt_out, pad_id, smoothing)
    theirs = F.cross_entropy(
        logits.transpose(1, 2), tgt_out, ignore_index=pad_id, label_smoothing=smoothing
    )
    torch.testing.assert_close(mine / N_TOKENS, theirs, **EXACT)
    found, expected = (gradients(each, [logits]) for each in (mine / N_TOKENS, theirs))
    torch.testing.assert_close(found, expected, **EXACT)


def test_a_batch_of_padding_alone_adds_nothing() -> None:
    logits = make_logits()
    nothing = label_smoothed_loss(logits, torch.full((3, 4), PAD), PAD)
    assert nothing == 0.0  # PyTorch's mean is NaN
    assert (torch.autograd.grad(nothing, logits)[0] == 0).all()


def test_the_loss_of_logits_in_16_bits_is_added_up_in_32() -> None:
    torch.manual_seed(0)
    logits, tgt_out = torch.randn(8, 50, 30), torch.randint(1, 30, (8, 50))
    loss = label_smoothed_loss(logits.bfloat16(), tgt_out, pad_id=0)
    assert loss.dtype == torch.float32
    expected = label_smoothed_loss(logits.bfloat16().float(), tgt_out, pad_id=0)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_the_loss_of_a_batch_is_that_of_all_its_logits_hooks_included() -> None:
    model, batch = make_model().double(), make_batch()
    assert (batch.tgt_out == PAD).any()
    logits = model(batch.src, batch.tgt_in)
    expected = label_smoothed_loss(logits, batch.tgt_out, PAD)
    torch.testing.assert_close(batch_loss(model, batch, 0.1), expected)
    for module in (model, model.lm_head):
        handle = module.register_forward_hook(lambda *parts: parts[-1] * 2)
        assert batch_loss(model, batch) != expected
        handle.remove()


# --- schedule -------------------------------------------------------------------------


def test_the_schedule_is_equation_3() -> None:
    rates = [learning_rate(step, 512, 4000) for step in np.arange(1, 20_001)]
    assert rates.index(max(rates)) == 4000 - 1
    assert max(rates) == pytest.approx(1 / math.sqrt(512 * 4000))
    assert rates[999] == pytest.approx(max(rates) / 4)  # a line up ...
    assert rates[15_999] == pytest.approx(max(rates) / 2)  # ... and a root down
    assert learning_rate(7, 512, 4000, 3.0) == pytest.approx(3 * rates[6])


# --- step -----------------------------------------------------------------------------


def gradient_of(batches: list[Batch], max_norm: float = math.inf) -> Tensor:
    """Read the gradient off a step of plain gradient descent at rate 1."""
    model = make_model()
    flat = torch.nn.utils.parameters_to_vector
    before = flat(model.parameters()).detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    train_step(model, optimizer, batch_loss, batches, max_norm)
    return before - flat(model.parameters()).detach()


def test_accumulated_batches_equal_the_joined_batch() -> None:
    parts = [make_batch(slice(0, 1)), make_batch(slice(1, 3))]
    assert [part.n_tokens for part in parts] == [4, 5]  # a mean of means would differ
    torch.testing.assert_close(gradient_of(parts), gradient_of([make_batch()]), **EXACT)


def test_the_steps_are_pytorchs_steps() -> None:
    model, batch = make_model(), make_batch()
    theirs = copy.deepcopy(model)
    optimizer = torch.optim.Adam(theirs.parameters(), 0.01, (0.9, 0.98), 1e-9)
    mine = make_optimizer(model)
    set_learning_rate(mine, 0.01)
    for part in (batch, make_batch(slice(1, 3)), batch):
        logits = theirs(part.src, part.tgt_in).transpose(1, 2)
        loss = F.cross_entropy(
            logits, part.tgt_out, ignore_index=PAD, label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nats = train_step(model, mine, batch_loss, [part])
        assert nats == pytest.approx(loss.item(), abs=1e-7)
    for my_weight, weight in zip(model.parameters(), theirs.parameters(), strict=True):
        # Adam divides by the gradient's size, even where it is 0 but for rounding.
        torch.testing.assert_close(my_weight, weight, rtol=0.0, atol=1e-6)


def test_a_long_gradient_is_clipped_and_a_short_one_is_not() -> None:
    free = gradient_of([make_batch()])
    norm = free.norm().item()
    for max_norm, expected in ((norm / 3, free / 3), (norm * 3, free)):
        clipped = gradient_of([make_batch()], max_norm)
        torch.testing.assert_close(clipped, expected, rtol=1e-5, atol=1e-12)


def test_a_step_that_diverged_is_not_taken() -> None:
    model = make_model()
    trainer = Trainer(model, make_optimizer(model), batch_loss)
    list(trainer.run([[make_batch()]] * 3))
    with torch.no_grad():
        model.lm_head.weight[3, 0] = math.inf
    before = model.encoder.layers[0].feed_forward.expand.weight.clone()
    with pytest.raises(ValueError, match="training diverged: loss nan, gradient nan"):
        next(trainer.run([[make_batch()]]))
    assert torch.equal(before, model.encoder.layers[0].feed_forward.expand.weight)
    assert trainer.n_steps == 3
    trainer = Trainer(make_model(), None, lambda *given: batch_loss(*given) + math.nan)
    trainer.optimizer = make_optimizer(trainer.model)
    with pytest.raises(ValueError, match="training diverged: loss nan, gradient [0-9]"):
        next(trainer.run([[make_batch()]]))


# --- loop -----------------------------------------------------------------------------


def test_the_loop_learns_by_heart_and_follows_the_schedule() -> None:
    model = make_model()
    steps = [[make_batch()]] * 60
    losses = list(train(model, steps, warmup=20, smoothing=0.0))
    assert losses[-1] < 0.2 < 1.0 < losses[0]
    for other in ({"warmup": 10}, {"warmup": 20, "rate_scale": 2.0}):
        found = list(train(make_model(), steps[:2], smoothing=0.0, **other))
        assert found[0] == losses[0] and found[1] != losses[1]


def test_the_loop_takes_the_papers_rate_and_smoothing() -> None:
    losses = list(train(make_model(), [[make_batch()]] * 2, warmup=20))
    model = make_model()
    optimizer = make_optimizer(model)
    set_learning_rate(optimizer, learning_rate(1, 6, 20))
    loss = partial(batch_loss, smoothing=0.1)
    first = train_step(model, optimizer, loss, [make_batch()])
    assert losses == pytest.approx([first, loss(model, make_batch()).item() / N_TOKENS])


def test_an_optimizer_has_the_settings_of_paper_and_recipe() -> None:
    model = make_model()
    recipe = ClassifierTraining(epochs=1, rate=0.3, weight_decay=0.7)
    [paper] = make_optimizer(model).param_groups
    assert (paper["betas"], paper["eps"]) == ((0.9, 0.98), 1e-9)
    [tuned] = classification.make_optimizer(model, recipe).param_groups
    assert (tuned["lr"], tuned["weight_decay"]) == (0.3, 0.7)


def test_a_rate_of_its_own_is_left_to_an_optimizer() -> None:
    model = make_model()
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.25), batch_loss)
    list(trainer.run([[make_batch()]] * 3))
    assert trainer.optimizer.param_groups[0]["lr"] == 0.25


def test_dropout_follows_from_the_number_of_a_batch_in_the_run() -> None:
    def losses(n_batches: int, n_steps: int, n_given: int) -> list[float]:
        optimizer = torch.optim.SGD((model := make_model(0.5)).parameters(), 0.0)
        trainer = Trainer(model, optimizer, batch_loss, seed=1, n_batches=n_batches)
        trainer.n_steps = n_steps
        return list(trainer.run([[make_batch()] * n_given] * 2))

    one_by_one = [nats for start in (0, 2) for nats in losses(1, start, 1)]
    assert len({*one_by_one}) == 4
    means = [(a + b) / 2 for a, b in (one_by_one[:2], one_by_one[2:])]
    assert losses(2, 0, 2) == pytest.approx(means, rel=1e-6)
    with pytest.raises(ValueError, match="has 2 batches here, but 1 of the 1 "):
        losses(1, 0, 2)


def test_dropout_of_a_step_follows_from_seed_and_number_alone() -> None:
    def loss_of(seed: int | None, n_steps: int, dropout: float = 0.5) -> float:
        model = make_model(dropout).eval()
        trainer = Trainer(model, make_optimizer(model), batch_loss, seed=seed)
        trainer.n_steps = n_steps
        state = torch.random.get_rng_state()
        [nats] = trainer.run([[make_batch()]])  # turns dropout on
        assert torch.equal(torch.random.get_rng_state(), state)  # left as it was
        return nats

    given = (1, 0), (1, 1), (2, 0), (2**63 - 1, 7), (1, 0, 0.0)
    losses = [loss_of(*each) for each in given]
    assert losses == [loss_of(*each) for each in given]
    assert len({*losses}) == 5
