"""Graders of the chapter on incremental decoding."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_integer,
    compare,
    right,
    unanswered,
    wrong,
)
from transformer_lib.generation.incremental import IncrementalDecoder
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import causal_mask
from transformer_lib.model.transformer import Transformer

DraftReader = Callable[[IncrementalDecoder, int, list[int]], list[int]]


def check_cache_size(answer: Callable[[int, int, int, int, int, int], int]) -> Feedback:
    """Grade the size of a cache in float32, in bytes.

    Args:
        answer: takes n_layers, d_model, n_sentences, n_beams, tgt_len and src_len.
    """
    layers, width, sentences, beams, tgt_len, src_len = sizes = (3, 12, 5, 7, 11, 13)
    result = call(answer, *sizes)
    if problem := check_integer(result):
        return problem
    target, source = sentences * beams * tgt_len, sentences * src_len
    each = 2 * 4 * layers * width  # keys and values, 4 bytes each
    expected = each * (target + source)
    if result == expected:
        return right("Targets once a beam, sources once a sentence, two vectors each.")
    mistakes = {
        expected // 2: "only keys or only values were counted; both are kept.",
        expected // 4: "these are numbers; each takes 4 bytes.",
        expected // layers: "this is one layer; each layer has its own.",
        each * target: "the keys and values of the source are missing.",
        each * source: "the keys and values of the target are missing.",
        each * (target + source * beams): (
            "the source was counted once a beam, but its beams share it."
        ),
        each * (target // beams + source): (
            "the target was counted once a sentence, but every beam writes its own."
        ),
        each * (target // sentences + source // sentences): (
            "this is one sentence; there are several."
        ),
    }
    named = mistakes.get(result, "compare with equation (15.3).")
    return wrong(f"{result} bytes for the sizes {sizes} is not right: {named}")


def check_new_mask(answer: Callable[[int, int], Tensor]) -> Feedback:
    """Grade the mask of several new tokens beside those in the cache.

    Args:
        answer: takes n_kept and n_new; returns a boolean (n_new, n_kept + n_new).
    """
    n_kept, n_new = 4, 3
    result = call(answer, n_kept, n_new)
    if isinstance(result, Tensor) and result.dtype != torch.bool:
        return wrong(f"a mask is boolean, but this is {result.dtype}.")
    everyone = causal_mask(n_kept + n_new)
    expected = everyone[n_kept:]
    no_past, strict = expected.clone(), expected.clone()
    no_past[:, :n_kept] = False
    strict[range(n_new), range(n_kept, n_kept + n_new)] = False
    mistakes = {
        "these are the first rows of the causal mask: the new tokens are the last "
        "ones, but here they see as little as the first.": everyone[:n_new],
        "every new token sees all others, later ones too.": torch.ones_like(expected),
        "the tokens in the cache are hidden; all of them are past.": no_past,
        "a token may attend to itself.": strict,
        "True and False are exchanged: True is where it may attend.": ~expected,
    }
    mistakes = {message: mask.double() for message, mask in mistakes.items()}
    if problem := compare(result, expected.double(), mistakes):
        return problem
    return right("Each new token sees the cache and the new ones up to itself.")


def check_reorder(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade a cache whose beams go on from other beams.

    Args:
        answer: takes keys_values (2, n_rows, n_heads, length, d_head) and parents
            (n_sentences, n_beams), beam numbers within the sentence; returns the new
            keys_values. Row i * n_beams + j is beam j of sentence i.
    """
    shape = (2, 6, 2, 5, 7)
    given = torch.arange(840, dtype=torch.float64).view(shape)
    parents = torch.tensor([[1, 0, 1], [2, 2, 0]])
    rows = (torch.tensor([[0], [3]]) + parents).flatten()
    result = call(answer, given.clone(), parents.clone())
    only_keys = given.clone()
    only_keys[0] = given[0, rows]
    one_by_one, backwards = given.clone(), given.clone()
    for target, source in enumerate(rows.tolist()):
        one_by_one[:, target] = one_by_one[:, source]
        backwards[:, source] = given[:, target]
    mistakes = {
        "nothing has moved.": given,
        "the values stayed where they were; reorder both.": only_keys,
        "beam numbers were used as row numbers: the second sentence got rows of the "
        "first.": given[:, parents.flatten()],
        "a row was copied from after it had been overwritten; read all rows before "
        "you write one.": one_by_one,
        "rows were sent to their parents; they come from them.": backwards,
    }
    if problem := compare(result, given[:, rows], mistakes):
        return problem
    return right("Each beam goes on from what its parent has read.")


def check_draft(answer: DraftReader) -> Feedback:
    """Grade reading a draft: several guessed tokens checked in one pass.

    Args:
        answer: takes a decoder, the last token, which it has not read yet, and a draft
            of tokens after it; returns the tokens on which the model agrees, and its
            own next one; the cache then holds all but that one.
    """
    model = _small_model()
    src, bos = torch.tensor([[4, 7, 5, 2]]), 1
    with torch.no_grad():
        true = _greedy(model, src, bos, 8)
        for n_right, n_draft in ((4, 4), (1, 3), (0, 2), (2, 4), (0, 0)):
            draft = true[2 : 2 + n_draft]
            if n_right < n_draft:
                draft[n_right] = next(t for t in range(3, 11) if t not in true)
            if problem := _try_draft(answer, model, src, [bos, *true[:2]], draft, true):
                return problem
    return right("The same tokens as one by one, in one pass.")


def _try_draft(
    answer: DraftReader,
    model: Transformer,
    src: Tensor,
    read: list[int],
    draft: list[int],
    true: list[int],
) -> Feedback | None:
    decoder, passes = IncrementalDecoder(model), []
    decoder.prefill(src)
    *kept, last = read
    decoder.read(torch.tensor([kept]))
    hook = model.decoder.register_forward_hook(lambda *_: passes.append(1))
    try:
        result: Any = call(answer, decoder, last, list(draft))
    finally:
        hook.remove()
    if problem := unanswered(result):
        return problem
    if not isinstance(result, list):
        return wrong(f"expected a list of tokens, but got {type(result).__name__}.")
    n_right = 0
    while n_right < len(draft) and draft[n_right] == true[2 + n_right]:
        n_right += 1
    expected = true[2 : 3 + n_right]
    about = f"with {n_right} of {len(draft)} drafted tokens right, "
    if result == expected[:-1]:
        return wrong(about + "the model's own next token is missing.")
    if result != expected:
        return wrong(f"{about}expected {expected}, but got {result}.")
    if len(passes) != 1:
        return wrong(f"the decoder ran {len(passes)} times; let it read all at once.")
    n_kept = len(read) + n_right
    if decoder.length > n_kept:
        return wrong(
            f"{about}the cache holds {decoder.length} tokens, but {n_kept} are valid: "
            "truncate it, so that the rejected ones go."
        )
    if decoder.length < n_kept:
        return wrong(
            f"{about}the cache holds {decoder.length} tokens, but {n_kept} are valid: "
            "too much was truncated."
        )
    return None


def _small_model() -> Transformer:
    """A model with random weights, always the same, that does not repeat itself."""
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "tie_embeddings": "none"}
    sizes |= {"d_model": 16, "n_heads": 2, "d_ff": 32}
    sizes |= {"n_encoder_layers": 1, "n_decoder_layers": 2}
    with torch.random.fork_rng():
        torch.manual_seed(104)
        return Transformer(TransformerConfig(**sizes)).double().eval()


def _greedy(model: Transformer, src: Tensor, bos: int, n_tokens: int) -> list[int]:
    decoder, tokens = IncrementalDecoder(model), [bos]
    decoder.prefill(src)
    while len(tokens) <= n_tokens:
        tokens.append(int(decoder.step(torch.tensor([tokens[-1:]])).argmax()))
    return tokens[1:]
