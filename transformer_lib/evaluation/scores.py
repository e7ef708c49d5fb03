"""How good are translations? Scores with their signature and their uncertainty.

BLEU and chrF come from sacrebleu, so that they can be compared with those of others: a
score is worth nothing without its signature, which says how it was computed. The
package is imported where a score is computed: a translator works without it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from transformer_lib.data.batches import Batch
from transformer_lib.data.examples import require_texts, split_words
from transformer_lib.generation.greedy import without_dropout
from transformer_lib.model.transformer import Transformer
from transformer_lib.precision import at_least_float32
from transformer_lib.pretrained.translator import SCORES, find
from transformer_lib.training.processes import ALONE, Processes

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF

BY_SPACES = ("13a", "intl", "none")  # tokenizations that split at spaces
# How Unicode's names of letters begin in writing without spaces between words.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Score:
    """A corpus score, from 0 to 100.

    Attributes:
        name: "BLEU", say.
        value: the score of the corpus.
        low, high: bounds of the 95 % interval: plausible values of the score on very
            many sentences of the same kind. The value itself if no bootstrap was asked
            for.
        signature: how it was computed, sacrebleu's notation.
        n_sentences: number of sentences.
    """

    name: str
    value: float
    low: float
    high: float
    signature: str
    n_sentences: int

    def __str__(self) -> str:
        return (
            f"{self.name} {self.value:.1f} (95 % interval {self.low:.1f} to "
            f"{self.high:.1f}, {self.n_sentences} sentences, {self.signature})"
        )


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    n_bootstrap: int = 1000,
    tokenize: str = "13a",
) -> Score:
    """Score translations by the runs of 1 to 4 words they share with references.

    Args:
        hypotheses: translations as plain text; sacrebleu splits them into words.
        references: what a person wrote, one for each.
        lowercase: ignore case, which gives higher scores than people usually report.
        n_bootstrap: times the test sentences are drawn anew for the interval; 0 for
            no interval.
        tokenize: how a text is split into words, by sacrebleu's names: "13a", which
            splits at spaces and punctuation, is right where `lacks_spaces` is not;
            "zh" is for Chinese, "ja-mecab" for Japanese, "char" and "flores200" for
            all.

    Raises:
        ValueError: the lists differ in length or are empty, or sacrebleu has no such
            tokenization.
        ImportError: the tokenization needs a package that is not installed.
    """
    metric = _bleu(lowercase, tokenize)
    return _score(metric, hypotheses, references, n_bootstrap)


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], n_bootstrap: int = 1000
) -> Score:
    """Score translations by the runs of 1 to 6 letters they share with references.

    Half a word right counts half, which is kinder to languages with many endings.
    Arguments and errors are those of `bleu`.
    """
    return _score(_chrf(), hypotheses, references, n_bootstrap)


def lacks_spaces(texts: Sequence[str]) -> bool:
    """Say whether most of the letters belong to writing without spaces between words.

    A tokenization of BY_SPACES takes a sentence of such texts for one word, and BLEU is
    0 for nearly everything. Texts whose words someone has separated are none of these.
    """
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    names = (unicodedata.name(letter, "") for letter in letters)
    n_unspaced = sum(name.startswith(_UNSPACED) for name in names)
    n_words = sum(len(text.split()) for text in texts)
    return 2 * n_unspaced > len(letters) > 5 * n_words


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of translations that are the reference, letter by letter."""
    _require_pairs(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return sum(mine == right for mine, right in pairs) / len(references)


def nats_per_token(
    model: Transformer, batches: Iterable[Batch], processes: Processes = ALONE
) -> float:
    """Return the model's mean surprise at the right next token, without smoothing.

    0 is certainty, log(tgt_vocab_size) a blind guess; its exponential is called
    perplexity.

    Args:
        model: the same in all processes.
        batches: sentence pairs, the same in all processes.
        processes: that share the work; all of them get the answer.
    """
    total, n_tokens = 0.0, 0
    device = model.lm_head.weight.device
    with torch.no_grad(), without_dropout(model):
        for batch in islice(batches, processes.rank, None, processes.size):
            batch = batch.to(device)
            logits = model(batch.src, batch.tgt_in).flatten(0, 1)
            # Mixed precision makes logits of 16 bits: too few to add up many tokens.
            logits = at_least_float32(logits)
            total += F.cross_entropy(
                logits,
                batch.tgt_out.flatten(),
                ignore_index=model.config.pad_id,
                reduction="sum",
            ).item()
            n_tokens += batch.n_tokens
    return processes.sum(total) / processes.sum(n_tokens)


def group_by(
    values: Sequence[float], bounds: Sequence[float]
) -> list[tuple[str, list[int]]]:
    """Sort sentences into groups, by length or by overlap, to score each by itself.

    Args:
        values: a number for each sentence.
        bounds: where a new group starts, rising: [10, 20] makes three groups.

    Returns:
        For each group that has members: its name, "10 to below 20", and the positions
        of its sentences in values.

    Raises:
        ValueError: bounds do not rise.
    """
    if any(low >= high for low, high in pairwise(bounds)):
        raise ValueError(f"bounds must rise, but are {list(bounds)}")
    between = [f"{low:g} to below {high:g}" for low, high in pairwise(bounds)]
    names = [f"below {bounds[0]:g}", *between, f"{bounds[-1]:g} and above"]
    groups = np.searchsorted(bounds, values, side="right")
    found = [np.flatnonzero(groups == number).tolist() for number in range(len(names))]
    return [(name, rows) for name, rows in zip(names, found, strict=True) if rows]


def word_overlap(sentences: Sequence[str], training: Sequence[str]) -> list[float]:
    """Say how much of each sentence one single training sentence already has.

    A model can be right about a sentence it has all but seen. Scores of sentences with
    a high and with a low overlap tell such memory from skill.

    Args:
        sentences: test sentences.
        training: sentences of the same language that the model has learned from.

    Returns:
        For each sentence the largest share of its different words that is found in one
        training sentence, from 0 to 1; case is ignored.
    """
    require_texts("sentences", sentences)
    require_texts("training", training)
    rows: dict[str, list[int]] = {}  # of each word: the sentences that have it
    for row, sentence in enumerate(training):
        for word in set(split_words(sentence.lower())):
            rows.setdefault(word, []).append(row)
    arrays = {word: np.array(found) for word, found in rows.items()}
    shares = []
    for sentence in sentences:
        words = set(split_words(sentence.lower()))
        known = [arrays[word] for word in words if word in arrays]
        most = np.bincount(np.concatenate(known)).max() if known else 0
        shares.append(float(most) / len(words))
    return shares


def read_card(name: str | Path) -> dict[int, list[Score]]:
    """Return the scores on a model's card: number of beams (1 is greedy) -> scores.

    They were measured on the whole test part of the model's corpus, and are BLEU, BLEU
    without case, and chrF; `runs.evaluate` finds them anew.

    Args:
        name: of a shipped translator, or the folder of another.

    Raises:
        FileNotFoundError: there is none; the message lists those that are shipped.
    """
    card = json.loads((find(name) / SCORES).read_text(encoding="utf-8"))
    return {
        search["n_beams"]: [Score(**score) for score in search["scores"]]
        for search in card["searches"]
    }


def require_tokenization(name: str) -> None:
    """Refuse a tokenization for BLEU before there is anything to score.

    Raises:
        ValueError, ImportError: as `bleu`.
    """
    _bleu(lowercase=False, tokenize=name)


def _bleu(lowercase: bool, tokenize: str) -> BLEU:
    from sacrebleu.metrics import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        known = ", ".join(BLEU.TOKENIZERS)
        raise ValueError(f"tokenize must be one of {known}, not {tokenize!r}")
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenize)
    except (ImportError, RuntimeError) as error:  # several lines, which say what to do
        raise ImportError(" ".join(str(error).split())) from None


def _chrf() -> CHRF:
    from sacrebleu.metrics import CHRF

    class WithoutMatch(CHRF):
        """sacrebleu's chrF; of a draw without a match, it gives 0 of another type.

        Its mean of the draws refuses floats of two types.
        """

        def _compute_f_score(self, statistics: list[int]) -> float:
            return float(super()._compute_f_score(statistics))

    return WithoutMatch()


def _score(
    metric: BLEU | CHRF,
    hypotheses: Sequence[str],
    references: Sequence[str],
    n_bootstrap: int,
) -> Score:
    _require_pairs(hypotheses, references)
    result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap)
    low = high = result.score
    if n_bootstrap:
        mean, half = float(result._mean), float(result._ci)
        low, high = mean - half, mean + half
    # Half of an interval reaches beyond the scale; a perfect score by rounding.
    numbers = (min(max(each, 0.0), 100.0) for each in (result.score, low, high))
    signature = str(metric.get_signature())
    return Score(result.name, *numbers, signature, len(references))


def _require_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    require_texts("hypotheses", hypotheses)
    require_texts("references", references)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"{len(hypotheses)} translations and {len(references)} references: there "
            "must be as many, and at least 1"
        )
