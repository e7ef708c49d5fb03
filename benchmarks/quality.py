"""What weights of fewer bits lose in BLEU on the test sentences of shipped models."""

from typing import Any

from decoders import prepare

from transformer_lib.data.batches import pad_batch
from transformer_lib.evaluation.scores import bleu
from transformer_lib.generation.constraints import GenerationConfig
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.pretrained.translator import MODELS, Translator, load
from transformer_lib.runs.evaluate import load_corpus, read_recipe_of

PRECISIONS = ("float32", "bfloat16", "int8")
# Those that come with the book.
CORPORA = ("grammar", "home-assistant", "home-assistant-random")


def measure_quality(n_sentences: int | None) -> list[dict[str, Any]]:
    """Score the shipped translators with weights of fewer bits.

    Args:
        n_sentences: test sentences that are translated; None for all.
    """
    rows = []
    for folder in sorted(MODELS.glob("*/recipe.json")):
        name = folder.parent.name
        recipe = read_recipe_of(name)
        if recipe.data.corpus not in CORPORA:
            continue
        test = load_corpus(recipe).test[:n_sentences]
        for precision in PRECISIONS:
            translator = load(name)
            translations = translate(translator, precision, [s for s, _ in test])
            score = bleu(
                translations, [reference for _, reference in test], n_bootstrap=0
            )
            rows.append(
                {"model": name, "precision": precision, "bleu": round(score.value, 2)}
            )
    return rows


def translate(translator: Translator, precision: str, sources: list[str]) -> list[str]:
    """Translate with greedy search, 64 sentences at a time."""
    model, tokenizer = translator.model, translator.tokenizer
    decoder, translations = prepare(model, precision), []
    for start in range(0, len(sources), 64):
        ids = [tokenizer.encode(text) for text in sources[start : start + 64]]
        src = pad_batch(ids, model.config.pad_id)
        longest = src.size(1) + 50
        config = GenerationConfig(tokenizer.bos_id, tokenizer.eos_id, max_len=longest)
        found = greedy_decode(model, src, config, decoder)
        translations += [tokenizer.decode(each.ids) for each in found]
    return translations
