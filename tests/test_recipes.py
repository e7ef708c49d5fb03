"""Recipes: the shipped ones are sound, and wrong ones are refused by name."""

import json
import re
import statistics
from dataclasses import replace

import pytest
import torch

from transformer_book.experiments.ablations import RESULTS
from transformer_lib.model.transformer import Transformer, count_parameters
from transformer_lib.pretrained.translator import MODELS, shipped_models
from transformer_lib.runs.recipe import (
    CONFIGS,
    difference,
    make_recipe,
    read_recipe,
    read_stored_recipe,
    recipe_text,
)

TABLES = {
    "data": {"corpus": "grammar"},
    "model": {"d_model": 64, "n_heads": 2},
    "training": {"steps": 100, "save_every": 50},
}


def changed(table: str, **values: object) -> dict:
    return {**TABLES, table: {**TABLES[table], **values}}


def classifier(**values: object) -> dict:
    return {"data": {"corpus": "reviews"}, "training": {"task": "classify", **values}}


def test_every_shipped_recipe_can_be_read_and_its_model_has_the_same() -> None:
    for path in CONFIGS.glob("*.toml"):
        assert read_recipe(path.stem) == read_recipe(path)
    for name in shipped_models():
        assert difference(read_stored_recipe(MODELS / name), read_recipe(name)) is None


def test_the_hours_of_a_whole_run_follow_from_the_recipe() -> None:
    recipe, text = read_recipe("paper-base"), (CONFIGS / "paper-base.toml").read_text()
    with torch.device("meta"):
        model = Transformer(recipe.model_config(recipe.data.vocab_size))
    flops = 6 * count_parameters(model) * 25_000 * recipe.training.steps
    rows = re.findall(r"# .*?(\d+) TFLOPS +([\d.]+) hours", text)
    assert len(rows) == 3
    for speed, hours in rows:
        assert hours == f"{flops / (0.3 * float(speed) * 1e12) / 3600:.1f}"
    measured = json.loads((RESULTS / "processes.json").read_text())["rows"][-1]
    rate = measured["n_tokens"] / statistics.median(measured["seconds"]["2"])
    days = 25_000 * recipe.training.steps / rate / 86_400
    assert f"{rate:.0f}\n# target tokens a second, so {days:.0f} days" in text


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        # unknown or missing
        ({**TABLES, "extra": {}}, "^recipe: unknown table .*extra.*; expected data, t"),
        (changed("training", stepz=1), r"\[training\] stepz = 1: Unexpected keyword"),
        (changed("model", pad_id=9), r"\[model\] pad_id = 9: Unexpected keyword arg"),
        ({**TABLES, "training": {}}, r"\[training\] steps: Field required"),
        ({"training": {"steps": 1}}, r"\[data\]: .* name a corpus, or give source and"),
        (changed("data", source="a", target="b"), "not corpus 'grammar', source 'a'"),
        # of another type, out of range, or not one of the choices
        (changed("training", steps="100"), "steps = '100': Input .* valid integer"),
        (changed("model", n_heads=True), r"\[model\] n_heads = True: .* valid integer"),
        (changed("training", batch_tokens=0), "batch_tokens = 0: .* greater than or"),
        (changed("training", seed=2**63), "seed = 9223372036854775808: .* less than"),
        (changed("training", rate_scale=float("nan")), "rate_scale = nan: .* finite"),
        (changed("training", precision="half"), "precision = 'half': .* 'auto' or 'f"),
        (changed("model", n_heads=0), r"\[model\] n_heads = 0: .* greater than or equ"),
        (changed("model", dropout=1.5), r"\[model\] dropout = 1.5: .* less than 1"),
        # at odds with each other
        (changed("model", n_heads=3), "n_heads 3 does not divide d_model 64"),
        (changed("training", save_every=30), "save_every 30 does not divide steps 100"),
        (changed("training", average=3), "average 3 .* than the 2 that are saved"),
        (changed("model", max_len=50), "max_len = 50 is less than max_len = 100 of"),
        # of a classifier
        (classifier(), r"\[training\] epochs: Field required"),
        (classifier(epochs=1, steps=5), "steps = 5: Unexpected keyword argument"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(tables, message) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        make_recipe(tables)
    assert "\n" not in str(caught.value)


def test_everything_that_is_wrong_is_named_with_the_file(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\ufeff[data]\ncorpus = 3\nsize = 4\n[training]\nsteps = 1\n")
    message = r"mine\.toml: \[data\] corpus = 3: .*; .*mine\.toml: \[data\] size = 4"
    with pytest.raises(ValueError, match=message):
        read_recipe(path)
    with pytest.raises(FileNotFoundError, match="no recipe nonesuch; .* grammar"):
        read_recipe("nonesuch")


def test_a_stored_recipe_comes_back_and_the_first_difference_is_named(tmp_path) -> None:
    recipe = make_recipe(changed("training", gradient_accumulation=4))
    text = recipe_text(recipe)
    (tmp_path / "recipe.json").write_text(text)
    assert read_stored_recipe(tmp_path) == recipe
    assert '\n  "gradient_accumulation": 4,\n' in text  # one key a line
    assert difference(recipe, recipe) is None
    other = replace(recipe, model={**recipe.model, "d_ff": 99})
    assert difference(recipe, other) == "d_ff is None in one and 99 in the other"
