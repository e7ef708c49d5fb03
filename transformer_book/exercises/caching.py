"""Graders of the chapter on incremental decoding."""

from functools import partial

import torch

from transformer_book.exercises.grading import Grader, Mistake, Seen, is_missing
from transformer_lib.generation.incremental import IncrementalDecoder
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import causal_mask
from transformer_lib.model.transformer import Transformer


def _cache_size(n_layers, d_model, n_sentences, n_beams, tgt_len, src_len):
    n_tokens = n_sentences * (n_beams * tgt_len + src_len)
    return 2 * 4 * n_layers * d_model * n_tokens


check_cache_size = Grader(
    "n_layers, d_model, n_sentences, n_beams, tgt_len, src_len -> bytes of a cache in "
    "float32",
    cases=lambda: [(3, 12, 5, 7, 11, 13)],
    solution=_cache_size,
    right="Targets once a beam, sources once a sentence, two vectors each.",
    mistakes={
        "only keys or only values were counted; both are kept.":
            lambda *sizes: _cache_size(*sizes) // 2,
        "these are numbers; each takes 4 bytes.":
            lambda *sizes: (_cache_size(*sizes) // 4),
        "this is one layer; each layer has its own.":
            lambda n_layers, *sizes: _cache_size(1, *sizes),
        "the keys and values of the source are missing.":
            lambda *sizes: _cache_size(*sizes[:5], 0),
        "the keys and values of the target are missing.":
            lambda *sizes: _cache_size(*sizes[:4], 0, sizes[5]),
        "the source was counted once a beam, but its beams share it.":
            lambda *sizes: _cache_size(*sizes[:5], sizes[3] * sizes[5]),
        "the target was counted once a sentence, but every beam writes its own.":
            lambda *sizes: _cache_size(*sizes[:3], 1, *sizes[4:]),
        "this is one sentence; there are several.":
            lambda *sizes: _cache_size(*sizes[:2], 1, *sizes[3:]),
    },
)  # fmt: skip


def _new_mask(n_kept, n_new):
    return causal_mask(n_kept + n_new)[n_kept:]


check_new_mask = Grader(
    "n_kept and n_new -> the mask of several new tokens beside those in the cache, "
    "boolean (n_new, n_kept + n_new)",
    cases=lambda: [(4, 3)],
    solution=_new_mask,
    right="Each new token sees the cache and the new ones up to itself.",
    mistakes={
        "these are the first rows of the causal mask: the new tokens are the last "
        "ones, but here they see as little as the first.":
            lambda n_kept, n_new: causal_mask(n_kept + n_new)[:n_new],
        "every new token sees all others, later ones too.":
            lambda n_kept, n_new: torch.ones(n_new, n_kept + n_new).bool(),
        "the tokens in the cache are hidden; all of them are past.":
            lambda n_kept, n_new: (
                _new_mask(n_kept, n_new) & (torch.arange(n_kept + n_new) >= n_kept)),
        "a token may attend to itself.":
            lambda n_kept, n_new: _new_mask(n_kept, n_new).tril(n_kept - 1),
        "True and False are swapped: True is where it may attend.":
            lambda n_kept, n_new: ~_new_mask(n_kept, n_new),
    },
)  # fmt: skip


def _rows(parents):
    n_sentences, n_beams = parents.shape
    return (torch.arange(n_sentences)[:, None] * n_beams + parents).flatten()


def _overwrite(keys_values, parents):
    result = keys_values.clone()
    for row, parent in enumerate(_rows(parents).tolist()):
        result[:, row] = result[:, parent]
    return result


def _send(keys_values, parents):
    result = keys_values.clone()
    for row, parent in enumerate(_rows(parents).tolist()):
        result[:, parent] = keys_values[:, row]
    return result


check_reorder = Grader(
    "keys_values (2, n_rows, n_heads, length, d_head), parents (n_sentences, n_beams), "
    "beam numbers within the sentence -> keys_values in which each beam goes on from "
    "its parent; row i * n_beams + j is beam j of sentence i",
    cases=lambda: [(torch.randn(2, 6, 2, 5, 7), torch.tensor([[1, 0, 1], [2, 2, 0]]))],
    solution=lambda keys_values, parents: keys_values[:, _rows(parents)],
    right="Each beam goes on from what its parent has read.",
    mistakes={
        "nothing has moved.": lambda keys_values, parents: keys_values.clone(),
        "the values stayed where they were; reorder both.":
            lambda keys_values, parents: (
                torch.stack([keys_values[0, _rows(parents)], keys_values[1]])),
        "beam numbers were used as row numbers: the second sentence got rows of the "
        "first.": lambda keys_values, parents: keys_values[:, parents.flatten()],
        "a row was copied from after it had been overwritten; read all rows before you "
        "write one.": _overwrite,
        "rows were sent to their parents; they come from them.": _send,
    },
)  # fmt: skip


class _WindowCache:
    """Keeps the last tokens of each attention, or makes a mistake in it."""

    def __init__(self, window, extra=0, cut=None, shared=False, new_first=False):
        self.n_kept = window + extra
        self.cut = cut or (lambda x, n: x[:, :, -n:])
        self.shared, self.new_first = shared, new_first
        self.kept = {}

    def update(self, attention, key, value):
        name = None if self.shared else attention
        both = torch.stack([key, value])
        if name in self.kept:
            order = -1 if self.new_first else 1
            both = torch.cat([self.kept[name], both][::order], dim=3)
        key, value = (self.cut(each, self.n_kept) for each in both)
        self.kept[name] = torch.stack([key, value])
        return key, value


def _run_window(answer, window, steps):
    """What comes back in all steps, behind each other."""
    cache, found = answer(window), []
    if is_missing(cache):
        return None
    if not hasattr(cache, "update"):
        kind = type(cache).__name__
        raise Mistake(f"expected a cache with a method update, but got {kind}.")
    for key, value in steps:
        for attention, sign in (("first", 1), ("second", -1)):
            result = cache.update(attention, sign * key, sign * value)
            if is_missing(result):
                return None
            found.append(torch.stack(tuple(result)))
    return torch.cat(found, dim=3)


check_window = Grader(
    "a class: (window) -> a cache whose update(attention, key, value) keeps the last "
    "window tokens of each attention and returns their keys and values",
    cases=lambda: [(3, [tuple(torch.randn(2, 2, 5, 1, 7)) for _ in range(6)])],
    run=_run_window,
    solution=_WindowCache,
    right="The newest token pushes the oldest one out, in each attention.",
    mistakes={
        "nothing is forgotten; keep the last window tokens.":
            {"cut": lambda x, n: x},
        "these are the first tokens; keep the last ones.":
            {"cut": lambda x, n: x[:, :, :n]},
        "this is one token too many: the new one is among those that count.":
            {"extra": 1},
        "this is one token too few.": {"extra": -1},
        "only the new token is left.": {"cut": lambda x, n: x[:, :, -1:]},
        "two attention layers share their keys and values; keep them apart.":
            {"shared": True},
        "the new token stands before the old ones; append it.":
            {"new_first": True, "cut": lambda x, n: x[:, :, :n]},
    },
)  # fmt: skip


class _Reading:
    """A model that has read a source and the first tokens of its own greedy search.

    Only this class, `_read_draft` and `_run_draft` touch the model's cache.
    """

    def __init__(self) -> None:
        sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "tie_embeddings": "none"}
        sizes |= {"d_model": 16, "n_heads": 2, "d_ff": 32}
        sizes |= {"n_encoder_layers": 1, "n_decoder_layers": 2}
        torch.default_generator.manual_seed(104)  # this one does not repeat itself
        self.model = (
            Transformer(TransformerConfig(**sizes)).requires_grad_(False).eval()
        )
        src, self.tokens = torch.tensor([[4, 7, 5, 2]]), [1]
        for _ in range(8):
            logits = self.model(src, torch.tensor([self.tokens]))
            self.tokens.append(int(logits[0, -1].argmax()))
        self.decoder = IncrementalDecoder(self.model)
        self.decoder.prefill(src)
        self.decoder.read(torch.tensor([self.tokens[:2]]))

    def draft(self, n_right, n_draft):
        """Tokens that follow the last one, `self.tokens[2]`; some are wrong."""
        wrong = next(token for token in range(3, 11) if token not in self.tokens)
        return self.tokens[3 : 3 + n_right] + [wrong] * (n_draft - n_right)


def _read_draft(decoder, last, draft, keep=0, n_passes=1, shift=0):
    """Read a draft in one pass, and truncate the cache to what was right."""
    n_before = decoder.length
    for _ in range(n_passes):
        decoder.truncate(n_before)
        features = decoder.read(torch.tensor([[last, *draft]]))
    says = decoder.model.lm_head(features)[0].argmax(dim=-1).tolist()
    n_right = 0
    while n_right < len(draft) and says[n_right] == draft[n_right]:
        n_right += 1
    if keep != "all":
        decoder.truncate(n_before + 1 + n_right + keep)
    return [*draft[:n_right], says[n_right + shift]]


def _run_draft(answer, reading, n_right, n_draft):
    """The tokens, how often the decoder ran, and what the cache holds then."""
    passes, draft = [], reading.draft(n_right, n_draft)
    reading.model.decoder.register_forward_hook(lambda *_: passes.append(1))
    tokens = answer(reading.decoder, reading.tokens[2], draft)
    return tokens, len(passes), reading.decoder.length


def _draw_readings():
    sizes = (4, 4), (1, 3), (0, 2), (2, 4), (0, 0)
    return [(_Reading(), n_right, n_draft) for n_right, n_draft in sizes]


check_draft = Grader(
    "a decoder, the last token, which its cache doesn't hold yet, a draft of tokens "
    "after it -> the tokens on which the model agrees, and its own next one; "
    "the cache then holds all but that one",
    cases=_draw_readings,
    run=_run_draft,
    view=lambda result, *case: result[0],
    solution=_read_draft,
    right="The same tokens as one by one, in one pass.",
    mistakes={
        "the model's own next token is missing.":
            lambda *given: _read_draft(*given)[:-1],
        "the last token is the model's answer to an earlier one.": {"shift": -1},
        "the decoder ran {} times; let it read all at once.":
            Seen(lambda result, *case: result[1] if result[1] != 1 else None,
                 partial(_read_draft, n_passes=2)),
        "the cache holds {} tokens, but {} are valid: truncate the others.":
            Seen(lambda result, reading, n_right, n_draft: (
                     (result[2], 3 + n_right) if result[2] > 3 + n_right else None),
                 partial(_read_draft, keep="all")),
        "the cache holds {} tokens, but {} are valid: too much was truncated.":
            Seen(lambda result, reading, n_right, n_draft: (
                     (result[2], 3 + n_right) if result[2] < 3 + n_right else None),
                 partial(_read_draft, keep=-1)),
    },
)  # fmt: skip
