"""Graders of the chapter on the full Transformer."""

from dataclasses import replace

import torch
from torch import nn

from transformer_book.exercises.grading import Seen, grader, is_missing, run_module
from transformer_lib import PRESETS, Transformer, count_parameters
from transformer_lib.model import causal_mask, padding_mask

BUDGET = 10_000_000  # parameters
VOCABULARY = 8_000


@grader(
    lambda: [(torch.randn(3, 5, 4), torch.randn(7, 4))],
    "Dot products with every row, then the softmax.",
    ("these are logits; the softmax turns them into probabilities.",
     lambda features, table: features[:, -1] @ table.T),
    ("every position is predicted; only the last one is asked for here.",
     lambda features, table: (features @ table.T).softmax(dim=-1)),
    ("take the last position of every sentence: features[:, -1].",
     lambda features, table: (features[-1] @ table.T).softmax(dim=-1)),
)  # fmt: skip
def check_prediction(features, table):
    """Probabilities of the token after the last position.

    features (batch, length, d_model), table (vocab_size, d_model) -> (batch,
    vocab_size).
    """
    return (features[:, -1] @ table.T).softmax(dim=-1)


def _config(vocab_size, d_model, d_ff, n_layers):
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), vocab_size)
    sizes |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), n_layers)
    sizes |= {"d_model": d_model, "d_ff": d_ff, "n_heads": 2}
    return replace(PRESETS["paper-base"], **sizes)


def _size(config):
    with torch.device("meta"):
        return count_parameters(Transformer(config))


@grader(
    lambda: [(11, 6, 10, 1), (23, 12, 40, 3)],
    "Your formula agrees with the model exactly.",
    ("the tied matrix counts once.", {"tables": 3}, {"tables": 0}),
    ("the decoder has another attention block, cross-attention.", {"cross": 1}),
    ("there are five norms, each with two vectors, a gain and a bias.",
     {"norms": 0}, {"norms": 2.5}, {"norms": 4}),
    ("biases: attention has one, of its output projection; the feed-forward network "
     "has two.",
     {"ff_bias": 0}, {"biases": 0}, {"biases": 4}),
)  # fmt: skip
def check_parameter_count(
    vocab_size, d_model, d_ff, n_layers, tables=1, cross=2, norms=5, biases=1, ff_bias=1
):
    """The parameters of a model like PRESETS["paper-base"].

    It has one tied matrix, no bias in the query, key, and value projections, no
    positions to learn. vocab_size, d_model, d_ff, n_layers on each side -> an integer.
    """
    attention = 4 * d_model**2 + biases * d_model
    network = 2 * d_model * d_ff + ff_bias * (d_ff + d_model)
    layers = (1 + cross) * attention + 2 * network + norms * 2 * d_model
    return int(tables * vocab_size * d_model + n_layers * layers)


def _draw_batch():
    """Without padding in the target, where nobody reads what it predicts."""
    src = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 4, 11, 5], [1, 9, 6, 10]])
    return [(Transformer(_config(13, 12, 20, 2)).eval(), src, tgt_in)]


@grader(
    _draw_batch,
    "The logits are the model's: every mask is where it belongs.",
    ("return logits: no softmax follows lm_head.",
     lambda *given: check_forward.solve(*given).softmax(dim=-1)),
    ("the decoder sees the future: its self-attention needs the causal mask.",
     {"causal": False}),
    ("padding is seen: the encoder and cross-attention need the source's mask.",
     {"encoder": False}, {"cross": False}, {"encoder": False, "cross": False}),
)  # fmt: skip
def check_forward(model, src, tgt_in, encoder=True, cross=True, causal=True):
    """Put a model together from its parts.

    A model, src (batch, src_len), tgt_in (batch, tgt_len) -> logits (batch, tgt_len,
    tgt_vocab_size).
    """
    src_mask, tgt_mask = padding_mask(src, 0), causal_mask(tgt_in.size(1))
    memory = model.encode(src, src_mask if encoder else None)
    masks = src_mask if cross else None, tgt_mask if causal else None
    return model.lm_head(model.decoder(model.tgt_embeddings(tgt_in), memory, *masks))


def _draw_language_model():
    model = Transformer(_config(13, 12, 20, 2)).eval().requires_grad_(False)
    return [(model.src_embeddings, model.encoder, torch.tensor([[1, 5, 7], [1, 8, 6]]))]


def _run_language_model(answer, embeddings, encoder, ids):
    """The logits with new parameters set to 0, and whether there are any."""
    if is_missing(model := answer(embeddings, encoder)):
        return None
    given = {*embeddings.parameters(), *encoder.parameters()}
    new = {*model.parameters()} - given
    for parameter in new:
        nn.init.zeros_(parameter)
    logits = run_module(lambda: model, (), (ids,))
    return None if is_missing(logits) else (logits, bool(new))


@grader(
    _draw_language_model,
    "A language model: each position predicts the next token from the tokens so far.",
    ("positions see the tokens to be predicted: give the stack a causal mask.",
     {"mask": lambda length: None}),
    ("the positions are missing: call embeddings(ids) itself.",
     {"embed": lambda embeddings, ids: 12**0.5 * embeddings.tokens(ids)}),
    ("a tied lm_head without a bias has no parameters of its own. Assign the matrix "
     "itself: self.lm_head.weight = embeddings.tokens.weight.",
     {"bias": True}, {"tie": lambda weight: nn.Parameter(weight.clone())}),
    run=_run_language_model,
)  # fmt: skip
class check_language_model(nn.Module):
    """A class: (embeddings, encoder) makes a language model with a tied output layer.

    model(ids) returns logits of the next token, (batch, length, vocab_size).
    """

    mask, bias = staticmethod(causal_mask), False
    tie = staticmethod(lambda weight: weight)
    embed = staticmethod(lambda embeddings, ids: embeddings(ids))

    def __init__(self, embeddings, encoder):
        super().__init__()
        self.embeddings, self.encoder = embeddings, encoder
        vocab_size, d_model = embeddings.tokens.weight.shape
        self.lm_head = nn.Linear(d_model, vocab_size, bias=self.bias)
        self.lm_head.weight = self.tie(embeddings.tokens.weight)

    def forward(self, ids):
        """(batch, length) -> (batch, length, vocab_size)."""
        x = self.embed(self.embeddings, ids)
        return self.lm_head(self.encoder(x, self.mask(ids.size(1))))


_DESIGN = replace(_config(VOCABULARY, 256, 1024, 4), n_heads=8)


# A TransformerConfig with at most BUDGET parameters.
check_design = grader(
    lambda: [()],
    lambda configs: (
        f"{_size(configs[0]):,} parameters, "
        f"{VOCABULARY * configs[0].d_model / _size(configs[0]):.0%} of them in the "
        "shared matrix."
    ),
    (f"both vocabularies must have {VOCABULARY:,} tokens.",
     Seen(lambda it: {it.src_vocab_size, it.tgt_vocab_size} != {VOCABULARY}),
     replace(_DESIGN, tgt_vocab_size=100, tie_embeddings="decoder")),
    ("each side needs at least 2 layers.",
     Seen(lambda it: min(it.n_encoder_layers, it.n_decoder_layers) < 2),
     replace(_DESIGN, n_encoder_layers=1)),
    ("{:,} parameters: that's over the budget. Are the embeddings tied?",
     Seen(lambda it: _size(it) > BUDGET and _size(it)),
     replace(_DESIGN, tie_embeddings="none")),
    ("{:,} parameters: more than a tenth of the budget is left.",
     Seen(lambda it: _size(it) < 0.9 * BUDGET and _size(it)),
     replace(_DESIGN, n_encoder_layers=2, n_decoder_layers=2)),
    run=lambda config: config,
    any_answer=True,
)(_DESIGN)  # fmt: skip
