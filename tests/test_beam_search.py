"""Beam search against exhaustive search, greedy search and itself, one by one."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from small_models import BOS, EOS, PAD, SRC, VOCAB, make_config, make_model, rounded
from torch import Tensor

import transformer_lib as tl
from transformer_lib.generation import settle, top, top_tokens
from transformer_lib.generation.beam_search import Beam, BeamHypotheses, BeamOptions

SEEDS = (8, 9, 12, 14)


@torch.no_grad()
def log_prob_of(model: tl.Transformer, src: Tensor, ids: list[int], n_forced: int = 0):
    """The log-probability of a whole target, by its definition."""
    tgt = torch.tensor([[BOS, *ids]])
    log_probs = model(src[src != PAD][None], tgt[:, :-1]).log_softmax(-1)
    return log_probs[0].gather(1, tgt[0, 1:, None])[n_forced:].sum().item()


WORDS = [3, 4, 5]


def exhaust(config: tl.GenerationConfig, prefix: list[int]) -> list[list[int]]:
    """Every target of WORDS that keeps to the config."""
    targets = []
    for n_words in range(config.max_len - len(prefix) + 1):
        for said in itertools.product(WORDS, repeat=n_words):
            ids = [*prefix, *said]
            targets.append([*ids, EOS] if len(ids) < config.max_len else ids)
    return [ids for ids in targets if len(ids) >= config.min_len]


def quiet_model(seed: int) -> tl.Transformer:
    """A model of 20 tokens of which it says three words and the end."""
    model = make_model(seed, tgt_vocab_size=20, head_bias=True)
    with torch.no_grad():
        model.lm_head.bias[[PAD, BOS, *range(6, 20)]] = -1e4
    return model


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("length_penalty", "min_len", "prefix"),
    [
        (0.0, 1, []),
        (-1.0, 1, []),
        (0.6, 1, []),
        (3.0, 1, []),
        (0.7, 3, []),
        (0.7, 4, [4]),
        (1.0, 1, [5, 7]),
    ],
)
def test_a_beam_that_is_wide_enough_is_exhaustive(
    seed, length_penalty, min_len, prefix
) -> None:
    # Of 3 words there are 9 beginnings of length 2: no beam of 9 loses any.
    model, n_forced = quiet_model(seed), len(prefix)
    config = make_config(3 + n_forced, min_len=min_len, prefixes=[prefix])
    found = tl.beam_search(model, SRC, config, 18, length_penalty, "never")
    for n_best, src in zip(found, SRC, strict=True):
        expected = []
        for ids in exhaust(config, prefix):
            log_prob = log_prob_of(model, src, ids, n_forced)
            score = log_prob / (len(ids) - n_forced) ** length_penalty
            expected.append(tl.Hypothesis(ids, log_prob, score, ids[-1] == EOS))
        expected.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
        assert rounded(n_best) == rounded(expected[:18])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("early_stopping", "length_penalty"), [(True, 1.0), (False, 1.0), ("never", 0.0)]
)
@pytest.mark.parametrize("rules", [{}, {"min_len": 5}, {"prefixes": [[4, 6]]}])
def test_one_beam_is_greedy_search(seed, early_stopping, length_penalty, rules) -> None:
    model, config = make_model(seed), make_config(**rules)
    beams = tl.beam_search(model, SRC, config, 1, length_penalty, early_stopping)
    for [beam], greedy in zip(beams, tl.greedy_decode(model, SRC, config), strict=True):
        assert rounded([replace(beam, score=greedy.score)]) == rounded([greedy])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_a_batch_equals_its_sentences_one_by_one(seed, early_stopping) -> None:
    model, prefixes = make_model(seed), [[], [4, 5], [6], [3, 3, 3]]
    config = make_config(prefixes=prefixes)
    found = tl.beam_search(model, SRC, config, 3, 1.0, early_stopping)
    for n_best, src, prefix in zip(found, SRC, prefixes, strict=True):
        config = make_config(prefixes=[prefix])
        src = src[src != PAD][None]
        [alone] = tl.beam_search(model, src, config, 3, 1.0, early_stopping)
        assert rounded(n_best) == rounded(alone)


@pytest.mark.parametrize("vocab_size", [79, 80, 83, 800, 1007])
@pytest.mark.parametrize("n", [1, 8, 40])
@pytest.mark.parametrize("few_scores", [0, 2**20])
def test_top_tokens_are_those_of_topk(monkeypatch, few_scores, vocab_size, n) -> None:
    monkeypatch.setattr(top, "_FEW_SCORES", few_scores)
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
    search.hypotheses = [tl.Hypothesis([EOS], bar, bar, True)]
    assert search.has_no_hope(4) == done


@pytest.mark.parametrize("seed", [6, 12])  # a bound too low stops too early here
@pytest.mark.parametrize("length_penalty", [0.0, -0.3, -0.5])
def test_where_length_is_not_rewarded_the_best_end_is_now(seed, length_penalty) -> None:
    """So no end further on gives hope, and the two rules stop alike."""
    model, config = make_model(seed), make_config(30)
    found, expected = (
        tl.beam_search(model, SRC, config, 5, length_penalty, rule)
        for rule in ("never", False)
    )
    assert rounded(found) == rounded(expected)


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
        tl.beam_search(make_model(), SRC, make_config(), **options)


@pytest.mark.parametrize("n_beams", [1, 3])
def test_a_listener_sees_where_each_beam_and_each_target_comes_from(n_beams) -> None:
    model, ended = make_model(9), [[] for _ in SRC]
    before, numbers = {}, {}

    def listen(position, searches, candidates) -> None:
        for row, search in enumerate(searches):
            number = numbers.setdefault(id(search), row)  # in the first step, all
            parents = before.get(number, [[BOS]] * n_beams)
            rows = zip(*(part[row].tolist() for part in candidates), strict=True)
            offered = {(*parents[parent], token): p for p, parent, token in rows}
            for beam in search.beams:
                assert beam.log_prob == offered[tuple(beam.ids)]
                assert beam.ids[:-1] == parents[beam.parent]
            ended[number] += [
                target
                for target in search.hypotheses
                if len(target.ids) == position
                and offered[(BOS, *target.ids)] == target.log_prob
            ]
            before[number] = [beam.ids for beam in search.beams]

    found = tl.beam_search(model, SRC, make_config(), n_beams, listener=listen)
    for targets, seen in zip(found, ended, strict=True):
        assert targets and all(target in seen for target in targets)
