"""The presets have the published sizes; `test_silence` has what can't work."""

import pytest
import torch
from small_models import make_model

from transformer_book.documents import DOCUMENTS
from transformer_lib import PRESETS, Transformer, count_parameters

MODELS = PRESETS | DOCUMENTS


def on_meta(name: str) -> Transformer:
    with torch.device("meta"):  # shapes without numbers: nothing is allocated
        return Transformer(MODELS[name])


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
def test_the_papers_models_have_the_published_size(name, d_model, d_ff, published):
    counted = count_parameters(on_meta(name))
    assert counted == paper_count(37_000, d_model, d_ff)
    assert counted == pytest.approx(published, rel=0.04)


@pytest.mark.parametrize(
    ("name", "part", "count"),
    [
        ("post", "", 44_228_618),
        ("lecture", "encoder", 12_608),
        ("fairseq", "encoder.layers.0", 3_152_384),
        ("fairseq", "decoder.layers.0", 4_204_032),
        ("fairseq", "encoder.layers.0.self_attn", 1_050_624),
    ],
)
def test_a_documents_model_has_the_size_that_was_counted_in_its_code(name, part, count):
    assert count_parameters(on_meta(name).get_submodule(part)) == count


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("final_norm", [None, False, True])
def test_pre_norm_stacks_end_with_a_norm_unless_told_otherwise(norm_first, final_norm):
    model = make_model(norm_first=norm_first, final_norm=final_norm)
    wanted = norm_first if final_norm is None else final_norm
    ended = [part.norm is not None for part in (model.encoder, model.decoder)]
    assert ended == [wanted, wanted]
