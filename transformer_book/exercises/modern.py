"""Graders of the chapter on what has changed since 2017."""

import torch
from torch import nn

from transformer_book.exercises.grading import grader, run_module
from transformer_lib.model.modern import rotate


@grader(
    lambda: [(2, 8, 2, 16, 50, None), (32, 32, 8, 128, 4096, None),
             (4, 8, 1, 32, 900, 256), (4, 8, 2, 32, 100, 256)],
    "Two vectors for each kv head, layer and token that is still kept.",
    ("only kv heads are stored, not a head for each query.",
     lambda n, heads, kv, *sizes: check_kv_bytes.solve(n, heads, heads, *sizes)),
    ("a key and a value are stored: two vectors.", {"n_bytes": 2}),
    ("a number takes 2 bytes here, not 4.", {"n_bytes": 8}),
    ("with a window, no more than that many tokens have to be kept.",
     lambda *sizes: check_kv_bytes.solve(*sizes[:5], None)),
)  # fmt: skip
def check_kv_bytes(n_layers, n_heads, n_kv_heads, d_head, length, window, n_bytes=4):
    """Sizes, the length of a text, and a window or None -> bytes of its cache."""
    kept = length if window is None else min(length, window)
    return n_bytes * n_layers * n_kv_heads * d_head * kept  # 2 for a key, 2 for a value


@grader(
    lambda: [((6, 0.1), (torch.randn(2, 3, 6),), {"weight": torch.randn(6)})],
    "The gain is 1 + weight, so a weight of zeros changes nothing.",
    ("the gain is 1 + weight: weights of 0 must not erase the features.", {"start": 0}),
    ("eps belongs under the root, with the mean square.", {"inside": False}),
    ("no mean is subtracted, before or in the mean square.", {"centered": True}),
    run=run_module,
)  # fmt: skip
class check_offset_norm(nn.Module):
    """A class: (d_model, eps), with the parameter weight, which starts at 0."""

    start, inside, centered = 1, True, False

    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(d_model)), eps

    def forward(self, x):
        """(..., d_model) -> (..., d_model)."""
        if self.centered:
            x = x - x.mean(-1, keepdim=True)
        square = x.square().mean(-1, keepdim=True)
        root = (square + self.eps).sqrt() if self.inside else square.sqrt() + self.eps
        return x / root * (self.start + self.weight)


@grader(
    lambda: [(torch.randn(2, 3, 5, 8), torch.arange(5) + 3, 4),
             (torch.randn(1, 2, 4, 12), torch.arange(4), 6)],
    "The first features are turned, as a narrow head of their own; the rest stay.",
    ("only the first n_rotated features are turned.",
     lambda x, positions, n: rotate(x, positions)),
    ("the first n_rotated features are turned, not the last.",
     lambda x, *given: check_partial.solve(x.flip(-1), *given).flip(-1)),
    ("the angles are those of a head that is n_rotated wide: turn these features "
     "after cutting them out.", {"wide": True}),
)  # fmt: skip
def check_partial(x, positions, n_rotated, wide=False):
    """Turn the first n_rotated features only.

    x (batch, n_heads, length, d_head), positions (length,) and n_rotated -> as x.
    """
    turned, rest = x[..., :n_rotated], x[..., n_rotated:]
    base = 10_000.0 ** (n_rotated / x.size(-1)) if wide else 10_000.0
    return torch.cat([rotate(turned, positions, base), rest], dim=-1)


@grader(
    lambda: [(torch.randn(12, 5), 2), (torch.randn(16, 3), 2)],
    "Within each head, the even rows come first: the scores stay what they were.",
    ("each head's rows are reordered within the head.",
     lambda weight, n_heads: check_halves.solve(weight, 1)),
    ("this is the way back, from halves to neighbors.", {"sizes": (2, -1)}),
    ("the rows of the weight are the outputs; its columns stay.",
     lambda weight, n_heads: torch.cat([weight[:, 0::2], weight[:, 1::2]], 1)),
)  # fmt: skip
def check_halves(weight, n_heads, sizes=(-1, 2)):
    """The weight of q_proj, (n_heads * d_head, d_model), and n_heads -> as weight."""
    heads = weight.unflatten(0, (n_heads, *sizes))
    return heads.transpose(1, 2).flatten(0, 2)


@grader(
    lambda: [(torch.randn(12, 5), 6, 2), (torch.randn(8, 3), 4, 1)],
    "Each kv head starts as the mean of the heads that will share it.",
    ("take the mean of a group's heads, not the first of them.",
     {"pool": lambda x: x[:, 0]}),
    ("take the mean of a group's heads, not their sum.", {"pool": lambda x: x.sum(1)}),
    ("neighboring heads share a kv head: heads 0, 1, ... belong to group 0.",
     lambda weight, n, n_kv: check_pooled.solve(
         weight.unflatten(0, (-1, n_kv, len(weight) // n)).transpose(0, 1).flatten(
             0, 2), n, n_kv)),
)  # fmt: skip
def check_pooled(weight, n_heads, n_kv_heads, pool=lambda x: x.mean(1)):
    """The weight of k_proj, (n_heads * d_head, d_model) -> (n_kv_heads * d_head, ...).

    weight, n_heads and n_kv_heads are given.
    """
    groups = weight.unflatten(0, (n_kv_heads, n_heads // n_kv_heads, -1))
    return pool(groups).flatten(0, 1)


@grader(
    lambda: [(torch.randn(5, 4), torch.randn(4, 6), torch.randn(6, 4, 4), 2),
             (torch.randn(5, 4), torch.randn(4, 3), torch.randn(3, 4, 4), 1)],
    "Each token goes to its best experts, and their weights add up to 1.",
    ("the weights of the chosen experts must add up to 1: softmax over their scores "
     "alone.", {"early": True}),
    ("every token has its own experts, those with its highest scores.",
     {"largest": False}),
    ("the experts' outputs are weighted by the router, not just averaged.",
     {"flat": True}),
)  # fmt: skip
def check_mixture(x, router, experts, n_chosen, early=False, largest=True, flat=False):
    """Send every row of x to its n_chosen best experts.

    x (t, d), router (d, n_experts), experts (n_experts, d, d): expert e makes x @
    experts[e] -> (t, d).
    """
    scores = (x @ router).softmax(-1) if early else x @ router
    best, chosen = scores.topk(n_chosen, largest=largest)
    weights = best if early else (0 * best if flat else best).softmax(-1)
    made = torch.einsum("td,tkde->tke", x, experts[chosen])
    return (weights[..., None] * made).sum(1)
