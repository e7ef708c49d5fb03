"""Beam search against exhaustive search, greedy search and itself, one by one."""

import itertools
import math

import pytest
import torch
from small_models import (
    BOS,
    EOS,
    PAD,
    SRC,
    VOCAB,
    constant_model,
    make_config,
    make_model,
)
from torch import Tensor

from transformer_fast import search as module
from transformer_fast.search import settle, top_tokens
from transformer_lib.generation.beam_search import (
    Beam,
    BeamHypotheses,
    BeamOptions,
    beam_search,
    best_candidates,
)
from transformer_lib.generation.constraints import Hypothesis
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.model.transformer import Transformer

SEEDS = (8, 9, 12, 14)


@torch.no_grad()
def log_prob_of(model: Transformer, src: Tensor, ids: list[int], n_forced: int = 0):
    """The log-probability of a whole target, by its definition."""
    tgt = torch.tensor([[BOS, *ids]])
    log_probs = model(src[src != PAD][None], tgt[:, :-1]).log_softmax(-1)
    return log_probs[0].gather(1, tgt[0, 1:, None])[n_forced:].sum().item()


def exhaust(model: Transformer, src: Tensor, max_len: int, words: list[int]):
    """Every target there is, with its log-probability, likeliest first."""
    targets = []
    for length in range(max_len + 1):
        for said in itertools.product(words, repeat=length):
            if length < max_len:
                targets.append([*said, EOS])
            else:
                targets.append([*said])
    scored = [(log_prob_of(model, src, ids), ids) for ids in targets]
    return sorted(scored, reverse=True)


def quiet_model(seed: int) -> Transformer:
    """A model of 20 tokens of which it says three words and the end."""
    model = make_model(seed, tgt_vocab_size=20, head_bias=True)
    with torch.no_grad():
        model.lm_head.bias[[PAD, BOS, *range(6, 20)]] = -1e4
    return model


@pytest.mark.parametrize("seed", SEEDS)
def test_a_beam_that_is_wide_enough_is_exhaustive(seed) -> None:
    # Of 3 words there are 9 beginnings of length 2: no beam of 9 loses any.
    model = quiet_model(seed)
    found = beam_search(model, SRC, make_config(3), 18, 0.0, "never")
    for n_best, src in zip(found, SRC, strict=True):
        expected = exhaust(model, src, 3, [3, 4, 5])[:18]
        assert [hypothesis.ids for hypothesis in n_best] == [ids for _, ids in expected]
        for hypothesis, (log_prob, _) in zip(n_best, expected, strict=True):
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-10)
            assert hypothesis.score == hypothesis.log_prob


@pytest.mark.parametrize("length_penalty", [-1.0, 0.6, 1.0, 3.0])
def test_an_exhaustive_search_ranks_by_the_formula(length_penalty) -> None:
    model = quiet_model(8)
    found = beam_search(model, SRC[:1], make_config(3), 20, length_penalty, "never")[0]
    every = exhaust(model, SRC[0], 3, [3, 4, 5])
    scores = sorted((p / len(ids) ** length_penalty, ids) for p, ids in every)[::-1]
    assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in scores[:20]]
    for hypothesis, (score, _) in zip(found, scores, strict=False):
        assert hypothesis.score == pytest.approx(score, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("early_stopping", "length_penalty"), [(True, 1.0), (False, 1.0), ("never", 0.0)]
)
def test_one_beam_is_greedy_search(seed, early_stopping, length_penalty) -> None:
    model = make_model(seed)
    for config in (
        make_config(),
        make_config(min_len=5),
        make_config(prefixes=[[4, 6]]),
    ):
        beams = beam_search(model, SRC, config, 1, length_penalty, early_stopping)
        for [beam], greedy in zip(
            beams, greedy_decode(model, SRC, config), strict=True
        ):
            assert (beam.ids, beam.finished) == (greedy.ids, greedy.finished)
            assert beam.log_prob == pytest.approx(greedy.log_prob, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_a_batch_equals_its_sentences_one_by_one(seed, early_stopping) -> None:
    model, prefixes = make_model(seed), [[], [4, 5], [6], [3, 3, 3]]
    config = make_config(prefixes=prefixes)
    found = beam_search(model, SRC, config, 3, 1.0, early_stopping)
    for n_best, src, prefix in zip(found, SRC, prefixes, strict=True):
        config = make_config(prefixes=[prefix])
        src = src[src != PAD][None]
        [alone] = beam_search(model, src, config, 3, 1.0, early_stopping)
        assert [hypothesis.ids for hypothesis in n_best] == [h.ids for h in alone]
        for here, there in zip(n_best, alone, strict=True):
            assert here.score == pytest.approx(there.score, abs=1e-10)
            assert here.finished == there.finished


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_are_those_of_the_targets_read_at_once(seed) -> None:
    model, prefixes = make_model(seed), [[], [4, 5], [6], [3, 3, 3]]
    config = make_config(min_len=3, prefixes=prefixes)
    n_seen = 0
    for n_best, src, prefix in zip(
        beam_search(model, SRC, config, 5, 0.7), SRC, prefixes, strict=True
    ):
        scores = [hypothesis.score for hypothesis in n_best]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in n_best:
            ids, n_forced = hypothesis.ids, len(prefix)
            log_prob = log_prob_of(model, src, ids, n_forced)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-10)
            score = log_prob / (len(ids) - n_forced) ** 0.7
            assert hypothesis.score == pytest.approx(score, abs=1e-10)
            assert ids[:n_forced] == prefix
            assert 3 <= len(ids) <= 9
            assert hypothesis.finished == (EOS in ids) == (ids[-1] == EOS)
            assert hypothesis.finished or len(ids) == 9
            assert PAD not in ids and EOS not in ids[:-1]
            n_seen += 1
        assert len({tuple(hypothesis.ids) for hypothesis in n_best}) == len(n_best)
    assert n_seen == 20


def test_a_positive_length_penalty_makes_targets_longer() -> None:
    # Probability of the end 0.3, of either word 0.35: each word costs 1.05 nats.
    logits = torch.tensor([-99.0, -99.0, 0.3, 0.35, 0.35, -99.0, -99.0]).double()
    logits[2:5].log_()
    model = constant_model(logits)
    best = {
        penalty: beam_search(model, SRC[:1], make_config(6), 4, penalty, "never")[0][0]
        for penalty in (-1, 0.0, 2)
    }
    assert best[-1.0].ids == best[0.0].ids == [EOS]
    assert len(best[2.0].ids) == 6 and not best[2.0].finished
    assert best[0.0].log_prob == pytest.approx(math.log(0.3))
    assert best[2.0].score == pytest.approx(6 * math.log(0.35) / 36)


def test_early_stopping_keeps_the_first_that_end() -> None:
    # The end has probability 0.4 at every place, each of two words 0.3.
    logits = torch.tensor([-99.0, -99.0, 0.4, 0.3, 0.3, -99.0, -99.0]).double()
    logits[2:5].log_()
    found = {
        rule: beam_search(
            constant_model(logits), SRC[:1], make_config(9), 2, 2.0, rule
        )[0]
        for rule in (True, False, "never")
    }
    assert [len(hypothesis.ids) for hypothesis in found[True]] == [2, 2]
    assert len(found["never"][0].ids) == 9
    assert found["never"][0].score > found[True][0].score


def test_best_candidates_are_those_of_all_log_probabilities() -> None:
    torch.manual_seed(0)
    log_probs = torch.randn(3, 4, 11).double().log_softmax(-1)
    so_far = torch.randn(3, 4).double()
    found = best_candidates(log_probs, so_far, 8)
    every = (log_probs + so_far[..., None]).flatten(1)
    expected, places = every.sort(dim=1, descending=True)
    torch.testing.assert_close(found.log_probs, expected[:, :8])
    assert torch.equal(found.parents * 11 + found.tokens, places[:, :8])


@pytest.mark.parametrize("vocab_size", [79, 80, 83, 800, 1007])
@pytest.mark.parametrize("n", [1, 8, 40])
@pytest.mark.parametrize("few_scores", [0, 2**20])
def test_top_tokens_are_those_of_topk(monkeypatch, few_scores, vocab_size, n) -> None:
    monkeypatch.setattr(module, "_FEW_SCORES", few_scores)
    torch.manual_seed(n)
    scores = torch.randn(3, 4, vocab_size)
    scores[0, :, 5:] = -torch.inf  # as in a forced prefix
    scores[1, 0, -3:] = 9.0 + torch.arange(3)  # beside the table
    found, tokens = top_tokens(scores, n)
    expected, places = scores.topk(n)
    assert torch.equal(found, expected)
    assert torch.equal(scores.gather(-1, tokens), expected)
    possible = expected > -torch.inf
    assert torch.equal(tokens[possible], places[possible])
    assert all(len(set(row)) == n for row in tokens.flatten(0, 1).tolist())


@pytest.mark.parametrize(
    ("rule", "bar", "done"),
    [  # of 4 tokens the beam scores -4 / 2, of the most it may have, 9, -4 / 3
        (False, -2.1, False),
        (False, -2.0, True),
        ("never", -2.0, False),
        ("never", -1.4, False),
        ("never", -1.3, True),
    ],
)
def test_a_search_is_done_when_no_beam_can_get_above_the_bar(rule, bar, done) -> None:
    search = BeamHypotheses([BOS], 0, EOS, 9, BeamOptions(1, 0.5, rule))
    search.beams = [Beam([BOS, 3, 3, 3, 3], -4.0, 0)]
    search.hypotheses = [Hypothesis([EOS], bar, bar, True)]
    assert search.has_no_hope(4) == done


@pytest.mark.parametrize(
    ("parents", "rows"),
    [
        ([2, 0, 2, 2], [1, 2, 0, 3]),
        ([1, 1, 0, 3], [2, 0, 1, 3]),
        ([3, 2, 1, 0], [3, 2, 1, 0]),
        ([1, 1, 1, 1], [1, 0, 2, 3]),
    ],
)
def test_the_best_child_takes_the_row_of_its_parent(parents, rows) -> None:
    """Rows hold the number of the child, from 0 for the best."""
    children = [Beam([], -float(i), parent) for i, parent in enumerate(parents)]
    assert settle(children) == [children[i] for i in rows]


def test_no_part_drops_out_and_each_gets_its_own_mode_back() -> None:
    model, config = make_model(8, dropout=0.9), make_config()
    expected = beam_search(model.eval(), SRC, config)
    part = model.decoder.layers[0].feed_forward_connection.dropout.train()
    assert beam_search(model, SRC, config) == expected
    assert [each for each in model.modules() if each.training] == [part]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_beams": 0}, f"n_beams must be from 1 to {VOCAB}, .* not 0"),
        ({"n_beams": VOCAB + 1}, f"n_beams must be from 1 to {VOCAB}"),
        ({"early_stopping": "late"}, "True, False or 'never', not 'late'"),
        ({"length_penalty": math.nan}, "length_penalty must be finite, not nan"),
    ],
)
def test_options_of_no_use_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(make_model(), SRC, make_config(), **options)
