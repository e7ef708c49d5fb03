"""What the engine knows and what it leaves to a model's own modules; how it multiplies.

That its logits are those of the full pass stands in `test_incremental.py`.
"""

import logging
import subprocess
import sys
from collections.abc import Callable
from types import MethodType

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT
from small_models import SRC, make_config, make_model
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import transformer_lib as tl
from transformer_fast import linear as linear_module
from transformer_fast.engine import Engine, make_engine
from transformer_fast.linear import PreparedLinear


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def test_weights_that_change_between_two_searches_are_seen():
    model, config = make_model(9), make_config(9)
    before = tl.greedy_decode(model, SRC, config)
    model.decoder.layers[0].cross_attn.out_proj.weight.mul_(-2)
    after = tl.greedy_decode(model, SRC, config)
    plain = tl.greedy_decode(model, SRC, config, tl.IncrementalDecoder(model))
    assert [h.ids for h in before] != [h.ids for h in after] == [h.ids for h in plain]


def test_another_default_device_does_not_matter():
    model, logits = make_model(), []
    for device in ("cpu", "meta"):
        with torch.device(device):
            engine = make_engine(model)
            engine.prefill(SRC)
            logits.append(engine.step(SRC[:, :1]) + engine.step(SRC[:, 1:]))
    assert torch.equal(*logits)


# What is copied


class _Copies(TorchDispatchMode):
    """Count the numbers that are copied over something that was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.copy_.default:
            self.sizes.append(args[1].numel())
        return func(*args, **(kwargs or {}))


def reorder(engine: Engine, parents: list[list[int]]) -> list[int]:
    with _Copies() as copies:
        engine.reorder(torch.tensor(parents))
    return copies.sizes


def test_only_positions_that_differ_are_copied():
    engine = make_engine(make_model())
    engine.prefill(SRC[:2], n_beams=3)
    ids = torch.arange(1, 7)[:, None]
    for _ in range(4):
        engine.step(ids)
    a_token = 2 * 2 * 6  # keys and values, layers, d_model
    stay = [0, 1, 2]
    assert reorder(engine, [stay, stay]) == []
    assert reorder(engine, [stay, [0, 0, 0]]) == [4 * a_token] * 2
    engine.step(ids)
    assert reorder(engine, [[2, 1, 0], [1, 1, 2]]) == [5 * a_token] * 2 + [a_token]


# Models that are left to their own modules


def override_method(model: tl.Transformer) -> None:
    attention = model.get_submodule(SELF_ATTN)
    attention.forward = MethodType(tl.MultiHeadAttention.forward, attention)


def other_heads(model: tl.Transformer) -> None:
    layer = tl.DecoderLayer(
        tl.MultiHeadAttention(6, 2), tl.MultiHeadAttention(6, 3), tl.FeedForward(6, 10)
    )
    model.decoder = tl.Decoder([layer.double().eval()])


# Hooks, wrappers, subclasses and the like on every module: `test_seam.py`.
SELF_ATTN = "decoder.layers.1.self_attn"
LAYER = "decoder.layers.0"
STRANGERS: dict[str, Callable[[tl.Transformer], object] | tuple[str, object]] = {
    # Each reason: what is done to a model, or the value that a part of it gets.
    f"{SELF_ATTN} has its own forward": override_method,
    "lm_head has its own": lambda m: m.lm_head.compile(),
    "has a Tanh as its activation": (f"{LAYER}.feed_forward.activation", nn.Tanh()),
    "activation is an approximation": (
        f"{LAYER}.feed_forward.activation",
        nn.GELU("tanh"),
    ),
    f"{LAYER} has a ReLU as its adapter": (f"{LAYER}.adapter", nn.ReLU()),
    f"{LAYER} has no cross_attn_connection": (f"{LAYER}.cross_attn_connection", None),
    "lm_head.more is a Parameter": ("lm_head.more", nn.Parameter(torch.ones(1))),
    "lm_head has a buffer": lambda m: m.lm_head.register_buffer("more", torch.ones(1)),
    "parameters of several types": lambda m: m.encoder.float(),
    "is torch.float16 on cpu": lambda m: m.half(),
    "on meta": lambda m: m.to("meta"),
    f"sizes of {LAYER}.cross_attn do": (f"{LAYER}.cross_attn.d_inputs", (6, 8, 8)),
    "the attentions differ in their heads": other_heads,
    "pre-norm and post-norm": (f"{LAYER}.self_attn_connection.norm_first", True),
    "encoder.layers.0.self_attn_connection.dropout drops out": lambda m: m.train(),
    "tgt_embeddings.dropout drops out": lambda m: m.tgt_embeddings.dropout.train(),
    "tokens changes its weights": ("tgt_embeddings.tokens.max_norm", 1.0),
    "a stack has no layer": ("encoder.layers", nn.ModuleList()),
}


@pytest.mark.parametrize("reason", STRANGERS)
def test_a_stranger_is_left_to_its_own_modules(reason, caplog):
    model = make_model()
    with caplog.at_level(logging.DEBUG, logger="transformer_fast"):
        assert make_engine(model) is not None
        assert not caplog.records
        change = STRANGERS[reason]
        if callable(change):
            change(model)
        else:
            (parent, _, child), value = change[0].rpartition("."), change[1]
            setattr(model.get_submodule(parent), child, value)
        assert make_engine(model) is None
    assert reason in caplog.text


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (tl.LayerNorm, "forward"),
        (tl.MultiHeadAttention, "split_heads"),
        (tl.Embeddings, "__call__"),
        (tl.LayerNorm, "__getattribute__"),
        (nn.Module, "__call__"),
        (F, "layer_norm"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_class_that_was_changed_is_a_stranger(owner, name, monkeypatch, caplog):
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *a, **k: original(*a, **k))
    with caplog.at_level(logging.DEBUG, logger="transformer_fast"):
        assert make_engine(make_model()) is None
    assert f"{owner.__name__} was changed" in caplog.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_surroundings_that_change_operations_are_strange(caplog):
    model, reasons = make_model().float(), []

    def refused(*arguments: object) -> object:
        reasons.append(make_engine(model))
        return arguments and arguments[0]

    caplog.set_level(logging.DEBUG, logger="transformer_fast")
    with torch.autocast("cpu", torch.bfloat16):
        refused()
    with _Copies():
        refused()
    torch.vmap(refused)(torch.ones(2))
    with torch.nn.modules.module.register_module_forward_pre_hook(print):
        refused()
    torch.jit.trace(refused, torch.ones(2), check_trace=False)
    assert reasons == [None] * 5
    for reason in (
        "autocast is enabled",
        "a mode watches the operations",
        "a function transform is active",
        "there is a hook for all modules",
        "the model is being traced",
    ):
        assert reason in caplog.text
    with torch.device("cpu"):
        assert make_engine(model) is not None


COMPILED = """
import torch
from transformer_lib import Transformer, TransformerConfig
from transformer_lib.acceleration import make_engine
sizes = dict(src_vocab_size=9, tgt_vocab_size=9, d_model=8, n_heads=2, d_ff=8)
torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
assert "patched" in torch.nn.Module.__init__.__qualname__
assert make_engine(Transformer(TransformerConfig(**sizes)).eval()) is not None
assert make_engine(torch.nn.Linear(2, 2)) is None
"""


@pytest.mark.slow
def test_a_compiler_in_the_same_process_does_not_matter():
    subprocess.run([sys.executable, "-c", COMPILED], check=True)


# Prepared matrices


@pytest.mark.parametrize("n_rows", [1, 3, 40])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("little", [0, 2**18])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "swish"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_prepared_matrices_multiply_as_pytorch_does(
    n_rows, bias, little, activation, dtype, monkeypatch
):
    monkeypatch.setattr(linear_module, "_LITTLE", little)
    torch.manual_seed(0)
    linear = nn.Linear(5, 8, bias=bias, dtype=dtype)
    prepared = PreparedLinear(linear.weight, linear.bias)
    x, addend = (torch.randn(n_rows, n, dtype=dtype) for n in (5, 8))
    after = {None: lambda y: y, "relu": F.relu, "gelu": F.gelu, "swish": F.silu}
    expected = after[activation](linear(x))
    found = prepared.multiply(n_rows, activation)(x)
    close = EXACT if dtype == torch.float64 else {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(found, expected, **close)
    found = prepared.multiply_add(n_rows)(x, addend)
    torch.testing.assert_close(found, linear(x) + addend, **close)
