"""Graders of the chapter on the full Transformer."""

from dataclasses import replace

import torch
from torch import nn

from transformer_book.exercises.grading import grader, is_missing, run_module
from transformer_lib.model.config import PRESETS
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer, count_parameters

BUDGET = 10_000_000  # parameters
VOCABULARY = 8_000


@grader(
    cases=lambda: [(torch.randn(3, 5, 4), torch.randn(7, 4))],
    right="Dot products with every row, then the softmax.",
)
def check_prediction(features, table):
    """Probabilities of the token after the last position.

    features (batch, length, d_model), table (vocab_size, d_model) -> (batch,
    vocab_size).
    """
    return (features[:, -1] @ table.T).softmax(dim=-1)


check_prediction.mistake(
    "these are logits; the softmax turns them into probabilities.",
    lambda features, table: features[:, -1] @ table.T,
)
check_prediction.mistake(
    "every position is predicted; only the last one is asked for here.",
    lambda features, table: (features @ table.T).softmax(dim=-1),
)
check_prediction.mistake(
    "take the last position of every sentence: features[:, -1].",
    lambda features, table: (features[-1] @ table.T).softmax(dim=-1),
)


def _config(vocab_size, d_model, d_ff, n_layers):
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), vocab_size)
    sizes |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), n_layers)
    sizes |= {"d_model": d_model, "d_ff": d_ff, "n_heads": 2}
    return replace(PRESETS["paper-base"], **sizes)


def _size(config):
    with torch.device("meta"):
        return count_parameters(Transformer(config))


@grader(
    cases=lambda: [(11, 6, 10, 1), (23, 12, 40, 3)],
    right="Your formula agrees with the model exactly.",
)
def check_parameter_count(vocab_size, d_model, d_ff, n_layers):
    """The parameters of a model like PRESETS["paper-base"].

    It has one tied matrix, no bias in the query, key, and value projections, no
    positions to learn. vocab_size, d_model, d_ff, n_layers on each side -> an integer.
    """
    attention = 4 * d_model**2 + d_model
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + network + 2 * norm
    decoder_layer = 2 * attention + network + 3 * norm
    return vocab_size * d_model + n_layers * (encoder_layer + decoder_layer)


check_parameter_count.mistake(
    "the tied matrix counts once.",
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) + 2 * v * d,
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - v * d,
)
check_parameter_count.mistake(
    "the decoder has another attention block, cross-attention.",
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * (4 * d**2 + d),
)
check_parameter_count.mistake(
    "there are five norms, each with two vectors, a gain and a bias.",
    # No norm is counted, or no bias of theirs, or one norm less.
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * 5 * 2 * d,
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * 5 * d,
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * 2 * d,
)
check_parameter_count.mistake(
    "biases: attention has one, of its output projection; the feed-forward network "
    "has two.",
    # The two networks have none, the three attention blocks have none, or four each.
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * 2 * (f + d),
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) - n * 3 * d,
    lambda v, d, f, n: check_parameter_count.solve(v, d, f, n) + n * 3 * 3 * d,
)


def _draw_batch():
    """Without padding in the target, where nobody reads what it predicts."""
    src = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 4, 11, 5], [1, 9, 6, 10]])
    return [(Transformer(_config(13, 12, 20, 2)).eval(), src, tgt_in)]


@grader(
    cases=_draw_batch,
    right="The logits are the model's: every mask is where it belongs.",
)
def check_forward(model, src, tgt_in):
    """Put a model together from its parts.

    A model, src (batch, src_len), tgt_in (batch, tgt_len) -> logits (batch, tgt_len,
    tgt_vocab_size).
    """
    src_mask, tgt_mask = padding_mask(src, 0), causal_mask(tgt_in.size(1))
    memory = model.encoder(model.src_embeddings(src), src_mask)
    x = model.decoder(model.tgt_embeddings(tgt_in), memory, src_mask, tgt_mask)
    return model.lm_head(x)


def _with_masks(model, src, tgt_in, encoder_mask, cross_mask, tgt_mask):
    memory = model.encoder(model.src_embeddings(src), encoder_mask)
    x = model.decoder(model.tgt_embeddings(tgt_in), memory, cross_mask, tgt_mask)
    return model.lm_head(x)


def _without_causal_mask(model, src, tgt_in):
    src_mask = padding_mask(src, 0)
    return _with_masks(model, src, tgt_in, src_mask, src_mask, None)


def _without_encoder_mask(model, src, tgt_in):
    return _with_masks(
        model, src, tgt_in, None, padding_mask(src, 0), causal_mask(tgt_in.size(1))
    )


def _without_cross_mask(model, src, tgt_in):
    return _with_masks(
        model, src, tgt_in, padding_mask(src, 0), None, causal_mask(tgt_in.size(1))
    )


def _without_padding_mask(model, src, tgt_in):
    return _with_masks(model, src, tgt_in, None, None, causal_mask(tgt_in.size(1)))


check_forward.mistake(
    "return logits: no softmax follows lm_head.",
    lambda model, src, tgt_in: check_forward.solve(model, src, tgt_in).softmax(dim=-1),
)
check_forward.mistake(
    "the decoder sees the future: its self-attention needs the causal mask.",
    _without_causal_mask,
)
check_forward.mistake(
    "padding is seen: the encoder and cross-attention need the source's mask.",
    _without_encoder_mask,
    _without_cross_mask,
    _without_padding_mask,
)


def _draw_language_model():
    model = Transformer(_config(13, 12, 20, 2)).eval().requires_grad_(False)
    return [(model.src_embeddings, model.encoder, torch.tensor([[1, 5, 7], [1, 8, 6]]))]


def _run_language_model(answer, embeddings, encoder, ids):
    """The logits with new parameters set to 0, and whether there are any."""
    if is_missing(model := answer(embeddings, encoder)):
        return None
    new = {*model.parameters()} - {*embeddings.parameters(), *encoder.parameters()}
    for parameter in new:
        nn.init.zeros_(parameter)
    logits = run_module(lambda: model, (), (ids,))
    return None if is_missing(logits) else (logits, bool(new))


@grader(
    cases=_draw_language_model,
    right="A language model: each position predicts the next token from the tokens "
    "so far.",
    run=_run_language_model,
)
class check_language_model(nn.Module):
    """A class: (embeddings, encoder) makes a language model with a tied output layer.

    model(ids) returns logits of the next token, (batch, length, vocab_size).
    """

    def __init__(self, embeddings, encoder):
        super().__init__()
        self.embeddings, self.encoder = embeddings, encoder
        vocab_size, d_model = embeddings.tokens.weight.shape
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)
        self.lm_head.weight = embeddings.tokens.weight

    def forward(self, ids):
        """(batch, length) -> (batch, length, vocab_size)."""
        x = self.encoder(self.embeddings(ids), causal_mask(ids.size(1)))
        return self.lm_head(x)


class _WithoutMask(check_language_model.solve):
    def forward(self, ids):
        return self.lm_head(self.encoder(self.embeddings(ids)))


class _WithoutPositions(check_language_model.solve):
    def forward(self, ids):
        x = 12**0.5 * self.embeddings.tokens(ids)
        return self.lm_head(self.encoder(x, causal_mask(ids.size(1))))


class _WithBias(check_language_model.solve):
    def __init__(self, embeddings, encoder):
        super().__init__(embeddings, encoder)
        self.lm_head.bias = nn.Parameter(torch.ones(13))


class _WithCopiedMatrix(check_language_model.solve):
    def __init__(self, embeddings, encoder):
        super().__init__(embeddings, encoder)
        self.lm_head.weight = nn.Parameter(embeddings.tokens.weight.clone())


check_language_model.mistake(
    "positions see the tokens to be predicted: give the stack a causal mask.",
    _WithoutMask,
)
check_language_model.mistake(
    "the positions are missing: call embeddings(ids) itself.", _WithoutPositions
)
check_language_model.mistake(
    "a tied lm_head without a bias has no parameters of its own. Assign the matrix "
    "itself: self.lm_head.weight = embeddings.tokens.weight.",
    _WithBias,
    _WithCopiedMatrix,
)


_DESIGN = replace(_config(VOCABULARY, 256, 1024, 4), n_heads=8)


def _praise_design(configs):
    n_parameters = _size(configs[0])
    share = VOCABULARY * configs[0].d_model / n_parameters
    return f"{n_parameters:,} parameters, {share:.0%} of them in the shared matrix."


# A TransformerConfig with at most BUDGET parameters.
check_design = grader(
    cases=lambda: [()],
    right=_praise_design,
    run=lambda config: config,
    any_answer=True,
)(_DESIGN)

check_design.mistake(
    f"both vocabularies must have {VOCABULARY:,} tokens.",
    replace(_DESIGN, tgt_vocab_size=100, tie_embeddings="decoder"),
    sign=lambda config: {config.src_vocab_size, config.tgt_vocab_size} != {VOCABULARY},
)
check_design.mistake(
    "each side needs at least 2 layers.",
    replace(_DESIGN, n_encoder_layers=1),
    sign=lambda config: min(config.n_encoder_layers, config.n_decoder_layers) < 2,
)
check_design.mistake(
    "{:,} parameters: that's over the budget. Are the embeddings tied?",
    replace(_DESIGN, tie_embeddings="none"),
    sign=lambda config: _size(config) > BUDGET and _size(config),
)
check_design.mistake(
    "{:,} parameters: more than a tenth of the budget is left.",
    replace(_DESIGN, n_encoder_layers=2, n_decoder_layers=2),
    sign=lambda config: _size(config) < 0.9 * BUDGET and _size(config),
)
