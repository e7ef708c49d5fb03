"""Whatever is attached to a model counts: it is decoded, or saved, as it computes.

Every module of a model is changed in every way from outside: by a hook, a pre-hook, a
wrapper, an adapter, a parametrization, a subclass, an edit of attention's weights.
Reading whole targets and decoding them step by step must then give the same logits; an
engine, and a folder to be written, must be refused.
"""

from collections.abc import Callable

import peft
import pytest
import torch
from reference import EXACT
from small_models import SRC, VOCAB, make_config, make_model
from torch import Tensor, nn
from torch.nn.utils import parametrize

from transformer_lib.fast import make_engine
from transformer_lib.generation import RecomputingDecoder
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import make_decoder
from transformer_lib.interpret.interventions import OpenKernel, without_head
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import LayerNorm
from transformer_lib.model.transformer import Transformer
from transformer_lib.probe import require_described

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


def wrap(model: nn.Module, name: str) -> nn.Module:
    wrapped = Wrapper(model.get_submodule(name))
    if not name:
        return wrapped
    model.set_submodule(name, wrapped)
    return model


def adapt(model: nn.Module, name: str) -> nn.Module:
    config = peft.LoraConfig(r=2, target_modules=f"^{name}$", init_lora_weights=False)
    torch.manual_seed(0)
    return peft.inject_adapter_in_model(config, model).double()


def edit_attention(model: nn.Module, name: str) -> nn.Module:
    model.get_submodule(name).kernel = OpenKernel((without_head(1),))
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


# Each way from outside, and the modules that it can change.
CHANGES: dict[Callable, tuple[type, ...]] = {
    add_hook: (nn.Module,),
    add_pre_hook: (nn.Module,),
    wrap: (nn.Module,),
    subclass: (nn.Module,),
    adapt: (nn.Linear,),
    parametrize_it: (nn.Linear, nn.Embedding, LayerNorm),
    edit_attention: (MultiHeadAttention,),
}


CASES = [
    pytest.param(change, name, id=f"{change.__name__}-{name or 'the model'}")
    for change, kinds in CHANGES.items()
    for name, module in small_model().named_modules()
    if isinstance(module, kinds)
    and type(module) is not nn.ModuleList  # never called
    and not name.startswith("decoder.layers.0.")  # as in the other layer
]


def draw_targets(length: int = 5) -> Tensor:
    torch.manual_seed(1)
    return torch.randint(3, VOCAB, (len(SRC), length))


def step_by_step(decoder, tgt: Tensor) -> Tensor:
    decoder.prefill(SRC)
    return torch.stack([decoder.step(ids) for ids in tgt.split(1, dim=1)], dim=1)


@torch.no_grad()
@pytest.mark.parametrize(("change", "name"), CASES)
def test_what_is_attached_counts_or_is_refused(change, name) -> None:
    tgt, unchanged = draw_targets(), small_model()
    model = change(small_model(), name).eval()
    expected = model(SRC, tgt)
    gap = (expected - unchanged(SRC, tgt)).abs().max()
    assert gap > 1e-4, "the change changes something"
    decoders = [RecomputingDecoder(model)]
    if not name:  # the model as a whole
        with pytest.raises(ValueError, match="a hook, a wrapper or a"):
            greedy_decode(model, SRC, make_config())
    elif (change, name) != (wrap, "decoder"):  # a wrapper without layers
        decoders.append(make_decoder(change(small_model(), name).eval()))
    if change is parametrize_it or (change is not wrap and name.endswith("positions")):
        decoders.append(make_engine(model))  # it reads the weights, asks for positions
    else:
        with pytest.raises(ValueError, match="the engine"):
            make_engine(model)
    for decoder in decoders:
        torch.testing.assert_close(step_by_step(decoder, tgt), expected, **EXACT)
    with pytest.raises(ValueError, match=f"the model (has|lacks)|{name or 'whole'}"):
        require_described(model, lambda: Transformer(model.config))


@torch.no_grad()
def test_what_changes_no_number_is_left_alone() -> None:
    model, seen = small_model(), []
    for module in model.modules():
        if module is not model:
            module.register_forward_hook(lambda *_: seen.append(1))
    engine, tgt = make_engine(model), draw_targets()
    for decoder in (engine, make_decoder(model)):
        found = step_by_step(decoder, tgt)
        torch.testing.assert_close(found, model(SRC, tgt), **EXACT)
    require_described(model, lambda: Transformer(model.config))


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
        found = step_by_step(RecomputingDecoder(model), tgt)
        with pytest.raises(ValueError, match="use decoder=RecomputingDecoder"):
            greedy_decode(model, SRC, make_config())
        with pytest.raises(ValueError, match="the engine computes other memory"):
            make_engine(model)
    finally:
        handle.remove()
    torch.testing.assert_close(found, expected, **EXACT)
    assert not torch.allclose(model(SRC, tgt), expected)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_decoding_under_autocast_is_the_full_pass_under_autocast(dtype) -> None:
    model, tgt = small_model().float(), draw_targets()
    with torch.autocast("cpu", dtype):
        expected = model(SRC, tgt)
        found = step_by_step(make_decoder(model), tgt)
        assert beam_search(model, SRC, make_config(5), 3)
    assert expected.dtype == dtype
    torch.testing.assert_close(found, expected.float(), rtol=0.05, atol=0.05)
