"""Any argument replaced by anything: the documented result or the documented error."""

from __future__ import annotations

import math
import random
import re
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile_values import (
    a_generator,
    attempt,
    fast,
    holds_nan,
    things,
    with_one_replaced,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_exercises import GRADERS

import transformer_lib as tl
from transformer_book.exercises.grading import Feedback
from transformer_book.pencil import ids as pencil_ids
from transformer_lib.data import batches, corpora, texts
from transformer_lib.data.corpora import LabelledCorpus, ParallelCorpus, grammar
from transformer_lib.data.steps import Steps
from transformer_lib.evaluation import accuracy, alignment, resampling, scores
from transformer_lib.generation.sampling import keep_top_k, keep_top_p
from transformer_lib.interpret import head_types, interventions, recording
from transformer_lib.model.embeddings import sinusoids
from transformer_lib.model.state_dict import average_tensors, load_weights

pytestmark = pytest.mark.slow  # as a whole

PAIRS = [([5, 6, 2], [7, 2]), ([5, 2], [7, 8, 2])]
LENGTHS = [(3, 2), (2, 3)]
TOKENIZER = tl.Tokenizer.train(["der Hund schläft"], 270)
COUNTS = np.array([resampling.bleu_counts("a cat sat on it", "a cat sat on it")] * 2)
REAL = torch.ones(1, 3, dtype=torch.bool)
MAP = torch.full((1, 2, 3, 3), 1 / 3)
ROW = (("a", "b"),)
NAME = "encoder.layers.0.self_attn"
torch.manual_seed(0)
CONFIG = tl.TransformerConfig(
    src_vocab_size=12, tgt_vocab_size=12, d_model=8, n_heads=2, d_ff=8,
    n_encoder_layers=1, n_decoder_layers=1, max_len=16,
)  # fmt: skip
MODEL = tl.Transformer(CONFIG).eval()
CLASSIFIER = tl.EncoderClassifier(CONFIG, 2).eval()
SRC = torch.tensor([[5, 6, 2]])
TARGETS = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=4)
READ = {"x": torch.ones(1, 3, 8), "memory": torch.ones(1, 3, 8),
        "src_mask": REAL[:, None, None]}  # fmt: skip
PARTS = {"self_attn": tl.MultiHeadAttention(8, 2), "feed_forward": tl.FeedForward(8, 8)}


def edited(edits: Any) -> Any:
    with interventions.edit_weights(MODEL, edits):
        return MODEL(SRC, SRC)


def pooled(hidden: Any, real: Any, **more: Any) -> Any:
    return tl.Pool(**more)(hidden, real)


def encoded(positions: Any, **more: Any) -> Any:
    return tl.PositionalEncoding(**more)(positions)


def embedded(ids: Any, positions: Any, **more: Any) -> Any:
    return tl.Embeddings(positions=tl.PositionalEncoding(16, 4), **more)(ids, positions)


def drawn(logits: Any, **more: Any) -> Any:
    return tl.SamplingConfig(**more).probabilities(logits)


def layer(kind: Any, x: Any, memory: Any, src_mask: Any, **parts: Any) -> Any:
    """Make a layer or a stack of layers and let it read."""
    made = kind(**parts)
    if kind in (tl.EncoderLayer, tl.Encoder):
        return made(x, src_mask)
    return made(x, memory, src_mask)


def decoded(
    src: Any, n_beams: Any, ids: Any, parents: Any, sentences: Any, length: Any,
    **more: Any,
) -> Any:  # fmt: skip
    decoder = tl.IncrementalDecoder(MODEL, **more)
    decoder.prefill(src, n_beams)
    logits = decoder.step(ids)
    decoder.reorder(parents)
    decoder.select(sentences)
    decoder.truncate(length)
    return logits


def named(weights: Any) -> Any:
    return load_weights(torch.nn.Linear(2, 2, bias=False), weights, "file")


CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    # data
    "pad_batch": (tl.pad_batch, {"sequences": [[1, 2], [3]], "pad_id": 0}),
    "make_batch": (batches.make_batch, {"pairs": PAIRS, "bos_id": 1, "pad_id": 0}),
    "fill_batches": (batches.fill_batches,
                     {"order": [0, 1], "lengths": LENGTHS, "max_tokens": 9}),
    "batch_plan": (batches.batch_plan,
                   {"lengths": LENGTHS, "max_tokens": 9, "seed": 1, "epoch": 0}),
    "token_batches": (lambda **more: list(batches.token_batches(**more)),
                      {"pairs": PAIRS, "max_tokens": 9, "bos_id": 1, "pad_id": 0}),
    "padding_share": (batches.padding_share, {"plan": [[0, 1]], "lengths": LENGTHS}),
    "limit_lengths": (batches.limit_lengths,
                      {"pairs": PAIRS, "max_len": 9, "too_long": "refuse"}),
    "encode_texts": (lambda **more: texts.encode_texts(TOKENIZER, **more),
                     {"texts": ["der Hund"], "max_len": 9}),
    "make_labelled_batch": (texts.make_labelled_batch,
                            {"rows": [([1, 2], 0)], "pad_id": 0}),
    "TextSteps": (lambda **more: next(texts.TextSteps(**more).starting_at(1)),
                  {"rows": [([1, 2], 0)], "batch_size": 2, "seed": 0, "pad_id": 0}),
    "Steps": (lambda rank, n_processes, **more: next(
                  Steps(**more).starting_at(1, rank, n_processes)),
              {"pairs": PAIRS, "max_tokens": 9, "seed": 0, "bos_id": 1, "pad_id": 0,
               "n_batches": 2, "rank": 0, "n_processes": 1}),
    "Tokenizer.train": (tl.Tokenizer.train,
                        {"texts": ["der Hund"], "vocab_size": 270}),
    "Tokenizer.from_words": (tl.Tokenizer.from_words,
                             {"texts": ["der Hund"], "vocab_size": 9,
                              "lowercase": False}),
    "Tokenizer": (tl.Tokenizer, {"engine": TOKENIZER._engine}),
    "Tokenizer.from_json": (tl.Tokenizer.from_json, {"text": TOKENIZER.to_json()}),
    "Tokenizer.encode": (TOKENIZER.encode, {"text": "der", "bos": False, "eos": True}),
    "Tokenizer.decode": (TOKENIZER.decode, {"ids": [1, 2]}),
    "Tokenizer.tokens": (TOKENIZER.tokens, {"ids": [1, 2], "space": "_"}),
    "Vocabulary": (tl.Vocabulary, {"sentences": ["der Hund"]}),
    "split_words": (tl.split_words, {"sentence": "der Hund"}),
    "corpora.load": (corpora.load, {"name": "?"}),
    "corpora.load_labelled": (corpora.load_labelled, {"name": "?"}),
    "ParallelCorpus": (lambda **more: ParallelCorpus("x", "a", "b", **more),
                       {"train": ROW, "valid": ROW, "test": ROW}),
    "LabelledCorpus": (lambda **more: LabelledCorpus("x", **more),
                       {"classes": ("a", "b"), "train": (("a", 0), ("b", 1)),
                        "valid": (("a", 0),), "test": (("a", 0),)}),
    "grammar.generate": (grammar.generate, {"n": 2, "seed": 0}),
    "grammar.translate": (grammar.translate, {"sentence": "I sleep"}),
    # model
    "causal_mask": (tl.causal_mask, {"length": 3}),
    "padding_mask": (tl.padding_mask, {"ids": SRC, "pad_id": 0}),
    "sinusoids": (sinusoids, {"positions": torch.arange(3), "d_model": 4}),
    "sinusoid_table": (tl.sinusoid_table, {"n_positions": 3, "d_model": 4}),
    "PositionalEncoding": (encoded, {"positions": torch.arange(3), "max_len": 5,
                                     "d_model": 4, "learned": True}),
    "Embeddings": (embedded, {"ids": SRC, "positions": torch.arange(3),
                              "vocab_size": 9, "scale": True, "dropout": 0.0}),
    "layer_norm": (tl.layer_norm, {"x": torch.ones(2, 3), "gain": torch.ones(3),
                                   "bias": torch.ones(3), "eps": 1e-5}),
    "LayerNorm": (tl.LayerNorm, {"d_model": 4, "eps": 1e-5}),
    "SublayerConnection": (tl.SublayerConnection,
                           {"d_model": 4, "dropout": 0.1, "norm_first": False,
                            "eps": 1e-5}),
    "FeedForward": (tl.FeedForward, {"d_model": 4, "d_ff": 4, "activation": "relu",
                                     "dropout": 0.0}),
    "MultiHeadAttention": (tl.MultiHeadAttention,
                           {"d_model": 4, "n_heads": 2, "d_inputs": (4, 4, 4),
                            "bias": True, "dropout": 0.0}),
    "EncoderLayer": (partial(layer, tl.EncoderLayer),
                     {**READ, **PARTS, "dropout": 0.0, "norm_first": True,
                      "eps": 1e-5}),
    "DecoderLayer": (partial(layer, tl.DecoderLayer),
                     {**READ, **PARTS, "cross_attn": tl.MultiHeadAttention(8, 2)}),
    "Encoder": (partial(layer, tl.Encoder),
                {**READ, "layers": [tl.EncoderLayer(**PARTS)], "norm": None}),
    "Decoder": (partial(layer, tl.Decoder),
                {**READ, "layers": MODEL.decoder.layers, "norm": tl.LayerNorm(8)}),
    "Pool": (pooled, {"hidden": torch.ones(1, 3, 4), "real": REAL, "d_model": 4,
                      "pooling": "mean"}),
    "EncoderClassifier": (lambda **more: tl.EncoderClassifier(CONFIG, **more),
                          {"n_classes": 2, "pooling": "max"}),
    "average_tensors": (average_tensors, {"states": [{"a": torch.ones(2)}]}),
    "load_weights": (named, {"weights": {"weight": torch.ones(2, 2)}}),
    # generation
    "SamplingConfig": (drawn, {"logits": torch.ones(1, 4), "temperature": 1.0,
                               "top_k": 2, "top_p": 0.9}),
    "keep_top_k": (keep_top_k, {"logits": torch.ones(1, 4), "k": 2}),
    "keep_top_p": (keep_top_p, {"probabilities": torch.full((1, 4), 0.25), "p": 0.5}),
    "GenerationConfig": (tl.GenerationConfig,
                         {"bos_id": 1, "eos_id": 2, "max_len": 4, "min_len": 1,
                          "prefixes": [[5]]}),
    "sample": (partial(tl.sample, MODEL),
               {"src": SRC, "config": TARGETS, "sampling": tl.SamplingConfig(),
                "generator": torch.Generator()}),
    "IncrementalDecoder": (decoded,
                           {"src": SRC, "n_beams": 2, "ids": torch.tensor([[1], [1]]),
                            "parents": torch.tensor([[1, 0]]), "length": 0,
                            "sentences": torch.tensor([0]), "capacity": 4}),
    # evaluation
    "Accuracy": (lambda **more: str(accuracy.Accuracy(**more)),
                 {"n_right": 1, "n_texts": 2}),
    "wilson_interval": (accuracy.wilson_interval, {"n_right": 1, "n": 2, "z": 1.9}),
    "accuracy": (lambda **more: accuracy.accuracy(CLASSIFIER, **more).nats,
                 {"rows": [([1, 2], 0)], "batch_size": 2}),
    "alignment_error_rate": (alignment.alignment_error_rate,
                             {"found": [{(0, 0)}], "sure": [{(0, 0)}],
                              "possible": [{(0, 0)}]}),
    "links_from_weights": (alignment.links_from_weights, {"weights": MAP[0, 0]}),
    "diagonal_links": (alignment.diagonal_links, {"src_len": 2, "tgt_len": 2}),
    "random_links": (alignment.random_links,
                     {"src_len": 2, "tgt_len": 2, "rng": random.Random(0)}),
    "ngrams": (resampling.ngrams, {"words": ["a", "b"], "n": 1}),
    "bleu_counts": (resampling.bleu_counts, {"hypothesis": "a", "reference": "a"}),
    "bleu_from_counts": (resampling.bleu_from_counts, {"counts": COUNTS}),
    "bootstrap": (resampling.bootstrap, {"counts": COUNTS, "n_draws": 3, "seed": 1}),
    "paired_bootstrap": (resampling.paired_bootstrap,
                         {"first": COUNTS, "second": COUNTS}),
    "bleu": (scores.bleu, {"hypotheses": ["a b"], "references": ["a b"],
                           "lowercase": False, "n_bootstrap": 3}),
    "group_by": (scores.group_by, {"values": [1.0, 2.0], "bounds": [1.5]}),
    "word_overlap": (scores.word_overlap, {"sentences": ["a"], "training": ["a b"]}),
    # interpret
    "positional_relations": (head_types.positional_relations,
                             {"q_real": REAL, "k_real": REAL}),
    "relation_from_pairs": (head_types.relation_from_pairs,
                            {"pairs": [[(0, 1)]], "q_len": 2, "k_len": 2}),
    "relation_weight": (head_types.relation_weight,
                        {"weights": MAP, "relation": REAL[:, None] & REAL[..., None],
                         "allowed": REAL}),
    "head_type": (head_types.head_type, {"scores": {"a": 0.5}, "threshold": 0.3}),
    "count_types": (head_types.count_types,
                    {"table": {"a": {"h": 0.5}}, "threshold": 0.3}),
    "edit_weights": (edited, {"edits": {NAME: interventions.without_head(0)}}),
    "without_head": (lambda head: edited({NAME: interventions.without_head(head)}),
                     {"head": 0}),
    "shuffled_weights": (lambda seed: edited(
                            {NAME: interventions.shuffled_weights(0, seed=seed)}),
                         {"seed": 0}),
    "an edit's result": (lambda back: edited({NAME: lambda weights, allowed: back}),
                         {"back": MAP}),
    "source_attention": (lambda **more: recording.source_attention(MODEL, **more),
                         {"src": SRC, "targets": [[3, 2]], "bos_id": 1, "layer": -1}),
    "record_attention": (lambda model: recording.record_attention(model).__enter__(),
                         {"model": MODEL}),
    "record_hidden_states": (
        lambda model: recording.record_hidden_states(model).__enter__(),
        {"model": MODEL}),
    # pencil
    "pencil.ids": (pencil_ids, {"text": "im schnee"}),
}  # fmt: skip
# Beside ValueError and TypeError, by their documentation:
ALSO = {"relation_from_pairs": IndexError}
# NaN means that no query has such a key; or it was looked for before, once for both.
PASS_ON = ("relation_weight", "keep_top_k", "keep_top_p")
# A call with good arguments would take too long here, or too much room.
COSTLY = {("grammar.generate", 10**6), ("bleu", 10**6), ("bootstrap", 10**6)}


@settings(fast, max_examples=45)
@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_any_argument_may_be_anything(name, data) -> None:
    function, good = CALLS[name]
    arguments, value = with_one_replaced(data, good)
    if type(value) is int and (name, value) in COSTLY:
        return
    try:
        result = attempt(function, **arguments)
    except ALSO.get(name, ()):
        return
    except (RuntimeError, NotImplementedError) as error:
        # Numbers on two devices: PyTorch's own error, which names them.
        assert on_meta(value) and "meta" in str(error)
        return
    if name not in PASS_ON:
        assert not holds_nan(result)


def on_meta(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "meta"


@pytest.mark.parametrize("name", CALLS)
def test_what_is_replaced_was_good(name) -> None:
    function, good = CALLS[name]
    if name in ("corpora.load", "corpora.load_labelled", "make_recipe"):
        with pytest.raises(ValueError, match="must be one|missing|expected"):
            function(**good)
    else:
        function(**good)


def test_no_public_name_is_left_out() -> None:
    records = {"Hypothesis", "PRESETS", "SENTENCE_PAIRS"}
    called = "".join(
        each.read_text() for each in Path(__file__).parent.glob("test_hostile*")
    )
    assert (
        not {name for name in tl.__all__ if not re.search(rf"\b{name}\b", called)}
        - records
    )


# Two translate, which takes seconds.
ASKED = [
    name
    for name in GRADERS
    if name.split(".")[1] not in ("check_aligner", "check_draft")
]


@pytest.mark.parametrize("name", ASKED)
def test_a_grader_answers_to_anything(name) -> None:
    for answer in things():
        found = GRADERS[name](answer() if answer is a_generator else answer)
        assert isinstance(found, Feedback)
        assert found.message


# --- cases that once went wrong ---------------------------------------------------


def test_a_text_is_no_list_of_training_texts() -> None:
    for make in (tl.Tokenizer.from_words, tl.Vocabulary,
                 lambda texts: tl.Tokenizer.train(texts, 270)):  # fmt: skip
        with pytest.raises(TypeError, match="texts must be a list of texts, not"):
            make("Hund")
        make(text for text in ["der Hund"])  # read once, as documented
    with pytest.raises(TypeError, match=r"ids must be .* integers, not \[2\.7\]"):
        TOKENIZER.decode([2.7])


def test_a_generator_of_pairs_is_refused_not_used_up() -> None:
    with pytest.raises(TypeError, match="pairs must be a list .* not <generator"):
        batches.make_batch((pair for pair in PAIRS), bos_id=1, pad_id=0)


def test_rates_and_epsilons_of_layers_are_numbers_in_range() -> None:
    for wrong in math.nan, -0.1, 1.0, 5:
        with pytest.raises(ValueError, match="dropout must be"):
            tl.MultiHeadAttention(4, 2, dropout=wrong)
        with pytest.raises(ValueError, match="dropout must be"):
            tl.FeedForward(4, 4, dropout=wrong)
    with pytest.raises(ValueError, match=r"eps must be from 0\.0 to 1\.0, not nan"):
        tl.LayerNorm(4, math.nan)
    with pytest.raises(TypeError, match="dropout must be a number, not 'x'"):
        tl.TransformerConfig(src_vocab_size=9, tgt_vocab_size=9, dropout="x")


def test_widths_and_positions_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"d_inputs must be 3 widths, not \(4, 4\)"):
        tl.MultiHeadAttention(4, 2, d_inputs=(4, 4))
    with pytest.raises(TypeError, match="d_value must be an integer, not 'a'"):
        tl.MultiHeadAttention(4, 2, d_inputs=(4, 4, "a"))
    with pytest.raises(ValueError, match=r"positions of shape \(2,\) do not bel"):
        embedded(SRC, torch.arange(2), vocab_size=9)


def test_a_table_that_no_computer_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="make 1,000,000,000,000 numbers, but 20,"):
        tl.causal_mask(10**6)
    with pytest.raises(ValueError, match="d_model 1000000000, .* make 1,000,000,000,0"):
        tl.MultiHeadAttention(10**9, 1)
    with pytest.raises(ValueError, match="n must be at most 200,000, not 1000"):
        grammar.generate(10**12, 0)


def test_broken_weights_give_no_score() -> None:
    model, classifier = tl.Transformer(CONFIG), tl.EncoderClassifier(CONFIG, 2)
    for part in (model.lm_head, classifier.head):
        torch.nn.init.constant_(part.weight, math.nan)
    batch = batches.make_batch(PAIRS, bos_id=1, pad_id=0)
    with pytest.raises(ValueError, match="the loss of 5 tokens is nan: weights"):
        scores.nats_per_token(model, [batch])
    with pytest.raises(ValueError, match="the loss of 1 texts is nan: weights"):
        accuracy.accuracy(classifier, [([1, 2], 0)])
    states = [{"a": torch.ones(2)}, {"a": torch.tensor([1.0, math.inf])}]
    with pytest.raises(ValueError, match="model 1: a holds NaN or infinity"):
        average_tensors(states)


def test_nan_has_no_largest_number() -> None:
    nan = torch.tensor([[0.5, math.nan]])
    with pytest.raises(ValueError, match="a weight is no number, so no word has"):
        alignment.links_from_weights(nan)
    with pytest.raises(ValueError, match="a row of logits has no largest number"):
        tl.SamplingConfig().probabilities(nan)
    with pytest.raises(ValueError, match="weight of a must be from .*, not nan"):
        head_types.head_type({"a": math.nan, "b": 0.9}, 0.5)
    with pytest.raises(ValueError, match="values: number 1 is not finite"):
        resampling.interval([1.0, math.nan])
    with pytest.raises(ValueError, match="the edit returned weights that are NaN"):
        edited({NAME: lambda weights, allowed: weights * math.nan})


def test_a_head_or_layer_that_is_not_there_is_named() -> None:
    for make in (interventions.without_head, interventions.equal_weights,
                 interventions.shuffled_weights):  # fmt: skip
        with pytest.raises(ValueError, match="head 2 is none of 2, counted from 0"):
            edited({NAME: make(0, 2)})
        edited({NAME: make(-1)})
    with pytest.raises(ValueError, match="layer 1 is none of 1, counted from 0"):
        recording.source_attention(MODEL, SRC, [[3, 2]], bos_id=1, layer=1)


def test_a_search_needs_numbers() -> None:
    with pytest.raises(ValueError, match="src is on the meta device: it holds no"):
        tl.greedy_decode(MODEL, SRC.to("meta"), tl.GenerationConfig(1, 2, 4))


def test_prefixes_and_labels_are_lists_of_integers() -> None:
    for wrong in "", "ab", {}, [[5], "b"], torch.ones(0):
        with pytest.raises(TypeError, match="prefix(es)? must be a list or tuple, not"):
            tl.GenerationConfig(1, 2, 4, prefixes=wrong)
    with pytest.raises(TypeError, match=r"row 1 must be ids and a label, not \[1, 2"):
        texts.make_labelled_batch([[1, 2, 0]], 0)
    with pytest.raises(TypeError, match=r"label of row 2 must be .*, not \[0\.5\]"):
        texts.make_labelled_batch([([1, 2], 0), ([1, 2], 0.5)], 0)
    with pytest.raises(ValueError, match="pair 2 must have two lengths, at least 0"):
        batches.batch_plan([(3, 2), (2,)], 9)


def test_a_process_that_is_not_there_gets_no_batches() -> None:
    steps = Steps(PAIRS, 9, 2, 0, bos_id=1, pad_id=0)
    for rank, n_processes in ((0, 0), (-1, 1), (2, 2)):
        with pytest.raises(ValueError, match=f"rank {rank} is none of {n_processes}"):
            steps.starting_at(1, rank, n_processes)
    assert len(list(islice(steps.starting_at(1, 1, 2), 2))) == 2
