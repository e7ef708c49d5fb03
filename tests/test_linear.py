"""Fast training: the same products and gradients, and a model that is itself after."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from reference import gradients
from small_models import BOS, PAD, SRC, make_model
from torch import Tensor, nn

from transformer_lib import MultiHeadAttention, Transformer
from transformer_lib.data.batches import Batch, make_batch
from transformer_lib.fast import batch_loss, fast_training, require_same_step, training
from transformer_lib.fast.dropout import FastDropout
from transformer_lib.fast.training import FastLinear
from transformer_lib.model import GroupedQueryAttention, fused_attention
from transformer_lib.model.attention import eager_attention
from transformer_lib.runs.recipe import read_recipe
from transformer_lib.training import loss as plain


@pytest.fixture
def any_size(monkeypatch) -> None:
    """Let no product be too small."""
    monkeypatch.setattr(training, "_LITTLE", 1)


def results(linear: nn.Linear, x: Tensor) -> list[Tensor]:
    """Return the output, and the gradients of its weighted sum."""
    y = linear(x)
    return [y, *gradients(y, [x, *linear.parameters()])]


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 7, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_and_gradients_are_pytorchs(any_size, shape, bias) -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(5, 11, bias=bias), torch.randn(shape, requires_grad=True)
    expected = results(linear, x)
    with fast_training(linear):
        found = results(linear, x)
        assert type(linear) is FastLinear
    assert type(linear) is nn.Linear
    assert "_Product" in type(found[0].grad_fn).__name__
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_only_what_is_wanted_gets_a_gradient(any_size) -> None:
    linear, x = nn.Linear(5, 11), torch.randn(3, 5)
    linear.weight.requires_grad_(False)
    with fast_training(linear):
        linear(x).sum().backward()
    assert linear.weight.grad is None
    assert x.grad is None
    torch.testing.assert_close(linear.bias.grad, torch.full((11,), 3.0))


def test_what_mkldnn_does_not_serve_is_pytorchs_bit_for_bit(any_size) -> None:
    torch.manual_seed(0)
    own, x = nn.Linear(5, 11), torch.randn(3, 5)
    fast = deepcopy(own)
    with fast_training(fast):
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(fast(x), own(x))
            assert fast(x).dtype == torch.bfloat16
        with torch.no_grad():
            assert fast(x).grad_fn is None
        rows = torch.func.vmap(torch.func.jacrev(fast))(x)
        torch.testing.assert_close(rows, own.weight.detach().expand(3, -1, -1))
        assert torch.equal(fast.double()(x.double()), own.double()(x.double()))


class OwnLinear(nn.Linear):
    """Somebody's own."""


def test_layers_of_others_stay_and_hooks_go_on() -> None:
    seen = []
    parts = [nn.Linear(2, 2), OwnLinear(2, 2), nn.Dropout(0.5)]
    for part in parts:
        part.register_forward_hook(lambda part, *_: seen.append(type(part)))
    model = nn.Sequential(*parts)
    with pytest.raises(RuntimeError, match="stop"), fast_training(model):
        model(torch.ones(1, 2))
        raise RuntimeError("stop")
    assert seen == [FastLinear, OwnLinear, FastDropout]
    assert [type(part) for part in model] == [nn.Linear, OwnLinear, nn.Dropout]


@pytest.mark.parametrize(
    "kind", [MultiHeadAttention, partial(GroupedQueryAttention, n_kv_heads=1)]
)
def test_attention_is_eager_in_bfloat16_only(kind) -> None:
    own = kind(4, 2)
    own.kernel = lambda *arguments: eager_attention(*arguments)
    model = nn.Sequential(kind(4, 2), own)
    kernels = [model[0].kernel, own.kernel]
    with fast_training(model):
        assert [model[0].kernel, own.kernel] == kernels
    with fast_training(model, torch.bfloat16):
        assert [model[0].kernel, own.kernel] == [eager_attention, kernels[1]]
    assert [model[0].kernel, own.kernel] == kernels == [fused_attention, own.kernel]


BATCH = make_batch(
    [(row[row != PAD].tolist(), [3, 4, 5][:n]) for n, row in enumerate(SRC, start=1)],
    bos_id=BOS,
    pad_id=PAD,
)


def test_padding_is_not_scored_and_the_step_is_the_same() -> None:
    model, scored = make_model(), []
    expected = plain.batch_loss(model, BATCH)
    model.lm_head.register_forward_hook(lambda _, __, y: scored.append(len(y)))
    torch.testing.assert_close(batch_loss(model, BATCH), expected)
    assert scored == [BATCH.n_targets], "of 16 positions"
    require_same_step(model, batch_loss, plain.batch_loss, BATCH)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_step_that_would_be_another_is_refused(any_size, monkeypatch) -> None:
    model = make_model().float()
    require_same_step(model, batch_loss, plain.batch_loss, BATCH)
    exact = training._multiply
    monkeypatch.setattr(training, "_multiply", lambda *a: exact(*a) * 1.001)
    with pytest.raises(ValueError, match=r"the faster loss|another gradient"):
        require_same_step(model, batch_loss, plain.batch_loss, BATCH)
    monkeypatch.undo()

    def same_loss(model: nn.Module, batch: Batch) -> Tensor:
        extra = model.decoder.layers[1].self_attn.k_proj.weight.sum()
        return batch_loss(model, batch) + extra - extra.detach()

    name = r"decoder\.layers\.1\.self_attn\.k_proj\.weight another gradient: set fast"
    with pytest.raises(ValueError, match=name):
        require_same_step(model, same_loss, plain.batch_loss, BATCH)
    with pytest.raises(ValueError, match="the faster loss is 1"):
        require_same_step(
            model, lambda *x: 1000 + batch_loss(*x), plain.batch_loss, BATCH
        )
    with fast_training(model), pytest.raises(ValueError, match="before fast_training"):
        require_same_step(model, batch_loss, plain.batch_loss, BATCH)


@pytest.mark.slow
def test_rounding_across_the_bend_of_a_relu_is_the_same_step() -> None:
    """In some of 2,000 positions a sum near zero is rounded to the other side."""
    recipe = read_recipe("multi30k-de-en")
    torch.manual_seed(0)
    size, length = recipe.data.vocab_size, 32
    model = Transformer(recipe.model_config(size))
    n_rows = recipe.training.batch_tokens // length
    rows = torch.randint(4, size, (2, n_rows, length - 1)).tolist()
    batch = make_batch(list(zip(*rows, strict=True)), bos_id=BOS, pad_id=PAD)
    require_same_step(model, batch_loss, plain.batch_loss, batch)
