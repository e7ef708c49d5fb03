"""What the cards of translators say, as numbers."""

import json
from pathlib import Path

from transformer_lib.evaluation.scores import Score
from transformer_lib.pretrained.translator import SCORES, find


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
