"""Inputs that used to give wrong numbers without a word: each is refused, and named.

What PyTorch refuses by itself has no place here.

To add a row: `row("part: what is wrong", "match", lambda: call())`. The first argument
names the row, the match is a regular expression found in the message, and the function
does it. A fourth argument is the type of the error where it is no ValueError. Build
what the call needs inside the function, small, and assert nothing: the row fails if
nothing is raised.
"""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import pytest
import torch
from small_models import CONFIG, make_model
from test_interop import make_theirs

import transformer_lib as tl
from transformer_book import head_types
from transformer_book.other_code.dialects import convert_mask
from transformer_lib import evaluation, plots
from transformer_lib.convert import convert_weights, from_marian, from_torch
from transformer_lib.convert.to_hugging_face import to_hugging_face
from transformer_lib.model.embeddings import sinusoids
from transformer_lib.training import label_loss, train_step

ROWS = []


def row(name, match, do, error=ValueError):
    ROWS.append(pytest.param(do, match, error, id=name))


# --- attention and masks --------------------------------------------------------------


def attend(mask=None, query=(2, 3, 4), key=(2, 3, 4), value=(2, 3, 4)):
    inputs = (torch.randn(shape) for shape in (query, key, value))
    return tl.MultiHeadAttention(4, 2)(*inputs, mask)


def decode(n_sources, n_targets):
    ids = torch.ones(3, 2, dtype=torch.long)
    return make_model()(ids[:n_sources], ids[:n_targets])


BOOL, TWO = {"dtype": torch.bool}, [(2, 3, 4)] * 2
for name, mask in {
    "of numbers, added to the scores by the fused kernel": torch.ones(3, 3),
    "of half precision": torch.ones(3, 3, dtype=torch.float16),
    "of bytes": torch.ones(3, 3, dtype=torch.uint8),
    "(batch, q_len, k_len), the batch taken for heads": torch.ones(2, 3, 3, **BOOL),
    "(k_len,), which may as well be (q_len,)": torch.ones(3, **BOOL),
    "of five axes": torch.ones(1, 2, 1, 3, 3, **BOOL),
}.items():
    row(f"attention: a mask {name}", "mask must be boolean, .* not torch",
        partial(attend, mask))  # fmt: skip
for name, shapes in {
    "no batch, so that heads attend to features": [(3, 4)] * 3,
    "one sentence of keys for a batch of queries": [(2, 3, 4), (1, 3, 4), (1, 3, 4)],
    "one query for a batch of keys": [(1, 3, 4), (2, 3, 4), (2, 3, 4)],
    "keys without values, which the kernel does not miss": [*TWO, (2, 2, 4)],
    "one sentence of values for all keys": [*TWO, (1, 3, 4)],
}.items():
    row(f"attention: {name}", "of one batch size", partial(attend, None, *shapes))
row("model: one source for three targets", r"one batch size, .* not \(3, 2",
    lambda: decode(1, 3))  # fmt: skip
row("model: three sources for one target", r"one batch size, .* not \(1, 2",
    lambda: decode(3, 1))  # fmt: skip
row("attention: heads that do not divide the width", "n_heads 3 .* d_model 4",
    lambda: tl.MultiHeadAttention(4, 3))  # fmt: skip


# --- positions ------------------------------------------------------------------------


def embed(positions, learned=False):
    embeddings = tl.Embeddings(9, tl.PositionalEncoding(4, 6, learned))
    return embeddings(torch.ones(2, 3, dtype=torch.long), positions)


row("sinusoids: a sine without its cosine", "d_model 5 is odd",
    lambda: tl.sinusoid_table(4, 5))  # fmt: skip
row("sinusoids: of width 1, repeated over all features", "d_model 1 is odd",
    lambda: sinusoids(torch.arange(3), 1))  # fmt: skip
row("embeddings: one position for all ids", "1 positions for 3 ids",
    lambda: embed(torch.tensor([2])))  # fmt: skip
row("learned positions: -1 is no last one", "out of range",
    lambda: embed(torch.tensor([0, 1, -1]), learned=True), IndexError)  # fmt: skip
row("learned positions: True is no choice of rows", "scalar type",
    lambda: embed(torch.tensor([True, False, True]), True), RuntimeError)  # fmt: skip
row("learned positions: more than there are", "5 .* requested, but only 4",
    lambda: tl.PositionalEncoding(4, 6, True)(torch.arange(5)))  # fmt: skip


# --- configuration --------------------------------------------------------------------


for match, changes in {
    "n_heads 3 does not divide d_model 4": {"d_model": 4},
    "pad_id 7 is outside the smaller vocabulary of 7": {"pad_id": 7},
    "pad_id -1 is outside the smaller vocabulary of 7": {"pad_id": -1},
    "activation must be one of .*, not 'tanh'": {"activation": "tanh"},
    "tie_embeddings must be one of .*, not 'some'": {"tie_embeddings": "some"},
    "both sides, but they have 9 and 7": {"src_vocab_size": 9, "tie_embeddings": "all"},
    "a stack cannot have -1 layers": {"n_encoder_layers": -1},
    "a stack cannot have -2 layers": {"n_decoder_layers": -2},
}.items():
    row(f"config: {match}", match, partial(replace, CONFIG, **changes))


# --- pooling --------------------------------------------------------------------------


def pool(real, pooling="mean"):
    return tl.Pool(pooling, 4)(torch.randn(2, 3, 4), real)


row("pooling: an unknown one, taken for the first token", "not 'sum'",
    lambda: tl.Pool("sum", 4))  # fmt: skip
row("pooling: ids in place of the mask", "must be boolean, .*int64",
    lambda: pool(torch.tensor([[5, 9, 0], [5, 0, 0]]), "first"))  # fmt: skip
row("pooling: one mask value for every position", r"not .*\(2, 1\)",
    lambda: pool(torch.ones(2, 1, **BOOL)))  # fmt: skip
row("pooling: one sentence's mask for a batch", r"not .*\(1, 3\)",
    lambda: pool(torch.ones(1, 3, **BOOL)))  # fmt: skip


# --- training -------------------------------------------------------------------------


def one_step(max_norm):
    model, batch = torch.nn.Linear(2, 1), SimpleNamespace(n_targets=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train_step(model, optimizer, lambda model, _: model.bias.sum(), [batch], max_norm)


row(
    "loss: targets shorter than the logits, of which a part would be read",
    r"logits \(2, 4, 5\) do not fit tgt_out \(2, 3\)",
    lambda: tl.label_smoothed_loss(
        torch.zeros(2, 4, 5), torch.ones(2, 3, dtype=torch.long), 0, 0.0
    ),
)
row(
    "loss: the label -100, which PyTorch passes over",
    "label -100 is outside the 2 classes",
    lambda: label_loss(torch.zeros(2, 2), torch.tensor([1, -100])),
)
for wrong in (0.0, -1.0):  # they leave nothing good of the gradient
    row(
        f"step: a norm of {wrong}", "max_norm must be above 0", partial(one_step, wrong)
    )


# --- other people's models ------------------------------------------------------------


def load_marian(weights, **options):
    theirs = make_theirs("Marian")
    return from_marian(theirs.state_dict() | weights, theirs.config.to_dict() | options)


def load_pytorch(*activations):
    inner = torch.nn.Transformer(6, 2, 1, 1, 8, batch_first=True)
    layers = [inner.encoder.layers[0], inner.decoder.layers[0]]
    for layer, activation in zip(layers, activations, strict=True):
        layer.activation = activation
    tokens = torch.nn.Embedding(9, 6)
    return from_torch(inner, tokens, tokens, torch.nn.Linear(6, 9), 0)


def export_to(**choices):
    model = make_model(**{"tie_embeddings": "all"} | choices)
    return to_hugging_face(model, bos_id=1, eos_id=2)


TABLE = "model.encoder.embed_positions.weight"
for match, weights, options in (
    (r"adapter\.weight .* have no name", {"model.adapter.weight": torch.ones(6)}, {}),
    ("does not hold the sinusoids", {TABLE: torch.randn(11, 6)}, {}),
    ("normalize_before=True has no place", {}, {"normalize_before": True}),
    ("add_final_layer_norm=True has", {}, {"add_final_layer_norm": True}),
    ("our model has one n_heads", {}, {"decoder_attention_heads": 2}),
):
    row(f"from Marian: {match}", match, partial(load_marian, weights, **options))

relu, gelu = torch.nn.functional.relu, torch.nn.functional.gelu
for name, match, activations in (
    ("layers that differ", "activation is not the same", (relu, gelu)),
    ("a GELU that is approximated", "none of relu", 2 * [torch.nn.GELU("tanh")]),
):
    row(f"from PyTorch: {name}", match, partial(load_pytorch, *activations))

for match, choices in {
    "final_norm is True": {"final_norm": True},
    "final_norm is False": {"norm_first": True, "final_norm": False},
    "norm_eps is 1e-06": {"norm_eps": 1e-6},
    "learned_positions is True": {"learned_positions": True},
    "embedding_norm_eps is 1e-05": {"embedding_norm_eps": 1e-5},
    "tgt_vocab_size is 8": {"tgt_vocab_size": 8, "tie_embeddings": "none"},
}.items():
    row(f"to Hugging Face: {match}", match, partial(export_to, **choices))

for name, error, mask, kind in (
    ("a bias", ValueError, torch.tensor([0.0, -0.5]), "additive"),
    ("ones that are added", ValueError, torch.tensor([0.0, 1.0]), "additive"),
    ("numbers as Booleans", TypeError, torch.zeros(2), "attend"),
    ("Booleans as numbers", TypeError, torch.tensor([True]), "additive"),
):
    match = "0 or -infinity only" if error is ValueError else "a mask of kind"
    row(f"convert_mask: {name}", match, partial(convert_mask, mask, kind, kind), error)

row(
    "convert_weights: a dialect that has no names, which would leave all out",
    "no names of weights in 'latin'",
    lambda: convert_weights({"a": torch.ones(2)}, "latin", "transformer_lib"),
)


# --- texts, batches and what is drawn -------------------------------------------------


@cache
def grammar():
    return tl.load("grammar")


LETTERS = "the cat sleeps"
for name, do in {
    "translate": lambda: grammar().translate(LETTERS),
    "a tokenizer of words": lambda: tl.Tokenizer.from_words(LETTERS),
    "a vocabulary": lambda: tl.Vocabulary(LETTERS),
    "BLEU": lambda: evaluation.bleu(LETTERS, LETTERS),
    "overlap": lambda: evaluation.word_overlap(LETTERS, [LETTERS]),
}.items():
    row(f"{name}: one text, whose letters would be texts",
        "a list of texts, not one text: 'the cat", do, TypeError)  # fmt: skip
row("batch: an empty sequence, a row of padding", "sequence 1 .* is empty",
    lambda: tl.pad_batch([[1], []], 0))  # fmt: skip
row("relation: of another shape", r"shape \(1, 1, 3\), but weights ask for",
    lambda: head_types.relation_weight(
        torch.ones(1, 2, 3, 3), torch.ones(1, 1, 3, **BOOL), tl.causal_mask(3)
    ))  # fmt: skip
for high in (2.0, torch.nan):
    row(f"plot: a weight of {high}", "weights must ",
        lambda high=high: plots.plot_attention([[high]], ["a"], ["b"]))  # fmt: skip


# --- looking inside -------------------------------------------------------------------

for name, look in {
    "attention": tl.record_attention,
    "hidden states": tl.record_hidden_states,
}.items():
    row(f"recording: {name} of what has none", "Linear holds no",
        lambda look=look: look(torch.nn.Linear(2, 2)).__enter__())  # fmt: skip


# --- decoding -------------------------------------------------------------------------

for where, sentence in {"left": [0, 0, 3, 4], "inside": [3, 0, 4, 2]}.items():
    for search in (tl.greedy_decode, tl.beam_search):
        row(f"{search.__name__}: padding on the {where}", "sentence 1 .* on the right",
            partial(lambda search, row: search(
                make_model(), torch.tensor([[3, 4, 5, 2], row]),
                tl.GenerationConfig(bos_id=1, eos_id=2, max_len=5),
            ), search, sentence))  # fmt: skip


def translate(sentences, **options):
    return tl.load("grammar").translate(sentences, **options)


row("translate: fewer tokens than its source", "extra_len must be at least 0, not -3",
    partial(translate, ["die Katze schläft"], extra_len=-3))  # fmt: skip
row("translate: no text among texts", "sentence 2 is None, not a text",
    partial(translate, ["die Katze schläft", None]), TypeError)  # fmt: skip


@pytest.mark.parametrize(("do", "match", "error"), ROWS)
def test_what_would_be_wrong_in_silence_is_refused(do, match, error):
    torch.manual_seed(0)
    with pytest.raises(error, match=match):
        do()
