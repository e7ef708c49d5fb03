"""PyTorch's compilers, tracers and transforms take the model as it is."""

import copy

import pytest
import torch
from small_models import SRC, make_model
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from transformer_lib.model.masks import causal_mask

TGT_IN = torch.tensor([[1, 3, 6], [1, 5, 0], [1, 4, 4], [1, 6, 3]])
INPUTS = (SRC, TGT_IN)


def compiled(model):
    torch._dynamo.reset()
    return torch.compile(model, fullgraph=True, backend="aot_eager")(*INPUTS)


def exported(model):
    return torch.export.export(model, INPUTS).module()(*INPUTS)


def called_with_other_weights(model):
    parameters = dict(model.named_parameters())
    empty = copy.deepcopy(model).to("meta")
    return functional_call(empty, parameters, INPUTS, tie_weights=False)


def traced_to_fx(model):
    trace = make_fx(model, tracing_mode="fake", _allow_non_fake_inputs=True)
    return trace(*INPUTS)(*INPUTS)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def traced_by_jit(model):
    return torch.jit.trace(model, INPUTS, check_trace=False)(*INPUTS)


WAYS = [compiled, exported, called_with_other_weights, traced_to_fx, traced_by_jit]


@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_another_way_to_run_the_model_gives_the_same_numbers(way, norm_first):
    model = make_model(n_encoder_layers=2, norm_first=norm_first)
    torch.testing.assert_close(way(model), model(*INPUTS), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_training_step_compiles_to_one_graph(dropout):
    model = make_model(n_encoder_layers=2, dropout=dropout).train()
    torch._dynamo.reset()
    whole = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.manual_seed(0)
    logits = whole(*INPUTS)
    logits.square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    assert logits.isfinite().all() and len(gradients) > 20
    if not dropout:  # the compiler draws other random numbers
        model.zero_grad()
        model(*INPUTS).square().sum().backward()
        expected = [p.grad for p in model.parameters() if p.grad is not None]
        torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_the_default_backend_compiles_the_model_to_one_graph(training):
    model = make_model(n_encoder_layers=2, dropout=0.0).train(training)
    torch._dynamo.reset()
    found = torch.compile(model, fullgraph=True)(*INPUTS)
    torch.testing.assert_close(found, model(*INPUTS), rtol=0, atol=1e-8)


def test_gradients_of_single_sentences_come_from_vmap():
    model = make_model(n_encoder_layers=2)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, src, tgt_in):
        return functional_call(model, parameters, (src[None], tgt_in[None])).sin().sum()

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, *INPUTS)
    for row, (src, tgt_in) in enumerate(zip(*INPUTS, strict=True)):
        expected = grad(loss)(parameters, src, tgt_in)
        rows = {name: each[row] for name, each in found.items()}
        torch.testing.assert_close(rows, expected, rtol=0, atol=1e-8)


def test_shapes_alone_pass_through_the_model():
    model = make_model()
    ids = [each.to("meta") for each in INPUTS]
    assert model.to("meta")(*ids).shape == (4, 3, 7)


def test_an_attention_of_the_readers_own_makes_a_layer():
    from transformer_lib import EncoderLayer, FeedForward

    class Mean(torch.nn.Module):
        def forward(self, query, key, value, mask=None):
            return value.mean(dim=1, keepdim=True).expand_as(query)

    layer = EncoderLayer(Mean(), FeedForward(4, 8), d_model=4)
    assert layer(torch.randn(2, 3, 4), causal_mask(3)).shape == (2, 3, 4)
