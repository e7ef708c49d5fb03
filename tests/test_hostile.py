"""The documented result or the documented error: the public API under any input."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hostile_values import attempt, fast, numbers, sizes, tensors, texts
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_lib as tl
from transformer_lib.evaluation.scores import bleu, chrf, exact_match
from transformer_lib.model.checks import check_integers


@pytest.fixture(scope="module")
def translator() -> tl.Translator:
    return tl.load("grammar")


@pytest.fixture(scope="module")
def small() -> tl.Transformer:
    torch.manual_seed(0)
    config = tl.TransformerConfig(
        src_vocab_size=12, tgt_vocab_size=12, d_model=8, n_heads=2, d_ff=8,
        n_encoder_layers=1, n_decoder_layers=1, max_len=16,
    )  # fmt: skip
    return tl.Transformer(config).eval()


CONFIG = list(tl.TransformerConfig.__dataclass_fields__)
GENERATION = list(tl.GenerationConfig.__dataclass_fields__)
SAMPLING = list(tl.SamplingConfig.__dataclass_fields__)


@fast
@given(st.dictionaries(st.sampled_from(CONFIG), sizes, max_size=4))
def test_a_configuration(changes) -> None:
    sizes = dict.fromkeys(
        ("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "d_ff", "max_len"), 8
    )
    sizes |= {"n_encoder_layers": 1, "n_decoder_layers": 1}
    config = attempt(tl.TransformerConfig, **{**sizes, **changes})
    if config is not None:
        model = tl.Transformer(config)
        assert all(torch.isfinite(p).all() for p in model.parameters())


@fast
@given(st.dictionaries(st.sampled_from(GENERATION), numbers, max_size=3))
def test_what_a_target_must_keep_to(small, changes) -> None:
    start = {"bos_id": 1, "eos_id": 2, "max_len": 5}
    config = attempt(tl.GenerationConfig, **{**start, **changes})
    if config is not None:
        attempt(tl.greedy_decode, small, torch.tensor([[5, 6, 2]]), config)


@fast
@given(st.dictionaries(st.sampled_from(SAMPLING), numbers, max_size=3))
def test_what_is_drawn_from(changes) -> None:
    config = attempt(tl.SamplingConfig, **changes)
    if config is not None:
        p = config.probabilities(torch.tensor([[0.0, 1.0, -torch.inf, 3.0]]))
        torch.testing.assert_close(p.sum(), torch.tensor(1.0))


@fast
@given(n_beams=numbers, length_penalty=numbers)
def test_a_beam_search(small, n_beams, length_penalty) -> None:
    config = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=4)
    found = attempt(
        tl.beam_search,
        small,
        torch.tensor([[5, 6, 2]]),
        config,
        n_beams,
        length_penalty,
    )
    if found is not None:
        assert all(math.isfinite(each.score) for each in found[0])


@fast
@given(st.lists(numbers, min_size=2, max_size=4))
def test_attention_is_constructed(values) -> None:
    attempt(tl.MultiHeadAttention, *values)


@fast
@given(tensors(), tensors(), tensors(), st.one_of(st.none(), tensors()))
def test_attention_of_any_tensors(query, key, value, mask) -> None:
    attempt(tl.scaled_dot_product_attention, query, key, value, mask)


@fast
@given(src=tensors(3), tgt_in=tensors(3))
def test_a_model_reads_any_ids(small, src, tgt_in) -> None:
    logits = attempt(small, src, tgt_in)
    if logits is not None:
        assert logits.shape == (*tgt_in.shape, 12)
        assert torch.isfinite(logits).all()


@fast
@given(tensors(3), numbers)
def test_masks(ids, number) -> None:
    attempt(tl.padding_mask, ids, number)
    mask = attempt(tl.causal_mask, number) if number != 10**6 else None  # 1 TB
    assert mask is None or mask.dtype == torch.bool


@fast
@given(st.lists(st.lists(st.integers(-2, 12), max_size=5), max_size=4), numbers)
def test_a_batch_of_any_rows(rows, pad_id) -> None:
    batch = attempt(tl.pad_batch, rows, pad_id)
    assert batch is None or batch.shape[0] == len(rows)


@fast
@given(texts)
def test_any_text_is_encoded_or_refused(translator, text) -> None:
    tokenizer = translator.tokenizer
    ids = attempt(tokenizer.encode, text)
    assert ids is None or all(0 <= i < len(tokenizer) for i in ids)


@settings(fast, max_examples=40)
@given(st.one_of(texts, st.lists(st.one_of(texts, numbers), max_size=3), numbers))
def test_anything_is_translated_or_refused(translator, sentences) -> None:
    found = attempt(translator.translate, sentences)
    assert found is None or len(found) == len(sentences)
    assert found is None or not isinstance(sentences, str)


@fast
@given(st.one_of(texts, st.lists(texts, max_size=3)), st.lists(texts, max_size=3))
def test_scores_of_any_texts(hypotheses, references) -> None:
    for score in bleu, chrf:
        found = attempt(score, hypotheses, references, n_bootstrap=0)
        assert found is None or 0 <= found.value <= 100.001
    attempt(exact_match, hypotheses, references)


# --- cases that once went wrong ---------------------------------------------------


def test_one_text_is_no_list_of_texts(translator) -> None:
    for wrong in "Hund", b"Hund", 3, None, (text for text in ["der Hund"]):
        with pytest.raises(TypeError, match="sentences must be a list of texts, not "):
            translator.translate(wrong)
    with pytest.raises(TypeError, match="sentences: number 2 must be a text, not 3"):
        translator.translate(["der Hund", 3])
    with pytest.raises(
        TypeError, match="hypotheses must be a list of texts, not 'abc'"
    ):
        bleu("abc", "abc")


def test_a_search_keeps_to_numbers(small) -> None:
    src = torch.tensor([[5, 6, 2]])
    config = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=4)
    for penalty in math.nan, math.inf, 1e308:
        with pytest.raises(
            ValueError, match=r"length_penalty must be from -10\.0 to 10"
        ):
            tl.beam_search(small, src, config, 2, penalty)
    with pytest.raises(TypeError, match="n_beams must be an integer, not True"):
        tl.beam_search(small, src, config, True)
    with pytest.raises(TypeError, match=r"bos_id must be an integer, not 1\.5"):
        tl.GenerationConfig(bos_id=1.5, eos_id=2, max_len=4)


def test_broken_weights_are_named(translator, tmp_path) -> None:
    broken = copy.deepcopy(translator)
    with torch.no_grad():
        broken.model.encoder.layers[0].self_attn.q_proj.weight[0, 0] = 1e6
    name = r"encoder\.layers\.0\.self_attn\.q_proj\.weight"
    with pytest.raises(ValueError, match=f"{name} does not fit into half precision"):
        broken.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    translator.save(tmp_path / "model")
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model" / "model.safetensors"
    weights = load_file(path)
    weights["encoder.layers.0.self_attn.q_proj.weight"][0, 0] = math.nan
    save_file(weights, path)
    with pytest.raises(ValueError, match=rf"model\.safetensors: {name} holds NaN"):
        tl.load(tmp_path / "model")


def test_sizes_whose_product_has_no_room_are_refused() -> None:
    big = 200_000
    with pytest.raises(ValueError, match="n_positions 200000, d_model 200000 make"):
        tl.sinusoid_table(big, big)
    with pytest.raises(ValueError, match="max_len 200000, d_model 200000 make"):
        tl.PositionalEncoding(big, big, learned=True)
    tl.PositionalEncoding(big, big)  # sinusoids take no room
    sizes = {"src_vocab_size": 250_000, "tgt_vocab_size": 250_000, "d_ff": 8}
    with pytest.raises(ValueError, match="make a model of at least 45,601,28"):
        tl.TransformerConfig(**sizes, d_model=80_000, n_heads=8, n_encoder_layers=1,
                             n_decoder_layers=0)  # fmt: skip


def test_attention_names_what_is_no_tensor_and_no_rate() -> None:
    q = torch.ones(1, 2, 4)
    with pytest.raises(TypeError, match="value must be a Tensor"):
        tl.scaled_dot_product_attention(q, q, q.tolist())
    with pytest.raises(ValueError, match="dropout must be from .*, not 5"):
        tl.scaled_dot_product_attention(q, q, q, dropout=5.0)


def test_a_rate_that_is_no_number_is_named() -> None:
    sizes = {"src_vocab_size": 8, "tgt_vocab_size": 8}
    for name in ("dropout", "norm_eps"):
        with pytest.raises(TypeError, match=f"{name} must be a number, not '0.1'"):
            tl.TransformerConfig(**sizes, **{name: "0.1"})


def test_integers_of_64_bits_are_the_largest() -> None:
    for value in (-(2**63), 2**63 - 1):
        check_integers(n=value)
    for value in (-(2**63) - 1, 2**63):
        with pytest.raises(ValueError, match="n .*64 bits"):
            check_integers(n=value)
