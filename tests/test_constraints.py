"""Rules for targets: each is kept, and each that cannot be kept is refused."""

from functools import partial

import numpy as np
import pytest
import torch
from small_models import BOS, EOS, PAD, SRC, make_config, make_model, rounded

import transformer_lib as tl
from transformer_lib.generation import LogitsProcessor, RecomputingDecoder


def draw(model, src, config):
    generator = torch.Generator().manual_seed(0)
    return tl.sample(model, src, config, tl.SamplingConfig(), generator)


def best_beams(model, src, config):
    return [n_best[0] for n_best in tl.beam_search(model, src, config, 3)]


SEARCHES = pytest.mark.parametrize("search", [tl.greedy_decode, draw, best_beams])


@SEARCHES
def test_lengths_stay_within_their_bounds(search) -> None:
    lengths = set()
    for seed in range(6):
        for found in search(make_model(seed), SRC, make_config(7, min_len=4)):
            lengths.add(len(found.ids))
            assert found.finished == (found.ids[-1] == EOS)
    assert lengths <= {4, 5, 6, 7} and len(lengths) > 1


@SEARCHES
def test_prefixes_of_each_sentence_are_kept_and_cost_nothing(search) -> None:
    prefixes = [[4, 5, 6], [], [3], [6, 6]]
    found = search(make_model(8), SRC, make_config(4, prefixes=prefixes))
    for hypothesis, prefix in zip(found, prefixes, strict=True):
        assert hypothesis.ids[: len(prefix)] == prefix
        assert hypothesis.log_prob < 0
    assert len(found[0].ids) == 4  # one free token after three
    assert found[0].score == found[0].log_prob


@SEARCHES
def test_one_prefix_and_one_length_serve_all_sentences(search) -> None:
    shared = search(make_model(8), SRC, make_config(np.int64(9), prefixes=[[4, 5]]))
    each = search(make_model(8), SRC, make_config([9] * 4, prefixes=[[4, 5]] * 4))
    assert shared == each


@pytest.mark.parametrize("seed", [8, 9, 12, 14])
@pytest.mark.parametrize("search", [tl.greedy_decode, best_beams])
def test_every_sentence_may_have_a_length_of_its_own(search, seed) -> None:
    model, lengths = make_model(seed), [1, 9, 2, 5]
    found = search(model, SRC, make_config(lengths))
    for hypothesis, src, longest in zip(found, SRC, lengths, strict=True):
        [alone] = search(model, src[src != PAD][None], make_config(longest))
        assert hypothesis.ids == alone.ids
    with pytest.raises(ValueError, match="1 values of max_len for 4 sentences"):
        search(model, SRC, make_config([3]))


@pytest.mark.parametrize(
    "search", [tl.greedy_decode, partial(tl.beam_search, n_beams=3)]
)
def test_a_search_asks_the_decoder_that_it_is_given(search) -> None:
    """Here it decodes with another model."""
    model, other, config = make_model(8), make_model(9), make_config()
    found = search(model, SRC, config, decoder=RecomputingDecoder(other))
    assert rounded(found) == rounded(search(other, SRC, config))
    assert rounded(found) != rounded(search(model, SRC, config))


def test_impossible_tokens_leave_the_others_as_they_were() -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 2, 7).double()
    before = logits.log_softmax(-1)
    config = make_config(min_len=3, prefixes=[[], [5], [], [6, 4]])
    after = LogitsProcessor(make_model(), SRC, config).log_probs(logits, position=1)
    for row in (0, 2):
        assert torch.equal(after[row, :, [PAD, EOS]].exp(), torch.zeros(2, 2).double())
        others = [1, 3, 4, 5, 6]
        torch.testing.assert_close(after[row][:, others], before[row][:, others])
    for row, token in ((1, 5), (3, 6)):
        certain = torch.nn.functional.one_hot(torch.tensor([token] * 2), 7).double()
        torch.testing.assert_close(after[row].exp(), certain)
    free = LogitsProcessor(make_model(), SRC, make_config())
    assert free.log_probs(logits, 1)[:, :, EOS].isfinite().all()  # it may end at once


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"max_len": 0}, "min_len must be from 1 to max_len 0, not 1"),
        ({"min_len": 0}, "min_len must be from 1 to max_len 9, not 0"),
        ({"max_len": [9, 3], "min_len": 4}, "from 1 to max_len 3, not 4"),
        ({"max_len": 3, "prefixes": [[4, 5, 6]]}, "prefix of 3 tokens leaves no room"),
        ({"prefixes": [[4, EOS]]}, "prefix holds eos_id 2"),
        ({"prefixes": [[4, 7]]}, "token 7 is outside the vocabulary of 7"),
        ({"prefixes": [[-1]]}, "token -1 is outside the vocabulary"),
        ({"prefixes": [[4, PAD]]}, "prefix holds pad_id 0"),
        ({"eos_id": 7}, "token 7 is outside the vocabulary"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(choices, message) -> None:
    choices = {"bos_id": BOS, "eos_id": EOS, "max_len": 9} | choices
    with pytest.raises(ValueError, match=message):
        tl.greedy_decode(make_model(), SRC, tl.GenerationConfig(**choices))


@SEARCHES
def test_no_part_drops_out_and_each_gets_its_own_mode_back(search) -> None:
    model, config = make_model(8, dropout=0.9), make_config()
    expected = search(model.eval(), SRC, config)
    part = model.decoder.layers[0].feed_forward_connection.dropout.train()
    assert search(model, SRC, config) == expected
    assert [each for each in model.modules() if each.training] == [part]


@SEARCHES
def test_a_sentence_of_padding_is_refused(search) -> None:
    src = SRC.clone()
    src[2] = PAD
    with pytest.raises(ValueError, match="sentence 2 of the batch is empty"):
        search(make_model(), src, make_config())


def test_the_first_and_the_last_token_of_the_vocabulary_may_start_and_end() -> None:
    model, src = make_model(pad_id=3), torch.tensor([[5, 6, 4, 2]])
    config = tl.GenerationConfig(bos_id=0, eos_id=6, max_len=4, prefixes=[[0]])
    assert all(found.ids[0] == 0 for found in tl.greedy_decode(model, src, config))
