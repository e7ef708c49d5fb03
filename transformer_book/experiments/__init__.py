"""What single choices are worth, the paper's and those since 2017, and the records."""

from transformer_book.experiments.ablations import (
    PAPER,
    VARIANTS,
    Plan,
    build,
    means,
    plan_steps,
    read_results,
    train_variant,
)
from transformer_book.experiments.modern import MODERN, STUDIES, TextModel, gaps
