"""The command that trains a classifier: scores, resumption, what it refuses."""

import pytest

from transformer_lib.cli.train import main
from transformer_lib.data import corpora
from transformer_lib.data.corpora import LabelledCorpus
from transformer_lib.evaluation.accuracy import accuracy
from transformer_lib.pretrained.classifier import Classifier, load_classifier
from transformer_lib.training.classification import new_model, prepare
from transformer_lib.training.lightning_trainer import LightningTrainer
from transformer_lib.training.recipe import read_recipe
from transformer_lib.training.run import read_log

RECIPE = """
[data]
corpus = "tiny"
tokens = "words"
vocab_size = 20
max_len = 6

[model]
d_model = 8
n_heads = 2
d_ff = 16
n_encoder_layers = 1
n_decoder_layers = 0
dropout = 0.1
max_len = 6

[training]
task = "classify"
epochs = {epochs}
batch_size = 4
pooling = "{pooling}"
"""


def tiny_corpus(good: str = "fine") -> LabelledCorpus:
    nouns = ("film", "plot", "cast", "song", "scene")
    rows = tuple(
        (f"{word} {noun}", label)
        for noun in nouns
        for label, word in enumerate(("dull", good))
    )
    long = (("a fine film with a dull plot and a fine cast", 1),)
    return LabelledCorpus("tiny", ("negative", "positive"), rows + long, rows, rows)


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    monkeypatch.setattr(corpora, "load_labelled", {"tiny": tiny_corpus()}.get)


def write_recipe(folder, epochs: int = 4, pooling: str = "mean") -> str:
    path = folder / "tiny.toml"
    path.write_text(RECIPE.format(epochs=epochs, pooling=pooling))
    return str(path)


def run(folder, *options: str, **recipe) -> None:
    folder.mkdir(exist_ok=True)
    config = write_recipe(folder, **recipe)
    main(["--config", config, "--out", str(folder / "run"), "--quiet", *options])


def test_the_command_trains_measures_and_saves(tmp_path, capsys) -> None:
    run(tmp_path / "a")
    printed = capsys.readouterr().out
    assert "test: " in printed
    assert "% of 10 right (95 % interval" in printed
    assert "1 of 31 texts are longer than max_len and were truncated" in printed
    log = read_log(tmp_path / "a" / "run")
    looks = [line for line in log if "valid_nats" in line]
    assert [line["step"] for line in looks] == [3, 6, 9, 12]  # 4 epochs of 11 texts
    assert len(log) == 12 + 4
    data = prepare(read_recipe(tmp_path / "a" / "tiny.toml"))
    loaded = load_classifier(tmp_path / "a" / "run")
    found = accuracy(loaded.model, data.rows["valid"])
    assert found.nats == pytest.approx(log[-1]["valid_nats"], abs=1e-2)
    assert log[-1]["valid_accuracy"] == found.value


def test_a_run_that_was_interrupted_ends_with_the_same_weights(
    tmp_path, monkeypatch
) -> None:
    run(tmp_path / "whole")
    real, calls = LightningTrainer.step, []

    def power_cut(*given):
        calls.append(given)
        if len(calls) == 8:  # in the third epoch
            raise OSError("the power is gone")
        return real(*given)

    monkeypatch.setattr(LightningTrainer, "step", power_cut)
    with pytest.raises(SystemExit, match="error: the power is gone"):
        run(tmp_path / "cut")
    with pytest.raises(SystemExit, match="holds a run already; --resume resumes it"):
        run(tmp_path / "cut")
    run(tmp_path / "cut", "--resume")
    assert len(calls) == 8 + 6  # only the epochs that were missing
    weights = [
        (tmp_path / name / "run" / "model.safetensors").read_bytes()
        for name in ("whole", "cut")
    ]
    assert weights[0] == weights[1]
    logs = [read_log(tmp_path / name / "run") for name in ("whole", "cut")]
    for one, other in zip(*logs, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_another_recipe_or_corpus_is_refused(tmp_path, monkeypatch) -> None:
    run(tmp_path / "a")
    with pytest.raises(SystemExit, match="another recipe: pooling is 'mean' in one"):
        run(tmp_path / "a", "--resume", pooling="max")
    monkeypatch.setattr(corpora, "load_labelled", {"tiny": tiny_corpus("good")}.get)
    with pytest.raises(SystemExit, match="was started with other data"):
        run(tmp_path / "a", "--resume")


def test_several_processes_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    message = "1 batches per step cannot be divided equally among 2 processes"
    with pytest.raises(SystemExit, match=message):
        run(tmp_path / "a")


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_a_saved_classifier_classifies_as_before(tmp_path, pooling) -> None:
    recipe = read_recipe(write_recipe(tmp_path, pooling=pooling))
    data = prepare(recipe)
    model = new_model(recipe, data)
    classifier = Classifier(model, data.tokenizer, data.corpus.classes)
    classifier.save(tmp_path / "saved")
    twin = load_classifier(tmp_path / "saved")
    texts = ["dull film", "a fine song", "a fine film with a dull plot"]
    for mine, other in zip(
        classifier.classify(texts), twin.classify(texts), strict=True
    ):
        assert mine.probability == pytest.approx(other.probability, abs=2e-3)
        assert mine.label == other.label


def test_a_classification_says_what_was_not_read(tmp_path) -> None:
    recipe = read_recipe(write_recipe(tmp_path))
    data = prepare(recipe)
    model = new_model(recipe, data)
    classify = Classifier(model, data.tokenizer, data.corpus.classes).classify
    short, long, unknown, other = classify(
        ["dull film", "dull film film film film", "oboe zither", "zither oboe"]
    )
    assert (short.was_truncated, long.was_truncated) == (False, True)
    assert (short.n_unknown, unknown.n_unknown) == (0, 2)
    assert unknown == other  # nothing tells them apart
    assert 0.5 <= unknown.probability <= 1
    with pytest.raises(ValueError, match="text 2: a sentence needs at least 1 word"):
        classify(["dull film", " "])


def test_classes_and_vocabulary_must_fit(tmp_path) -> None:
    recipe = read_recipe(write_recipe(tmp_path))
    data = prepare(recipe)
    model = new_model(recipe, data)
    with pytest.raises(ValueError, match="and 2 classes, but got .* and 3"):
        Classifier(model, data.tokenizer, ("a", "b", "c"))


def test_a_folder_without_a_classifier_is_refused(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        load_classifier(tmp_path)
    (tmp_path / "config.json").write_text('{"classes": ["a"]}')
    with pytest.raises(ValueError, match="describes no classifier: KeyError"):
        load_classifier(tmp_path)


def test_the_lecture_sizes_make_the_lecture_model() -> None:
    recipe = read_recipe("imdb")
    config = recipe.model_config(50_002)
    sizes = config.d_model, config.n_heads, config.d_ff, config.n_encoder_layers
    assert sizes == (32, 2, 128, 1)
    assert (recipe.data.max_len, recipe.training.epochs) == (200, 10)
    assert (recipe.training.rate, recipe.training.pooling) == (0.001, "max")
    assert recipe.data.vocab_size == 50_002


def test_one_recipe_fits_the_other_corpus() -> None:
    imdb, reviews = read_recipe("imdb").model, read_recipe("reviews").model
    changed = {key for key in imdb if imdb[key] != reviews[key]}
    assert changed == {"max_len"}
