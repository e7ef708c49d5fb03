"""The graders of the masks chapter: right answers pass, wrong ones are named."""

import pytest
import torch

from transformer_lib.convert.masks import convert_mask
from transformer_lib.exercises.masks import (
    MISTAKES,
    check_diagnosis,
    check_packed_mask,
    check_target_mask,
    check_translation,
    mystery_attention,
)
from transformer_lib.model.masks import causal_mask, padding_mask

GRADERS = [check_target_mask, check_translation, check_packed_mask]
DIAGNOSIS = dict(
    zip(
        "ABCDE",
        ("off by one", "after softmax", "correct", "no mask", "inverted"),
        strict=True,
    )
)


def target(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.size(1))


def translation(key_padding_mask, attn_mask):
    real = convert_mask(key_padding_mask, "ignore", "attend")[:, None, None, :]
    return real & convert_mask(attn_mask, "additive", "attend")


def same_segment(segments):
    return segments[:, None, :, None] == segments[:, None, None, :]


def packed(segments):
    return same_segment(segments) & causal_mask(segments.size(1))


@pytest.mark.parametrize(
    ("grader", "answer"),
    list(zip(GRADERS, [target, translation, packed], strict=True)),
)
def test_the_right_mask_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(
    ("grader", "answer"),
    list(zip(GRADERS, [target, translation, packed], strict=True)),
)
def test_wrong_types_and_shapes_are_named(grader, answer) -> None:
    assert "inverted" in grader(lambda *given: ~answer(*given)).message
    assert "boolean" in grader(lambda *given: answer(*given) * 1.0).message
    assert "boolean" in grader(lambda *given: answer(*given).long()).message
    assert "heads" in grader(lambda *given: answer(*given)[:, 0]).message
    assert "shape" in grader(lambda *given: answer(*given)[..., :-1]).message


def additive(ids, pad_id):
    return convert_mask(target(ids, pad_id), "attend", "additive")


def rows(ids, pad_id):
    return padding_mask(ids, pad_id).transpose(-2, -1)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (additive, "boolean"),
        (lambda ids, p: causal_mask(5).expand(3, 1, 5, 5), "padding is not hidden"),
        (
            lambda ids, p: padding_mask(ids, p).expand(-1, -1, 5, -1),
            "future is not hidden",
        ),
        (lambda ids, p: padding_mask(ids, p) | causal_mask(5), "joined with |"),
        (lambda ids, p: target(ids, p).tril(-1), "diagonal is hidden"),
        (
            lambda ids, p: padding_mask(ids, p) & torch.ones(5, 5).tril(1).bool(),
            "next position",
        ),
        (lambda ids, p: padding_mask(ids, p) & causal_mask(5).T, "not the past"),
        (lambda ids, p: target(ids, p) & rows(ids, p), "mask keys only"),
        (lambda ids, p: rows(ids, p) & causal_mask(5), "belongs to columns"),
    ],
)
def test_wrong_target_masks_are_named(answer, named) -> None:
    feedback = check_target_mask(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda pad, m: pad[:, None, None] & (m == 0), "there True means ignore"),
        (lambda pad, m: ~pad[:, None, None] & (m != 0), "attn_mask is inverted"),
        (lambda pad, m: pad[:, None, None] & (m != 0), "one by one"),
        (lambda pad, m: ~pad[:, None, None] | (m == 0), "joined with |"),
        (lambda pad, m: (m == 0).expand(2, 1, 4, 5), "key_padding_mask is missing"),
        (lambda pad, m: ~pad[:, None, None].expand(2, 1, 4, 5), "attn_mask is missing"),
    ],
)
def test_wrong_translations_are_named(answer, named) -> None:
    feedback = check_translation(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (same_segment, "future is not hidden"),
        (lambda s: causal_mask(7).expand(2, 1, 7, 7), "still see each other"),
        (lambda s: same_segment(s) | causal_mask(7), "joined with |"),
        (
            lambda s: (s[:, None, :, None] >= s[:, None, None, :]) & causal_mask(7),
            "smaller numbers",
        ),
        (lambda s: packed(s).tril(-1), "diagonal is hidden"),
        (lambda s: same_segment(s) & causal_mask(7).T, "not the past"),
    ],
)
def test_wrong_packed_masks_are_named(answer, named) -> None:
    feedback = check_packed_mask(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_an_unknown_mistake_is_located() -> None:
    def answer(ids, pad_id):
        mask = target(ids, pad_id)
        mask[2, 0, 1, 0] = False
        return mask

    message = check_target_mask(answer).message
    assert "sentence 2, query 1 may not attend to key 0" in message


def test_the_right_diagnosis_passes() -> None:
    assert check_diagnosis(DIAGNOSIS).passed


def test_no_diagnosis_is_not_attempted() -> None:
    assert check_diagnosis(dict.fromkeys("ABCDE", "?")).status == "open"
    assert check_diagnosis({}).status == "open"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"A": "?"}, "A has no diagnosis"),
        ({"A": "broken"}, "'broken' is none of"),
        ({"B": "no mask", "D": "after softmax"}, "memory of ones"),
        ({"B": "no mask", "D": "after softmax", "A": "correct"}, "A is not correct"),
        ({"E": "off by one"}, "E: look again"),
    ],
)
def test_wrong_diagnoses_are_named(change, named) -> None:
    feedback = check_diagnosis({**DIAGNOSIS, **change})
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_a_diagnosis_is_a_dictionary() -> None:
    assert "dictionary" in check_diagnosis("correct").message


def test_every_mystery_behaves_otherwise() -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 4, generator=generator)
    outputs = [mystery_attention(name)(x, x, causal_mask(6)) for name in DIAGNOSIS]
    for i, output in enumerate(outputs):
        assert output.isfinite().all()
        assert not any(torch.allclose(output, other) for other in outputs[:i])
    assert set(DIAGNOSIS.values()) == set(MISTAKES)


def test_the_correct_mystery_is_the_library_s_attention() -> None:
    from transformer_lib.model.attention import scaled_dot_product_attention

    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 4, generator=generator)
    output, _ = scaled_dot_product_attention(x, x, x, causal_mask(6))
    torch.testing.assert_close(mystery_attention("C")(x, x, causal_mask(6)), output)


def test_an_unknown_mystery_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'F'"):
        mystery_attention("F")
