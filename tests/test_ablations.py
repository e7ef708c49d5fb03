"""Ablations: each variant changes what its name says, and nothing else."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from transformer_book.experiments import ablations as runs
from transformer_book.experiments.ablations import PAPER, VARIANTS, Plan, build
from transformer_book.experiments.modern import (
    HALVES,
    MODERN,
    POSITIONS,
    STUDIES,
    attend_nearby,
    gaps,
    whole_text_loss,
)
from transformer_lib import Tokenizer, learning_rate
from transformer_lib.data import Batch, ParallelCorpus, Steps
from transformer_lib.model.attention import fused_attention
from transformer_lib.runs.translation import Data

N_TOKENS = 30
SRC = torch.tensor([[3, 5, 9, 7, 2], [4, 4, 2, 0, 0]])
TGT = torch.tensor([[1, 3, 5, 4], [1, 9, 8, 6]])


def logits(name: str) -> torch.Tensor:
    with torch.no_grad():
        return build(VARIANTS[name], N_TOKENS, seed=1).eval()(SRC, TGT)


def test_every_variant_says_something_else() -> None:
    paper = logits(PAPER)
    same = {"no warm-up", "no label smoothing"}  # they differ in training alone
    for name in VARIANTS.keys() - {PAPER}:
        assert torch.equal(logits(name), paper) == (name in same), name


def test_a_seed_decides_the_weights_and_leaves_the_global_one_alone() -> None:
    state = torch.get_rng_state()
    one, same, other = (build(VARIANTS[PAPER], N_TOKENS, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.lm_head.weight, same.lm_head.weight)
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_without_scale_the_dot_product_is_not_divided() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 64)
    scaled, plain = (
        build(VARIANTS[name], N_TOKENS, 1).encoder.layers[0].self_attn
        for name in (PAPER, "dot product not scaled")
    )
    projections = scaled.q_proj, scaled.k_proj, scaled.v_proj
    heads = [scaled.split_heads(projection(x)) for projection in projections]
    by_hand = F.scaled_dot_product_attention(*heads, scale=1.0)
    expected = scaled.out_proj(scaled.join_heads(by_hand))
    torch.testing.assert_close(plain(x, x, x), expected)
    assert not torch.allclose(scaled(x, x, x), expected)


def test_without_positions_the_order_of_the_source_is_lost() -> None:
    turned = SRC[:1].flip(1)
    for name, lost in ((PAPER, False), ("no positions in the source", True)):
        model = build(VARIANTS[name], N_TOKENS, 1).eval()
        one, other = (model(src, TGT[:1]) for src in (SRC[:1], turned))
        assert torch.allclose(one, other, atol=1e-5) == lost


def test_small_embeddings_start_as_scaled_ones_do() -> None:
    small = build(VARIANTS["embeddings not scaled, start small"], 5000, 1)
    assert small.src_embeddings.scale == 1
    assert small.src_embeddings.tokens.weight is small.lm_head.weight
    assert small.lm_head.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    large = build(VARIANTS["embeddings not scaled, start at 1"], 5000, 1)
    assert large.lm_head.weight.std().item() == pytest.approx(1, rel=0.02)


def make_data() -> Data:
    pairs = [(f"{a} {b} {a}", f"{b} {a}") for a in "abcd" for b in "efgh"]
    corpus = ParallelCorpus("tiny", (*pairs,), (*pairs[:2],), (*pairs[2:7],))
    tokenizer = Tokenizer.from_words([text for pair in pairs for text in pair])
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    rows = [(tokenizer.encode(s), tokenizer.encode(t)) for s, t in pairs]
    steps = Steps(rows, 40, 1, 0, **ids)
    batches = next(steps.starting_at(1))
    return Data(corpus, tokenizer, steps, batches, [])


SMALL = Plan(steps=6, max_tokens=40, warmup=4, average=2, every=2, n_test=3)


def test_without_warm_up_the_rate_starts_at_its_peak(monkeypatch) -> None:
    rates = []
    monkeypatch.setattr(
        "transformer_lib.training.loop.set_learning_rate",
        lambda optimizer, rate: rates.append(rate),
    )
    data = make_data()
    for variant in (VARIANTS[PAPER], VARIANTS["no warm-up"]):
        model = build(variant, len(data.tokenizer), 1)
        list(runs.train_variant(model, variant, runs.plan_steps(data, 1, SMALL), SMALL))
    usual = [learning_rate(step, 64, 4, 0.5) for step in range(1, 7)]
    assert rates[:6] == usual
    assert rates[6:] == [max(usual)] * 4 + usual[4:]


def test_a_run_is_repeated_by_its_seed_and_measured() -> None:
    data, variant = make_data(), replace(VARIANTS[PAPER], smoothing=0.0)
    plan = replace(SMALL, steps=120, warmup=20)
    one, same, other = (runs.run(variant, data, seed, plan) for seed in (1, 1, 2))
    assert one == same
    assert one["curve"] != other["curve"]
    assert one["exact"] == 1 - len(one["wrong"]) / 3
    assert len(one["curve"]) == 5
    assert one["curve"][-1] < one["curve"][0] / 4  # it learns
    assert one["valid_nats"] > 0


def test_a_record_is_written_and_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(runs, "RESULTS", tmp_path)
    record = {"plan": {"steps": 5}, "machine": "one", "runs": [{"a": 1}, {"a": 2}]}
    runs.write_results(record, "some")
    assert runs.read_results("some") == record
    assert runs.means([1.0, 2.0, 4.0, 6.0, 7.0], width=2) == [1.5, 5.0, 7.0]


@pytest.mark.parametrize("name", STUDIES)
def test_the_record_holds_what_the_library_would_run_today(name) -> None:
    record, study = runs.read_results(name), STUDIES[name]
    assert Plan(**record["plan"]) == study.plan
    keys = [(entry["variant"], entry["seed"]) for entry in record["runs"]]
    assert sorted(keys) == sorted(product(study.variants, study.seeds))
    for entry in record["runs"]:
        assert all(math.isfinite(loss) for loss in entry["curve"])
        if study.wrong:
            wrong = len(entry["wrong"]) / study.plan.n_test
            assert entry["exact"] == round(1 - wrong, 4)


@pytest.mark.parametrize("name", ["modern", "halves"])
def test_variants_are_as_large_as_the_paper_and_run(name) -> None:
    study, data = STUDIES[name], make_data()
    found = [runs.run(each, data, 1, SMALL) for each in study.variants.values()]
    sizes = [each["n_parameters"] for each in found]
    assert max(sizes) / min(sizes) < 1.02


def test_a_variant_without_biases_has_none_in_its_matrices() -> None:
    names = dict(build(MODERN["no biases"], N_TOKENS, 1).named_parameters())
    assert all(name.endswith("norm.bias") for name in names if name.endswith("bias"))


def test_nearby_tokens_cost_less_by_the_slope_of_their_head() -> None:
    """The numbers of section 3 of the paper: slopes 1/4, 1/16, 1/64, 1/256."""
    q, k, v = torch.randn(3, 2, 4, 5, 8)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    scores = (q @ k.mT) / math.sqrt(8)
    for head, i, j in product(range(4), range(5), range(5)):
        scores[:, head, i, j] -= abs(i - j) / 4 ** (head + 1)
    for seen in mask, None:
        hidden = scores if seen is None else scores.masked_fill(~mask, -math.inf)
        found = attend_nearby(q, k, v, seen, 0.0)
        torch.testing.assert_close(found, hidden.softmax(dim=-1) @ v)
    last = attend_nearby(q[:, :, -1:], k, v, mask[-1:], 0.0)
    torch.testing.assert_close(last, attend_nearby(q, k, v, mask, 0.0)[:, :, -1:])
    model = build(POSITIONS["ALiBi"], N_TOKENS, 1).eval()
    kernels = {part.kernel for part in model.modules() if hasattr(part, "kernel")}
    assert kernels == {attend_nearby, fused_attention}  # it crosses without positions


def test_a_decoder_alone_continues_the_source() -> None:
    model = build(HALVES["decoder alone"], N_TOKENS, 1).eval()
    text = torch.cat([SRC[:1], TGT[:1]], dim=1)
    expected = model.text(text)[:, SRC.size(1) :]
    torch.testing.assert_close(model(SRC[:1], TGT[:1]), expected)
    for name in "decoder alone", "decoder alone, prefix":
        model = build(HALVES[name], N_TOKENS, 1).eval()
        short = model(SRC[1:, :3], TGT[1:])  # without the padding
        torch.testing.assert_close(model(SRC, TGT)[1:], short)
        sources = SRC[:1], torch.tensor([[3, 5, 9, 7, 8]])
        first, other = (model.score(src, TGT[:1])[1][0, 0] for src in sources)
        assert torch.equal(first, other) == (name == "decoder alone")


def test_the_loss_of_the_whole_text_is_that_of_every_next_token() -> None:
    """Each sentence alone, unpadded, its eos among the labels."""
    model = build(HALVES["decoder alone"], N_TOKENS, 1).eval()
    texts = [[3, 5, 9, 7, 2, 1, 3, 5, 4, 2], [4, 4, 2, 1, 9, 2]]
    tgt_in = torch.tensor([[1, 3, 5, 4], [1, 9, 0, 0]])
    tgt_out = torch.tensor([[3, 5, 4, 2], [9, 2, 0, 0]])
    nats = [
        F.cross_entropy(model.text(ids[:, :-1]).mT, ids[:, 1:], reduction="none")
        for ids in (torch.tensor([text]) for text in texts)
    ]
    expected = 6 * torch.cat(nats, dim=1).mean()
    found = whole_text_loss(model, Batch(SRC, tgt_in, tgt_out, 6), 0.0)
    torch.testing.assert_close(found, expected)


def test_gaps_are_between_runs_of_one_seed() -> None:
    scores = {PAPER: [1.0, 2.0, 4.0], "better": [2.0, 3.0, 8.0], "other": [0.0, 4.0]}
    entries = [
        {"variant": name, "seed": seed, "exact": score}
        for name, values in scores.items()
        for seed, score in enumerate(values)
    ]
    mean, low, high, n_above = gaps({"runs": entries}, "exact")["better"]
    # The gaps 1, 1 and 4 have s = sqrt(3), so that s / sqrt(3) is 1.
    assert (mean, n_above) == (2, 3)
    assert (low, high) == pytest.approx((2 - 4.303, 2 + 4.303), abs=1e-3)
    assert gaps({"runs": entries}, "exact", "better")["other"][3] == 1
