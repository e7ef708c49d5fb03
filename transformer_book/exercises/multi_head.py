"""Graders of the chapter on multi-head attention."""

import torch
from torch import nn

from transformer_book.exercises.grading import grader, is_missing, run_module
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.embeddings import sinusoid_table


@grader(
    cases=lambda: [(torch.randn(2, 5, 12), 3)],
    right="Row t of every head holds the numbers for word t and for no other word.",
)
def check_split_heads(x, n_heads):
    """(batch, length, d_model), n_heads -> (batch, n_heads, length, d_head)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _split_by_view(x, n_heads):
    return x.reshape(x.size(0), n_heads, x.size(1), -1)


check_split_heads.mistake(
    "the order is (batch, n_heads, length, d_head); transpose(1, 2) ends it.",
    lambda x, n_heads: x.unflatten(-1, (n_heads, -1)),
)
check_split_heads.mistake(
    "the shape is right, but words and heads are mixed: view reads the same memory "
    "with different line breaks. Split the last axis first, then transpose.",
    _split_by_view,
)
check_split_heads.mistake(
    "every head got every third number of a word (with 3 heads), but a head owns "
    "d_head neighboring numbers.",
    lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2),
)


@grader(
    cases=lambda: [(12, 3, False), (12, 3, True), (20, 5, True)],
    right="Four square matrices and their biases; the number of heads doesn't matter.",
)
def check_parameters(d_model, n_heads, bias):
    """d_model, n_heads and bias -> number of parameters.

    bias tells whether the three input projections have one; the output projection
    always does.
    """
    n_biases = 4 if bias else 1
    return 4 * d_model**2 + n_biases * d_model


check_parameters.mistake(
    "the output projection is missing: there are four matrices.",
    lambda d, h, bias: check_parameters.solve(d, h, bias) - d**2,
)
check_parameters.mistake(
    "the biases: d_model for each input projection if bias is True, and always "
    "d_model for the output projection.",
    lambda d, h, bias: 4 * d**2,
    lambda d, h, bias: check_parameters.solve(d, h, False),
    lambda d, h, bias: check_parameters.solve(d, h, True),
    lambda d, h, bias: check_parameters.solve(d, h, bias) - d,
)
check_parameters.mistake(
    "the heads together have the width d_model: each is d_model / n_heads wide.",
    lambda d, h, bias: check_parameters.solve(d, h, bias) + 3 * (h - 1) * d**2,
)


def _draw_layer():
    matrices = torch.randn(4, 12, 12) / 2  # sharp weights: every mistake shows
    return [(torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12), tuple(matrices), 3)]


_ROOT = "divide the scores by the square root of d_head, the width of one head."
_MIXED = "words and heads are mixed: a view alone doesn't split or join; transpose."


def _join(z):
    return z.transpose(1, 2).flatten(-2)


def _join_by_view(z):
    return z.reshape(z.size(0), z.size(2), -1)


@grader(
    cases=_draw_layer,
    right="Project, split, attend, join, project: the whole layer.",
)
def check_multi_head(query, key, value, matrices, n_heads):
    """The whole layer.

    query (batch, q_len, d_model), key and value (batch, k_len, d_model), matrices (w_q,
    w_k, w_v, w_o) to multiply by from the right, n_heads -> (batch, q_len, d_model).
    """
    w_q, w_k, w_v, w_o = matrices
    projected = query @ w_q, key @ w_k, value @ w_v
    q, k, v = (check_split_heads.solve(x, n_heads) for x in projected)
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
    return _join(weights @ v) @ w_o


def _softmax_over_queries(query, key, value, matrices, n_heads):
    w_q, w_k, w_v, w_o = matrices
    projected = query @ w_q, key @ w_k, value @ w_v
    q, k, v = (check_split_heads.solve(x, n_heads) for x in projected)
    return _join((q @ k.mT / 2).softmax(-2) @ v) @ w_o


def _joined_by_view(query, key, value, matrices, n_heads):
    w_q, w_k, w_v, w_o = matrices
    projected = query @ w_q, key @ w_k, value @ w_v
    q, k, v = (check_split_heads.solve(x, n_heads) for x in projected)
    return _join_by_view((q @ k.mT / 2).softmax(-1) @ v) @ w_o


def _split_only_by_view(query, key, value, matrices, n_heads):
    w_q, w_k, w_v, w_o = matrices
    projected = query @ w_q, key @ w_k, value @ w_v
    q, k, v = (_split_by_view(x, n_heads) for x in projected)
    return _join((q @ k.mT / 2).softmax(-1) @ v) @ w_o


def _without_output_matrix(query, key, value, matrices, n_heads):
    inputs = matrices[:3]
    return check_multi_head.solve(query, key, value, (*inputs, torch.eye(12)), n_heads)


# d_model is 12, d_head is 4: these divide by the root of 12, by 1 and by 4.
check_multi_head.mistake(
    _ROOT,
    lambda query, *others: check_multi_head.solve(query / 3**0.5, *others),
    lambda query, *others: check_multi_head.solve(query * 2, *others),
    lambda query, *others: check_multi_head.solve(query / 2, *others),
)
check_multi_head.mistake(
    "softmax runs over the queries; every query's weights must sum to 1.",
    _softmax_over_queries,
)
check_multi_head.mistake(
    "four matrices: x @ w_q, w_k, w_v, and w_o for the joined heads.",
    _without_output_matrix,
)
check_multi_head.mistake(_MIXED, _joined_by_view, _split_only_by_view)


def _draw_grouped():
    """Draw sharp weights, which show mistakes, for several numbers of groups."""
    cases = []
    for n_heads, n_groups in ((6, 2), (6, 1), (3, 3)):
        parameters = check_grouped_query.solve(12, n_heads, n_groups).state_dict()
        weights = {name: 3 * x for name, x in parameters.items() if x.dim() == 2}
        inputs = torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12)
        cases.append(((12, n_heads, n_groups), inputs, weights))
    return cases


@grader(
    cases=_draw_grouped,
    right="Neighboring heads share keys and values, and each asks its own question.",
    run=run_module,
)
class check_grouped_query(MultiHeadAttention):
    """A class: GroupedQueryAttention(d_model, n_heads, n_groups).

    It has q_proj, k_proj, v_proj, and out_proj; its forward takes query (batch, q_len,
    d_model) plus key and value (batch, k_len, d_model) -> (batch, q_len, d_model).
    """

    def __init__(self, d_model, n_heads, n_groups):
        super().__init__(d_model, n_heads, bias=False)
        self.n_groups = n_groups
        self.k_proj = nn.Linear(d_model, n_groups * self.d_head)
        self.v_proj = nn.Linear(d_model, n_groups * self.d_head)

    def forward(self, query, key, value):
        """(batch, q_len, d_model), twice (batch, k_len, d_model) -> as the query."""
        q = check_split_heads.solve(self.q_proj(query), self.n_heads)
        k = self.share(check_split_heads.solve(self.k_proj(key), self.n_groups))
        v = self.share(check_split_heads.solve(self.v_proj(value), self.n_groups))
        z, _ = scaled_dot_product_attention(q, k, v)
        return self.out_proj(self.join_heads(z))

    def share(self, groups):
        """(batch, n_groups, length, d_head) -> (batch, n_heads, length, d_head)."""
        return groups.repeat_interleave(self.n_heads // self.n_groups, dim=1)


class _SharedInTurn(check_grouped_query.solve):
    def share(self, groups):
        return groups.repeat(1, self.n_heads // self.n_groups, 1, 1)


class _WithoutRoot(check_grouped_query.solve):
    def forward(self, query, key, value):
        return super().forward(query * self.d_head**0.5, key, value)


class _RootOfAllHeads(check_grouped_query.solve):
    def forward(self, query, key, value):
        return super().forward(query / self.n_heads**0.5, key, value)


class _GroupsJoinedByView(check_grouped_query.solve):
    def join_heads(self, z):
        return _join_by_view(z)


check_grouped_query.mistake(
    "heads and groups are matched in turn (0, 1, 0, 1, ...), but neighboring heads "
    "share a group (0, 0, ..., 1, 1, ...). Use repeat_interleave.",
    _SharedInTurn,
)
check_grouped_query.mistake(_ROOT, _WithoutRoot, _RootOfAllHeads)
check_grouped_query.mistake(_MIXED, _GroupsJoinedByView)


def _most_attended(answer, d_model, length):
    """Which word gets most from each word but the last, and whether it is 0.9."""
    if is_missing(matrices := answer(d_model)):
        return None
    positions, (w_q, w_k) = sinusoid_table(length, d_model), matrices
    scores = (positions @ w_q) @ (positions @ w_k).T / d_model**0.5
    largest, word = scores.softmax(-1)[:-1].max(-1)
    return word.tolist(), bool((largest >= 0.9).all())


@grader(
    cases=lambda: [(16, 6), (16, 11), (32, 9)],
    right="Rotated by one step, every query matches the key of the next word.",
    run=_most_attended,
)
def check_next_word(d_model):
    """Let every position look at the next one.

    d_model -> w_q and w_k, each (d_model, d_model), to multiply by from the right:
    every sinusoid must give at least 0.9 of its weight to the next one.
    """
    angles = 1 / 10_000 ** (torch.arange(0, d_model, 2) / d_model)
    # (sin a, cos a) times each block is (sin(a + angle), cos(a + angle)).
    rows = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], dim=1)
    return 60 * torch.block_diag(*rows.view(-1, 2, 2)), torch.eye(d_model)


def _turn_back(d_model):
    w_q, w_k = check_next_word.solve(d_model)
    return w_q.T, w_k  # the inverse of a rotation


def _hardly_sharp(d_model):
    w_q, w_k = check_next_word.solve(d_model)
    return w_q / 30, w_k


check_next_word.mistake(
    "every word looks at the previous one: rotate the other way.", _turn_back
)
check_next_word.mistake(
    "every word looks at itself: the queries must be rotated.",
    lambda d_model: (60 * torch.eye(d_model), torch.eye(d_model)),
)
check_next_word.mistake(
    "every word looks mostly at the next one, but at least one word gives it less "
    "than 0.9 of its weight. Make the scores larger.",
    _hardly_sharp,
)
