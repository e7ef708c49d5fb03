"""A shipped run is a folder that loads, with a card that says what was measured."""

from book_tools.ship_model import DATA, write_card
from transformer_lib.data import corpora
from transformer_lib.training.recipe import CONFIGS, TrainingRecipe, read_recipe

RESULT = {
    "n_parameters": 715_648,
    "seconds": 61.4,
    "valid_nats": 0.0123,
    "n_sentences": 1000,
    "searches": [{"n_beams": n_beams, "exact": 0.99 + n_beams / 1000, "scores": [
        {"name": "BLEU", "value": 99.44, "low": 99.1, "high": 99.8,
         "signature": "nrefs:1|bs:1000"}]} for n_beams in (1, 4)],
}  # fmt: skip


def test_the_card_says_what_was_measured_and_how_to_do_it_again() -> None:
    recipe = read_recipe("grammar")
    card = write_card("grammar", recipe, RESULT, 3 * 2**20, "two cores")
    for part in (
        "German to English: 715,648 parameters, 3.0 MiB",
        r"| BLEU | 99.4 | 99.1 to 99.8 | `nrefs:1\|bs:1000` |",
        "| greedy search | value |",
        "| exact | 99.1 % |",
        "| beam search, 4 beams | value |",
        "| exact | 99.4 % |",
        "On 1,000 test sentences",
        "61 seconds on two cores",
        f"seed {recipe.training.seed};",
        "python -m transformer_lib train --config grammar",
        "python -m transformer_lib score grammar",
    ):
        assert part in card


def test_every_translation_recipes_data_have_stated_terms() -> None:
    recipes = [read_recipe(path) for path in sorted(CONFIGS.glob("*.toml"))]
    named = {
        recipe.data.corpus
        for recipe in recipes
        if isinstance(recipe.training, TrainingRecipe)  # no classifier is shipped
    }
    assert named and named <= set(corpora.NAMES)
    assert named <= set(DATA)
