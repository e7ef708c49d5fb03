"""What the library offers under `import transformer_lib as tl`, and what it loads."""

import inspect
from dataclasses import fields

import pytest

import transformer_lib as tl

NAMES = {
    "Classifier",
    "Decoder",
    "DecoderLayer",
    "Embeddings",
    "Encoder",
    "EncoderClassifier",
    "EncoderLayer",
    "FeedForward",
    "GenerationConfig",
    "Hypothesis",
    "IncrementalDecoder",
    "LayerNorm",
    "MultiHeadAttention",
    "PRESETS",
    "Pool",
    "PositionalEncoding",
    "SENTENCE_PAIRS",
    "SamplingConfig",
    "SublayerConnection",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "Vocabulary",
    "beam_search",
    "causal_mask",
    "count_parameters",
    "greedy_decode",
    "label_smoothed_loss",
    "learning_rate",
    "load",
    "load_classifier",
    "pad_batch",
    "padding_mask",
    "record_attention",
    "record_hidden_states",
    "sample",
    "scaled_dot_product_attention",
    "sinusoid_table",
    "split_words",
}


def test_the_public_names_are_these() -> None:
    assert set(tl.__all__) == NAMES
    assert set(dir(tl)) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_public_name_is_there_and_says_what_it_is(name) -> None:
    value = getattr(tl, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__module__.startswith("transformer_lib.")
        assert inspect.getdoc(value)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'TargetRules'"):
        tl.TargetRules  # noqa: B018


def test_the_searches_take_what_is_documented() -> None:
    config = [field.name for field in fields(tl.GenerationConfig)]
    assert config == ["bos_id", "eos_id", "max_len", "min_len", "prefixes"]
    assert tl.GenerationConfig(1, 2, 9) == tl.GenerationConfig(1, 2, 9, 1, ())
    for search, first in (
        (tl.greedy_decode, ["model", "src", "config"]),
        (tl.beam_search, ["model", "src", "config", "n_beams"]),
        (tl.sample, ["model", "src", "config"]),
    ):
        assert list(inspect.signature(search).parameters)[: len(first)] == first
