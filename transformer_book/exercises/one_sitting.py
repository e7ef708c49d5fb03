"""Graders of the chapter that builds the whole Transformer in one sitting."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import Grader
from transformer_lib.model.attention import MultiHeadAttention


def _align(weights, source, target, axis=-1):
    best = weights.argmax(dim=axis).tolist()
    return [(word, source[i]) for word, i in zip(target, best, strict=False)]


check_align = Grader(
    "weights (tgt_len, src_len), the source tokens, the target tokens -> for each "
    "target token a pair: the token, and the source token it looked at most",
    cases=lambda: [
        (torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
         ["aufgestanden", "bin", "ich"], ["got", "up", "I"])
    ],
    solution=_align,
    right="One source token for each row of the map.",
    mistakes={
        "each pair must begin with the target token.":
            lambda weights, source, target: (
                [pair[::-1] for pair in _align(weights, source, target)]),
        "this is the best row of each column; take the best column of each row.":
            {"axis": 0},
        "these are positions; return the tokens at these positions.":
            lambda weights, source, target: (
                list(zip(target, weights.argmax(dim=-1).tolist(), strict=True))),
        "the source tokens are missing: return pairs.":
            lambda weights, source, target: list(target),
        "the target tokens are missing: return pairs.":
            lambda weights, source, target: (
                [pair[1] for pair in _align(weights, source, target)]),
    },
)  # fmt: skip


def _count(
    vocab_size, d_model, d_ff, n_layers, tables=1, crossed=2, norms=(2, 3), bias=1
):
    attention = 4 * (d_model * d_model + bias * d_model)
    feed_forward = 2 * d_model * d_ff + bias * (d_ff + d_model)
    encoder_layer = attention + feed_forward + norms[0] * 2 * d_model
    decoder_layer = crossed * attention + feed_forward + norms[1] * 2 * d_model
    return tables * vocab_size * d_model + n_layers * (encoder_layer + decoder_layer)


check_count = Grader(
    "vocab_size, d_model, d_ff, n_layers -> the number of parameters of a post-norm "
    "Transformer with n_layers on each side and one tied table",
    cases=lambda: [(410, 128, 256, 2), (37_000, 512, 2048, 6)],
    solution=_count,
    right="Every number is counted, and the tied table only once.",
    mistakes={
        "the table is tied: count it once, not for source, target, and lm_head.":
            [{"tables": 3}, {"tables": 2}],
        "the table of token vectors is missing.": {"tables": 0},
        "the decoder layer has a second attention block, for the memory.":
            {"crossed": 1},
        "linear layers have biases, too.": {"bias": 0},
        "the layer norms are missing: each has a gain and a bias.": {"norms": (0, 0)},
        "a layer norm has a gain and a bias, so 2 * d_model numbers.":
            {"norms": (1, 1.5)},
        "the decoder layer has three norms, one for each of its parts.":
            {"norms": (2, 2)},
        "this is one layer on each side; there are n_layers.":
            lambda vocab_size, d_model, d_ff, n_layers: (
                _count(vocab_size, d_model, d_ff, 1)),
    },
)  # fmt: skip


class _OneHead(MultiHeadAttention):
    """One head, step by step; a mistake is a subclass that overrides a step."""

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, 1)

    def forward(self, query, key, value, mask=None):
        q, k = self.q_proj(query), self.k_proj(key)
        weights = self.weigh(self.compare(q, k), mask)
        return self.out_proj(weights @ self.v_proj(value))

    def compare(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(dim=-1)


def _with(**steps):
    return type("OneHead", (_OneHead,), steps)


def _run_one_head(answer, weights, query, key, value, mask):
    if getattr(answer, "__init__", None) is nn.Module.__init__:
        return None  # nothing is written yet
    with torch.random.fork_rng(devices=[]):  # a new layer draws its weights
        head = answer(query.size(-1))
    if not isinstance(head, nn.Module):
        return head
    head.load_state_dict(weights)
    return head(query, key, value, mask)


def _draw_one_head():
    weights = MultiHeadAttention(6, 1).state_dict()
    weights = {name: torch.randn(part.shape) for name, part in weights.items()}
    query, key, value = torch.randn(2, 4, 6), torch.randn(2, 4, 6), torch.randn(2, 4, 6)
    mask = torch.arange(4) < torch.tensor([[[4]], [[2]]])
    return [(weights, query, key, value, mask), (weights, query, key, value, None)]


check_one_head = Grader(
    "a class: OneHead(d_model) with q_proj, k_proj, v_proj, out_proj; "
    "forward(query, key, value, mask=None)",
    cases=_draw_one_head,
    solution=_OneHead,
    right="Compare, scale, mask, softmax, average, project.",
    mistakes={
        "the scores aren't divided by the square root of their vectors' length.":
            _with(compare=lambda self, q, k: q @ k.transpose(-2, -1)),
        "divide by the square root of the length, not by the length itself.":
            _with(compare=lambda self, q, k: q @ k.transpose(-2, -1) / q.size(-1)),
        "the mask isn't used.":
            _with(weigh=lambda self, scores, mask: scores.softmax(dim=-1)),
        "the mask is inverted: True means that the query may look there.":
            _with(weigh=lambda self, scores, mask: (
                _OneHead.weigh(self, scores, None if mask is None else ~mask))),
        "hide keys before the softmax; now the weights don't add up to 1.":
            _with(weigh=lambda self, scores, mask: (
                scores.softmax(dim=-1) * (1 if mask is None else mask))),
        "softmax runs over the wrong axis: each query's weights add up to 1.":
            _with(weigh=lambda self, scores, mask: (
                scores if mask is None
                else scores.masked_fill(~mask, -1e9)).softmax(dim=-2)),
        "the values don't pass through v_proj.":
            _with(forward=lambda self, query, key, value, mask=None: self.out_proj(
                self.weigh(self.compare(self.q_proj(query), self.k_proj(key)), mask)
                @ value)),
        "the result doesn't pass through out_proj.":
            _with(forward=lambda self, query, key, value, mask=None: (
                self.weigh(self.compare(self.q_proj(query), self.k_proj(key)), mask)
                @ self.v_proj(value))),
        "key and value can differ from the query, as in cross-attention.":
            _with(forward=lambda self, query, key, value, mask=None: (
                _OneHead.forward(self, query, query, query, mask))),
    },
    run=_run_one_head,
)  # fmt: skip
