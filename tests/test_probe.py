"""A model proves that its configuration describes it, before it is written.

That whatever is attached to any module is refused stands in `test_seam.py`.
"""

import dataclasses
from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from reference import EXACT
from small_models import SRC, draw_parameters, make_model
from torch import nn
from torch.nn.utils import prune

import transformer_lib as tl
from transformer_lib import cli
from transformer_lib.fast import fast_training
from transformer_lib.model import (
    LanguageModel,
    ModernConfig,
    RMSNorm,
    build_model,
    replace_attention,
    replace_feed_forward,
    replace_norms,
)
from transformer_lib.model.attention import eager_attention
from transformer_lib.pretrained.translator import TOKENIZER
from transformer_lib.probe import is_close, require_described

SENTENCES = ["die Katze schläft", "der alte Hund sieht sie"]
FIRST = "encoder.layers.0"
TGT = torch.randint(3, 7, (4, 5), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def shipped() -> tl.Translator:
    return tl.load("grammar")


@pytest.fixture
def translator(shipped) -> tl.Translator:
    return dataclasses.replace(shipped, model=deepcopy(shipped.model))


def logits(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return deepcopy(model).eval()(SRC, TGT)


# What gives other numbers


class Half(tl.FeedForward):
    def forward(self, x):
        return super().forward(x) / 2


def change(name: str, value: object) -> Callable[[nn.Module], None]:
    parent, _, child = name.rpartition(".")
    return lambda model: setattr(model.get_submodule(parent), child, value)


def subclass(model: nn.Module) -> None:
    model.encoder.layers[0].feed_forward.__class__ = Half


def hook(model: nn.Module) -> None:
    model.decoder.register_forward_hook(lambda *args: args[-1] * 1.001)


def two_heads(model: nn.Module) -> None:
    attention = model.encoder.layers[0].self_attn
    attention.n_heads //= 2
    attention.d_head *= 2


REFUSED = [
    (
        f"^{FIRST}.feed_forward.activation computes something else",
        change(f"{FIRST}.feed_forward.activation", nn.GELU()),
    ),
    (
        f"^{FIRST}.self_attn_connection.norm computes something else",
        change(f"{FIRST}.self_attn_connection.norm.eps", 1.2e-5),
    ),
    (
        f"^{FIRST}.self_attn_connection computes something else",
        change(f"{FIRST}.self_attn_connection.norm_first", False),
    ),
    (
        f"^{FIRST}.self_attn computes something else",
        change(f"{FIRST}.self_attn.kernel", lambda q, k, v, *_: v),
    ),
    (f"^{FIRST}.self_attn computes something else", two_heads),
    (f"^{FIRST}.feed_forward computes something else", subclass),
    ("^decoder computes something else", hook),
    (
        "^the model as a whole computes something else",
        lambda model: model.register_forward_hook(lambda *args: args[-1] + 1),
    ),
    (
        f"lacks {FIRST}.feed_forward.expand.weight, other than",
        lambda model: prune.random_unstructured(
            model.encoder.layers[0].feed_forward.expand, "weight", amount=0.5
        ),
    ),
    (
        "has src_embeddings.tokens.weight, other than",
        lambda model: change("lm_head.weight", nn.Parameter(torch.ones(1)))(model),
    ),
    ("lacks encoder.layers.1", lambda model: model.encoder.layers.__delitem__(1)),
    (
        f"lacks {FIRST}.self_attn_connection.norm.bias",
        change(f"{FIRST}.self_attn_connection.norm", RMSNorm(64)),
    ),
    (
        f"p of {FIRST}.feed_forward.dropout is 0.3, but .* says 0",
        change(f"{FIRST}.feed_forward.dropout.p", 0.3),
    ),
    (
        f"dropout of {FIRST}.self_attn is 0.3, but .* says 0",
        change(f"{FIRST}.self_attn.dropout", 0.3),
    ),
    (
        "^encoder draws random numbers in evaluation mode, too",
        lambda model: model.encoder.register_forward_hook(
            lambda *args: args[-1] + torch.rand(1)
        ),
    ),
    ("holds NaN or infinity", lambda model: model.lm_head.weight.data.fill_(torch.nan)),
    (
        "does not fit into half precision",
        lambda model: model.encoder.layers[0].self_attn.v_proj.weight.data.fill_(1e6),
    ),
    (
        "half precision would move the model's logits",
        lambda model: model.lm_head.weight.data.mul_(1e-8),
    ),
]


@pytest.mark.parametrize(("reason", "change"), REFUSED)
def test_what_a_file_could_not_say_is_refused(translator, tmp_path, reason, change):
    change(translator.model)
    with pytest.raises(ValueError, match=reason):
        translator.save(tmp_path / "model")
    assert not (tmp_path / "model").exists(), "nothing was written"


# What gives the same numbers


def compiled(model: nn.Module) -> nn.Module:
    model.encoder = torch.compile(model.encoder)
    return model


def recorded(model: nn.Module) -> nn.Module:
    for module in model.modules():
        module.register_forward_hook(lambda *_: None)
    return model


def eager(model: nn.Module) -> nn.Module:
    for layer in model.encoder.layers:
        layer.self_attn.kernel = eager_attention
    return model


def extra(model: nn.Module) -> nn.Module:
    model.encoder.layers[0].unused = nn.ReLU()
    return model.train()


@pytest.mark.parametrize("change", [torch.compile, compiled, recorded, eager, extra])
def test_what_computes_the_same_is_saved_under_the_plain_names(
    translator, shipped, tmp_path, change
):
    changed = dataclasses.replace(translator, model=change(translator.model))
    changed.save(tmp_path)
    loaded = tl.load(tmp_path)
    assert loaded.translate(SENTENCES) == shipped.translate(SENTENCES)
    assert (tmp_path / TOKENIZER).is_file()


def test_a_model_is_saved_while_it_trains_and_is_watched(translator, tmp_path):
    model = translator.model.train()
    torch.manual_seed(3)
    with (
        fast_training(model),
        tl.record_attention(model) as maps,
        tl.record_hidden_states(model) as states,
    ):
        translator.save(tmp_path)
        number = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), number), "chance is as it was found"
    assert maps == states == {}, "nothing was recorded"
    assert all(part.training for part in model.modules())


# A model describes itself


MODERN = {
    "norms": replace_norms,
    "gate": lambda model: replace_feed_forward(model, 7, "gelu", bias=True),
    "everything": lambda model: [
        replace_norms(model),
        replace_feed_forward(model, 7),
        replace_attention(model, 1, 1e4, window=2, qk_norm=True),
    ],
    "rotary, with biases": lambda model: replace_attention(
        model, None, rotary=1e4, bias=True
    ),
    "rotary, taken back": lambda model: [
        replace_attention(model, None, rotary=1e4),
        replace_attention(model, 1),
    ],
}


@pytest.mark.parametrize("change", MODERN.values(), ids=MODERN)
def test_a_model_of_other_parts_describes_itself(change):
    model = make_model(dropout=0.2, attention_dropout=0.1, n_heads=3)
    plain = logits(model)
    change(model)
    draw_parameters(model)
    twin = require_described(model, lambda: build_model(model.config))
    torch.testing.assert_close(logits(twin), logits(model), **EXACT)
    assert not is_close(logits(model), plain)
    with pytest.raises(ValueError, match=r"make the model with build_model\(config\)"):
        tl.Transformer(model.config)


def test_a_modern_translator_is_saved_and_loaded(translator, tmp_path, capsys):
    model = translator.model
    replace_norms(model)
    replace_feed_forward(model, 30)
    replace_attention(model, None, rotary=1e4, bias=True)
    translator.save(tmp_path)
    loaded = tl.load(tmp_path)
    cli.main(["translate", "--beams", "1", "--model", str(tmp_path), SENTENCES[0]])
    written = capsys.readouterr()
    assert written.out.strip() == loaded.translate(SENTENCES[:1])[0]
    assert "without an engine: the engine doesn't know" in written.err
    assert isinstance(loaded.model.config, ModernConfig)
    assert loaded.model.config == model.config
    found, expected = (
        x.double().eval()(SRC, TGT) for x in (loaded.model, model.half())
    )
    torch.testing.assert_close(found, expected, **EXACT)


def test_a_window_longer_than_the_probe_is_read():
    model = make_model()
    replace_attention(model, window=90)
    other = dataclasses.replace(model.config, window=91)
    with pytest.raises(ValueError, match="window of encoder.layers.0.self_attn is 90"):
        require_described(model, lambda: build_model(other))


def test_a_language_model_of_other_parts_describes_itself():
    config = tl.TransformerConfig(
        src_vocab_size=9, tgt_vocab_size=9, d_model=8, n_heads=2, d_ff=8,
        n_decoder_layers=1, tie_embeddings="none",
    )  # fmt: skip
    model = LanguageModel(config)
    replace_attention(model, 1, rotary=1e4)
    draw_parameters(model)
    with tl.record_attention(model) as maps, tl.record_hidden_states(model) as states:
        model(torch.tensor([[3, 4, 5]]))
    assert maps["layers.0.self_attn"].shape == (1, 2, 3, 3)
    assert [*states] == ["layers.0"]
    require_described(model, lambda: build_model(model.config, LanguageModel))
    model.layers[0].self_attn.rotary = 1e3
    with pytest.raises(ValueError, match=r"^layers.0.self_attn computes something"):
        require_described(model, lambda: build_model(model.config, LanguageModel))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rotary": 1e4}, "rotary 10000.0 has no effect without n_kv_heads"),
        ({"d_head": 6}, "d_head 6 has no effect without n_kv_heads"),
        ({"stretch": (8, 13, 1, 4)}, "stretch .+ has no effect without rotary"),
        ({"window": 3}, "window 3 has no effect"),
        ({"qk_norm": True}, "qk_norm True has no effect"),
        ({"gate_bias": True}, "gate_bias True has no effect without gated"),
        ({"n_kv_heads": 0}, "n_kv_heads 0 does not divide n_heads 8"),
        ({"n_kv_heads": 3}, "n_kv_heads 3 does not divide n_heads 8"),
    ],
)
def test_a_choice_of_no_effect_is_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        ModernConfig(src_vocab_size=9, tgt_vocab_size=9, **choices)
