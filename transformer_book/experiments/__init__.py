"""What the choices of the paper are worth: every one undone in turn, and the record."""

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
