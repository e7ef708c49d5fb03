"""What the cards of the shipped translators say, as numbers."""

import json

from transformer_lib.evaluation.scores import Score
from transformer_lib.pretrained.translator import MODELS, SCORES


def shipped_translators() -> list[str]:
    """Return the names of all shipped models that translate, in alphabetical order."""
    found = sorted(path.parent.name for path in MODELS.glob(f"*/{SCORES}"))
    return [name for name in found if "searches" in _read(name)]


def read_card(name: str) -> dict[int, list[Score]]:
    """Return the scores on a model's card: number of beams (1 is greedy) -> scores.

    They were measured on the whole test part of the model's corpus, and are BLEU, BLEU
    without case, and chrF; `runs.evaluate` finds them anew.

    Args:
        name: of a shipped translator.

    Raises:
        ValueError: there is none of this name; the message lists those there are.
    """
    known = shipped_translators()
    if name not in known:
        raise ValueError(f"{name!r} is none of the shipped translators: {known}")
    return {
        search["n_beams"]: [Score(**score) for score in search["scores"]]
        for search in _read(name)["searches"]
    }


def _read(name: str) -> dict:
    return json.loads((MODELS / name / SCORES).read_text(encoding="utf-8"))
