"""Beam search against Hugging Face's `generate`, hypothesis by hypothesis.

Their Marian is tiny and freshly drawn; our model has the same weights.
"""

import pytest
import torch
from small_models import BOS, EOS, PAD, make_config
from test_interop import load, make_theirs
from torch import Tensor

from transformer_lib.generation.beam_search import beam_search

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


def generate(theirs: torch.nn.Module, prefix: list[int], n_beams: int, **options):
    """Their search with our conventions: lengths with bos, no padding said."""
    return theirs.generate(
        input_ids=SRC,
        attention_mask=(SRC != PAD).long(),
        decoder_input_ids=torch.tensor([[BOS, *prefix]] * len(SRC)),
        max_length=MAX_LEN + 1,
        num_beams=n_beams,
        num_return_sequences=n_beams,
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
    lengths = set()
    for seed in SEEDS:
        ids = {"pad_token_id": PAD, "decoder_start_token_id": BOS}
        theirs = make_theirs("Marian", seed, **ids)
        theirs.final_logits_bias[0, EOS] = 4.0  # so that some end by themselves
        how = {"length_penalty": length_penalty, "early_stopping": early_stopping}
        expected = generate(theirs, prefix, n_beams, min_length=min_len, **how)
        config = make_config(MAX_LEN, min_len=min_len, prefixes=[prefix])
        found = beam_search(load(theirs), SRC, config, n_beams, **how)
        found = [(each.ids, each.score) for n_best in found for each in n_best]
        ids, scores = zip(*found, strict=True)
        assert [*ids] == [without_filling(row) for row in expected.sequences]
        assert scores == pytest.approx(expected.sequences_scores.tolist(), abs=1e-4)
        lengths |= set(map(len, ids))
    trivial = len(lengths) == 1  # so the longest targets are the best ones
    assert trivial == (length_penalty == 2.0 and early_stopping == "never")
