"""Graders of the chapter on what has changed since 2017."""

import torch
from torch import nn

from transformer_book.exercises.grading import grader, run_module
from transformer_lib.model.modern import rotate


@grader(
    cases=lambda: [
        (2, 8, 2, 16, 50, None),
        (32, 32, 8, 128, 4096, None),
        (4, 8, 1, 32, 900, 256),
        (4, 8, 2, 32, 100, 256),
    ],
    right="Two vectors for each kv head, layer and token that is still kept.",
)
def check_kv_bytes(n_layers, n_heads, n_kv_heads, d_head, length, window):
    """Sizes, the length of a text, and a window or None -> bytes of its cache."""
    kept = length if window is None else min(length, window)
    key_and_value = 2 * 2 * d_head  # a number takes 2 bytes
    return n_layers * n_kv_heads * kept * key_and_value


check_kv_bytes.mistake(
    "only kv heads are stored, not a head for each query.",
    lambda n_layers, n_heads, n_kv_heads, *others: check_kv_bytes.solve(
        n_layers, n_heads, n_heads, *others
    ),
)
check_kv_bytes.mistake(
    "a key and a value are stored: two vectors.",
    lambda *sizes: check_kv_bytes.solve(*sizes) // 2,
)
check_kv_bytes.mistake(
    "a number takes 2 bytes here, not 4.",
    lambda *sizes: check_kv_bytes.solve(*sizes) * 2,
)
check_kv_bytes.mistake(
    "with a window, no more than that many tokens have to be kept.",
    lambda *sizes: check_kv_bytes.solve(*sizes[:-1], window=None),
)


@grader(
    cases=lambda: [((6, 0.1), (torch.randn(2, 3, 6),), {"weight": torch.randn(6)})],
    right="The gain is 1 + weight, so a weight of zeros changes nothing.",
    run=run_module,
)
class check_offset_norm(nn.Module):
    """A class: (d_model, eps), with the parameter weight, which starts at 0."""

    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(d_model)), eps

    def forward(self, x):
        """(..., d_model) -> (..., d_model)."""
        square = x.square().mean(-1, keepdim=True)
        return x / (square + self.eps).sqrt() * (1 + self.weight)


class _GainWithoutOne(check_offset_norm.solve):
    def forward(self, x):
        square = x.square().mean(-1, keepdim=True)
        return x / (square + self.eps).sqrt() * self.weight


class _EpsBesideTheRoot(check_offset_norm.solve):
    def forward(self, x):
        root = x.square().mean(-1, keepdim=True).sqrt()
        return x / (root + self.eps) * (1 + self.weight)


class _Centered(check_offset_norm.solve):
    def forward(self, x):
        return super().forward(x - x.mean(-1, keepdim=True))


check_offset_norm.mistake(
    "the gain is 1 + weight: weights of 0 must not erase the features.",
    _GainWithoutOne,
)
check_offset_norm.mistake(
    "eps belongs under the root, with the mean square.", _EpsBesideTheRoot
)
check_offset_norm.mistake(
    "no mean is subtracted, before or in the mean square.", _Centered
)


@grader(
    cases=lambda: [
        (torch.randn(2, 3, 5, 8), torch.arange(5) + 3, 4),
        (torch.randn(1, 2, 4, 12), torch.arange(4), 6),
    ],
    right="The first features are turned, as a narrow head of their own; the rest "
    "stay.",
)
def check_partial(x, positions, n_rotated):
    """Turn the first n_rotated features only.

    x (batch, n_heads, length, d_head), positions (length,) and n_rotated -> as x.
    """
    turned = rotate(x[..., :n_rotated], positions)
    return torch.cat([turned, x[..., n_rotated:]], dim=-1)


def _angles_of_the_whole_head(x, positions, n_rotated):
    base = 10_000.0 ** (n_rotated / x.size(-1))
    turned = rotate(x[..., :n_rotated], positions, base)
    return torch.cat([turned, x[..., n_rotated:]], dim=-1)


check_partial.mistake(
    "only the first n_rotated features are turned.",
    lambda x, positions, n_rotated: rotate(x, positions),
)
check_partial.mistake(
    "the first n_rotated features are turned, not the last.",
    lambda x, *others: check_partial.solve(x.flip(-1), *others).flip(-1),
)
check_partial.mistake(
    "the angles are those of a head that is n_rotated wide: turn these features "
    "after cutting them out.",
    _angles_of_the_whole_head,
)


@grader(
    cases=lambda: [(torch.randn(12, 5), 2), (torch.randn(16, 3), 2)],
    right="Within each head, the even rows come first: the scores stay what they were.",
)
def check_halves(weight, n_heads):
    """The weight of q_proj, (n_heads * d_head, d_model), and n_heads -> as weight."""
    pairs = weight.unflatten(0, (n_heads, -1, 2))
    return pairs.transpose(1, 2).flatten(0, 2)


check_halves.mistake(
    "each head's rows are reordered within the head.",
    lambda weight, n_heads: check_halves.solve(weight, 1),
)
check_halves.mistake(
    "this is the way back, from halves to neighbors.",
    lambda weight, n_heads: (
        weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    ),
)
check_halves.mistake(
    "the rows of the weight are the outputs; its columns stay.",
    lambda weight, n_heads: torch.cat([weight[:, 0::2], weight[:, 1::2]], dim=1),
)


@grader(
    cases=lambda: [(torch.randn(12, 5), 6, 2), (torch.randn(8, 3), 4, 1)],
    right="Each kv head starts as the mean of the heads that will share it.",
)
def check_pooled(weight, n_heads, n_kv_heads):
    """The weight of k_proj, (n_heads * d_head, d_model) -> (n_kv_heads * d_head, ...).

    weight, n_heads and n_kv_heads are given.
    """
    groups = weight.unflatten(0, (n_kv_heads, n_heads // n_kv_heads, -1))
    return groups.mean(1).flatten(0, 1)


check_pooled.mistake(
    "take the mean of a group's heads, not the first of them.",
    lambda weight, n_heads, n_kv_heads: weight.unflatten(
        0, (n_kv_heads, n_heads // n_kv_heads, -1)
    )[:, 0].flatten(0, 1),
)
check_pooled.mistake(
    "take the mean of a group's heads, not their sum.",
    lambda weight, n_heads, n_kv_heads: (
        check_pooled.solve(weight, n_heads, n_kv_heads) * (n_heads // n_kv_heads)
    ),
)
check_pooled.mistake(
    "neighboring heads share a kv head: heads 1, 2, ... belong to the first group.",
    lambda weight, n_heads, n_kv_heads: (
        weight.unflatten(0, (-1, n_kv_heads, len(weight) // n_heads))
        .mean(0)
        .flatten(0, 1)
    ),
)


@grader(
    cases=lambda: [
        (torch.randn(5, 4), torch.randn(4, 6), torch.randn(6, 4, 4), 2),
        (torch.randn(5, 4), torch.randn(4, 3), torch.randn(3, 4, 4), 1),
    ],
    right="Each token goes to its best experts, and their weights add up to 1.",
)
def check_mixture(x, router, experts, n_chosen):
    """Send every row of x to its n_chosen best experts.

    x (t, d), router (d, n_experts), experts (n_experts, d, d): expert e makes x @
    experts[e] -> (t, d).
    """
    scores, chosen = (x @ router).topk(n_chosen)
    return _mix(x, experts[chosen], scores.softmax(-1))


def _mix(x, experts, weights):
    """What its own experts (t, n_chosen, d, d) make of each row, weighted."""
    outputs = torch.einsum("td,tkde->tke", x, experts)
    return (weights[..., None] * outputs).sum(1)


def _softmax_over_all(x, router, experts, n_chosen):
    weights, chosen = (x @ router).softmax(-1).topk(n_chosen)
    return _mix(x, experts[chosen], weights)


def _plain_mean(x, router, experts, n_chosen):
    scores, chosen = (x @ router).topk(n_chosen)
    return _mix(x, experts[chosen], torch.full_like(scores, 1 / n_chosen))


def _worst_experts(x, router, experts, n_chosen):
    scores, chosen = (x @ router).topk(n_chosen, largest=False)
    return _mix(x, experts[chosen], scores.softmax(-1))


check_mixture.mistake(
    "the weights of the chosen experts must add up to 1: softmax over their scores "
    "alone.",
    _softmax_over_all,
)
check_mixture.mistake(
    "every token has its own experts, those with its highest scores.", _worst_experts
)
check_mixture.mistake(
    "the experts' outputs are weighted by the router, not just averaged.", _plain_mean
)
