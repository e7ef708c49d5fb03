"""The engine against the model's own modules, and the models that it leaves to them."""

import logging
import subprocess
import sys
from collections.abc import Callable
from types import MethodType

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT
from small_models import SRC, VOCAB, make_config, make_model
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_fast import linear as linear_module
from transformer_fast.engine import Engine, make_engine
from transformer_fast.linear import Int8Linear, PreparedLinear, pairs_saturate
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import (
    Decoding,
    IncrementalDecoder,
)
from transformer_lib.model.attention import (
    MultiHeadAttention,
    eager_attention,
    fused_attention,
)
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.layers import FeedForward, LayerNorm, SublayerConnection
from transformer_lib.model.transformer import Decoder, DecoderLayer, Transformer

VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "pre-norm, no final norm": {"norm_first": True, "final_norm": False},
    "post-norm, final norm": {"final_norm": True, "norm_eps": 0.1},
    "no bias": {"attention_bias": False},
    "bias of the head": {"head_bias": True, "scale_embeddings": False},
    "learned": {"learned_positions": True, "max_len": 12},
    "norm of embeddings": {"embedding_norm_eps": 1e-5},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish", "n_encoder_layers": 2},
    "tied": {"tie_embeddings": "all"},
}
MODELS = pytest.mark.parametrize("choices", VARIANTS.values(), ids=VARIANTS)
MANY = torch.cat([SRC] * 8 + [SRC[:1]])  # 33 sentences


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def draw_targets(n_rows: int, length: int = 9) -> Tensor:
    torch.manual_seed(1)
    return torch.randint(1, VOCAB, (n_rows, length))


def engine_of(model: Transformer, src: Tensor = SRC, n_beams: int = 1) -> Engine:
    engine = make_engine(model)
    engine.prefill(src, n_beams)
    return engine


def plain_of(model: Transformer, src: Tensor, n_beams: int) -> IncrementalDecoder:
    decoder = IncrementalDecoder(model)
    decoder.prefill(src, n_beams)
    return decoder


def full_pass(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    """Logits of all positions; every token of a target counts, padding too."""
    mask = model.encode(src, (src != 0)[:, None, None])
    causal = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).tril()
    features = model.decode(tgt, mask, (src != 0)[:, None, None], causal)
    return model.lm_head(features)


# The same numbers


@MODELS
@pytest.mark.parametrize("src", [SRC[:1], SRC[:3], MANY], ids=["1", "3", "33"])
def test_every_step_is_that_of_the_full_pass(choices, src) -> None:
    model, tgt = make_model(**choices), draw_targets(len(src))
    expected, engine = full_pass(model, src, tgt), engine_of(model, src)
    for i, ids in enumerate(tgt.split(1, dim=1)):
        torch.testing.assert_close(engine.step(ids), expected[:, i], **EXACT)
        assert engine.length == i + 1


@MODELS
@pytest.mark.parametrize("src", [SRC, MANY], ids=["4", "33"])
def test_beams_go_on_as_in_the_models_own_modules(choices, src) -> None:
    model, n_beams = make_model(**choices), 3
    decoders = engine_of(model, src, n_beams), plain_of(model, src, n_beams)
    generator = torch.Generator().manual_seed(0)
    n_left = len(src)
    for n_new in (1, 3, 1, 1, 2, 1, 1):
        ids = torch.randint(1, VOCAB, (n_left * n_beams, n_new), generator=generator)
        found, expected = (decoder.step(ids) for decoder in decoders)
        torch.testing.assert_close(found, expected, **EXACT)
        parents = torch.randint(n_beams, (n_left, n_beams), generator=generator)
        left = torch.randperm(n_left, generator=generator)[: max(n_left - 1, 1)]
        n_left = len(left)
        for decoder in decoders:
            decoder.reorder(parents)
            decoder.select(left)


@pytest.mark.parametrize("capacity", [1, 2, 5, 9, 32])
def test_room_is_doubled_and_nothing_is_lost(capacity) -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    expected, engine = full_pass(model, SRC, tgt), Engine(model, capacity)
    engine.prefill(SRC)
    rooms = set()
    for i, ids in enumerate(tgt.split(1, dim=1)):
        torch.testing.assert_close(engine.step(ids), expected[:, i], **EXACT)
        rooms.add(engine.target.room.size(4))
    doublings = {1: {1, 2, 4, 8, 16}, 2: {2, 4, 8, 16}, 5: {5, 10}, 9: {9}, 32: {32}}
    assert rooms == doublings[capacity]


@pytest.mark.parametrize("kernel", [fused_attention, eager_attention])
def test_a_sentence_of_padding_gets_zeros_from_attention(kernel) -> None:
    model, src = make_model(), torch.cat([SRC, SRC * 0, MANY])
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.kernel = kernel
    for few in (src[2:6], src):
        decoders = engine_of(model, few), plain_of(model, few, 1)
        for ids in draw_targets(len(few), 3).split(1, dim=1):
            found, expected = (decoder.step(ids) for decoder in decoders)
            torch.testing.assert_close(found, expected, **EXACT)


def search(
    model: Transformer, decoder: Decoding | None, n_beams: int
) -> list[list[int]]:
    config = make_config(9, prefixes=[[4, 5]])
    if n_beams == 1:
        return [found.ids for found in greedy_decode(model, SRC, config, decoder)]
    targets = beam_search(model, SRC, config, n_beams, decoder=decoder)
    return [found.ids for each in targets for found in each]


@pytest.mark.parametrize("n_beams", [1, 3])
@pytest.mark.parametrize("seed", [8, 9, 12, 14])
def test_searches_find_the_same_token_by_token(seed, n_beams) -> None:
    model = make_model(seed)
    found = search(model, make_engine(model), n_beams)
    assert found == search(model, IncrementalDecoder(model), n_beams)
    assert len({tuple(ids) for ids in found}) > 1


def test_weights_that_change_between_two_searches_are_seen() -> None:
    model = make_model(9)
    before = search(model, None, 1)
    model.decoder.layers[0].cross_attn.out_proj.weight.mul_(-2)
    after = search(model, None, 1)
    assert before != after == search(model, IncrementalDecoder(model), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
@pytest.mark.parametrize("n_sentences", [1, 4, 33])
def test_numbers_of_fewer_bits_agree_as_far_as_they_reach(
    dtype, activation, n_sentences
) -> None:
    # wide enough for all ways to multiply
    model = make_model(d_model=96, d_ff=512, activation=activation).to(dtype)
    src, tgt = MANY[:n_sentences], draw_targets(n_sentences, 5)
    for parameter in model.parameters():
        parameter.mul_(0.3)
    expected, engine = full_pass(model.double(), src, tgt), engine_of(model.to(dtype))
    engine.prefill(src)
    for i, ids in enumerate(tgt.split(1, dim=1)):
        logits = engine.step(ids)
        assert logits.dtype == torch.float32
        bound = 1e-4 if dtype == torch.float32 else 0.1
        torch.testing.assert_close(
            logits.double(), expected[:, i], rtol=0, atol=bound * expected.abs().max()
        )


@pytest.mark.parametrize("weights", [None, "int8"])
def test_another_default_device_does_not_matter(weights) -> None:
    model, tgt = make_model().float(), draw_targets(len(SRC), 4)
    logits = []
    for device in ("cpu", "meta"):
        with torch.device(device):
            engine = make_engine(model, weights)
            engine.prefill(SRC)
            logits.append(engine.step(tgt[:, :1]) + engine.step(tgt[:, 1:]))
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


def test_only_positions_that_differ_are_copied() -> None:
    model, src, n_beams = make_model(), SRC[:2], 3
    engine = engine_of(model, src, n_beams)
    tgt = draw_targets(6)
    for ids in tgt[:, :4].split(1, dim=1):
        engine.step(ids)
    a_token = 2 * 2 * 6  # keys and values, layers, d_model
    stay = [0, 1, 2]
    assert reorder(engine, [stay, stay]) == []
    assert reorder(engine, [stay, [0, 0, 0]]) == [4 * a_token] * 2
    engine.step(tgt[:, 4:5])
    assert reorder(engine, [[2, 1, 0], [1, 1, 2]]) == [5 * a_token] * 2 + [a_token]
    found = engine.step(tgt[:, 5:6])
    one, two = tgt[:3, :5][[2, 1, 0]], tgt[3:, :5][[1, 1, 2]]
    two[:, :4] = tgt[3, :4]
    whole = torch.cat([torch.cat([one, two]), tgt[:, 5:6]], dim=1)
    expected = full_pass(model, src.repeat_interleave(3, 0), whole)[:, -1]
    torch.testing.assert_close(found, expected, **EXACT)


# Errors


# Models that are left to their own modules


def attention_of(model: Transformer) -> MultiHeadAttention:
    return model.decoder.layers[1].self_attn


class Subclass(FeedForward):
    """Does the same, but who knows?"""


def replace_class(model: Transformer) -> None:
    model.encoder.layers[0].feed_forward.__class__ = Subclass


def override_method(model: Transformer) -> None:
    attention = attention_of(model)
    attention.forward = MethodType(MultiHeadAttention.forward, attention)


def swap_activation(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward.activation = nn.Tanh()


def move_to(dtype: torch.dtype) -> Callable[[Transformer], None]:
    return lambda model: model.encoder.to(dtype)


def wrap(model: Transformer) -> None:
    model.lm_head = nn.Sequential(model.lm_head)


def another_size(model: Transformer) -> None:
    model.decoder.layers[0].cross_attn.d_inputs = (6, 8, 8)


def other_heads(model: Transformer) -> None:
    layer = DecoderLayer(
        MultiHeadAttention(6, 2), MultiHeadAttention(6, 3), FeedForward(6, 10)
    )
    model.decoder = Decoder([layer.double().eval()])


def set_child(name: str, value: object) -> Callable[[Transformer], None]:
    def change(model: Transformer) -> None:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, value)

    return change


SELF_ATTN = "decoder.layers.1.self_attn"
STRANGERS: dict[str, tuple[Callable[[Transformer], object], str]] = {
    "hook": (lambda m: m.lm_head.register_forward_hook(print), "lm_head has a hook"),
    "pre-hook": (
        lambda m: attention_of(m).register_forward_pre_hook(print),
        f"{SELF_ATTN} has a hook",
    ),
    "hook of the model": (
        lambda m: m.register_forward_hook(print),
        "the model has a hook",
    ),
    "parametrization": (
        lambda m: parametrizations.weight_norm(attention_of(m).q_proj),
        f"{SELF_ATTN} has a ParametrizedLinear as its q_proj",
    ),
    "subclass": (replace_class, "has a Subclass as its feed_forward"),
    "wrapper": (wrap, "has a Sequential as its lm_head"),
    "method": (override_method, f"{SELF_ATTN} has its own forward"),
    "kernel": (
        set_child(
            f"{SELF_ATTN}.kernel", lambda *arguments: eager_attention(*arguments)
        ),
        f"{SELF_ATTN} has a kernel of its own",
    ),
    "activation": (swap_activation, "has a Tanh as its activation"),
    "approximate activation": (
        set_child(
            "decoder.layers.0.feed_forward.activation", nn.GELU(approximate="tanh")
        ),
        "activation is an approximation",
    ),
    "child": (
        lambda m: m.decoder.layers[0].add_module("adapter", nn.ReLU()),
        "decoder.layers.0 has a ReLU as its adapter",
    ),
    "missing child": (
        set_child("decoder.layers.0.cross_attn_connection", None),
        "decoder.layers.0 has no cross_attn_connection",
    ),
    "parameter": (
        lambda m: m.lm_head.register_parameter("more", nn.Parameter(torch.ones(1))),
        "lm_head.more is a Parameter",
    ),
    "buffer": (
        lambda m: m.lm_head.register_buffer("more", torch.ones(1)),
        "lm_head has a buffer",
    ),
    "several types": (move_to(torch.float32), "parameters of several types"),
    "half precision": (lambda m: m.half(), "is torch.float16 on cpu"),
    "another device": (lambda m: m.to("meta"), "on meta"),
    "sizes": (another_size, "sizes of decoder.layers.0.cross_attn do not fit"),
    "heads": (other_heads, "the attentions differ in their heads"),
    "norms": (
        set_child("decoder.layers.0.self_attn_connection.norm_first", True),
        "pre-norm and post-norm",
    ),
    "dropout": (lambda m: m.train(), "drops out"),
    "dropout of one module": (
        lambda m: m.tgt_embeddings.dropout.train(),
        "tgt_embeddings.dropout drops out",
    ),
    "max_norm": (
        set_child("tgt_embeddings.tokens.max_norm", 1.0),
        "tgt_embeddings.tokens changes its weights",
    ),
    "compiled": (lambda m: m.lm_head.compile(), "lm_head has its own"),
}


@pytest.mark.parametrize(("change", "reason"), STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_left_to_its_own_modules(change, reason, caplog) -> None:
    model = make_model()
    with caplog.at_level(logging.DEBUG, logger="transformer_fast"):
        assert make_engine(model) is not None
        assert not caplog.records
        change(model)
        assert make_engine(model) is None
    assert reason in caplog.text


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (LayerNorm, "forward"),
        (MultiHeadAttention, "split_heads"),
        (MultiHeadAttention, "join_heads"),
        (Transformer, "encode"),
        (Transformer, "decode"),
        (SublayerConnection, "forward"),
        (Embeddings, "__call__"),
        (LayerNorm, "__getattribute__"),
        (nn.Linear, "forward"),
        (nn.Module, "__call__"),
        (F, "layer_norm"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_class_that_was_changed_is_a_stranger(
    owner, name, monkeypatch, caplog
) -> None:
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *a, **k: original(*a, **k))
    with caplog.at_level(logging.DEBUG, logger="transformer_fast"):
        assert make_engine(make_model()) is None
    assert f"{owner.__name__} was changed" in caplog.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_surroundings_that_change_operations_are_strange(caplog) -> None:
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
"""


def test_a_compiler_in_the_same_process_does_not_matter() -> None:
    subprocess.run([sys.executable, "-c", COMPILED], check=True)


def test_other_models_are_strangers() -> None:
    class Reader(Transformer):
        pass

    assert make_engine(nn.Linear(2, 2)) is None
    assert make_engine(Reader(make_model().config)) is None
    assert make_engine(make_model(n_decoder_layers=0)) is None
    assert make_engine(make_model(n_encoder_layers=0)) is None


# Prepared matrices


@pytest.mark.parametrize("n_rows", [1, 3, 40])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("little", [0, 2**18])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "swish"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_prepared_matrices_multiply_as_pytorch_does(
    n_rows, bias, little, activation, dtype, monkeypatch
) -> None:
    monkeypatch.setattr(linear_module, "_LITTLE", little)
    torch.manual_seed(0)
    linear, x = (
        nn.Linear(5, 8, bias=bias, dtype=dtype),
        torch.randn(n_rows, 5).to(dtype),
    )
    prepared, addend = (
        PreparedLinear(linear.weight, linear.bias),
        torch.randn(n_rows, 8),
    )
    after = {None: lambda y: y, "relu": F.relu, "gelu": F.gelu, "swish": F.silu}
    expected = after[activation](linear(x))
    found = prepared.multiply(n_rows, activation)(x)
    close = EXACT if dtype == torch.float64 else {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(found, expected, **close)
    found = prepared.multiply_add(n_rows)(x, addend.to(dtype))
    torch.testing.assert_close(found, linear(x) + addend, **close, check_dtype=False)


# Weights of 8 bits


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "swish"])
def test_whole_numbers_of_8_bits_are_near(bias, activation) -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 8, bias=bias), torch.randn(5, 64)
    linear.weight.mul_(torch.logspace(-3, 3, 8)[:, None])  # a scale for each row
    linear.weight[2] = 0.0
    prepared = Int8Linear(linear.weight, linear.bias)
    after = {None: lambda y: y, "relu": F.relu, "gelu": F.gelu, "swish": F.silu}
    expected = linear(x)
    share = 0.04 if pairs_saturate() else 0.02  # x has 7 bits or 8
    bound = share * expected.abs().amax(0) + 1e-6
    found = prepared.multiply(5, activation)(x)
    assert ((found - after[activation](expected)).abs() <= 1.2 * bound).all()
    added = prepared.multiply_add(5)(x, expected) - expected
    assert 0 < (added - expected).abs().max() < 2 * bound.max()


@pytest.mark.parametrize("activation", [None, "relu"])
def test_no_sum_of_8_bit_products_overflows(activation) -> None:
    linear, x = nn.Linear(64, 1), torch.ones(1, 64)
    linear.weight.fill_(1.0)
    x[0, 0] = -0.01  # the other numbers become the largest that x can have
    found = Int8Linear(linear.weight, linear.bias).multiply(1, activation)(x)
    assert found == pytest.approx(linear(x), rel=0.02)


def test_an_engine_in_8_bits_is_near_the_model() -> None:
    model = make_model(d_model=96, d_ff=128, activation="swish").float()
    for parameter in model.parameters():
        parameter.mul_(0.3)
    expected = full_pass(model, SRC, SRC)[:, -1]
    engine = make_engine(model, weights="int8")
    engine.prefill(SRC)
    error = (engine.step(SRC) - expected).abs().max()
    assert 0 < error < 0.05 * expected.abs().max()
