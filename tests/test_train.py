"""The command that trains: from a recipe to scores, resumed, and what it refuses."""

import json
from dataclasses import replace

import pytest
import torch

from transformer_lib.cli import score
from transformer_lib.cli.train import main
from transformer_lib.data import corpora
from transformer_lib.pretrained.translator import load
from transformer_lib.training.interruption import alone_in
from transformer_lib.training.recipe import read_recipe
from transformer_lib.training.run import read_log
from transformer_lib.training.translation import prepare

RECIPE = """
[data]
corpus = "grammar"
tokens = "words"
max_len = {max_len}

[model]
d_model = 16
n_heads = 2
d_ff = 16
n_encoder_layers = 1
n_decoder_layers = 1

[training]
steps = 4
batch_tokens = 256
warmup = {warmup}
save_every = 2
"""


def write_recipe(folder, max_len: int = 12, warmup: int = 4) -> str:
    path = folder / "tiny.toml"
    path.write_text(RECIPE.format(max_len=max_len, warmup=warmup))
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def corpus():
    """Put a small part of the grammar in the place of the whole."""
    whole = corpora.load("grammar")
    parts = {"train": whole.train[:400], "valid": whole.valid[:40],
             "test": whole.test[:30]}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "load", {"grammar": replace(whole, **parts)}.get)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    main(["--config", write_recipe(folder), "--out", str(folder / "run"), "--quiet"])
    return folder


def test_a_run_leaves_a_model_a_log_and_scores(run) -> None:
    scores = json.loads((run / "run" / "scores.json").read_text())
    assert [search["n_beams"] for search in scores["searches"]] == [1, 4]
    for search in scores["searches"]:
        assert {score["name"] for score in search["scores"]} == {"BLEU", "chrF2"}
        assert all("version:" in score["signature"] for score in search["scores"])
    assert len(scores["examples"]) == 30
    source, translation, _ = scores["examples"][0]
    assert load(run / "run").translate([source]) == [translation]
    assert len(read_log(run / "run")) == 4 + 2


def test_scores_are_printed_with_their_signature(run, tmp_path, capsys) -> None:
    out = str(tmp_path / "run")
    torch.manual_seed(99)  # no one else's: the recipe has a seed
    main(["--config", write_recipe(tmp_path), "--out", out, "--quiet"])
    printed = capsys.readouterr().out
    models = [folder / "run" / "model.safetensors" for folder in (run, tmp_path)]
    assert models[0].read_bytes() == models[1].read_bytes()
    assert "BLEU" in printed
    assert "nrefs:1|bs:1000|seed:12345|case:mixed" in printed
    assert "nrefs:1|bs:1000|seed:12345|case:lc" in printed
    assert "\ngreedy search\n" in printed and "\nbeam search, 4 beams\n" in printed
    assert "% of 30 sentences" in printed


def test_a_run_is_not_overwritten_but_resumed(run) -> None:
    out = str(run / "run")
    weights = (run / "run" / "model.safetensors").read_bytes()
    with pytest.raises(SystemExit, match="holds a run already; --resume resumes it"):
        main(["--config", str(run / "tiny.toml"), "--out", out, "--quiet"])
    main(["--config", str(run / "tiny.toml"), "--out", out, "--quiet", "--resume"])
    assert (run / "run" / "model.safetensors").read_bytes() == weights


def test_a_run_that_another_process_works_on_is_left_alone(run) -> None:
    options = ["--out", str(run / "run"), "--quiet", "--resume"]
    with (
        alone_in(run / "run"),
        pytest.raises(SystemExit, match="another process works on the run"),
    ):
        main(["--config", str(run / "tiny.toml"), *options])


def test_another_recipe_or_vocabulary_is_refused(run, tmp_path) -> None:
    options = ["--out", str(run / "run"), "--quiet", "--resume"]
    with pytest.raises(
        SystemExit, match="error: the run in .* was started with another"
    ):
        main(["--config", write_recipe(tmp_path, warmup=5), *options])
    tokenizer = run / "run" / "tokenizer.json"
    text = tokenizer.read_text()
    tokenizer.write_text(text.replace("Katze", "Kater"))
    with pytest.raises(SystemExit, match="started with other data: its tokenizer has"):
        main(["--config", str(run / "tiny.toml"), *options])
    tokenizer.write_text(text)


def test_sentences_that_are_too_long_are_skipped_by_line(tmp_path) -> None:
    data = prepare(read_recipe(write_recipe(tmp_path)))
    assert data.skipped
    longest = max(len(ids) for pair in data.steps.pairs for ids in pair)
    assert longest == 12
    assert len(data.steps.pairs) + len(data.skipped) == len(data.corpus.train)
    line = data.skipped[0]
    src, tgt = data.corpus.train[line - 1]
    assert max(len(data.tokenizer.encode(src)), len(data.tokenizer.encode(tgt))) > 12


def test_unknown_recipes_are_answered_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match="error: there is no recipe nonesuch; .*gram"):
        main(["--config", "nonesuch"])


def test_the_scores_can_be_measured_again(run, capsys) -> None:
    score.main([str(run / "run")])
    printed = capsys.readouterr().out
    noted = json.loads((run / "run" / "scores.json").read_text())
    for search in noted["searches"]:
        for line in search["text"]:
            assert line in printed
    assert f"{noted['n_parameters']:,} parameters" in printed


def test_a_model_without_a_recipe_cannot_be_measured(run, tmp_path) -> None:
    load(run / "run").save(tmp_path)
    with pytest.raises(SystemExit, match=r"error: .*recipe\.json"):
        score.main([str(tmp_path)])
    with pytest.raises(
        SystemExit, match="error: nonesuch was not measured: there is no model"
    ):
        score.main(["nonesuch"])


def test_one_model_that_cannot_be_measured_does_not_stop_the_others(run, capsys):
    with pytest.raises(SystemExit, match="error: nonesuch was not measured"):
        score.main(["nonesuch", str(run / "run")])
    assert "BLEU" in capsys.readouterr().out


def test_a_refused_recipe_leaves_the_runs_recipe_alone(run, tmp_path) -> None:
    before = (run / "run" / "recipe.json").read_text()
    options = ["--out", str(run / "run"), "--quiet", "--resume"]
    with pytest.raises(SystemExit):
        main(["--config", write_recipe(tmp_path, warmup=5), *options])
    assert (run / "run" / "recipe.json").read_text() == before


def test_two_files_of_ones_own_take_the_place_of_the_corpus(tmp_path, capsys) -> None:
    files = []
    for ending, word in (("fr", "numéro"), ("es", "número")):
        files.append(tmp_path / f"mine.{ending}")
        lines = [f"{word} {n % 7} {n}\n" for n in range(100)]
        files[-1].write_text("".join(lines), encoding="utf-8")
    config = ["--config", write_recipe(tmp_path), "--out", str(tmp_path / "run")]
    main([*config, "--source", str(files[0]), "--target", str(files[1]), "--quiet"])
    assert "of 5 sentences" in capsys.readouterr().out
    data = json.loads((tmp_path / "run/recipe.json").read_text())["data"]
    assert (data["corpus"], data["source"]) == ("", str(files[0]))
    assert "▁número" in load(tmp_path / "run").tokenizer.tokens([*range(20)])
    score.main([str(tmp_path / "run")])  # finds the files again


def test_one_file_alone_is_refused(tmp_path) -> None:
    with pytest.raises(SystemExit, match="give both source and target"):
        main(["--config", write_recipe(tmp_path), "--source", "mine.fr"])
