"""How good a model is: scores with their uncertainty."""

from transformer_lib.evaluation.accuracy import Accuracy, accuracy
from transformer_lib.evaluation.alignment import (
    AlignmentScore,
    diagonal_links,
    random_links,
)
from transformer_lib.evaluation.scores import (
    bleu,
    chrf,
    exact_match,
    group_by,
    lacks_spaces,
    nats_per_token,
    read_card,
    word_overlap,
)
