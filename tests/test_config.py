"""The configuration refuses what can't work; the presets are the published models."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from transformer_book.documents import DOCUMENTS
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.config import PRESETS, TransformerConfig
from transformer_lib.model.transformer import Transformer, count_parameters

MODELS = PRESETS | DOCUMENTS
CONFIG = TransformerConfig(src_vocab_size=10, tgt_vocab_size=10)


def on_meta(name: str) -> Transformer:
    with torch.device("meta"):  # shapes without numbers: nothing is allocated
        return Transformer(MODELS[name])


def test_a_configuration_cannot_be_changed_afterwards() -> None:
    with pytest.raises(FrozenInstanceError):
        CONFIG.d_model = 8


def test_learned_positions_take_an_odd_width() -> None:
    odd = replace(CONFIG, d_model=9, n_heads=3, learned_positions=True)
    assert Transformer(replace(odd, n_encoder_layers=1, n_decoder_layers=1))


def paper_count(vocab_size: int, d_model: int, d_ff: int) -> int:
    """Count the paper's six layers a side by hand, with our biases."""
    attention = 4 * d_model**2 + d_model  # W^Q, W^K, W^V, W^O and the bias of W^O
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + 6 * (encoder_layer + decoder_layer)


@pytest.mark.parametrize(
    ("name", "d_model", "d_ff", "published"),
    [("paper-base", 512, 2048, 65e6), ("paper-big", 1024, 4096, 213e6)],
)
def test_the_papers_models_have_the_published_size(
    name, d_model, d_ff, published
) -> None:
    counted = count_parameters(on_meta(name))
    assert counted == paper_count(37_000, d_model, d_ff)
    assert counted == pytest.approx(published, rel=0.04)


def test_no_single_vocabulary_explains_both_published_sizes() -> None:
    """The published sizes are rounded to millions: 37,000 lies between their ranges."""

    def vocabulary(published: float, d_model: int, d_ff: int) -> float:
        return (published - paper_count(0, d_model, d_ff)) / d_model

    assert vocabulary(64.5e6, 512, 2048) > 37_000 > vocabulary(213.5e6, 1024, 4096)


def test_the_posts_model_has_the_size_that_was_counted_in_its_code() -> None:
    assert count_parameters(on_meta("post")) == 44_228_618


def test_the_lectures_classifier_has_the_size_of_its_notebook() -> None:
    classifier = EncoderClassifier(MODELS["lecture"], n_classes=2)
    assert count_parameters(classifier) == 1_612_802
    assert count_parameters(classifier.encoder) == 12_608


def test_fairseqs_layers_have_the_size_of_its_modules() -> None:
    model = on_meta("fairseq")
    assert count_parameters(model.encoder.layers[0]) == 3_152_384
    assert count_parameters(model.decoder.layers[0]) == 4_204_032
    assert count_parameters(model.encoder.layers[0].self_attn) == 1_050_624


@pytest.mark.parametrize("name", MODELS)
def test_every_preset_runs(name) -> None:
    config = replace(
        MODELS[name], src_vocab_size=11, tgt_vocab_size=11, n_encoder_layers=1,
        n_decoder_layers=1,
    )  # fmt: skip
    ids = torch.tensor([[3, 4, 5]])
    assert Transformer(config).eval()(ids, ids).isfinite().all()


def test_pre_norm_stacks_end_with_a_norm() -> None:
    assert on_meta("revisited").encoder.norm is not None
    assert on_meta("revisited").decoder.norm is not None
    assert on_meta("paper-base").encoder.norm is None


@pytest.mark.parametrize(("final_norm", "norm_first"), [(True, False), (False, True)])
def test_a_norm_at_the_end_can_be_chosen(final_norm, norm_first) -> None:
    config = replace(
        MODELS["dummies"], final_norm=final_norm, norm_first=norm_first
    )  # fmt: skip
    model = Transformer(config)
    assert (model.encoder.norm is not None) is final_norm
    assert (model.decoder.norm is not None) is final_norm
