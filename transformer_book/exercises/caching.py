"""Graders of the chapter on incremental decoding."""

import torch

from transformer_book.exercises.grading import Seen, grader, is_missing
from transformer_lib import (
    IncrementalDecoder,
    Transformer,
    TransformerConfig,
    causal_mask,
)


@grader(
    cases=lambda: [(3, 12, 5, 7, 11, 13)],
    right="Targets once a beam, sources once a sentence, two vectors each.",
    mistakes=lambda solve: {
        "count keys and values, 4 bytes each number, in every layer.":
            [{"n_kinds": 1}, {"n_bytes": 1}, lambda n, *sizes: solve(1, *sizes)],
        "both are kept: the source's keys and values, and the target's.":
            [lambda *sizes: solve(*sizes[:5], 0),
             lambda *sizes: solve(*sizes[:4], 0, sizes[5])],
        "the source was counted once a beam, but its beams share it.":
            lambda *sizes: solve(*sizes[:5], sizes[3] * sizes[5]),
        "the target was counted once a sentence, but every beam writes its own.":
            lambda *sizes: solve(*sizes[:3], 1, *sizes[4:]),
    },
)  # fmt: skip
def check_cache_size(
    n_layers, d_model, n_sentences, n_beams, tgt_len, src_len, n_kinds=2, n_bytes=4
):
    """Sizes of a model and a search -> bytes of their cache in float32."""
    n_tokens = n_sentences * (n_beams * tgt_len + src_len)
    return n_kinds * n_bytes * n_layers * d_model * n_tokens


@grader(
    cases=lambda: [(4, 3)],
    right="Each new token sees the cache and the new ones up to itself.",
    mistakes=lambda solve: {
        "these are the first rows of the causal mask; the new tokens are the last.":
            lambda n_kept, n_new: causal_mask(n_kept + n_new)[:n_new],
        "every new token sees all others, later ones too.":
            lambda *given: solve(*given) | True,
        "a token may attend to itself.":
            lambda n_kept, n_new: solve(n_kept, n_new).tril(n_kept - 1),
        "True and False are swapped: True is where it may attend.":
            lambda *given: ~solve(*given),
    },
)  # fmt: skip
def check_new_mask(n_kept, n_new):
    """The mask of several new tokens beside those in the cache.

    n_kept and n_new -> boolean (n_new, n_kept + n_new).
    """
    return causal_mask(n_kept + n_new)[n_kept:]


def _rows(parents):
    n_sentences, n_beams = parents.shape
    return (torch.arange(n_sentences)[:, None] * n_beams + parents).flatten()


def _overwrite(keys_values, parents):
    result = keys_values.clone()
    for row, parent in enumerate(_rows(parents)):
        result[:, row] = result[:, parent]
    return result


@grader(
    cases=lambda: [(torch.randn(2, 6, 2, 5, 7), torch.tensor([[1, 0, 1], [2, 2, 0]]))],
    right="Each beam goes on from what its parent has read.",
    mistakes=lambda solve: {
        "the values stayed where they were; reorder both.":
            lambda keys_values, parents: (
                torch.stack([solve(keys_values, parents)[0], keys_values[1]])),
        "beam numbers were used as row numbers: the second sentence got rows of the "
        "first.": lambda keys_values, parents: keys_values[:, parents.flatten()],
        "a row was copied from after it had been overwritten; read all rows before you "
        "write one.": _overwrite,
    },
)  # fmt: skip
def check_reorder(keys_values, parents):
    """Let each beam go on from its parent.

    keys_values (2, n_rows, n_heads, length, d_head), parents (n_sentences, n_beams),
    beam numbers within the sentence -> keys_values of the parents. Row
    i * n_beams + j is beam j of sentence i.
    """
    return keys_values[:, _rows(parents)]


def _run_window(answer, window, steps):
    """What comes back in all steps, behind each other."""
    cache, found = answer(window), []
    if is_missing(cache):
        return None
    for key, value in steps:
        for attention, sign in (("first", 1), ("second", -1)):
            result = cache.update(attention, sign * key, sign * value)
            if is_missing(result):
                return None
            found.append(torch.stack(tuple(result)))
    return torch.cat(found, dim=3)


@grader(
    cases=lambda: [(3, [tuple(torch.randn(2, 2, 5, 1, 7)) for _ in range(6)])],
    run=_run_window,
    right="The newest token pushes the oldest one out, in each attention.",
    mistakes=lambda solve: {
        "nothing is forgotten; keep the last window tokens.": {"cut": lambda x, n: x},
        "keep the last tokens, not the first.": {"cut": lambda x, n: x[:, :, :, :n]},
        "this is one token too many: the new one is among those that count.":
            {"cut": lambda x, n: x[:, :, :, -n - 1 :]},
        "two attention layers share their keys and values; keep them apart.":
            {"name": lambda attention: None},
    },
)  # fmt: skip
class check_window:
    """A class: (window) -> a cache whose update forgets what is too old.

    update(attention, key, value) keeps the last window tokens of each attention and
    returns their keys and values.
    """

    cut = staticmethod(lambda x, n: x[:, :, :, -n:])
    name = staticmethod(lambda attention: attention)

    def __init__(self, window):
        self.window, self.kept = window, {}

    def update(self, attention, key, value):
        """(batch, n_heads, 1, d_head) -> keys and values to attend to."""
        name, new = self.name(attention), torch.stack([key, value])
        both = [self.kept.get(name, new[:, :, :, :0]), new]
        self.kept[name] = self.cut(torch.cat(both, dim=3), self.window)
        return self.kept[name]


class _Reading:
    """A model that has read a source and the first tokens of its own greedy search.

    Only this class, `check_draft` and `_run_draft` touch the model's cache.
    """

    def __init__(self):
        sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "tie_embeddings": "none"}
        sizes |= {"d_model": 16, "n_heads": 2, "d_ff": 32}
        sizes |= {"n_encoder_layers": 1, "n_decoder_layers": 2}
        torch.default_generator.manual_seed(104)  # this one does not repeat itself
        self.model = Transformer(TransformerConfig(**sizes)).requires_grad_(False)
        self.model.eval()
        src, self.tokens = torch.tensor([[4, 7, 5, 2]]), [1]
        for _ in range(8):
            logits = self.model(src, torch.tensor([self.tokens]))
            self.tokens.append(int(logits[0, -1].argmax()))
        self.decoder = IncrementalDecoder(self.model)
        self.decoder.prefill(src)
        self.decoder.read(torch.tensor([self.tokens[:2]]))


def _run_draft(answer, reading, n_right, n_draft):
    """Continue `tokens[2]` by a draft: tokens, number of passes, what the cache holds.

    Of the draft's tokens, the first n_right are the model's own.
    """
    wrong = next(token for token in range(3, 11) if token not in reading.tokens)
    draft = reading.tokens[3 : 3 + n_right] + [wrong] * (n_draft - n_right)
    passes = []
    reading.model.decoder.register_forward_hook(lambda *_: passes.append(1))
    tokens = answer(reading.decoder, reading.tokens[2], draft)
    return tokens, len(passes), reading.decoder.length


@grader(
    cases=lambda: [
        (_Reading(), *sizes) for sizes in ((4, 4), (1, 3), (0, 2), (2, 4), (0, 0))
    ],
    run=_run_draft,
    view=lambda result, *case: result[0],
    right="The same tokens as one by one, in one pass.",
    mistakes=lambda solve: {
        "the model's own next token is missing.": lambda *given: solve(*given)[:-1],
        "the decoder ran {} times; let it read all at once.":
            Seen(lambda result, *case: result[1] != 1 and result[1], [{"n_passes": 2}]),
        "the cache holds {} tokens, but {} are valid.":
            Seen(lambda result, reading, n_right, n_draft: (
                     result[2] != 3 + n_right and (result[2], 3 + n_right)),
                 [{"keep": lambda n_right, n_draft: n_draft},
                  {"keep": lambda n_right, n_draft: n_right - 1}]),
    },
)  # fmt: skip
def check_draft(
    decoder, last, draft, keep=lambda n_right, n_draft: n_right, n_passes=1
):
    """Read a draft in one pass, and truncate the cache to what was right.

    A decoder, the last token, which its cache doesn't hold yet, a draft of tokens after
    it -> the tokens on which the model agrees, and its own next one; the cache then
    holds all but that one.
    """
    n_before = decoder.length
    for _ in range(n_passes):
        decoder.truncate(n_before)
        features = decoder.read(torch.tensor([[last, *draft]]))
    says = decoder.model.lm_head(features)[0].argmax(dim=-1).tolist()
    n_right = 0
    while n_right < len(draft) and says[n_right] == draft[n_right]:
        n_right += 1
    decoder.truncate(n_before + 1 + keep(n_right, len(draft)))
    return [*draft[:n_right], says[n_right]]
