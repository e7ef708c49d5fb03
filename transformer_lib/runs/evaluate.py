"""Scores of a translator on the test sentences of its recipe's corpus."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_lib.data import corpora
from transformer_lib.data.batches import Batch, limit_lengths, token_batches
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.corpora.parallel import HeldOut, Pair
from transformer_lib.data.pairs_file import read_held_out
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.scores import (
    BY_SPACES,
    bleu,
    chrf,
    exact_match,
    lacks_spaces,
    nats_per_token,
    require_tokenization,
)
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained.translator import Translator, find
from transformer_lib.runs.recipe import DataRecipe, Recipe, read_stored_recipe
from transformer_lib.runs.sentences import SENTENCES, checksums, require_sentences

PAIRS = "pairs.ids"  # in the folder of a run on two files: what they come to
SEARCHES = (1, 4)  # numbers of beams
IdPairs = list[tuple[list[int], list[int]]]


def own_files(data: DataRecipe) -> tuple[Path, Path]:
    """Return the file of what is translated, and that of its translations.

    A corpus of files isn't reversed after it was split: no sentence that is translated
    may be in two parts.
    """
    files = Path(data.source), Path(data.target)
    return files[::-1] if data.reverse else files


def load_corpus(recipe: Recipe) -> ParallelCorpus:
    """Load the corpus of a recipe that names one, in the recipe's direction."""
    corpus = corpora.load(recipe.data.corpus)
    return corpus.reversed() if recipe.data.reverse else corpus


def load_corpus_of(name: str | Path, recipe: Recipe) -> ParallelCorpus | HeldOut:
    """Load the sentences of a model's recipe, to measure the model on them.

    Args:
        name: of a shipped model, or the folder of a run.
        recipe: the model's.

    Raises:
        ValueError: they aren't those that the model was trained with.
        FileNotFoundError: they are of two files, and nothing is known about those that
            the model was trained with: a run of an earlier version.
    """
    folder = find(name)
    if recipe.data.corpus:
        corpus = load_corpus(recipe)
    elif (folder / SENTENCES).is_file():
        corpus = read_held_out(folder / PAIRS, *own_files(recipe.data))
    else:
        raise FileNotFoundError(
            f"{folder} holds no {SENTENCES}, which says what it was trained with: it "
            "may be tested on what it has learned. Train it again"
        )
    require_sentences(folder, checksums(corpus))
    return corpus


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> IdPairs:
    """Turn pairs of sentences into pairs of ids."""
    return [(tokenizer.encode(src), tokenizer.encode(tgt)) for src, tgt in pairs]


def valid_batches(
    corpus: ParallelCorpus | HeldOut, tokenizer: Tokenizer, recipe: Recipe
) -> tuple[list[Batch], list[int]]:
    """Return the batches that a validation loss is measured on, in and after training.

    Returns:
        The batches, and the line numbers of pairs that are left out: they are longer
        than the recipe's max_len.
    """
    pairs = encode_pairs(tokenizer, corpus.valid)
    pairs, skipped = limit_lengths(pairs, recipe.data.max_len, "skip")
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    return list(token_batches(pairs, recipe.training.batch_tokens, **ids)), skipped


def evaluate(
    translator: Translator,
    corpus: ParallelCorpus | HeldOut,
    recipe: Recipe,
    progress: bool = False,
) -> dict[str, Any]:
    """Translate the test sentences of a corpus and score the translations.

    Args:
        translator: what is measured.
        corpus: see `load_corpus_of`.
        recipe: how the translator was trained.
        progress: show a progress bar.

    Returns:
        The scores of each search (the share that is exact; BLEU, BLEU without case,
        and chrF), every example of greedy search (source, translation, reference), and
        notes on what the scores are worth.

    Raises:
        ValueError: sacrebleu has no tokenization of the recipe's name.
    """
    sources, references = zip(*corpus.test, strict=True)
    words = recipe.data.bleu_tokenize
    require_tokenization(words)
    found = {
        n_beams: translator.translate(sources, n_beams, progress=progress)
        for n_beams in SEARCHES
    }
    valid, _ = valid_batches(corpus, translator.tokenizer, recipe)
    notes = []
    if words in BY_SPACES and lacks_spaces(references):
        notes.append(
            f"BLEU with tok:{words} splits at spaces, and these references have hardly "
            "any: take --tokenize zh, ja-mecab, char or flores200"
        )
    return {
        "n_parameters": count_parameters(translator.model),
        "valid_nats": nats_per_token(translator.model, valid),
        "n_sentences": len(references),
        "searches": [
            {
                "n_beams": n_beams,
                "exact": exact_match(translations, references),
                "scores": [
                    bleu(translations, references, tokenize=words),
                    bleu(translations, references, lowercase=True, tokenize=words),
                    chrf(translations, references),
                ],
            }
            for n_beams, translations in found.items()
        ],
        "notes": notes,
        "examples": list(zip(sources, found[1], references, strict=True)),
    }


def describe(result: dict[str, Any]) -> str:
    """Put what `evaluate` found into lines of text."""
    lines = [
        f"{result['n_parameters']:,} parameters",
        f"validation: {result['valid_nats']:.3f} nats per token",
    ]
    for search in result["searches"]:
        exact = f"{100 * search['exact']:.1f} % of {result['n_sentences']} sentences"
        n_beams = search["n_beams"]
        name = "greedy search" if n_beams == 1 else f"beam search, {n_beams} beams"
        lines += [name, f"  exact: {exact}"]
        lines += [f"  {score}" for score in search["scores"]]
    lines += result["notes"]
    return "\n".join(lines) + "\n"


def read_recipe_of(name: str | Path) -> Recipe:
    """Return the recipe by which a shipped model, or one in a folder, was trained.

    Raises:
        FileNotFoundError: there is no such model, or its recipe is missing.
    """
    return read_stored_recipe(find(name))
