"""The pencil model: what it knows, and that it is a model like any other."""

import math

import pytest
import torch

from transformer_book import pencil

SENTENCES = [
    (source.format(who, where), f"a {english} plays in the {place}")
    for who, english in (("hund", "dog"), ("kind", "child"))
    for where, place in (("schnee", "snow"), ("park", "park"))
    for source in ("im {1} spielt ein {0}", "ein {0} spielt im {1}")
]


@pytest.mark.parametrize(("source", "target"), SENTENCES)
def test_it_translates_all_eight_sentences_word_by_word(source, target) -> None:
    model, tgt_in = pencil.model(), [pencil.BOS]
    while tgt_in[-1] != pencil.EOS and len(tgt_in) < 12:
        logits = model(pencil.ids(source), torch.tensor([tgt_in]))
        tgt_in.append(int(logits[0, -1].argmax()))
    assert " ".join(pencil.WORDS[i] for i in tgt_in[1:-1]) == target
    assert tgt_in[-1] == pencil.EOS


def test_every_weight_has_one_decimal() -> None:
    for name, parameter in pencil.model().named_parameters():
        rounded = torch.round(parameter * 10) / 10
        torch.testing.assert_close(parameter, rounded, msg=name)
        assert parameter.abs().max() < 3


def test_the_record_follows_from_its_own_parts() -> None:
    flow = pencil.record()
    rows = torch.tensor([pencil.EMBEDDINGS[word] for word in pencil.SOURCE.split()])
    angles = torch.arange(5)[:, None] / torch.tensor([1.0, 100.0])
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    torch.testing.assert_close(flow["source embeddings"], math.sqrt(4) * rows + waves)
    torch.testing.assert_close(flow["softmax"], flow["lm_head"].softmax(-1))
    matrix = torch.tensor(list(pencil.EMBEDDINGS.values()))
    features = flow["decoder 0: add & norm after feed-forward"]
    torch.testing.assert_close(flow["lm_head"], features @ matrix.T)


def test_its_cross_attention_reads_as_an_alignment() -> None:
    weights = pencil.record()["decoder 0: cross-attention, weights"]
    source, target = pencil.SOURCE.split(), ["<bos>", *pencil.TARGET.split()]
    found = ((0, "a", "hund"), (0, "the", "schnee"), (1, "dog", "spielt"))
    for head, after, word in found:
        row = weights[head, target.index(after)]
        assert source[row.argmax()] == word
        assert row.max() > 0.6
