"""What the changes since 2017 buy: each alone in the paper's model, at equal size.

Every variant is trained on the same sentences in the same order and has as many
parameters as the paper's model, within 1 %: what a change frees goes to d_ff.
`benchmarks/ablations.py modern` runs all of them and records what came out.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.experiments.ablations import (
    PAPER,
    PLAN,
    SIZES,
    VARIANTS,
    Plan,
    Variant,
    without_positions,
)
from transformer_lib.data.batches import Batch
from transformer_lib.model.attention import fused_attention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.language_model import LanguageModel
from transformer_lib.model.modern import (
    replace_attention,
    replace_feed_forward,
    replace_norms,
)
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loss import batch_loss, label_smoothed_loss


def gate(model: nn.Module) -> None:
    """Let every feed-forward have a gate, and biases as before."""
    replace_feed_forward(model, model.config.d_ff, bias=True)


def without_biases(model: nn.Module) -> None:
    """Take the biases from all matrices."""
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.bias = None


def modernize(model: nn.Module) -> None:
    """Exchange all that has other parts today."""
    replace_norms(model)
    replace_feed_forward(model, model.config.d_ff)
    replace_attention(model, n_kv_heads=2, rotary=10_000.0)


def attend_nearby(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend after subtracting from scores a slope times the distance (ALiBi).

    The slope of head i of h is 2^(-8 i / h), i from 1: section 3 of Press et al. 2021.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, q.size(1) + 1) / q.size(1))
    numbers = torch.arange(k.size(2))
    distance = (numbers[-q.size(2) :, None] - numbers).abs()
    scores = slopes[:, None, None] * -distance  # (n_heads, q_len, k_len)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return fused_attention(q, k, v, scores, dropout)


def with_alibi(model: Transformer) -> None:
    """Take the positions out; in self-attention, distance costs instead (ALiBi)."""
    without_positions(model)
    for part in model.modules():
        if hasattr(part, "self_attn"):
            part.self_attn.kernel = attend_nearby


class TextModel(nn.Module):
    """A decoder alone that translates: called as a Transformer, it continues a text.

    The text is the source with its eos, then bos and the target. Every token sees those
    before it. In a prefix model the tokens of the source see all of the source.

    Args:
        config: sizes and choices, with norm_first.
        prefix: whether it is a prefix model.
    """

    def __init__(self, config: TransformerConfig, prefix: bool = False) -> None:
        super().__init__()
        self.config, self.prefix, self.text = config, prefix, LanguageModel(config)
        self.lm_head = self.text.lm_head

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Score every next target token: (batch, tgt_len, vocab_size)."""
        return self.score(src, tgt_in)[1][:, src.size(1) :]

    def score(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """Return the texts, padded on the left, and the logits after every token."""
        n_src, n_real = src.size(1), (src != self.config.pad_id).sum(1, keepdim=True)
        padded_left = src.gather(1, (torch.arange(n_src) + n_real) % n_src)
        ids = torch.cat([padded_left, tgt_in], dim=1)
        numbers = torch.arange(ids.size(1))
        real = numbers >= n_src - n_real  # (batch, length)
        in_prefix = numbers < (n_src if self.prefix else 0)
        mask = (numbers[:, None] >= numbers) | in_prefix
        x = self.text.embeddings(ids, (real.cumsum(dim=1) - 1).clamp(min=0))
        for layer in self.text.layers:
            x = layer(x, mask & real[:, None, None])
        return ids, self.text.lm_head(self.text.norm(x))


def whole_text_loss(model: TextModel, batch: Batch, smoothing: float) -> Tensor:
    """Return the mean loss of all tokens, the source's too, times batch.n_tokens."""
    ids, logits = model.score(batch.src, batch.tgt_in)
    pad_id, n_src = model.config.pad_id, batch.src.size(1)
    wanted = torch.cat([ids[:, 1 : n_src + 1], batch.tgt_out], dim=1)
    counts = (ids != pad_id) & (wanted != pad_id)
    found = label_smoothed_loss(logits[counts], wanted[counts], pad_id, smoothing)
    return found * batch.n_tokens / counts.sum()


attend = partial(replace_attention, bias=True)
PRE = {"norm_first": True}
MODERN = {
    PAPER: Variant(),
    "pre-norm": Variant(PRE),
    "all together": Variant({**PRE, "d_ff": 207}, change=modernize),
    "rotary positions": Variant(change=partial(attend, rotary=10_000.0)),
    "gated feed-forward": Variant({"d_ff": 170}, change=gate),
    "RMSNorm": Variant({"d_ff": 257}, change=replace_norms),
    "pre-norm, RMSNorm": Variant({**PRE, "d_ff": 257}, change=replace_norms),
    "no biases": Variant({"d_ff": 261}, change=without_biases),
    "2 of 4 kv heads": Variant({"d_ff": 304}, change=partial(attend, n_kv_heads=2)),
    "1 of 4 kv heads": Variant({"d_ff": 329}, change=partial(attend, n_kv_heads=1)),
    "QK-norm": Variant(change=partial(attend, qk_norm=True)),
}
ALONE = {**PRE, "n_decoder_layers": 4, "d_ff": 321}
HALVES = {
    "pre-norm": Variant(PRE),
    "decoder alone": Variant(ALONE, kind=TextModel, loss=batch_loss),
    "decoder alone, prefix": Variant(
        ALONE, kind=partial(TextModel, prefix=True), loss=batch_loss
    ),
    "decoder alone, whole text": Variant(ALONE, kind=TextModel, loss=whole_text_loss),
}
POSITIONS = {
    PAPER: Variant(),
    "positions learned": VARIANTS["positions learned"],  # 6 % more parameters: tables
    "rotary positions": MODERN["rotary positions"],
    "ALiBi": Variant(change=with_alibi),
}


def twice_as_wide(variant: Variant) -> Variant:
    """Return the same variant for a model with twice the d_ff."""
    d_ff = 2 * variant.model.get("d_ff", SIZES["d_ff"])
    return replace(variant, model={**variant.model, "d_ff": d_ff})


CAPTIONS = {
    name: twice_as_wide(MODERN[name]) for name in (*list(MODERN)[:6], "2 of 4 kv heads")
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """Variants that learn the same sentences.

    Attributes:
        variants: by name.
        seeds: every variant is trained with each of them.
        plan: what all variants have in common.
        recipe: whose sentences they learn.
        data: what takes the place of values in its table [data].
        wrong: whether to record which test sentences are not right.
    """

    variants: dict[str, Variant]
    seeds: Sequence[int] = range(1, 6)
    plan: Plan = PLAN
    recipe: str = "grammar"
    data: dict[str, Any] = field(default_factory=lambda: {"reverse": False})
    wrong: bool = False


STUDIES = {
    "ablations": Study(variants=VARIANTS, seeds=range(1, 4), wrong=True),
    "modern": Study(variants=MODERN, seeds=range(1, 7)),
    "modern_faster": Study(
        variants=dict(islice(MODERN.items(), 3)), plan=replace(PLAN, rate_scale=1.0)
    ),
    "captions": Study(
        variants=CAPTIONS,
        plan=replace(
            PLAN,
            steps=600,
            max_tokens=1000,
            warmup=200,
            n_test=1000,
            sizes={**SIZES, "d_model": 128, "dropout": 0.1},
        ),
        recipe="multi30k-de-en",
        data={"vocab_size": 2000},
    ),
    "halves": Study(variants=HALVES),
    "lengths": Study(
        variants=POSITIONS,
        plan=replace(PLAN, n_test=1000),
        data={"reverse": False, "max_len": 12},
        wrong=True,
    ),
}


# Student's t: so many standard errors make a 95 % interval of the mean of n numbers.
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}


def gaps(
    record: dict[str, Any], score: str, baseline: str = PAPER
) -> dict[str, tuple[float, float, float, int]]:
    """Compare all variants of a record with one of them, in pairs of the same seed.

    Args:
        record: what `read_results` returns.
        score: "exact", "bleu", "chrf" or "valid_nats".
        baseline: the variant that is subtracted from the others.

    Returns:
        For each other variant: the mean of the differences; the ends of its 95 %
        interval, by Student's t over the seeds (if 0 lies inside, these seeds don't
        tell gain from loss); and the number of seeds whose difference is above 0.
    """
    values: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for run in record["runs"]:
        values[run["variant"]][run["seed"]] = run[score]
    base, found = values.pop(baseline), {}
    for name, mine in values.items():
        above = [mine[seed] - base[seed] for seed in mine.keys() & base.keys()]
        half = T_95[len(above)] * stdev(above) / len(above) ** 0.5
        mean = fmean(above)
        found[name] = mean, mean - half, mean + half, sum(gap > 0 for gap in above)
    return found
