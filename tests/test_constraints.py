"""Rules for targets: each is kept, and each that cannot be kept is refused."""

import pytest
import torch
from small_models import BOS, EOS, PAD, SRC, make_config, make_model

from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig, LogitsProcessor
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.sampling import SamplingConfig, sample


def draw(model, src, config):
    generator = torch.Generator().manual_seed(0)
    return sample(model, src, config, SamplingConfig(), generator)


def best_beams(model, src, config):
    return [n_best[0] for n_best in beam_search(model, src, config, 3)]


SEARCHES = pytest.mark.parametrize("search", [greedy_decode, draw, best_beams])


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
def test_one_prefix_serves_all_sentences(search) -> None:
    shared = search(make_model(8), SRC, make_config(prefixes=[[4, 5]]))
    each = search(make_model(8), SRC, make_config(prefixes=[[4, 5]] * 4))
    assert shared == each


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


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"max_len": 0}, "max_len must be at least 1, not 0"),
        ({"min_len": 0}, "min_len must be at least 1, not 0"),
        ({"max_len": 3, "min_len": 4}, "max_len 3 is below min_len 4"),
        ({"max_len": 3, "prefixes": [[4, 5, 6]]}, "prefix of 3 tokens leaves no room"),
        ({"prefixes": [[4, EOS]]}, r"prefix \[4, 2\] holds eos_id 2"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(choices, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_config(**choices)


@pytest.mark.parametrize("name", ["bos_id", "eos_id", "min_len", "max_len"])
@pytest.mark.parametrize("value", [True, 2.0, "2"])
def test_what_is_no_integer_is_refused_by_name(name, value) -> None:
    values = {"bos_id": BOS, "eos_id": EOS, "min_len": 1, "max_len": 9}
    if name == "max_len":  # one for each sentence
        value = [9, value]
    with pytest.raises(TypeError, match=f"{name} must be an integer, not"):
        GenerationConfig(**values | {name: value})


def test_every_sentence_may_have_a_length_of_its_own() -> None:
    config = make_config([3, 2, 9, 1], prefixes=[])
    assert config.max_lens(4) == [3, 2, 9, 1]
    assert make_config(5).max_lens(2) == [5, 5]
    with pytest.raises(ValueError, match="4 values of max_len for 3 sentences"):
        config.max_lens(3)
    with pytest.raises(ValueError, match="max_len 1 is below min_len 2"):
        make_config([3, 1], min_len=2)
    for found, longest in zip(
        greedy_decode(make_model(12), SRC, config), [3, 2, 9, 1], strict=True
    ):
        assert len(found.ids) <= longest


def test_a_target_may_end_at_once_unless_one_forbids_it() -> None:
    logits = torch.zeros(4, 1, 7).double()
    processor = LogitsProcessor(make_model(), SRC, make_config())
    assert processor.log_probs(logits, 1)[:, 0, EOS].isfinite().all()


@SEARCHES
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"prefixes": [[4, 7]]}, "token of a prefix is 7, outside .* 7 tokens"),
        ({"prefixes": [[-1]]}, "token of a prefix is -1, outside"),
        ({"prefixes": [[4, PAD]]}, r"prefix \[4, 0\] holds pad_id 0"),
        ({"prefixes": [[4]] * 3}, "3 prefixes for 4 sentences"),
    ],
)
def test_prefixes_that_do_not_fit_are_refused(search, choices, message) -> None:
    with pytest.raises(ValueError, match=message):
        search(make_model(), SRC, make_config(**choices))


@SEARCHES
def test_sources_and_lengths_beyond_the_model_are_refused(search) -> None:
    src = SRC.clone()
    src[2] = PAD
    with pytest.raises(ValueError, match="sentence 2 of the batch is empty"):
        search(make_model(), src, make_config())
    for empty in (SRC[:, :0], SRC[:0]):
        with pytest.raises(ValueError, match="length 0|are empty"):
            search(make_model(), empty, make_config())
    short = make_model(learned_positions=True, max_len=4)
    with pytest.raises(ValueError, match="5 positions were requested, but only 4"):
        search(short, SRC, make_config(4))
    for found in search(short, SRC[:, :4], make_config(4)):
        assert len(found.ids) <= 4
    with pytest.raises(ValueError, match="max_len 9 is above the 4 positions"):
        search(short, SRC[:, :4], make_config())


def test_the_first_and_the_last_token_of_the_vocabulary_may_start_and_end() -> None:
    model = make_model(pad_id=3)
    config = GenerationConfig(bos_id=0, eos_id=6, max_len=4, prefixes=[[0]])
    assert all(found.ids[0] == 0 for found in greedy_decode(model, SRC[:1], config))


def test_start_and_end_lie_in_the_vocabulary() -> None:
    model = make_model(tgt_vocab_size=3, src_vocab_size=9)
    config = make_config()
    object.__setattr__(config, "eos_id", 3)
    with pytest.raises(ValueError, match="eos_id is 3, outside the vocabulary of 3"):
        greedy_decode(model, SRC, config)
