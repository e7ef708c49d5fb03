"""Several models that write together, and the record of what they gain."""

import pytest
import torch
from small_models import BOS, SRC, make_config, make_model
from test_ablations import SMALL, make_data

from transformer_book.experiments.ablations import (
    PAPER,
    VARIANTS,
    read_results,
    train_to_the_end,
)
from transformer_book.experiments.ensembles import (
    ALONE,
    GROUPS,
    SEEDS,
    STUDY,
    Ensemble,
    LogEnsemble,
    measure,
)
from transformer_lib import beam_search
from transformer_lib.generation import RecomputingDecoder, make_decoder


def models():
    return [make_model(seed) for seed in (1, 2)]


@pytest.mark.parametrize("kind", [Ensemble, LogEnsemble])
def test_a_model_together_with_itself_writes_what_it_writes_alone(kind) -> None:
    one, other = models()
    decoder = kind([RecomputingDecoder(one), make_decoder(one)])
    alone, together, mixed = (
        beam_search(one, SRC, make_config(), n_beams=3, decoder=each)
        for each in (None, decoder, kind([make_decoder(m) for m in (one, other)]))
    )
    for sentence, same in zip(alone, together, strict=True):
        assert [h.ids for h in sentence] == [h.ids for h in same]
        for h, again in zip(sentence, same, strict=True):
            assert h.log_prob == pytest.approx(again.log_prob, abs=1e-4)
    assert [s[0].log_prob for s in mixed] != [s[0].log_prob for s in alone]


def test_probabilities_are_averaged_or_their_logarithms() -> None:
    start = torch.full((len(SRC), 1), BOS)
    logits = [m(SRC, start)[:, -1] for m in models()]
    p = torch.stack(logits).softmax(dim=-1)
    for kind, expected in ((Ensemble, p.mean(0).log()), (LogEnsemble, p.log().mean(0))):
        decoder = kind([make_decoder(model) for model in models()])
        decoder.prefill(SRC)
        torch.testing.assert_close(decoder.step(start), expected)


def test_models_alike_translate_alike_in_every_way() -> None:
    data = make_data()
    model, _ = train_to_the_end(VARIANTS[PAPER], data, 1, SMALL)
    measured = measure(dict.fromkeys(SEEDS, model.eval()), data, SMALL)
    assert len({str(run["wrong"]) for run in measured}) == 1  # weights, too
    assert [run["variant"] for run in measured] == [
        run["variant"] for run in read_results(STUDY)["runs"]
    ]


def test_the_record_has_each_model_and_each_group() -> None:
    runs = read_results(STUDY)["runs"]
    assert [run["seeds"] for run in runs if run["variant"] == ALONE] == [
        [seed] for seed in SEEDS
    ]
    together = [tuple(run["seeds"]) for run in runs if run["variant"] != ALONE]
    assert together == [group for group in GROUPS for _ in range(3)]
    for run in runs:
        assert run["exact"] == 1 - len(run["wrong"]) / 500
