"""Graders of the chapter on multi-head attention."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import Grader, Mistake, is_missing
from transformer_lib.model.embeddings import sinusoid_table


def _split(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _split_by_view(x, n_heads):
    return x.reshape(x.size(0), n_heads, x.size(1), -1)


check_split_heads = Grader(
    "x (batch, length, d_model), n_heads -> (batch, n_heads, length, d_head)",
    cases=lambda: [(torch.randn(2, 5, 12), 3)],
    solution=_split,
    right="Row t of every head holds the numbers for word t and for no other word.",
    mistakes={
        "the heads come after the words: shape (batch, length, n_heads, d_head). "
        "Put them in front of the words with transpose(1, 2).":
            lambda x, n_heads: x.unflatten(-1, (n_heads, -1)),
        "the last two axes are swapped: a head needs one row of d_head numbers for "
        "each word.": lambda x, n_heads: _split(x, n_heads).mT,
        "the shape is right, but words and heads are mixed: view reads the same memory "
        "with different line breaks. Split the last axis first, then transpose.":
            _split_by_view,
        "every head got every third number of a word (with 3 heads), but a head owns "
        "d_head neighboring numbers.":
            lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2),
    },
)  # fmt: skip


def _count(d_model, n_heads, bias):
    return 4 * d_model**2 + d_model * (4 if bias else 1)


check_parameters = Grader(
    "d_model, n_heads and bias (of the three input projections; the output projection "
    "always has one) -> number of parameters",
    cases=lambda: [(12, 3, False), (12, 3, True), (20, 5, True)],
    solution=_count,
    right="Four square matrices and their biases; the number of heads doesn't matter.",
    mistakes={
        "the output projection is missing: there are four matrices.":
            [lambda d, h, bias: 3 * d**2 + d * (4 if bias else 1),
             lambda d, h, bias: 3 * d**2 + d * 3 * bias],
        "the biases are missing.": lambda d, h, bias: 4 * d**2,
        "the bias of the output projection is missing; the layer always has it.":
            lambda d, h, bias: 4 * d**2 + 3 * d * bias,
        "the input projections have a bias of d_model numbers each if bias is True.":
            lambda d, h, bias: 4 * d**2 + d,
        "the input projections have no bias if bias is False.":
            lambda d, h, bias: 4 * d**2 + 4 * d,
        "this counts n_heads matrices of full width; a head is only d_model / n_heads "
        "wide.":
            [lambda d, h, bias: h * _count(d, h, bias),
             lambda d, h, bias: _count(d, h, bias) + 4 * (h - 1) * d**2,
             lambda d, h, bias: _count(d, h, bias) + 3 * (h - 1) * d**2],
        "this counts one head only; there are n_heads of them.":
            [lambda d, h, bias: _count(d, h, bias) - 3 * (d - d // h) * d,
             lambda d, h, bias: _count(d, h, bias) - 4 * (d - d // h) * d],
    },
)  # fmt: skip


def _attend(query, key, value, matrices, n_heads, **change):
    split, join = change.get("split", _split), change.get("join", _join)
    w_q, w_k, w_v, w_o = matrices
    q, k, v = (split(x, n_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    divisor = change.get("divisor", lambda d_model, d_head: d_head**0.5)
    scores = q @ k.mT / divisor(query.size(-1), q.size(-1))
    return join(scores.softmax(change.get("dim", -1)) @ v) @ w_o


def _join(z):
    return z.transpose(1, 2).flatten(-2)


def _join_by_view(z):
    return z.reshape(z.size(0), z.size(2), -1)


def _on_matrices(change):
    """The layer with different matrices."""
    return lambda q, k, v, matrices, h: _attend(q, k, v, change(*matrices), h)


def _draw_layer():
    matrices = torch.randn(4, 12, 12) / 12**0.5
    matrices[0] *= 3  # sharp weights, so that every mistake shows
    return [(torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12), tuple(matrices), 3)]


check_multi_head = Grader(
    "query (batch, q_len, d_model), key and value (batch, k_len, d_model), matrices "
    "(w_q, w_k, w_v, w_o) to multiply by from the right, n_heads "
    "-> (batch, q_len, d_model)",
    cases=_draw_layer,
    solution=_attend,
    right="Project, split, attend, join, project: the whole layer.",
    mistakes={
        "return the output only, not a tuple.": lambda *given: (_attend(*given), None),
        "the scores are divided by sqrt(d_model); every head's dot product adds only "
        "d_head terms.": {"divisor": lambda d_model, d_head: d_model**0.5},
        "the scores are not divided by sqrt(d_head).":
            {"divisor": lambda d_model, d_head: 1},
        "the scores are divided by d_head; divide by its square root.":
            {"divisor": lambda d_model, d_head: d_head},
        "softmax runs over the queries; every query's weights must sum to 1.":
            {"dim": -2},
        "the output projection is missing: multiply the joined heads by w_o.":
            _on_matrices(lambda q, k, v, o: (q, k, v, torch.eye(len(o)))),
        "the matrices are transposed: apply them from the right, as they are (x @ w).":
            _on_matrices(lambda *matrices: [matrix.T for matrix in matrices]),
        "the heads are joined without a transpose: words and heads are mixed.":
            {"join": _join_by_view},
        "the heads are split by a single view: words and heads are mixed.":
            {"split": _split_by_view},
        "the heads are split and joined by view alone: words and heads are mixed.":
            {"split": _split_by_view, "join": _join_by_view},
        "this is one wide head; split into n_heads before the scores.":
            lambda q, k, v, matrices, n_heads: _attend(q, k, v, matrices, 1),
        "key and value are swapped.":
            lambda q, k, v, matrices, n_heads: _attend(q, v, k, matrices, n_heads),
        "the values are not projected by w_v.":
            _on_matrices(lambda q, k, v, o: (q, k, torch.eye(len(v)), o)),
    },
)  # fmt: skip


def _share(x, n_groups, group_size):
    """Split into groups, each used by heads that are next to each other."""
    return _split(x, n_groups).repeat_interleave(group_size, dim=1)


class _GroupedQueryAttention(nn.Module):
    """The solution; keyword arguments put a mistake into it."""

    def __init__(self, d_model, n_heads, n_groups, **change):
        super().__init__()
        self.change, self.n_heads, self.n_groups = change, n_heads, n_groups
        width = n_groups * (d_model // n_heads)
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, width)
        self.v_proj = nn.Linear(d_model, width)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value):
        share, join = self.change.get("share", _share), self.change.get("join", _join)
        q = _split(self.q_proj(query), self.n_heads)
        k, v = (
            share(x, self.n_groups, self.n_heads // self.n_groups)
            for x in (self.k_proj(key), self.v_proj(value))
        )
        root = self.change.get("root", lambda d_model, d_head: d_head)
        scores = q @ k.mT / root(query.size(-1), q.size(-1)) ** 0.5
        z = join(scores.softmax(-1) @ v)
        return self.change.get("last", self.out_proj)(z)


def _run_grouped(module, sizes, query, key, value):
    """Build the layer, give it known weights and run it."""
    with torch.random.fork_rng(devices=[]):
        layer = module(*sizes)
    if not isinstance(layer, nn.Module):
        return layer
    d_model, n_heads, n_groups = sizes
    width = n_groups * (d_model // n_heads)
    rows = {"q_proj": d_model, "k_proj": width, "v_proj": width, "out_proj": d_model}
    parts = {name: getattr(layer, name, None) for name in rows}
    if not all(isinstance(part, nn.Linear) for part in parts.values()):
        if is_missing(layer(query, key, value)):
            return None
        raise Mistake(f"the layer needs four nn.Linear layers: {', '.join(rows)}.")
    generator = torch.Generator().manual_seed(0)
    for name, part in parts.items():
        if part.weight.shape != (rows[name], d_model):
            shapes = (d_model, rows[name]), (part.in_features, part.out_features)
            told = "{} is nn.Linear{}, but with these sizes it must be nn.Linear{}."
            raise Mistake(told.format(name, shapes[1], shapes[0]))
        weight = torch.randn(part.weight.shape, generator=generator) / d_model**0.5
        with torch.no_grad():  # sharp queries, so that every mistake shows
            part.weight.copy_(3 * weight if name == "q_proj" else weight)
            if part.bias is not None:
                part.bias.zero_()
    return layer(query, key, value)


check_grouped_query = Grader(
    "a class: GroupedQueryAttention(d_model, n_heads, n_groups), with q_proj, k_proj, "
    "v_proj, and out_proj; its forward takes query (batch, q_len, d_model) plus key "
    "and value (batch, k_len, d_model) -> (batch, q_len, d_model)",
    cases=lambda: [
        (sizes, torch.randn(2, 5, 12), *torch.randn(2, 2, 7, 12))
        for sizes in ((12, 6, 2), (12, 6, 1), (12, 3, 3))
    ],
    run=_run_grouped,
    solution=_GroupedQueryAttention,
    right="Neighboring heads share keys and values, and each asks its own question.",
    mistakes={
        "return the output only, not a tuple.":
            {"last": lambda output: (output, None)},
        "heads and groups are matched in turn (0, 1, 0, 1, ...), but neighboring heads "
        "share a group (0, 0, ..., 1, 1, ...). Use repeat_interleave.":
            {"share": lambda x, n, size: _split(x, n).repeat(1, size, 1, 1)},
        "all heads use the first group's keys and values.":
            {"share": lambda x, n, size:
                _split(x, n)[:, :1].expand(-1, n * size, -1, -1)},
        "the keys and values are split by a single view: words and groups are mixed.":
            {"share": lambda x, n, size:
                _split_by_view(x, n).repeat_interleave(size, dim=1)},
        "the scores are not divided by sqrt(d_head).":
            {"root": lambda d_model, d_head: 1},
        "the scores are divided by sqrt(d_model); every head's dot product adds only "
        "d_head terms.": {"root": lambda d_model, d_head: d_model},
        "the heads are joined without a transpose: words and heads are mixed.":
            {"join": _join_by_view},
        "the output projection is missing: pass the joined heads through out_proj.":
            {"last": lambda z: z},
    },
)  # fmt: skip


def _turn(d_model, *, steps=1, sharpness=60.0):
    """Turn every pair of sinusoids by so many positions."""
    w_q = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = steps / 10_000 ** (i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        # (sin a, cos a) times this is (sin(a + angle), cos(a + angle)).
        w_q[i : i + 2, i : i + 2] = torch.tensor([[cos, -sin], [sin, cos]])
    return sharpness * w_q, torch.eye(d_model)


def _most_attended(matrices, d_model, length):
    """Which word gets most from each word but the last, and whether it is 0.9."""
    positions = sinusoid_table(length, d_model)
    w_q, w_k = (matrix.to(positions) for matrix in matrices)
    scores = (positions @ w_q) @ (positions @ w_k).T / d_model**0.5
    largest, word = scores.softmax(-1)[:-1].max(-1)
    return word.tolist(), bool((largest >= 0.9).all())


check_next_word = Grader(
    "d_model -> w_q and w_k, each (d_model, d_model), to multiply by from the right: "
    "every sinusoid must give at least 0.9 of its weight to the next one",
    cases=lambda: [(16, 6), (16, 11), (32, 9)],
    run=lambda answer, d_model, length: answer(d_model),
    view=_most_attended,
    solution=_turn,
    right="Rotated by one step, every query matches the key of the next word.",
    mistakes={
        "every word looks at the previous one: rotate the other way.": {"steps": -1},
        "every word looks at itself: the queries must be rotated.": {"steps": 0},
        "every word looks mostly at the next one, but at least one word gives it less "
        "than 0.9 of its weight. Make the scores larger.": {"sharpness": 2.0},
    },
)  # fmt: skip
