"""Graders of the chapter that builds the whole Transformer at once."""

import math

import torch

from transformer_book.exercises.grading import grader, run_module
from transformer_lib.model.attention import MultiHeadAttention


@grader(
    cases=lambda: [
        (
            torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
            ["aufgestanden", "bin", "ich"],
            ["got", "up", "I"],
        )
    ],
    right="One source token for each row of the map.",
)
def check_align(weights, source, target):
    """Which source token each target token looked at most.

    weights (tgt_len, src_len), the source tokens, the target tokens -> for each target
    token a pair: the token, and the source token.
    """
    best = weights.argmax(dim=-1).tolist()
    return [(word, source[i]) for word, i in zip(target, best, strict=True)]


check_align.mistake(
    "each pair must begin with the target token.",
    lambda *case: [pair[::-1] for pair in check_align.solve(*case)],
)
check_align.mistake(
    "this is the best row of each column; take the best column of each row.",
    lambda weights, *words: check_align.solve(weights.T, *words),
)


@grader(
    cases=lambda: [(410, 128, 256, 2), (37_000, 512, 2048, 6)],
    right="Every number is counted, and the tied table only once.",
)
def check_count(vocab_size, d_model, d_ff, n_layers):
    """The parameters of a pre-norm Transformer with one tied table.

    vocab_size, d_model, d_ff, n_layers on each side -> their number.
    """
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + network + 2 * norm
    decoder_layer = 2 * attention + network + 3 * norm
    layers = n_layers * (encoder_layer + decoder_layer)
    return vocab_size * d_model + layers + 2 * norm  # the final norms


check_count.mistake(
    "the table is tied: count it once.",
    lambda v, d, f, n: check_count.solve(v, d, f, n) + 2 * v * d,
    lambda v, d, f, n: check_count.solve(v, d, f, n) + v * d,
    lambda v, d, f, n: check_count.solve(v, d, f, n) - v * d,
)
check_count.mistake(
    "the decoder layer has a second attention block, for the memory.",
    lambda v, d, f, n: check_count.solve(v, d, f, n) - n * 4 * (d**2 + d),
)
check_count.mistake(
    "linear layers have biases, too.",
    lambda v, d, f, n: check_count.solve(v, d, f, n) - n * (3 * 4 * d + 2 * (f + d)),
)
check_count.mistake(
    "five norms in an encoder and a decoder layer, each with a gain and a bias.",
    # No norm is counted, or no bias of theirs, or one norm less.
    lambda v, d, f, n: check_count.solve(v, d, f, n) - (n * 5 + 2) * 2 * d,
    lambda v, d, f, n: check_count.solve(v, d, f, n) - (n * 5 + 2) * d,
    lambda v, d, f, n: check_count.solve(v, d, f, n) - n * 2 * d,
)
check_count.mistake(
    "each of the two stacks ends with a norm.",
    lambda v, d, f, n: check_count.solve(v, d, f, n) - 4 * d,
    lambda v, d, f, n: check_count.solve(v, d, f, n) - 2 * d,
)


def _draw_one_head():
    parameters = MultiHeadAttention(6, 1).state_dict()
    weights = {name: 3 * torch.randn_like(x) for name, x in parameters.items()}
    lengths = torch.arange(4) < torch.tensor([[[4]], [[2]]])
    return [((*torch.randn(3, 2, 4, 6), mask), weights) for mask in (lengths, None)]


@grader(
    cases=_draw_one_head,
    right="Compare, scale, mask, softmax, average, project.",
    run=lambda answer, inputs, weights: run_module(answer, (6,), inputs, weights),
)
class check_one_head(MultiHeadAttention):
    """A class: OneHead(d_model) with q_proj, k_proj, v_proj, out_proj.

    Its forward takes (query, key, value, mask=None).
    """

    def __init__(self, d_model):
        super().__init__(d_model, n_heads=1)

    def forward(self, query, key, value, mask=None):
        """(batch, length, d_model) each -> the same shape."""
        weights = self.compare(query, key, mask)
        return self.out_proj(weights @ self.v_proj(value))

    def compare(self, query, key, mask):
        """Queries and keys -> weights (batch, q_len, k_len)."""
        scores = self.q_proj(query) @ self.k_proj(key).mT / query.size(-1) ** 0.5
        return _hide(scores, mask).softmax(-1)


def _hide(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


class _WithoutRoot(check_one_head.solve):
    def compare(self, query, key, mask):
        scores = self.q_proj(query) @ self.k_proj(key).mT
        return _hide(scores, mask).softmax(-1)


class _DividedByWidth(check_one_head.solve):
    def compare(self, query, key, mask):
        scores = self.q_proj(query) @ self.k_proj(key).mT / query.size(-1)
        return _hide(scores, mask).softmax(-1)


class _WithoutMask(check_one_head.solve):
    def compare(self, query, key, mask):
        return super().compare(query, key, None)


class _InvertedMask(check_one_head.solve):
    def compare(self, query, key, mask):
        return super().compare(query, key, None if mask is None else ~mask)


class _HiddenLate(check_one_head.solve):
    def compare(self, query, key, mask):
        weights = super().compare(query, key, None)
        return weights if mask is None else weights * mask


class _WithoutOutProj(check_one_head.solve):
    def forward(self, query, key, value, mask=None):
        return self.compare(query, key, mask) @ self.v_proj(value)


class _WithoutVProj(check_one_head.solve):
    def forward(self, query, key, value, mask=None):
        return self.out_proj(self.compare(query, key, mask) @ value)


check_one_head.mistake(
    "divide the scores by the square root of their vectors' length.",
    _WithoutRoot,
    _DividedByWidth,
)
check_one_head.mistake(
    "the mask is not used, or inverted: True means that the query may look there.",
    _WithoutMask,
    _InvertedMask,
)
check_one_head.mistake(
    "hide keys before the softmax; now the weights don't add up to 1.", _HiddenLate
)
check_one_head.mistake(
    "values pass through v_proj, and the result through out_proj.",
    _WithoutOutProj,
    _WithoutVProj,
)
