"""Greedy search against a loop over single sentences, and how targets end."""

import math

import pytest
import torch
from small_models import BOS, EOS, PAD, SRC, constant_model, make_config, make_model
from torch import Tensor

from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import Hypothesis
from transformer_lib.generation.greedy import Targets, greedy_decode
from transformer_lib.generation.incremental import IncrementalDecoder
from transformer_lib.interpret.recording import record_attention, source_attention
from transformer_lib.model.transformer import Transformer

SEEDS = (8, 9, 12, 14)


def greedy(model: Transformer, max_len: int, src: Tensor = SRC) -> list[Hypothesis]:
    return greedy_decode(model, src, make_config(max_len))


def decode_alone(model: Transformer, src: Tensor, max_len: int) -> list[int]:
    """Greedy search as its definition: one sentence, the model's forward, no masks."""
    src, said = src[src != PAD][None], [BOS]
    while len(said) <= max_len:
        logits = model.eval()(src, torch.tensor([said]))[0, -1]
        logits[PAD] = -math.inf
        said.append(int(logits.argmax()))
        if said[-1] == EOS:
            break
    return said[1:]


def test_a_batch_equals_its_sentences_one_by_one() -> None:
    results = []
    for model in map(make_model, SEEDS):
        for found, src in zip(greedy(model, max_len=9), SRC, strict=True):
            assert found.ids == decode_alone(model, src, max_len=9)
            assert found.finished == (found.ids[-1] == EOS)
            results.append(found)
    assert len({len(found.ids) for found in results}) > 2, "they end at many lengths"
    assert {found.finished for found in results} == {False, True}


@pytest.mark.parametrize(
    ("likely", "said", "finished"),
    [([5, 4], [5, 5, 5], False), ([EOS, 4], [EOS], True), ([PAD, 4], [4] * 3, False)],
    ids=["truncated at max_len", "ended at once", "padding is never said"],
)
def test_a_model_that_always_says_the_same(likely, said, finished) -> None:
    logits = torch.zeros(7).double()
    logits[likely] = torch.tensor([2.0, 1.0]).double()
    for found in greedy(constant_model(logits), max_len=3):
        assert (found.ids, found.finished) == (said, finished)


@pytest.mark.parametrize("layer", [0, 1, -1])
@torch.no_grad()
def test_attention_to_the_source_is_that_of_each_step(layer) -> None:
    model = make_model(9, dropout=0.5)
    targets = [found.ids for found in greedy(model, max_len=9)]
    found = source_attention(model.train(), SRC, targets, BOS, layer)
    model.eval()
    for src, weights, ids in zip(SRC, found, targets, strict=True):
        decoder = IncrementalDecoder(model)
        decoder.prefill(src[None])
        assert weights.shape == (len(ids), len(src))
        torch.testing.assert_close(weights.sum(1), torch.ones(len(ids)).double())
        assert (weights[:, src == PAD] == 0).all()
        for token, expected in zip([BOS, *ids[:-1]], weights, strict=True):
            with record_attention(model) as maps:
                decoder.step(torch.tensor([[token]]))
            step = maps[f"decoder.layers.{layer % 2}.cross_attn"][0, :, 0].mean(0)
            torch.testing.assert_close(step, expected, rtol=0, atol=1e-10)


def test_a_listener_is_told_of_each_step() -> None:
    """Each target's log-probability is the sum over the steps that were told."""
    model, sums, positions = make_model(9), torch.zeros(len(SRC)).double(), []

    def listen(position: int, targets: Targets, log_probs: Tensor) -> None:
        positions.append(position)
        tokens = targets.ids[:, position]
        sums[targets.sentences] += log_probs[range(len(tokens)), tokens]

    found = greedy_decode(model, SRC, make_config(), listener=listen)
    assert positions == [*range(1, 1 + max(len(target.ids) for target in found))]
    expected = torch.tensor([target.log_prob for target in found]).double()
    torch.testing.assert_close(sums, expected)


def test_an_error_of_a_listener_ends_the_search() -> None:
    told = []

    def listen(*step: object) -> None:
        told.append(step)
        if len(told) == 2:
            raise RuntimeError("stop")

    for search in (greedy_decode, beam_search):
        told.clear()
        with pytest.raises(RuntimeError, match="stop"):
            search(make_model(9), SRC, make_config(), listener=listen)
        assert len(told) == 2
