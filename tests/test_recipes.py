"""Recipes: the shipped ones are sound, and wrong ones are refused by name."""

from dataclasses import replace

import pytest

from transformer_lib.model.config import TransformerConfig
from transformer_lib.training.recipe import (
    CONFIGS,
    difference,
    make_recipe,
    read_recipe,
)

TABLES = {
    "data": {"corpus": "grammar"},
    "model": {"d_model": 64, "n_heads": 2},
    "training": {"steps": 100, "save_every": 50},
}


def changed(table: str, **values: object) -> dict:
    return {**TABLES, table: {**TABLES[table], **values}}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.stem)
def test_a_shipped_recipe_can_be_read(path) -> None:
    recipe = read_recipe(path.stem)
    assert isinstance(recipe.model_config(1000), TransformerConfig)
    assert recipe == read_recipe(path)


def test_what_a_recipe_says_reaches_the_model() -> None:
    config = make_recipe(TABLES).model_config(700)
    assert (config.d_model, config.n_heads, config.tgt_vocab_size) == (64, 2, 700)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({**TABLES, "extra": {}}, "recipe has 'extra', which is none of data, model"),
        (changed("training", stepz=1), r"\[training\] has 'stepz'"),
        (changed("model", src_vocab_size=9), r"\[model\] has 'src_vocab_size'"),
        (changed("model", n_heads=3), "n_heads 3 does not divide d_model 64"),
        (changed("data", tokens="letters"), "tokens must be one of .* not 'letters'"),
        (changed("training", precision="half"), "precision must be one of .* 'half'"),
        (changed("training", save_every=30), "save_every 30 does not divide steps 100"),
        (changed("training", average=3), "average 3 .* than the 2 that are saved"),
        (changed("training", warmup=0), "warmup must be at least 1, not 0"),
        ({**TABLES, "training": {}}, r"\[training\]: .* 'steps'"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(tables, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_recipe(tables)


@pytest.mark.parametrize(
    "tables",
    [
        changed("training", steps="100"),
        changed("training", steps=True),
        changed("training", steps=100.0),
        changed("data", reverse=1),
        changed("data", corpus=3),
    ],
)
def test_a_value_of_another_type_is_refused(tables) -> None:
    with pytest.raises(TypeError, match="can't be"):
        make_recipe(tables)


def test_a_file_is_named_when_it_is_wrong(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    for text in ("[data", "[data]\ncorpus = 'grammar'\nsize = 3\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"mine\.toml: "):
            read_recipe(path)
    path.write_text("[data]\ncorpus = 3\n")
    with pytest.raises(TypeError, match=r"mine\.toml: corpus can't be 3"):
        read_recipe(path)


def test_a_recipe_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(FileNotFoundError, match="no recipe nonesuch; .* grammar"):
        read_recipe("nonesuch")


def test_the_first_difference_is_named() -> None:
    recipe = make_recipe(TABLES)
    assert difference(recipe, make_recipe(TABLES)) is None
    other = replace(recipe, model={**recipe.model, "d_ff": 99})
    assert difference(recipe, other) == "d_ff is None in one and 99 in the other"
