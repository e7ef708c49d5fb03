"""What the changes since 2017 buy: each alone in the paper's model, at equal size.

Every variant is trained on the same sentences in the same order, with as many
parameters as the paper's model: what a change frees goes into the feed-forward network.
`benchmarks/ablations.py modern` runs all of them and records what came out.
"""

from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from scipy.stats import ttest_rel
from torch import nn

from transformer_book.experiments.ablations import (
    PAPER,
    PLAN,
    SIZES,
    VARIANTS,
    Study,
    Variant,
)
from transformer_lib.model.modern import (
    replace_attention,
    replace_feed_forward,
    replace_norms,
)
from transformer_lib.model.transformer import Transformer


def modernize(
    model: Transformer,
    rms: bool = False,
    gated: bool = False,
    rotary: bool = False,
    n_kv_heads: int | None = None,
    qk_norm: bool = False,
    bias: bool = True,
) -> None:
    """Exchange the named parts of a model, in place."""
    if rms:
        replace_norms(model)
    if gated:
        replace_feed_forward(model, model.config.d_ff, bias=bias)
    if rotary or n_kv_heads or qk_norm:
        base = 10_000.0 if rotary else None
        replace_attention(model, n_kv_heads, base, qk_norm=qk_norm, bias=bias)
    if not bias:
        for part in model.modules():
            if isinstance(part, nn.Linear):
                part.bias = None


def variant(norm_first: bool = False, **changes: Any) -> Variant:
    """Return the paper's choices with the named changes, at equal size."""
    return Variant(
        {"norm_first": norm_first},
        change=partial(modernize, **changes),
        same_size=True,
    )


MODERN = {
    PAPER: Variant(),
    "pre-norm": variant(norm_first=True),
    "all together": variant(
        norm_first=True, rms=True, gated=True, rotary=True, n_kv_heads=2, bias=False
    ),
    "rotary positions": variant(rotary=True),
    "gated feed-forward": variant(gated=True),
    "RMSNorm": variant(rms=True),
    "pre-norm, RMSNorm": variant(norm_first=True, rms=True),
    "no biases": variant(bias=False),
    "2 of 4 key heads": variant(n_kv_heads=2),
    "1 of 4 key heads": variant(n_kv_heads=1),
    "QK-norm": variant(qk_norm=True),
}
FEW = dict(list(MODERN.items())[:5])
NORMS = dict(list(MODERN.items())[:3])
STUDIES = {
    "ablations": Study(variants=VARIANTS, seeds=range(1, 4), wrong=True),
    "modern": Study(variants=MODERN, seeds=range(1, 9)),
    "modern_faster": Study(
        variants=NORMS, seeds=range(1, 5), plan=replace(PLAN, rate_scale=1.0)
    ),
    "captions": Study(
        variants=FEW,
        seeds=range(1, 6),
        plan=replace(PLAN, steps=600, max_tokens=1000, warmup=200, n_test=1000),
        sizes={**SIZES, "d_model": 128, "d_ff": 512, "dropout": 0.1},
        recipe="multi30k-de-en",
        data={"vocab_size": 2000},
    ),
    "lengths": Study(
        variants={
            PAPER: Variant(),
            "positions learned": VARIANTS["positions learned"],
            "rotary positions": MODERN["rotary positions"],
        },
        seeds=range(1, 4),
        plan=replace(PLAN, n_test=1000),
        wrong=True,
        longest=12,
    ),
}


@dataclass(frozen=True)
class Gap:
    """What a variant has more than another one, seed by seed.

    Attributes:
        mean: of the differences.
        low, high: the 95 % interval of the mean, by Student's t over seeds. If 0 lies
            inside, these seeds show no difference.
        n_above, n_seeds: how many differences are above 0, and how many there are.
    """

    mean: float
    low: float
    high: float
    n_above: int
    n_seeds: int


def gaps(record: dict[str, Any], score: str, baseline: str = PAPER) -> dict[str, Gap]:
    """Compare all variants of a record with one of them, in pairs of the same seed."""
    values: dict[str, dict[int, float]] = {}
    for run in record["runs"]:
        values.setdefault(run["variant"], {})[run["seed"]] = run[score]
    base, found = values.pop(baseline), {}
    for name, mine in values.items():
        pairs = [(mine[seed], base[seed]) for seed in mine.keys() & base.keys()]
        test = ttest_rel(*zip(*pairs, strict=True))
        differences = [one - other for one, other in pairs]
        n_above = sum(difference > 0 for difference in differences)
        found[name] = Gap(
            fmean(differences), *test.confidence_interval(), n_above, len(pairs)
        )
    return found
