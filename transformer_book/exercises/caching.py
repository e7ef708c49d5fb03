"""Graders of the chapter on incremental decoding."""

import torch

from transformer_book.exercises.grading import grader, is_missing
from transformer_lib import IncrementalDecoder, Transformer, causal_mask
from transformer_lib.model.config import TransformerConfig


@grader(
    cases=lambda: [(3, 12, 5, 7, 11, 13)],
    right="Targets once a beam, sources once a sentence, two vectors each.",
)
def check_cache_size(n_layers, d_model, n_sentences, n_beams, tgt_len, src_len):
    """Sizes of a model and a search -> bytes of their cache in float32."""
    n_tokens = n_sentences * (n_beams * tgt_len + src_len)
    key_and_value = 2 * 4 * d_model  # a number takes 4 bytes
    return n_layers * n_tokens * key_and_value


check_cache_size.mistake(
    "count keys and values, 4 bytes each number, in every layer.",
    lambda *sizes: check_cache_size.solve(*sizes) // 2,
    lambda *sizes: check_cache_size.solve(*sizes) // 4,
    lambda n_layers, *sizes: check_cache_size.solve(1, *sizes),
)
check_cache_size.mistake(
    "the source was counted once a beam, but its beams share it.",
    lambda n_layers, d_model, n_sentences, n_beams, tgt_len, src_len: (
        check_cache_size.solve(
            n_layers, d_model, n_sentences, n_beams, tgt_len, n_beams * src_len
        )
    ),
)
check_cache_size.mistake(
    "the target was counted once a sentence, but every beam writes its own.",
    lambda n_layers, d_model, n_sentences, n_beams, *lengths: check_cache_size.solve(
        n_layers, d_model, n_sentences, 1, *lengths
    ),
)


@grader(
    cases=lambda: [(4, 3)],
    right="Each new token sees the cache and the new ones up to itself.",
)
def check_new_mask(n_kept, n_new):
    """The mask of several new tokens beside those in the cache.

    n_kept and n_new -> boolean (n_new, n_kept + n_new).
    """
    return causal_mask(n_kept + n_new)[n_kept:]


check_new_mask.mistake(
    "these are the first rows of the causal mask; the new tokens are the last.",
    lambda n_kept, n_new: causal_mask(n_kept + n_new)[:n_new],
)
check_new_mask.mistake(
    "every new token sees all others, later ones too.",
    lambda n_kept, n_new: torch.ones(n_new, n_kept + n_new, dtype=torch.bool),
)


@grader(
    cases=lambda: [(torch.randn(2, 6, 2, 5, 7), torch.tensor([[1, 0, 1], [2, 2, 0]]))],
    right="Each beam goes on from what its parent has read.",
)
def check_reorder(keys_values, parents):
    """Let each beam go on from its parent.

    keys_values (2, n_rows, n_heads, length, d_head), parents (n_sentences, n_beams),
    beam numbers within the sentence -> keys_values of the parents. Row
    i * n_beams + j is beam j of sentence i.
    """
    n_sentences, n_beams = parents.shape
    rows = torch.arange(n_sentences)[:, None] * n_beams + parents
    return keys_values[:, rows.flatten()]


check_reorder.mistake(
    "the values stayed where they were; reorder both.",
    lambda keys_values, parents: torch.stack(
        [check_reorder.solve(keys_values, parents)[0], keys_values[1]]
    ),
)
check_reorder.mistake(
    "beam numbers were used as row numbers: the second sentence got rows of the first.",
    lambda keys_values, parents: keys_values[:, parents.flatten()],
)


def _run_window(answer, window, steps):
    """What comes back in all steps of two attentions, behind each other."""
    if is_missing(cache := answer(window)):
        return None
    kept = [cache.update(attention, key, value) for attention, (key, value) in steps]
    if is_missing(kept[0]):
        return None
    return torch.cat([torch.stack(tuple(keys_values)) for keys_values in kept], dim=3)


@grader(
    cases=lambda: [
        (3, [(name, torch.randn(2, 2, 5, 1, 7)) for name in ["a", "b"] * 6])
    ],
    right="The newest token pushes the oldest one out, in each attention.",
    run=_run_window,
)
class check_window:
    """A class: (window) -> a cache whose update forgets what is too old.

    update(attention, key, value) keeps the last window tokens of each attention and
    returns their keys and values.
    """

    def __init__(self, window):
        self.window, self.kept = window, {}

    def update(self, attention, key, value):
        """(batch, n_heads, 1, d_head) -> keys and values to attend to."""
        keys_values = torch.stack([key, value])
        if attention in self.kept:
            keys_values = torch.cat([self.kept[attention], keys_values], dim=3)
        self.kept[attention] = keys_values[:, :, :, -self.window :]
        return self.kept[attention]


class _SharedCache(check_window.solve):
    def update(self, attention, key, value):
        return super().update("all", key, value)


check_window.mistake(
    "nothing is forgotten; keep the last window tokens.",
    lambda window: check_window.solve(1000),
)
check_window.mistake(
    "this is one token too many: the new one is among those that count.",
    lambda window: check_window.solve(window + 1),
)
check_window.mistake(
    "two attention layers share their keys and values; keep them apart.",
    _SharedCache,
)


def _draw_drafts():
    """A decoder that has read two tokens of its model's, the next one, and a draft."""
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "tie_embeddings": "none"}
    sizes |= {"d_model": 16, "n_heads": 2, "d_ff": 32}
    torch.default_generator.manual_seed(104)  # this model does not repeat itself
    model = Transformer(TransformerConfig(**sizes, n_encoder_layers=1)).eval()
    src, tokens, cases = torch.tensor([[4, 7, 5, 2]]), [1], []
    for _ in range(8):
        logits = model.requires_grad_(False)(src, torch.tensor([tokens]))
        tokens.append(int(logits[0, -1].argmax()))
    wrong = next(token for token in range(3, 11) if token not in tokens)
    for n_right, n_wrong in ((4, 0), (1, 2), (0, 2), (0, 0)):
        decoder = IncrementalDecoder(model)
        decoder.prefill(src)
        decoder.read(torch.tensor([tokens[:2]]))
        draft = tokens[3 : 3 + n_right] + [wrong] * n_wrong
        cases.append((decoder, tokens[2], draft))
    return cases


def _run_draft(answer, decoder, last, draft):
    """The tokens, whether they took one pass, and how many tokens the cache holds."""
    passes, stack = [], decoder.model.decoder
    with stack.register_forward_hook(lambda *_: passes.append(1)):
        return answer(decoder, last, draft), len(passes) == 1, decoder.length


@grader(
    cases=_draw_drafts,
    right="The same tokens as one by one, in one pass.",
    run=_run_draft,
)
def check_draft(decoder, last, draft):
    """Read a draft in one pass, and truncate the cache to what was right.

    A decoder, the last token, which its cache doesn't hold yet, a draft of tokens after
    it -> the tokens on which the model agrees, and its own next one; the cache then
    holds all but that one.
    """
    n_before = decoder.length
    features = decoder.read(torch.tensor([[last, *draft]]))
    says, n_right = decoder.model.lm_head(features)[0].argmax(dim=-1).tolist(), 0
    while n_right < len(draft) and says[n_right] == draft[n_right]:
        n_right += 1
    decoder.truncate(n_before + 1 + n_right)
    return says[: n_right + 1]


def _read_twice(decoder, last, draft):
    n_before = decoder.length
    decoder.read(torch.tensor([[last, *draft]]))
    decoder.truncate(n_before)
    return check_draft.solve(decoder, last, draft)


def _keep_all(decoder, last, draft):
    features = decoder.read(torch.tensor([[last, *draft]]))
    says, n_right = decoder.model.lm_head(features)[0].argmax(dim=-1).tolist(), 0
    while n_right < len(draft) and says[n_right] == draft[n_right]:
        n_right += 1
    return says[: n_right + 1]


check_draft.mistake(
    "the model's own next token is missing.",
    lambda *case: check_draft.solve(*case)[:-1],
)
check_draft.mistake("let the decoder read all at once, in one pass.", _read_twice)
check_draft.mistake("the cache must hold what was right, and no more.", _keep_all)
