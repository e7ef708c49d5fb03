"""How many of forty sentences each mistake of the parts changes.

    python -m transformer_book.yours.counts [FOLDER]

writes `counts.json`: for each part and each of its three mistakes, how many of the
greedy translations of the shipped model differ from those without the mistake. The
sentences are drawn from the test split of Multi30k, by a fixed seed; FOLDER holds the
corpus, see `load_multi30k`. Each sentence is read alone, as in the page: the whole
target in every step, without a cache.
"""

import json
import sys
from random import Random
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from transformer_book.yours.names import namespace, read, solution_of
from transformer_book.yours.parts import COUNTS, PADDING, PARTS, build
from transformer_lib import Translator, load
from transformer_lib.data.corpora.multi30k import load_multi30k

MODEL, N_SENTENCES, SEED = "multi30k-de-en", 40, 0


def draw_sentences(folder: str | None = None) -> list[str]:
    """Draw the German sentences."""
    pairs = load_multi30k(folder).test
    return [german for _, german in Random(SEED).sample(pairs, N_SENTENCES)]


def fingerprint() -> int:
    """Return a number that changes with the text of any mistake."""
    tries = [each for part in PARTS.values() for each in part.tries]
    return crc32("".join(each.source for each in tries).encode())


def translate_with(
    part: str, source: str, translator: Translator, sentences: list[str]
) -> list[list[int]]:
    """Write translations with a source in the place of one part of the book's.

    Args:
        part: whose source it is.
        source: of its definitions.
        translator: gives the weights and the tokens.
        sentences: in the source language.

    Returns:
        The ids of each.
    """
    own = read(part, source)
    model = build(translator.model.config, own)
    model.load_state_dict(translator.model.state_dict())
    model.eval()
    names = namespace() | own
    found = []
    for text in sentences:
        ids = translator.tokenizer.encode(text)
        max_len = min(len(ids) + 50, model.config.max_len)
        if part == "masks":
            ids = ids + [model.config.pad_id] * PADDING
        found.append(_write(model, names, torch.tensor([ids]), translator, max_len))
    return found


@torch.inference_mode()
def _write(
    model: nn.Module,
    names: dict[str, Any],
    src: Tensor,
    translator: Translator,
    max_len: int,
) -> list[int]:
    """Write one translation; the decoder reads what `shift_right` makes of it."""
    bos_id, eos_id = translator.tokenizer.bos_id, translator.tokenizer.eos_id

    def ask(src: Tensor, tgt_in: Tensor) -> Tensor:
        unread = tgt_in.new_tensor([[eos_id]])
        if tgt_in[0, 0] == bos_id:  # the target as it was before it was shifted
            target = torch.cat([tgt_in[:, 1:], unread], dim=1)
            tgt_in = names["shift_right"](target, bos_id)
        return model(src, tgt_in)

    return names["greedy_decode"](ask, src, bos_id, eos_id, max_len)


def main(folder: str | None = None) -> None:
    """Count, and store what was counted."""
    translator, sentences = load(MODEL), draw_sentences(folder)
    changed = {}
    for name, part in PARTS.items():
        right = translate_with(name, solution_of(name), translator, sentences)
        changed[name] = {}
        for each in part.tries:
            now = translate_with(name, each.source, translator, sentences)
            n_changed = sum(a != b for a, b in zip(right, now, strict=True))
            changed[name][each.label] = n_changed
            print(f"{n_changed:2} of {N_SENTENCES}: {name}, {each.label}")  # noqa: T201
    about = {"model": MODEL, "sentences": N_SENTENCES, "seed": SEED}
    about |= {"fingerprint": fingerprint(), "changed": changed}
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    COUNTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
