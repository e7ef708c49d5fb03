"""Beam search against Hugging Face's `generate`, hypothesis by hypothesis.

Their Marian is tiny and freshly drawn; our model has the same weights.
"""

import pytest
import torch
from test_interop import load, make_theirs
from torch import Tensor

from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig

PAD, BOS, EOS = 0, 1, 2
MAX_LEN = 9
SEEDS = (0, 1, 2)
SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0], [9, 2, 0, 0, 0]])

SEARCHES = [  # n_beams, length_penalty, early_stopping, min_len, prefix
    (2, 1.0, False, 1, []),
    (4, 1.0, False, 1, []),
    (4, 1.0, True, 1, []),
    (4, 1.0, "never", 1, []),
    (4, 0.0, False, 1, []),
    (3, -1.0, True, 1, []),
    (4, -1.0, "never", 1, []),
    (4, 2.0, False, 1, []),
    (4, 2.0, "never", 1, []),
    (6, 0.6, False, 1, []),
    (3, 1.0, False, 4, []),
    (4, 1.0, False, 1, [5, 7]),
    (3, 2.0, "never", 5, [5, 7]),
]


def make_models(seed: int) -> tuple[torch.nn.Module, torch.nn.Module]:
    ids = {"pad_token_id": PAD, "decoder_start_token_id": BOS}
    theirs = make_theirs("Marian", seed, **ids)
    theirs.final_logits_bias[0, EOS] = 4.0  # so that some targets end by themselves
    return load(theirs), theirs


def generate(theirs: torch.nn.Module, prefix: list[int], **options):
    """Their search with our conventions: lengths with bos, no padding said."""
    return theirs.generate(
        input_ids=SRC,
        attention_mask=(SRC != PAD).long(),
        decoder_input_ids=torch.tensor([[BOS, *prefix]] * len(SRC)),
        max_length=MAX_LEN + 1,
        bad_words_ids=[[PAD]],
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )


def without_filling(ids: Tensor) -> list[int]:
    """Cut bos, and what their batches are filled up with after the end."""
    found = ids.tolist()[1:]
    return found[: found.index(EOS) + 1] if EOS in found else found


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_hypotheses_and_scores_are_those_of_hugging_face(search) -> None:
    n_beams, length_penalty, early_stopping, min_len, prefix = search
    for seed in SEEDS:
        ours, theirs = make_models(seed)
        expected = generate(
            theirs,
            prefix,
            num_beams=n_beams,
            num_return_sequences=n_beams,
            length_penalty=length_penalty,
            early_stopping=early_stopping,
            min_length=min_len,
        )
        config = GenerationConfig(
            bos_id=BOS, eos_id=EOS, max_len=MAX_LEN, min_len=min_len, prefixes=[prefix]
        )
        found = beam_search(ours, SRC, config, n_beams, length_penalty, early_stopping)
        hypotheses = [hypothesis for n_best in found for hypothesis in n_best]
        assert [hypothesis.ids for hypothesis in hypotheses] == [
            without_filling(ids) for ids in expected.sequences
        ]
        torch.testing.assert_close(
            torch.tensor([hypothesis.score for hypothesis in hypotheses]),
            expected.sequences_scores,
            rtol=0,
            atol=1e-4,
        )


def test_the_searches_end_in_both_ways_and_at_many_lengths() -> None:
    # Without this the comparison above could be one of trivial targets.
    config = GenerationConfig(bos_id=BOS, eos_id=EOS, max_len=MAX_LEN)
    found = [
        hypothesis
        for seed in SEEDS
        for n_best in beam_search(make_models(seed)[0], SRC, config, 4, 0.0)
        for hypothesis in n_best
    ]
    assert {hypothesis.finished for hypothesis in found} == {False, True}
    assert len({len(hypothesis.ids) for hypothesis in found}) >= 3
