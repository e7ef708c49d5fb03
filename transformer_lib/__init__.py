"""The encoder-decoder Transformer, in packages by role.

model         what the book builds: attention, layers, the whole Transformer
data          sentences, tokens, batches, corpora
training      loss, schedule, loop, runs that survive being interrupted
generation    greedy search, beam search, sampling, and their cache
fast          everything that exists for speed; without it all works, slower
evaluation    BLEU, chrF and accuracy with intervals, word alignment
interpret     recording attention, changing it
pretrained    the shipped models: `load("multi30k-de-en").translate([...])`
convert       other people's weights, names and masks
plots charts  still pictures, interactive ones
diagrams      drawings of the model, in one visual language
exercises     graders
experiments   one choice of the paper undone at a time
cli           python -m transformer_lib translate | train | score

The names below are the public interface; each is imported when it is first used.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "model.attention": "MultiHeadAttention scaled_dot_product_attention",
    "model.classifier": "EncoderClassifier Pool",
    "model.config": "TransformerConfig",
    "model.embeddings": "Embeddings PositionalEncoding sinusoid_table",
    "model.layers": (
        "DecoderLayer EncoderLayer FeedForward LayerNorm SublayerConnection layer_norm"
    ),
    "model.masks": "causal_mask padding_mask",
    "model.presets": "PRESETS",
    "model.transformer": "Decoder Encoder Transformer count_parameters",
    "data.batches": "pad_batch",
    "data.examples": "SENTENCE_PAIRS split_words",
    "data.tokenizer": "Tokenizer Vocabulary",
    "training.loss": "label_smoothed_loss",
    "training.schedule": "learning_rate",
    "generation.beam_search": "beam_search",
    "generation.constraints": "GenerationConfig Hypothesis",
    "generation.greedy": "greedy_decode",
    "generation.incremental": "IncrementalDecoder",
    "generation.sampling": "SamplingConfig sample",
    "interpret.recording": "record_attention record_hidden_states",
    "pretrained.translator": "Translator load",
    "pretrained.classifier": "Classifier load_classifier",
}
_HOME = {name: module for module, names in _WHERE.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names beside what is loaded already."""
    return sorted({*globals(), *__all__})
