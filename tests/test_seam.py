"""One seam for speed: whatever is attached to a model, it decodes as it computes.

Every module of a model is changed in every way from outside: by a hook, a pre-hook, a
wrapper, a parametrization, a subclass. Reading whole targets, decoding them step by
step, and whatever `make_decoder` chooses must then give the same logits.
"""

import copy
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from reference import EXACT
from small_models import BOS, EOS, SRC, VOCAB, make_config, make_model
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune, weight_norm

from transformer_lib.acceleration import make_engine
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import IncrementalDecoder, make_decoder
from transformer_lib.interpret.interventions import (
    edit_weights,
    equal_weights,
    shuffled_weights,
    without_head,
)
from transformer_lib.interpret.kernels import named_attentions
from transformer_lib.model.attention import eager_attention
from transformer_lib.model.layers import LayerNorm
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import load

FACTOR = 1.25


def small_model() -> Transformer:
    return make_model(norm_first=True, embedding_norm_eps=1e-5, head_bias=True)


def stretch(x):
    """Change a tensor, position by position; no layer norm takes it out again."""
    if not isinstance(x, Tensor) or x.dtype == torch.bool:
        return x
    if x.is_floating_point():
        return FACTOR * x + torch.arange(x.size(-1), dtype=x.dtype).cos()
    # Ids (batch, length) are exchanged: 3 and 6, 4 and 5. Positions stay.
    return torch.where(x > 2, VOCAB + 2 - x, x) if x.dim() == 2 else x


def add_hook(model: nn.Module, name: str) -> nn.Module:
    hooked = model.get_submodule(name)
    hooked.register_forward_hook(lambda _module, _inputs, output: stretch(output))
    return model


def add_pre_hook(model: nn.Module, name: str) -> nn.Module:
    def change(_module: nn.Module, inputs: tuple) -> tuple:
        if name.endswith("positions"):
            return (inputs[0] + 3,)
        return tuple(map(stretch, inputs))

    model.get_submodule(name).register_forward_pre_hook(change)
    return model


class Wrapper(nn.Module):
    """Calls what it wraps, and has none of its attributes but the configuration."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        if hasattr(inner, "config"):
            self.config = inner.config

    def forward(self, *inputs, **options) -> Tensor:
        return stretch(self.inner(*inputs, **options))


class LowRank(nn.Module):
    """A linear layer with an adapter beside it, as LoRA has; it has no bias to show."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        generator = torch.Generator().manual_seed(0)
        options = {"generator": generator, "dtype": base.weight.dtype}
        self.a = nn.Parameter(torch.randn(2, base.in_features, **options))
        self.b = nn.Parameter(torch.randn(base.out_features, 2, **options))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.a.T @ self.b.T


def wrap(model: nn.Module, name: str) -> nn.Module:
    module = model.get_submodule(name)
    wrapped = (LowRank if isinstance(module, nn.Linear) else Wrapper)(module)
    if not name:
        return wrapped
    model.set_submodule(name, wrapped)
    return model


class Stretch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return FACTOR * x


def parametrize_it(model: nn.Module, name: str) -> nn.Module:
    module = model.get_submodule(name)
    weight = "gain" if isinstance(module, LayerNorm) else "weight"
    parametrize.register_parametrization(module, weight, Stretch())
    return model


def subclass(model: nn.Module, name: str) -> nn.Module:
    module = model.get_submodule(name)
    kind = type(module)

    def forward(self, *inputs, **options) -> Tensor:
        return stretch(kind.forward(self, *inputs, **options))

    module.__class__ = type(f"Other{kind.__name__}", (kind,), {"forward": forward})
    return model


CHANGES = (add_hook, add_pre_hook, wrap, parametrize_it, subclass)


def applies(change: Callable, module: nn.Module) -> bool:
    if isinstance(module, nn.ModuleList):  # is never called
        return False
    if change is parametrize_it:
        return isinstance(module, nn.Linear | nn.Embedding | LayerNorm)
    return True


CASES = [
    pytest.param(change, name, id=f"{change.__name__}-{name or 'the model'}")
    for change in CHANGES
    for name, module in small_model().named_modules()
    if applies(change, module)
]


def draw_targets(length: int = 5) -> Tensor:
    torch.manual_seed(1)
    return torch.randint(3, VOCAB, (len(SRC), length))


def step_by_step(decoder, tgt: Tensor) -> Tensor:
    decoder.prefill(SRC)
    return torch.stack([decoder.step(ids) for ids in tgt.split(1, dim=1)], dim=1)


@torch.no_grad()
@pytest.mark.parametrize(("change", "name"), CASES)
def test_what_is_attached_counts_in_every_way_of_decoding(change, name) -> None:
    tgt, unchanged = draw_targets(), small_model()
    model = change(small_model(), name).eval()
    expected = model(SRC, tgt)
    gap = (expected - unchanged(SRC, tgt)).abs().max()
    assert gap > 1e-4, "the change changes something"
    torch.testing.assert_close(
        step_by_step(make_decoder(model), tgt), expected, **EXACT
    )
    assert make_engine(model) is None, "the engine knows no such model"
    if name:  # nothing is attached to the model as a whole
        plain = change(small_model(), name).eval()
        if name != "decoder" or change is not wrap:
            torch.testing.assert_close(
                step_by_step(IncrementalDecoder(plain), tgt), expected, **EXACT
            )


@torch.no_grad()
def test_the_engine_agrees_where_nothing_is_attached() -> None:
    model, tgt = small_model(), draw_targets()
    expected = model(SRC, tgt)
    found = step_by_step(make_decoder(model), tgt)
    torch.testing.assert_close(found, expected, **EXACT)
    plain = step_by_step(IncrementalDecoder(model), tgt)
    torch.testing.assert_close(plain, expected, **EXACT)


EDITS = {
    "without a head": without_head(1),
    "equal weights": equal_weights(0, 2),
    "eager": None,
}


@torch.no_grad()
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", [n for n, _ in named_attentions(small_model())])
def test_interventions_count_in_every_way_of_decoding(edit, name) -> None:
    tgt, model = draw_targets(), small_model()
    before = model(SRC, tgt)
    if edit == "eager":
        model.get_submodule(name).kernel = eager_attention
        found = step_by_step(make_decoder(model), tgt)
        torch.testing.assert_close(found, before, **EXACT)
        return
    with edit_weights(model, {name: EDITS[edit]}):
        expected = model(SRC, tgt)
        assert (expected - before).abs().max() > 1e-4
        for decoder in (make_decoder(model), IncrementalDecoder(model)):
            torch.testing.assert_close(step_by_step(decoder, tgt), expected, **EXACT)


@torch.no_grad()
def test_shuffled_weights_of_the_encoder_count_while_decoding() -> None:
    tgt, model = draw_targets(), small_model()
    before = model(SRC, tgt)
    with edit_weights(model, {"encoder.layers.0.self_attn": shuffled_weights(0)}):
        expected = model(SRC, tgt)
        found = step_by_step(make_decoder(model), tgt)
    assert (expected - before).abs().max() > 1e-4
    torch.testing.assert_close(found, expected, **EXACT)


@torch.no_grad()
def test_a_model_loaded_from_the_meta_device_decodes_as_its_twin() -> None:
    twin, tgt = small_model(), draw_targets()
    with torch.device("meta"):
        model = Transformer(twin.config).eval()
    model = model.to_empty(device="cpu").double()
    model.load_state_dict(twin.state_dict())
    found = step_by_step(make_decoder(model), tgt)
    torch.testing.assert_close(found, twin(SRC, tgt), **EXACT)


@torch.no_grad()
def test_a_hook_on_all_modules_of_a_process_counts() -> None:
    tgt, model = draw_targets(), small_model()
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, _inputs, output: (
            FACTOR * output if isinstance(module, LayerNorm | Transformer) else None
        )
    )
    try:
        expected = model(SRC, tgt)
        found = step_by_step(make_decoder(model), tgt)
    finally:
        handle.remove()
    torch.testing.assert_close(found, expected, **EXACT)
    assert not torch.allclose(model(SRC, tgt), expected)


def test_an_adapter_of_peft_changes_the_translation_as_it_changes_the_logits() -> None:
    peft = pytest.importorskip("peft")
    translator = copy.deepcopy(load("grammar"))
    model = translator.model
    text = ["the old man gives the child a book"]
    src = torch.tensor([translator.tokenizer.encode(text[0])])
    tgt = torch.tensor([[translator.tokenizer.bos_id, 5, 6, 7]])
    with torch.no_grad():
        before, said = model(src, tgt), translator.translate(text, n_beams=2)
    config = peft.LoraConfig(
        r=4, target_modules=r"decoder.*\.(q_proj|v_proj)", init_lora_weights=False
    )
    torch.manual_seed(0)
    peft.inject_adapter_in_model(config, model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.7)
        after = model.eval()(src, tgt)
    assert (after - before).abs().max() > 1
    assert translator.translate(text, n_beams=2) != said
    config = make_config(12)
    [found] = greedy_decode(model, src, config)
    assert found.ids == recompute(model, src, 12)


@torch.no_grad()
def recompute(model: nn.Module, src: Tensor, max_len: int) -> list[int]:
    """Greedy search by its definition: the model as a whole, nothing kept."""
    said = [BOS]
    while len(said) <= max_len and (said[-1] != EOS or len(said) == 1):
        logits = model(src, torch.tensor([said]))[0, -1]
        logits[0] = -torch.inf
        said.append(int(logits.argmax()))
    return said[1:]


@pytest.mark.parametrize("how", ["prune", "weight_norm"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_decoding_uses_the_weights_of_the_last_optimizer_step(how) -> None:
    model, tgt = small_model(), draw_targets()
    projection = model.decoder.layers[0].feed_forward.expand
    if how == "prune":
        prune.l1_unstructured(projection, "weight", amount=0.3)
    else:
        weight_norm(projection)
    greedy_decode(model, SRC, make_config(4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(SRC, tgt).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        found = step_by_step(make_decoder(model), tgt)
        torch.testing.assert_close(found, model(SRC, tgt), **EXACT)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n_beams", [1, 3])
def test_decoding_under_autocast_is_the_full_pass_under_autocast(
    dtype, n_beams
) -> None:
    model, tgt = small_model().float(), draw_targets()
    with torch.autocast("cpu", dtype):
        with torch.no_grad():
            expected = model(SRC, tgt)
            found = step_by_step(make_decoder(model), tgt)
        beam_search(model, SRC, make_config(5), n_beams)
        assert greedy_decode(model, SRC, make_config(5))
    assert expected.dtype == dtype
    torch.testing.assert_close(found, expected.float(), rtol=0.05, atol=0.05)


def test_a_search_beyond_max_len_leaves_the_model_trainable() -> None:
    model = make_model(max_len=3)
    greedy_decode(model, SRC, make_config(9))
    tensors = [*model.parameters(), *model.buffers()]
    assert not any(tensor.is_inference() for tensor in tensors)
    model.train()(SRC, draw_targets(9)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


WITHOUT_FAST = """
import sys
sys.modules["transformer_fast"] = None  # as if it were not installed
import transformer_lib
text = ["Zwei Kinder spielen im Schnee."]
print(transformer_lib.load("grammar").translate(["die Katze schläft"], n_beams=4))
from transformer_lib.cli import train
from transformer_lib.acceleration import make_engine
assert make_engine(transformer_lib.load("grammar").model) is None
"""


def test_without_transformer_fast_everything_works() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FAST], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(
        load("grammar").translate(["die Katze schläft"], 4)
    )
