"""Scores of a translator on the test sentences of its recipe's corpus."""

from pathlib import Path
from typing import Any

from transformer_lib.data import corpora
from transformer_lib.data.batches import token_batches
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.evaluation.scores import bleu, chrf, exact_match, nats_per_token
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained.translator import Translator, find
from transformer_lib.runs.recipe import Recipe, read_stored_recipe

SEARCHES = (1, 4)  # numbers of beams


def load_corpus(recipe: Recipe) -> ParallelCorpus:
    """Load the sentences of a recipe, in its direction."""
    data = recipe.data
    if data.corpus:
        corpus = corpora.load(data.corpus)
    else:
        corpus = ParallelCorpus.from_files(data.source, data.target)
    return corpus.reversed() if data.reverse else corpus


def evaluate(
    translator: Translator, recipe: Recipe, progress: bool = False
) -> dict[str, Any]:
    """Translate the test sentences of a recipe's corpus and score the translations.

    Returns:
        The scores of each search (the share that is exact; BLEU, BLEU without case,
        and chrF), and every example of greedy search: source, translation, reference.
    """
    corpus, tokenizer = load_corpus(recipe), translator.tokenizer
    sources, references = zip(*corpus.test, strict=True)
    found = {
        n_beams: translator.translate(sources, n_beams, progress=progress)
        for n_beams in SEARCHES
    }
    valid = token_batches(
        [(tokenizer.encode(src), tokenizer.encode(tgt)) for src, tgt in corpus.valid],
        recipe.training.batch_tokens,
        bos_id=tokenizer.bos_id,
        pad_id=tokenizer.pad_id,
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
                    bleu(translations, references),
                    bleu(translations, references, lowercase=True),
                    chrf(translations, references),
                ],
            }
            for n_beams, translations in found.items()
        ],
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
    return "\n".join(lines) + "\n"


def read_recipe_of(name: str | Path) -> Recipe:
    """Return the recipe by which a shipped model, or one in a folder, was trained.

    Raises:
        FileNotFoundError: there is no such model, or its recipe is missing.
    """
    return read_stored_recipe(find(name))
