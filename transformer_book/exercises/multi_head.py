"""Graders of the chapter on multi-head attention."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import grader, is_missing, run_module
from transformer_lib import MultiHeadAttention, sinusoid_table


def _split_by_view(x, n_heads):
    return x.reshape(x.size(0), n_heads, x.size(1), -1)


def _join(z):
    return z.transpose(1, 2).flatten(-2)


def _join_by_view(z):
    return z.reshape(z.size(0), z.size(2), -1)


@grader(
    lambda: [(torch.randn(2, 5, 12), 3)],
    "Row t of every head holds the numbers for word t and for no other word.",
    ("the order is (batch, n_heads, length, d_head); transpose(1, 2) ends it.",
     lambda x, n_heads: x.unflatten(-1, (n_heads, -1))),
    ("the shape is right, but words and heads are mixed: view reads the same memory "
     "with different line breaks. Split the last axis first, then transpose.",
     _split_by_view),
    ("every head got every third number of a word (with 3 heads), but a head owns "
     "d_head neighboring numbers.",
     lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)),
)  # fmt: skip
def check_split_heads(x, n_heads):
    """(batch, length, d_model), n_heads -> (batch, n_heads, length, d_head)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


_split = check_split_heads.solve


@grader(
    lambda: [(12, 3, False), (12, 3, True), (20, 5, True)],
    "Four square matrices and their biases; the number of heads doesn't matter.",
    ("the output projection is missing: there are four matrices.", {"matrices": 3}),
    ("the biases: d_model for each input projection if bias is True, and always "
     "d_model for the output projection.",
     lambda d, h, bias: check_parameters.solve(d, h, False) - d,
     lambda d, h, bias: check_parameters.solve(d, h, False),
     lambda d, h, bias: check_parameters.solve(d, h, True), {"output_bias": 0}),
    ("the heads together have the width d_model: each is d_model / n_heads wide.",
     lambda d, h, bias: check_parameters.solve(d, h, bias, matrices=3 * h + 1)),
)  # fmt: skip
def check_parameters(d_model, n_heads, bias, matrices=4, output_bias=1):
    """d_model, n_heads and bias -> number of parameters.

    bias tells whether the three input projections have one; the output projection
    always does.
    """
    return matrices * d_model**2 + (3 * bias + output_bias) * d_model


def _draw_layer():
    matrices = torch.randn(4, 12, 12) / 2  # sharp weights: every mistake shows
    return [(torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12), tuple(matrices), 3)]


_ROOT = "divide the scores by the square root of d_head, the width of one head."
_MIXED = "words and heads are mixed: a view alone doesn't split or join; transpose."


@grader(
    _draw_layer,
    "Project, split, attend, join, project: the whole layer.",
    (_ROOT, {"divisor": 12**0.5}, {"divisor": 1}, {"divisor": 4}),
    ("softmax runs over the queries; every query's weights must sum to 1.",
     {"dim": -2}),
    ("four matrices: x @ w_q, w_k, w_v, and w_o for the joined heads.",
     lambda q, k, v, w, n: check_multi_head.solve(q, k, v, (*w[:3], torch.eye(12)), n)),
    (_MIXED, {"join": _join_by_view}, {"split": _split_by_view}),
)  # fmt: skip
def check_multi_head(
    query, key, value, matrices, n_heads, split=_split, join=_join, divisor=2, dim=-1
):
    """The whole layer.

    query (batch, q_len, d_model), key and value (batch, k_len, d_model), matrices (w_q,
    w_k, w_v, w_o) to multiply by from the right, n_heads -> (batch, q_len, d_model).
    """
    w_q, w_k, w_v, w_o = matrices
    q, k, v = (split(x, n_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    return join((q @ k.mT / divisor).softmax(dim) @ v) @ w_o


def _draw_grouped():
    """Draw sharp weights, which show mistakes, for several numbers of groups."""
    cases = []
    for n_heads, n_groups in ((6, 2), (6, 1), (3, 3)):
        parameters = check_grouped_query.solve(12, n_heads, n_groups).named_parameters()
        weights = {name: 3 * each for name, each in parameters if each.dim() == 2}
        given = torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12)
        cases.append(((12, n_heads, n_groups), given, weights))
    return cases


@grader(
    _draw_grouped,
    "Neighboring heads share keys and values, and each asks its own question.",
    ("heads and groups are matched in turn (0, 1, 0, 1, ...), but neighboring heads "
     "share a group (0, 0, ..., 1, 1, ...). Use repeat_interleave.",
     {"share": lambda heads, size: heads.repeat(1, size, 1, 1)}),
    (_ROOT, {"scale": 1.0}, {"scale": 12**-0.5}),
    (_MIXED, {"join_heads": _join_by_view}),
    run=run_module,
)  # fmt: skip
class check_grouped_query(MultiHeadAttention):
    """A class: GroupedQueryAttention(d_model, n_heads, n_groups).

    It has q_proj, k_proj, v_proj, and out_proj; its forward takes query (batch, q_len,
    d_model) plus key and value (batch, k_len, d_model) -> (batch, q_len, d_model).
    """

    share = staticmethod(lambda heads, size: heads.repeat_interleave(size, 1))
    scale = None  # 1 / d_head ** 0.5

    def __init__(self, d_model, n_heads, n_groups):
        super().__init__(d_model, n_heads, bias=False)
        width = n_groups * self.d_head
        self.k_proj, self.v_proj = (nn.Linear(d_model, width) for _ in range(2))
        self.kernel = partial(F.scaled_dot_product_attention, scale=self.scale)

    def split_heads(self, x):
        """(batch, length, width) -> (batch, n_heads, length, d_head)."""
        heads = _split(x, x.size(-1) // self.d_head)
        return self.share(heads, self.n_heads // heads.size(1))


def _most_attended(answer, d_model, length):
    """Which word gets most from each word but the last, and whether it is 0.9."""
    if is_missing(matrices := answer(d_model)):
        return None
    positions, (w_q, w_k) = sinusoid_table(length, d_model), matrices
    scores = (positions @ w_q) @ (positions @ w_k).T / d_model**0.5
    largest, word = scores.softmax(-1)[:-1].max(-1)
    return word.tolist(), bool((largest >= 0.9).all())


@grader(
    lambda: [(16, 6), (16, 11), (32, 9)],
    "Rotated by one step, every query matches the key of the next word.",
    ("every word looks at the previous one: rotate the other way.", {"steps": -1}),
    ("every word looks at itself: the queries must be rotated.", {"steps": 0}),
    ("every word looks mostly at the next one, but at least one word gives it less "
     "than 0.9 of its weight. Make the scores larger.",
     {"sharpness": 2.0}),
    run=_most_attended,
)  # fmt: skip
def check_next_word(d_model, steps=1, sharpness=60.0):
    """Let every position look at the next one.

    d_model -> w_q and w_k, each (d_model, d_model), to multiply by from the right:
    every sinusoid must give at least 0.9 of its weight to the next one.
    """
    angles = steps / 10_000 ** (torch.arange(0, d_model, 2) / d_model)
    # (sin a, cos a) times each block is (sin(a + angle), cos(a + angle)).
    rows = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], dim=1)
    return sharpness * torch.block_diag(*rows.view(-1, 2, 2)), torch.eye(d_model)
