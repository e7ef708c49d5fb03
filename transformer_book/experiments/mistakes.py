"""How many of forty sentences each mistake of the parts changes.

    python -m transformer_book.experiments.mistakes [FOLDER]

writes `yours/counts.json`: for each part that a reader writes and each of its three
mistakes, how many of the shipped model's greedy translations the mistake changes, token
for token. The sentences are drawn from the test split of Multi30k, by a fixed seed;
FOLDER holds the corpus, see `load_multi30k`. Each sentence is read alone, as in the
page: the whole target in every step, without a cache, and cut where the page cuts it.

It also chooses the sentence with which the page opens a part: the first of OPENINGS
whose text is changed by as many of the part's mistakes as any other's.
"""

import json
import re
import sys
from importlib import import_module
from random import Random
from zlib import crc32

import torch
from torch import Tensor

from transformer_book.yours.machine import Machine
from transformer_book.yours.names import namespace, read, solution_of
from transformer_book.yours.parts import COUNTS, PADDING, PARTS, build
from transformer_lib import Translator, load
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.data.tokenizer import Tokenizer

MODEL, N_SENTENCES, SEED = "multi30k-de-en", 40, 0
OPENINGS = (
    "Eine Frau mit einem roten Hut liest ein Buch in der Sonne.",
    "Zwei Kinder spielen im Garten mit einem Ball.",
    "Drei Männer in Anzügen warten an der Straße auf einen Bus.",
    "Zwei Frauen in weißen Hemden stehen vor einem Haus und lachen.",
    "Ein Junge springt von einem Felsen in den See, während seine Freunde zusehen.",
)


def draw_sentences(folder: str | None = None) -> list[str]:
    """Draw the German sentences."""
    pairs = load_multi30k(folder).test
    return [german for _, german in Random(SEED).sample(pairs, N_SENTENCES)]


def fingerprint() -> int:
    """Return a number that changes with what any mistake computes."""
    tries = [each for part in PARTS.values() for each in part.tries]
    text = "".join(each.source for each in tries)
    return crc32(re.sub(r'"""(.|\n)*?"""| *#.*', "", text).encode())


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
    bos_id, eos_id = translator.tokenizer.bos_id, translator.tokenizer.eos_id

    def ask(src: Tensor, tgt_in: Tensor) -> Tensor:
        """Let the decoder read what a reader's `shift_right` makes of the target."""
        target = torch.cat([tgt_in[:, 1:], tgt_in.new_tensor([[eos_id]])], dim=1)
        return model(src, names["shift_right"](target, bos_id))

    found = []
    for text in sentences:
        ids = translator.tokenizer.encode(text)
        max_len = 2 * len(ids) + 10
        if part == "masks":
            ids = ids + [model.config.pad_id] * PADDING
        asked = ask if part == "decoder" else model
        with torch.inference_mode():
            found.append(
                names["greedy_decode"](
                    asked, torch.tensor([ids]), bos_id, eos_id, max_len
                )
            )
    return found


def choose_openings(machine: Machine, tokenizer: Tokenizer) -> dict[str, str]:
    """Choose the sentence with which the page opens each part.

    Args:
        machine: with the page's weights, which are rounded.
        tokenizer: of its tokens.

    Returns:
        The sentence by the name of the part.
    """

    def translate_all(parts: dict[str, str]) -> list[str]:
        machine.use(parts)
        return [machine.write(tokenizer.encode(text))["text"] for text in OPENINGS]

    right, openings = translate_all({}), {}
    for name, part in PARTS.items():
        tried = [translate_all({name: each.source}) for each in part.tries]
        n_changed = [
            sum(text != own for text in texts)
            for own, *texts in zip(right, *tried, strict=True)
        ]
        openings[name] = OPENINGS[n_changed.index(max(n_changed))]
    return openings


def main(folder: str | None = None) -> None:
    """Count, and store what was counted."""
    # Of the repository: this command has no use, and no place, in an installed package.
    model_data = import_module("book._ext.browser_model").model_data
    translator, sentences = load(MODEL), draw_sentences(folder)
    right = translate_with("search", solution_of("search"), translator, sentences)
    changed = {}
    for name, part in PARTS.items():
        changed[name] = {}
        for each in part.tries:
            now = translate_with(name, each.source, translator, sentences)
            n_changed = sum(a != b for a, b in zip(right, now, strict=True))
            changed[name][each.label] = n_changed
            print(f"{n_changed:2} of {N_SENTENCES}: {name}, {each.label}", flush=True)  # noqa: T201
    about = {"model": MODEL, "sentences": N_SENTENCES, "seed": SEED}
    about |= {"fingerprint": fingerprint(), "changed": changed}
    about["openings"] = choose_openings(
        Machine(model_data(translator)), translator.tokenizer
    )
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    COUNTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
