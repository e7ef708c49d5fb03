"""The low-rank adapter of the page on practice is that of the package peft."""

import copy

import peft
import pytest
import torch
from small_models import SRC, make_model
from torch import nn
from torch.testing import assert_close

from transformer_book.other_code.adapters import LowRank

RANK, ALPHA = 3, 12.0
ENDINGS = ("q_proj", "v_proj", "expand")


def adapted(model: nn.Module) -> nn.Module:
    """Ours in each linear map whose name has one of the endings; the rest is frozen."""
    model = copy.deepcopy(model).requires_grad_(False)
    for name, part in list(model.named_modules()):
        if name.endswith(ENDINGS):
            model.set_submodule(name, LowRank(part, RANK, ALPHA).double())
    return model


def pefts(model: nn.Module, ours: nn.Module) -> nn.Module:
    """PEFT's adapter in the same maps, with our numbers in its thin matrices."""
    kinds = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=list(ENDINGS))
    theirs = peft.inject_adapter_in_model(kinds, copy.deepcopy(model)).double()
    for name, part in ours.named_modules():
        if isinstance(part, LowRank):
            twin = theirs.get_submodule(name)
            twin.lora_A["default"].load_state_dict(part.down.state_dict())
            twin.lora_B["default"].load_state_dict(part.up.state_dict())
    return theirs.eval()


def fill(model: nn.Module) -> nn.Module:
    """Numbers in the thin matrices that start at zero, too."""
    torch.manual_seed(1)
    for part in model.modules():
        if isinstance(part, LowRank):
            nn.init.normal_(part.up.weight)
    return model.eval()


@pytest.fixture
def model() -> nn.Module:
    return make_model()


def logits(model: nn.Module) -> torch.Tensor:
    return model(SRC, SRC.flip(1))


def test_a_new_adapter_changes_nothing_and_freezes_the_rest(model):
    new = adapted(model)
    assert torch.equal(logits(new), logits(model))
    learned = {name for name, p in new.named_parameters() if p.requires_grad}
    assert learned and all(".up." in each or ".down." in each for each in learned)
    assert not torch.allclose(logits(fill(new)), logits(model))


def test_the_adapter_is_pefts(model):
    ours = fill(adapted(model))
    theirs = pefts(model, ours)
    assert_close(logits(ours), logits(theirs), rtol=0, atol=1e-12)
    for each in ours, theirs:
        logits(each).square().sum().backward()
    pairs = 0
    for name, part in ours.named_modules():
        if isinstance(part, LowRank):
            twin = theirs.get_submodule(name)
            assert_close(part.down.weight.grad, twin.lora_A["default"].weight.grad)
            assert_close(part.up.weight.grad, twin.lora_B["default"].weight.grad)
            assert part.linear.weight.grad is twin.base_layer.weight.grad is None
            pairs += 1
    sizes = [
        sum(p.numel() for p in each.parameters() if p.requires_grad)
        for each in (ours, theirs)
    ]
    assert pairs > 3 and sizes[0] == sizes[1]


def test_a_merged_adapter_is_one_map_as_pefts_is(model):
    ours = fill(adapted(model))
    theirs = pefts(model, ours)
    apart = logits(ours)
    for name, part in list(ours.named_modules()):
        if isinstance(part, LowRank):
            ours.set_submodule(name, part.merged())
            twin = theirs.get_submodule(name)
            twin.merge()
            assert_close(ours.get_submodule(name).weight, twin.base_layer.weight)
    assert_close(logits(ours), apart, rtol=0, atol=1e-12)
    kinds = [type(part) for part in model.modules()]
    assert [type(part) for part in ours.modules()] == kinds
