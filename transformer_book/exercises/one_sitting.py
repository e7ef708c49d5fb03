"""Graders of the chapter that builds the whole Transformer in one sitting."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import grader, run_module


@grader(
    cases=lambda: [
        (torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
         ["aufgestanden", "bin", "ich"], ["got", "up", "I"])
    ],
    right="One source token for each row of the map.",
    mistakes=lambda solve: {
        "each pair must begin with the target token.":
            lambda *given: [pair[::-1] for pair in solve(*given)],
        "this is the best row of each column; take the best column of each row.":
            lambda weights, *words: solve(weights.T, *words),
    },
)  # fmt: skip
def check_align(weights, source, target):
    """Which source token each target token looked at most.

    weights (tgt_len, src_len), the source tokens, the target tokens -> for each target
    token a pair: the token, and the source token.
    """
    best = weights.argmax(dim=-1).tolist()
    return [(word, source[i]) for word, i in zip(target, best, strict=True)]


@grader(
    cases=lambda: [(410, 128, 256, 2), (37_000, 512, 2048, 6)],
    right="Every number is counted, and the tied table only once.",
    mistakes=lambda solve: {
        "the table is tied: count it once.":
            [{"tables": 3}, {"tables": 2}, {"tables": 0}],
        "the decoder layer has a second attention block, for the memory.":
            {"crossed": 1},
        "linear layers have biases, too.": {"bias": 0},
        "five norms on both sides, each with a gain and a bias.":
            [{"norms": 0}, {"norms": 2.5}, {"norms": 4}],
        "this is one layer on each side; there are n_layers.":
            lambda vocab_size, d_model, d_ff, n_layers: (
                solve(vocab_size, d_model, d_ff, 1)),
    },
)  # fmt: skip
def check_count(
    vocab_size, d_model, d_ff, n_layers, tables=1, crossed=2, norms=5, bias=1
):
    """The parameters of a post-norm Transformer with one tied table.

    vocab_size, d_model, d_ff, n_layers on each side -> their number.
    """
    attention = 4 * (d_model * d_model + bias * d_model)
    feed_forward = 2 * d_model * d_ff + bias * (d_ff + d_model)
    both = (1 + crossed) * attention + 2 * feed_forward + norms * 2 * d_model
    return tables * vocab_size * d_model + n_layers * both


def _draw_one_head():
    parts = ("q_proj", "k_proj", "v_proj", "out_proj")
    weights = {f"{part}.weight": torch.randn(6, 6) for part in parts}
    weights |= {f"{part}.bias": torch.randn(6) for part in parts}
    vectors = (*torch.randn(3, 2, 4, 6),)
    mask = torch.arange(4) < torch.tensor([[[4]], [[2]]])
    return [((*vectors, mask), weights), ((*vectors, None), weights)]


def _masked_softmax(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


@grader(
    cases=_draw_one_head,
    run=lambda answer, given, weights: run_module(answer, (6,), given, weights),
    right="Compare, scale, mask, softmax, average, project.",
    mistakes=lambda solve: {
        "divide the scores by the square root of their vectors' length.":
            [{"root": lambda length: 1}, {"root": lambda length: length}],
        "the mask is not used, or inverted: True means that the query may look there.":
            [{"weigh": lambda x, mask: x.softmax(-1)},
             {"weigh": lambda x, mask: _masked_softmax(x, ~mask)}],
        "hide keys before the softmax; now the weights don't add up to 1.":
            {"weigh": lambda x, mask: x.softmax(-1) * mask},
        "softmax runs over the wrong axis: each query's weights add up to 1.":
            {"weigh": lambda x, mask: x.masked_fill(~mask, -1e9).softmax(-2)},
        "values pass through v_proj, and the result through out_proj.":
            [{"make_values": lambda head, x: x}, {"project": lambda head, x: x}],
        "key and value can differ from the query, as in cross-attention.":
            {"read": lambda query, key, value: (query, query, query)},
    },
)  # fmt: skip
class check_one_head(nn.Module):
    """A class: OneHead(d_model) with q_proj, k_proj, v_proj, out_proj.

    Its forward takes (query, key, value, mask=None).
    """

    root, weigh = math.sqrt, staticmethod(_masked_softmax)
    read = staticmethod(lambda query, key, value: (query, key, value))
    make_values = staticmethod(lambda head, x: head.v_proj(x))
    project = staticmethod(lambda head, x: head.out_proj(x))

    def __init__(self, d_model):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        """(batch, length, d_model) each -> the same shape."""
        query, key, value = self.read(query, key, value)
        scores = self.q_proj(query) @ self.k_proj(key).mT / self.root(query.size(-1))
        weights = self.weigh(scores, torch.tensor(True) if mask is None else mask)
        return self.project(self, weights @ self.make_values(self, value))
