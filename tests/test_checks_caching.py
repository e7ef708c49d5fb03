"""The graders of incremental decoding: right answers pass, wrong ones are named."""

import pytest
import torch

from transformer_lib.exercises.caching import (
    check_cache_size,
    check_draft,
    check_new_mask,
    check_reorder,
)
from transformer_lib.generation.incremental import IncrementalDecoder
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import causal_mask
from transformer_lib.model.transformer import Transformer


def cache_size(n_layers, d_model, n_sentences, n_beams, tgt_len, src_len):
    return 8 * n_layers * d_model * n_sentences * (n_beams * tgt_len + src_len)


def new_mask(n_kept, n_new):
    old = torch.ones(n_new, n_kept, dtype=torch.bool)
    return torch.cat([old, causal_mask(n_new)], dim=1)


def reorder(keys_values, parents):
    n_sentences, n_beams = parents.shape
    beams = keys_values.unflatten(1, (n_sentences, n_beams))
    rows = [beams[:, i, parents[i]] for i in range(n_sentences)]
    return torch.cat(rows, dim=1)


def read_draft(decoder, last, draft, keep=0, n_passes=1, shift=0):
    """With other numbers, one of the mistakes."""
    n_before = decoder.length
    for _ in range(n_passes):
        decoder.truncate(n_before)
        features = decoder.read(torch.tensor([[last, *draft]]))
    says = decoder.model.lm_head(features)[0].argmax(dim=-1).tolist()
    n_right = 0
    while n_right < len(draft) and says[n_right] == draft[n_right]:
        n_right += 1
    decoder.truncate(n_before + 1 + n_right + keep)
    return [*draft[:n_right], says[n_right + shift]]


GRADERS = [check_cache_size, check_new_mask, check_reorder, check_draft]
ANSWERS = [cache_size, new_mask, reorder, read_draft]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


def test_the_size_asked_for_is_the_size_of_a_cache() -> None:
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 12, "n_heads": 3}
    model = Transformer(TransformerConfig(**sizes, d_ff=7, n_decoder_layers=3))
    decoder = IncrementalDecoder(model.eval(), capacity=11)
    with torch.no_grad():
        decoder.prefill(torch.ones(5, 13, dtype=torch.long), n_beams=7)
        decoder.read(torch.ones(35, 1, dtype=torch.long))
    assert decoder.cache.n_bytes == cache_size(3, 12, 5, 7, 11, 13)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda *given: cache_size(*given) // 2, "only keys"),
        (lambda *given: cache_size(*given) // 4, "4 bytes"),
        (lambda n, *rest: cache_size(1, *rest), "one layer"),
        (lambda n, d, s, b, t, x: cache_size(n, d, s, b, t, 0), "source are missing"),
        (lambda n, d, s, b, t, x: cache_size(n, d, s, b, 0, x), "target are missing"),
        (lambda n, d, s, b, t, x: cache_size(n, d, s, b, t, b * x), "share it"),
        (lambda n, d, s, b, t, x: cache_size(n, d, s, 1, t, x), "writes its own"),
        (lambda n, d, s, b, t, x: cache_size(n, d, 1, b, t, x), "one sentence"),
        (lambda *given: 1, "(15.3)"),
        (lambda *given: float(cache_size(*given)), "whole number"),
    ],
)
def test_wrong_sizes_are_named(change, named) -> None:
    feedback = check_cache_size(change)
    assert feedback.status == "wrong"
    assert named in feedback.message


def blind(n_kept, n_new):
    return new_mask(n_kept, n_new) & (torch.arange(n_kept + n_new) >= n_kept)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda kept, new: causal_mask(kept + new)[:new], "first rows"),
        (lambda kept, new: torch.ones(new, kept + new).bool(), "later ones too"),
        (blind, "all of them are past"),
        (lambda kept, new: new_mask(kept, new).tril(kept - 1), "to itself"),
        (lambda kept, new: ~new_mask(kept, new), "exchanged"),
        (lambda kept, new: new_mask(kept, new).float(), "boolean"),
        (lambda kept, new: causal_mask(new), "shape"),
        (lambda kept, new: new_mask(kept, new).flip(0), "off"),
    ],
)
def test_wrong_masks_are_named(answer, named) -> None:
    feedback = check_new_mask(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def rows_of(parents):
    first = torch.arange(len(parents))[:, None] * parents.size(1)
    return (first + parents).flatten()


def only_keys(keys_values, parents):
    keys_values[0] = keys_values[0, rows_of(parents)]
    return keys_values


def one_by_one(keys_values, parents):
    for target, source in enumerate(rows_of(parents)):
        keys_values[:, target] = keys_values[:, source]
    return keys_values


def backwards(keys_values, parents):
    result = keys_values.clone()
    for target, source in enumerate(rows_of(parents)):
        result[:, source] = keys_values[:, target]
    return result


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda kv, parents: kv, "nothing has moved"),
        (only_keys, "reorder both"),
        (lambda kv, parents: kv[:, parents.flatten()], "row numbers"),
        (one_by_one, "overwritten"),
        (backwards, "come from them"),
        (lambda kv, parents: reorder(kv, parents).flip(1), "off"),
        (lambda kv, parents: reorder(kv, parents)[:, :3], "shape"),
    ],
)
def test_wrong_reorderings_are_named(answer, named) -> None:
    feedback = check_reorder(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def token_by_token(decoder, last, draft):
    """Right tokens and cache, but nothing is gained."""
    found = []
    for guess in [*draft, None]:
        newest = torch.tensor([[found[-1] if found else last]])
        found.append(int(decoder.step(newest).argmax()))
        if found[-1] != guess:
            break
    return found


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda *given: read_draft(*given)[:-1], "own next token is missing"),
        (lambda *given: read_draft(*given, shift=-1), "expected"),
        (lambda *given: torch.tensor(read_draft(*given)), "list"),
        (lambda *given: read_draft(*given, n_passes=2), "ran 2 times"),
        (token_by_token, "ran 5 times"),
        (lambda *given: read_draft(*given, keep=-1), "too much was truncated"),
        (
            lambda decoder, last, draft: [
                read_draft(decoder, last, draft),
                decoder.read(torch.tensor([[3]])),
            ][0],
            "ran 2 times",
        ),
    ],
)
def test_wrong_drafts_are_named(answer, named) -> None:
    with torch.no_grad():
        feedback = check_draft(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_rejected_tokens_that_stay_are_named() -> None:
    def keep_all(decoder, last, draft):
        truncate, decoder.truncate = decoder.truncate, lambda length: None
        found = read_draft(decoder, last, draft)
        decoder.truncate = truncate
        return found

    feedback = check_draft(keep_all)
    assert "so that the rejected ones go" in feedback.message


def test_grading_leaves_the_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    check_draft(read_draft)
    assert torch.equal(torch.rand(1), expected)
