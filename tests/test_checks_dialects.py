"""The graders of the chapter on dialects: right passes, wrong ones are named."""

import pytest
import torch
from torch import nn

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.exercises.dialects import check_key, check_table, check_unpack
from transformer_lib.model.embeddings import sinusoid_table

GRADERS = [check_unpack, check_key, check_table]


def unpack(in_proj_weight):
    return in_proj_weight.chunk(3)


def key_of(key):
    """The cross-walk's own answer, for one key."""
    (found,) = convert_weights({key: torch.ones(3)}, "post", "transformer_lib")
    return found


def table_of(table):
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


RIGHT = list(zip(GRADERS, [unpack, key_of, table_of], strict=True))


@pytest.mark.parametrize(("grader", "answer"), RIGHT)
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda w: w, "three matrices"),
        (lambda w: w.chunk(2), "three matrices"),
        (lambda w: w.chunk(3, dim=1), "columns are cut"),
        (lambda w: [w.chunk(3)[i] for i in (0, 2, 1)], "keys and values are swapped"),
        (lambda w: w.chunk(3)[::-1], "reversed"),
        (lambda w: [part.T for part in w.chunk(3)], "transposed"),
        (lambda w: [w[0::3], w[1::3], w[2::3]], "every third row"),
        (lambda w: [part[:-1] for part in w.chunk(3)], "expected shape"),
        (lambda w: [w.chunk(3)[0]] * 3, "not the rows"),
        (lambda w: [1, 2, 3], "tensor"),
    ],
)
def test_mistakes_in_unpacking_are_named(answer, message) -> None:
    feedback = check_unpack(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_the_packed_order_is_pytorchs() -> None:
    layer = nn.MultiheadAttention(6, 2, bias=False, batch_first=True)
    layer.out_proj.weight.data.copy_(torch.eye(6))
    query, key, value = torch.randn(3, 1, 4, 6).unbind(0)
    parts = zip((query, key, value), unpack(layer.in_proj_weight), strict=True)
    q, k, v = ((x @ w.T).unflatten(-1, (2, 3)).transpose(1, 2) for x, w in parts)
    expected = nn.functional.scaled_dot_product_attention(q, k, v)
    found = layer(query, key, value)[0]
    torch.testing.assert_close(expected.transpose(1, 2).flatten(2), found)


def by_rules(*rules):
    """Replace one piece of text after the other, as a hasty reader would."""

    def answer(key):
        for old, new in rules:
            key = key.replace(old, new)
        return key

    return answer


def swap_maps(key):
    return key_of(key.replace("fc1", "fc3").replace("fc2", "fc1").replace("fc3", "fc2"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda key: key, "unchanged"),
        (lambda key: 7, "expected a string"),
        (lambda key: key_of(key).replace("gain", "weight"), "its gain"),
        (lambda key: key_of(key).replace("layers.3.", "layers.0."), "number"),
        (swap_maps, "expand comes first"),
        (by_rules(("attention.fc_q", "self_attn.q_proj"), (".fc", ".out_proj")), "fc"),
    ],
)
def test_mistakes_in_keys_are_named(answer, message) -> None:
    feedback = check_key(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_rules_that_catch_too_much_are_named() -> None:
    attention = by_rules(("attention", "self_attn"))

    def answer(key):
        return attention(key) if "attention_ln" in key else key_of(key)

    assert "caught `attention_ln`" in check_key(answer).message
    ff = by_rules(("ff", "feed_forward"))

    def answer(key):
        return ff(key) if "ff_ln" in key else key_of(key)

    assert "caught `ff_ln`" in check_key(answer).message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda table: table, "unchanged"),
        (lambda t: torch.cat([t[:, 1::2], t[:, 0::2]], 1), "cosines come first"),
        (lambda t: torch.stack([t[:, :4], t[:, 4:]], -1).flatten(1), "other way"),
        (lambda t: torch.cat([t[0::2], t[1::2]]), "rows are reordered"),
        (lambda t: t[:, :4], "expected shape"),
        (lambda t: t * 0, "first four columns"),
    ],
)
def test_mistakes_in_tables_are_named(answer, message) -> None:
    feedback = check_table(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_marians_own_table_passes() -> None:
    import transformers

    options = transformers.MarianConfig(
        d_model=16, encoder_layers=0, decoder_layers=0, max_position_embeddings=7
    )
    theirs = transformers.MarianMTModel(options).model.encoder.embed_positions.weight
    torch.testing.assert_close(theirs, table_of(sinusoid_table(7, 16)))
