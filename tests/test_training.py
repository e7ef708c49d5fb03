"""Loss, schedule and loop against PyTorch's, and gradients of parts against a whole."""

import copy
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters
from torch import Tensor

from transformer_lib.acceleration import real_positions
from transformer_lib.data.batches import Batch
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loop import Trainer, train, train_step
from transformer_lib.training.loss import (
    batch_loss,
    label_smoothed_loss,
    shift_right,
    smoothing_floor,
    split_target,
)
from transformer_lib.training.schedule import (
    learning_rate,
    make_optimizer,
    set_learning_rate,
)

PAD, BOS, EOS = 0, 1, 2
VOCAB = 11
SRC = torch.tensor([[3, 5, 10, 7, 2], [4, 4, 2, 0, 0], [9, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 3, 10, 4, 2], [1, 9, 2, 0, 0], [1, 8, 5, 2, 0]])
N_TOKENS = 9


def make_model(dropout: float = 0.0) -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, d_model=6, n_heads=3, d_ff=10,
        n_encoder_layers=1, n_decoder_layers=2, dropout=dropout,
    )  # fmt: skip
    return draw_parameters(Transformer(config))


def make_batch(rows: slice = slice(None)) -> Batch:
    tgt_in, tgt_out = split_target(TARGET[rows])
    return Batch(SRC[rows], tgt_in, tgt_out, int((tgt_out != PAD).sum()))


def make_logits() -> Tensor:
    torch.manual_seed(0)
    return 3 * torch.randn(3, 4, VOCAB, dtype=torch.float64, requires_grad=True)


def test_both_ways_to_shift_agree() -> None:
    tgt_in, tgt_out = split_target(TARGET)
    assert tgt_in.tolist()[1] == [BOS, 9, EOS, PAD]
    assert tgt_out.tolist()[1] == [9, EOS, PAD, PAD]
    assert torch.equal(shift_right(tgt_out, BOS), tgt_in)
    assert tgt_out.tolist() == TARGET[:, 1:].tolist()  # the argument is left alone


def test_a_target_without_a_word_to_predict_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least bos .* \(3, 1\)"):
        split_target(TARGET[:, :1])
    with pytest.raises(ValueError, match=r"of shape \(5,\)"):
        split_target(TARGET[0])
    assert [part.tolist() for part in split_target(TARGET[:1, :2])] == [[[1]], [[3]]]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_equals_pytorchs(smoothing) -> None:
    logits, tgt_out = make_logits(), TARGET[:, 1:]
    mine = label_smoothed_loss(logits, tgt_out, PAD, smoothing)
    theirs = F.cross_entropy(
        logits.transpose(1, 2), tgt_out, ignore_index=PAD, label_smoothing=smoothing
    )
    torch.testing.assert_close(mine / N_TOKENS, theirs, **EXACT)
    my_gradient, their_gradient = (
        torch.autograd.grad(loss, logits)[0] for loss in (mine / N_TOKENS, theirs)
    )
    torch.testing.assert_close(my_gradient, their_gradient, **EXACT)


def test_padding_adds_nothing_to_the_loss() -> None:
    logits, tgt_out = make_logits(), TARGET[:, 1:]
    before = label_smoothed_loss(logits, tgt_out, PAD)
    changed = logits.detach().clone()
    changed[tgt_out == PAD] = 99.0
    assert label_smoothed_loss(changed, tgt_out, PAD) == before
    changed[0, 0, 3] += 1.0
    assert label_smoothed_loss(changed, tgt_out, PAD) != before


def test_a_batch_of_padding_has_no_loss_and_no_gradient() -> None:
    logits = make_logits()
    loss = label_smoothed_loss(logits, torch.zeros(3, 4, dtype=torch.long), PAD)
    assert loss == 0.0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_floor_is_the_loss_of_the_smoothed_answer(smoothing) -> None:
    wanted = torch.full((VOCAB,), smoothing / VOCAB, dtype=torch.float64)
    wanted[3] += 1 - smoothing
    answer = torch.tensor([[3]])
    perfect = wanted.log().clamp(min=-700.0)[None, None]
    loss = label_smoothed_loss(perfect, answer, PAD, smoothing).item()
    floor = smoothing_floor(VOCAB, smoothing)
    assert loss == pytest.approx(floor, abs=1e-12)
    if smoothing:  # more certain than asked for, and too uncertain, are both worse
        for factor in (0.9, 1.1):
            assert label_smoothed_loss(factor * perfect, answer, PAD, smoothing) > floor


def test_what_the_loss_cannot_read_is_refused_by_its_type() -> None:
    logits, tgt_out = make_logits(), TARGET[:, 1:]
    with pytest.raises(TypeError, match="floating-point numbers, not torch.int64"):
        label_smoothed_loss(logits.long(), tgt_out, PAD)
    with pytest.raises(TypeError, match="torch.int64, not torch.int32"):
        label_smoothed_loss(logits, tgt_out.int(), PAD)
    for wrong in (-1, VOCAB):
        ids = torch.where(tgt_out == 10, wrong, tgt_out)
        with pytest.raises(ValueError, match=f"{wrong}.* scores of {VOCAB} tokens"):
            label_smoothed_loss(logits, ids, PAD)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_out_of_range_is_refused(smoothing) -> None:
    with pytest.raises(ValueError, match=f"smoothing must be .* not {smoothing}"):
        label_smoothed_loss(make_logits(), TARGET[:, 1:], PAD, smoothing)
    with pytest.raises(ValueError, match=f"not 11 and {smoothing}"):
        smoothing_floor(VOCAB, smoothing)


def test_one_token_to_choose_from_costs_nothing() -> None:
    assert smoothing_floor(1, 0.1) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="not 0 and 0.1"):
        smoothing_floor(0, 0.1)


def test_the_loss_of_tensors_without_numbers_has_a_shape() -> None:
    loss = label_smoothed_loss(make_logits().to("meta"), TARGET[:, 1:].to("meta"), PAD)
    assert (loss.shape, loss.device.type) == ((), "meta")


def test_one_token_alone_has_a_loss_and_a_number_has_none() -> None:
    logits, right = make_logits()[0, 0], torch.tensor(3)
    found = label_smoothed_loss(logits, right, PAD, 0.0)
    torch.testing.assert_close(found, F.cross_entropy(logits, right), **EXACT)
    with pytest.raises(ValueError, match=r"shape \(\) hold no scores"):
        label_smoothed_loss(logits[0], right, PAD)


def test_logits_of_another_target_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 4, 11\) do not .* \(3, 5\)"):
        label_smoothed_loss(make_logits(), TARGET, PAD)


def test_the_schedule_is_equation_3() -> None:
    rates = [learning_rate(step, 512, 4000) for step in range(1, 20_001)]
    assert rates.index(max(rates)) == 4000 - 1
    assert max(rates) == pytest.approx(1 / math.sqrt(512 * 4000))
    assert rates[999] == pytest.approx(max(rates) / 4)  # a line up ...
    assert rates[15_999] == pytest.approx(max(rates) / 2)  # ... and a root down
    assert learning_rate(7, 512, 4000, 3.0) == pytest.approx(3 * rates[6])


@pytest.mark.parametrize("name", ["step", "d_model", "warmup"])
def test_steps_and_sizes_are_integers(name) -> None:
    values = {"step": 1, "d_model": 2, "warmup": 1}
    assert learning_rate(**values) == pytest.approx(2**-0.5)
    for value in (2.0, True):
        with pytest.raises(TypeError, match=f"{name} must be an integer, not {value}"):
            learning_rate(**values | {name: value})
    with pytest.raises(ValueError, match="must be at least 1"):
        learning_rate(**values | {name: 0})


def test_a_scale_of_the_rate_is_neither_negative_nor_infinite() -> None:
    assert learning_rate(1, 2, 1, 0.0) == 0.0
    for scale in (-0.1, math.inf):
        with pytest.raises(ValueError, match=f"scale must be from 0.0 .* not {scale}"):
            learning_rate(1, 2, 1, scale)


def test_there_is_no_step_0() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0, 512 and 4000"):
        learning_rate(0, 512, 4000)


def gradient_of(batches: list[Batch], max_norm: float = math.inf) -> list[Tensor]:
    """Read the gradient off a step of plain gradient descent at rate 1."""
    model = make_model()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    train_step(model, optimizer, batch_loss, batches, max_norm)
    return [old - new for old, new in zip(before, model.parameters(), strict=True)]


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
    free = torch.cat([g.flatten() for g in gradient_of([make_batch()])])
    norm = free.norm().item()
    for max_norm, expected in ((norm / 3, free / 3), (norm * 3, free)):
        clipped = gradient_of([make_batch()], max_norm)
        clipped = torch.cat([g.flatten() for g in clipped])
        torch.testing.assert_close(clipped, expected, rtol=1e-5, atol=1e-12)


def test_a_gradient_that_is_no_number_stops_the_training() -> None:
    model = make_model()
    with torch.no_grad():
        model.lm_head.weight[3, 0] = math.nan
    before = model.encoder.layers[0].feed_forward.expand.weight.clone()
    with pytest.raises(ValueError, match="step 1: .* norm is nan at a loss of nan"):
        train_step(model, make_optimizer(model), batch_loss, [make_batch()])
    assert torch.equal(before, model.encoder.layers[0].feed_forward.expand.weight)


def test_a_step_that_diverges_is_named_by_its_number() -> None:
    model = make_model()
    trainer = Trainer(model, make_optimizer(model), batch_loss)
    list(trainer.run([[make_batch()]] * 3))
    with torch.no_grad():
        model.lm_head.weight[3, 0] = math.inf
    with pytest.raises(ValueError, match="step 4: the gradient's norm is nan"):
        trainer.step([make_batch()])
    assert trainer.n_steps == 3


def test_an_optimizer_that_does_not_count_has_taken_no_step() -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    train_step(model, optimizer, batch_loss, [make_batch()])
    with torch.no_grad():
        model.lm_head.weight[3, 0] = math.inf
    with pytest.raises(ValueError, match="^step 1: the gradient's norm"):
        train_step(model, optimizer, batch_loss, [make_batch()])


def test_the_papers_optimizer_rests_until_it_is_given_a_rate() -> None:
    model = make_model()
    optimizer = make_optimizer(model)
    before = copy.deepcopy(model.state_dict())
    train_step(model, optimizer, batch_loss, [make_batch()])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    [group] = optimizer.param_groups
    assert (group["betas"], group["eps"]) == ((0.9, 0.98), 1e-9)


@pytest.mark.parametrize("max_norm", [0.0, -1.0, math.nan])
def test_a_norm_that_leaves_nothing_of_the_gradient_is_refused(max_norm) -> None:
    with pytest.raises(ValueError, match=f"max_norm must be above 0, not {max_norm}"):
        gradient_of([make_batch()], max_norm)


def test_a_step_without_batches_is_refused() -> None:
    model = make_model()
    with pytest.raises(ValueError, match="at least 1 batch"):
        train_step(model, make_optimizer(model), batch_loss, [])


def test_the_loop_learns_by_heart_and_follows_the_schedule() -> None:
    model = make_model()
    steps = [[make_batch()]] * 60
    losses = list(train(model, steps, warmup=20, smoothing=0.0))
    assert losses[-1] < 0.2 < 1.0 < losses[0]
    again = make_model()
    first, second = train(again, steps[:2], warmup=20, smoothing=0.0)
    assert (first, second) == tuple(losses[:2])
    other = train(make_model(), steps[:2], warmup=10, smoothing=0.0)
    assert list(other)[1] != second  # another warm-up, another second step


def test_the_loop_takes_the_papers_rate_and_smoothing() -> None:
    losses = list(train(make_model(), [[make_batch()]] * 2, warmup=20))
    model = make_model()
    optimizer = make_optimizer(model)
    set_learning_rate(optimizer, learning_rate(1, 6, 20))
    loss = partial(batch_loss, smoothing=0.1)
    first = train_step(model, optimizer, loss, [make_batch()])
    assert losses == pytest.approx([first, loss(model, make_batch()).item() / N_TOKENS])
    doubled = train(make_model(), [[make_batch()]] * 2, warmup=20, rate_scale=2.0)
    assert list(doubled)[1] != pytest.approx(losses[1])


def test_dropout_is_on_while_the_loop_trains() -> None:
    model = make_model(dropout=0.5).eval()
    quiet = batch_loss(model, make_batch(), 0.1).item() / N_TOKENS
    loss = next(train(model, [[make_batch()]], warmup=20))
    assert model.training
    assert loss != pytest.approx(quiet, abs=1e-6)


def test_the_loss_of_logits_in_16_bits_is_added_up_in_32() -> None:
    torch.manual_seed(0)
    logits, tgt_out = torch.randn(8, 50, 30), torch.randint(1, 30, (8, 50))
    loss = label_smoothed_loss(logits.bfloat16(), tgt_out, pad_id=0)
    assert loss.dtype == torch.float32
    expected = label_smoothed_loss(logits.bfloat16().float(), tgt_out, pad_id=0)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_the_loss_of_a_batch_is_that_of_all_its_logits() -> None:
    model, batch = make_model().double(), make_batch()
    assert (batch.tgt_out == PAD).any()
    logits = model(batch.src, batch.tgt_in)
    expected = label_smoothed_loss(logits, batch.tgt_out, PAD)
    torch.testing.assert_close(batch_loss(model, batch, 0.1), expected)


def test_the_loss_of_a_batch_goes_through_the_whole_model() -> None:
    model, batch = make_model(), make_batch()
    before = batch_loss(model, batch)
    for module in (model, model.lm_head):
        handle = module.register_forward_hook(lambda *parts: parts[-1] * 2)
        assert batch_loss(model, batch) != before  # a hook counts in training too
        handle.remove()
    assert batch_loss(model, batch) == before


def test_a_rate_of_its_own_is_left_to_an_optimizer() -> None:
    model = make_model()
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.25), batch_loss)
    list(trainer.run([[make_batch()]] * 3))
    assert trainer.optimizer.param_groups[0]["lr"] == 0.25
    assert trainer.n_steps == 3


def hook_on(model: Transformer, name: str) -> None:
    model.get_submodule(name).register_forward_hook(
        lambda _module, _inputs, output: 0.5 * output
    )


@pytest.mark.parametrize("name", [None, "", "lm_head", "decoder", "tgt_embeddings"])
def test_padding_is_left_out_of_the_logits_where_nobody_looks(name) -> None:
    model = make_model()
    if name is not None:
        hook_on(model, name)
    batch = make_batch()
    seen = []
    model.lm_head.register_forward_pre_hook(lambda _, x: seen.append(x[0].shape))
    watched = batch_loss(model, batch, 0.1)
    assert len(seen[0]) == 3, "somebody looks: all positions"
    model.lm_head._forward_pre_hooks.clear()
    real = batch.tgt_out != 0
    assert not real.all()
    logits = model(batch.src, batch.tgt_in)[real]
    expected = label_smoothed_loss(logits, batch.tgt_out[real], 0, 0.1)
    torch.testing.assert_close(watched, expected)
    torch.testing.assert_close(batch_loss(model, batch, 0.1), expected)
    assert not model.lm_head._forward_pre_hooks
    with real_positions(model, real) as are_selected:
        n_scored = model(batch.src, batch.tgt_in)[..., 0].numel()
    assert are_selected == (name not in ("", "lm_head"))
    assert n_scored == (N_TOKENS if are_selected else real.numel())
