"""Graders of the chapter that builds the whole Transformer in one sitting."""

import math

import torch

from transformer_book.exercises.full_model import check_parameter_count
from transformer_book.exercises.grading import grader, run_module
from transformer_lib import MultiHeadAttention


@grader(
    lambda: [
        (torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]),
         ["aufgestanden", "bin", "ich"], ["got", "up", "I"])
    ],
    "One source token for each row of the map.",
    ("each pair must begin with the target token.",
     lambda *given: [pair[::-1] for pair in check_align.solve(*given)]),
    ("this is the best row of each column; take the best column of each row.",
     lambda weights, *words: check_align.solve(weights.T, *words)),
)  # fmt: skip
def check_align(weights, source, target):
    """Which source token each target token looked at most.

    weights (tgt_len, src_len), the source tokens, the target tokens -> for each target
    token a pair: the token, and the source token.
    """
    best = weights.argmax(dim=-1).tolist()
    return [(word, source[i]) for word, i in zip(target, best, strict=True)]


@grader(
    lambda: [(410, 128, 256, 2), (37_000, 512, 2048, 6)],
    "Every number is counted, and the tied table only once.",
    ("the table is tied: count it once.", {"tables": 3}, {"tables": 2}, {"tables": 0}),
    ("the decoder layer has a second attention block, for the memory.", {"cross": 1}),
    ("linear layers have biases, too.", {"biases": 0, "ff_bias": 0}),
    ("five norms on both sides, each with a gain and a bias.",
     {"norms": 0}, {"norms": 2.5}, {"norms": 4}),
)  # fmt: skip
def check_count(vocab_size, d_model, d_ff, n_layers, biases=4, **counted):
    """The parameters of a post-norm Transformer with one tied table.

    vocab_size, d_model, d_ff, n_layers on each side -> their number.
    """
    sizes = vocab_size, d_model, d_ff, n_layers
    return check_parameter_count.solve(*sizes, biases=biases, **counted)


def _draw_one_head():
    parameters = MultiHeadAttention(6, 1).state_dict()
    weights = {name: 3 * torch.randn_like(each) for name, each in parameters.items()}
    mask = torch.arange(4) < torch.tensor([[[4]], [[2]]])
    return [((*torch.randn(3, 2, 4, 6), each), weights) for each in (mask, None)]


def _masked_softmax(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


@grader(
    _draw_one_head,
    "Compare, scale, mask, softmax, average, project.",
    ("divide the scores by the square root of their vectors' length.",
     {"divisor": 1}, {"divisor": 6}),
    ("the mask is not used, or inverted: True means that the query may look there.",
     {"weigh": lambda x, mask: x.softmax(-1)},
     {"weigh": lambda x, mask: _masked_softmax(x, ~mask)}),
    ("hide keys before the softmax; now the weights don't add up to 1.",
     {"weigh": lambda x, mask: x.softmax(-1) * mask}),
    ("values pass through v_proj, and the result through out_proj.",
     {"out_proj": lambda x: x}, {"v_proj": lambda x: x}),
    run=lambda answer, given, weights: run_module(answer, (6,), given, weights),
)  # fmt: skip
class check_one_head(MultiHeadAttention):
    """A class: OneHead(d_model) with q_proj, k_proj, v_proj, out_proj.

    Its forward takes (query, key, value, mask=None).
    """

    divisor, weigh = 6**0.5, staticmethod(_masked_softmax)

    def __init__(self, d_model):
        super().__init__(d_model, n_heads=1)

    def forward(self, query, key, value, mask=None):
        """(batch, length, d_model) each -> the same shape."""
        scores = self.q_proj(query) @ self.k_proj(key).mT / self.divisor
        weights = self.weigh(scores, torch.tensor(True) if mask is None else mask)
        return self.out_proj(weights @ self.v_proj(value))
