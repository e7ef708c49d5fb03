"""The engine: what it knows, that it is frozen, what it copies, how it multiplies.

That its logits are those of the full pass stands in `test_incremental.py`; that what is
attached to a model is refused, in `test_seam.py`.
"""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from types import MethodType

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT
from small_models import SRC, make_config, make_model
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import transformer_lib as tl
from transformer_lib.fast import Engine, make_engine
from transformer_lib.fast import linear as linear_module
from transformer_lib.fast.linear import PreparedLinear
from transformer_lib.model import replace_attention


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def test_an_engine_is_frozen_when_it_is_made():
    model, config = make_model(9), make_config(9)
    before, engine = tl.greedy_decode(model, SRC, config), make_engine(model)
    for parameter in model.parameters():
        parameter.mul_(-2)
    after = tl.greedy_decode(model, SRC, config)
    frozen = tl.greedy_decode(model, SRC, config, engine)
    assert [h.ids for h in after] != [h.ids for h in before] == [h.ids for h in frozen]


def test_a_translator_is_made_fast_once_and_translates_the_same(monkeypatch):
    plain = tl.load("grammar")
    fast, sentences = plain.fast(), ["die Katze schläft", "der alte Hund sieht sie"]
    for n_beams in (1, 4):
        expected = plain.translate(sentences, n_beams)
        assert fast.translate(sentences, n_beams) == expected
    asked = []
    step = fast.decoder.step
    monkeypatch.setattr(fast.decoder, "step", lambda x: asked.append(x) or step(x))
    fast.translate(sentences)
    assert asked


def test_another_default_device_does_not_matter():
    model, logits = make_model(), []
    for device in ("cpu", "meta"):
        with torch.device(device):
            engine = make_engine(model)
            engine.prefill(SRC)
            logits.append(engine.step(SRC[:, :1]) + engine.step(SRC[:, 1:]))
    assert torch.equal(*logits)


def test_an_engine_belongs_to_a_model_and_to_a_thread():
    fast, other = tl.load("grammar").fast(), tl.load("grammar").model
    with pytest.raises(ValueError, match="the decoder is one of another model"):
        replace(fast, model=other)
    for copying in (deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copy the model, and make another"):
            copying(fast)
    fast.decoder.prefill(SRC)
    with ThreadPoolExecutor(1) as another:
        another.submit(fast.decoder.prefill, SRC).result()
    for call in (fast.decoder.step, fast.decoder.reorder, fast.decoder.select):
        with pytest.raises(RuntimeError, match="serves one thread at a time"):
            call(SRC[:, :1])
    assert fast.translate(["die Katze schläft"])


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


# Models that it doesn't know


def override_method(model: tl.Transformer) -> None:
    attention = model.get_submodule("decoder.layers.1.self_attn")
    attention.forward = MethodType(lambda self, x, *_, **__: x, attention)


def other_heads(model: tl.Transformer) -> None:
    layer = tl.DecoderLayer(
        tl.MultiHeadAttention(6, 2), tl.MultiHeadAttention(6, 3), tl.FeedForward(6, 10)
    )
    model.decoder = tl.Decoder([layer.double().eval()])


# Hooks, wrappers, subclasses and the like on every module: `test_seam.py`.
FIRST, LAYER = "encoder.layers.0", "decoder.layers.0"
ACTIVATION = f"{LAYER}.feed_forward.activation"
STRANGERS: list[tuple[str, Callable[[tl.Transformer], object] | tuple[str, object]]] = [
    # A refusal; what is done to a model, or the value that a part of it gets.
    ("computes other logits", override_method),
    ("computes other logits", (f"{LAYER}.self_attn_connection.norm_first", True)),
    ("computes other logits", (ACTIVATION, nn.GELU("tanh"))),
    ("computes other logits", other_heads),
    ("computes other memory", (f"{FIRST}.self_attn.kernel", lambda q, *_: q)),
    (f"know {ACTIVATION}, a Tanh", (ACTIVATION, nn.Tanh())),
    (
        f"know {FIRST}.self_attn, a GroupedQueryAttention",
        lambda model: replace_attention(model, window=99),
    ),
    ("misses a part of the model", (f"{LAYER}.cross_attn_connection", None)),
    ("misses a part of the model", ("encoder.layers", nn.ModuleList())),
    (
        f"{FIRST}.self_attn.q_proj.weight is torch.float32, but lm_head is not",
        lambda model: model.encoder.float(),
    ),
    ("is torch.float16 on cpu", lambda model: model.half()),
    ("on meta", lambda model: model.to("meta")),
    ("tokens changes its weights", ("tgt_embeddings.tokens.max_norm", 1.0)),
]


@pytest.mark.parametrize(("reason", "change"), STRANGERS)
def test_a_stranger_is_refused_by_name(reason, change):
    model = make_model(activation="gelu")
    make_engine(model)
    if callable(change):
        change(model)
    else:
        (parent, _, child), value = change[0].rpartition("."), change[1]
        setattr(model.get_submodule(parent), child, value)
    with pytest.raises(ValueError, match=reason):
        make_engine(model)
    with pytest.raises(ValueError, match="decodes a Transformer, not a Linear"):
        make_engine(nn.Linear(2, 2))


def test_making_an_engine_leaves_model_and_chance_as_they_were():
    model = make_model(dropout=0.5).train()
    model.encoder.eval()
    modes = [part.training for part in model.modules()]
    torch.manual_seed(3)
    with tl.record_attention(model) as maps, tl.record_hidden_states(model) as states:
        make_engine(model)
    found = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), found)
    assert [part.training for part in model.modules()] == modes
    assert maps == states == {}


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
