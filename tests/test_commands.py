"""The commands: from a recipe to scores, resumed, refused; streams and exit codes."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from quick_cases import some_now
from small_run import read_log

from book._ext.toc import ROOT
from transformer_lib import load, load_classifier
from transformer_lib.cli import main
from transformer_lib.data import corpora
from transformer_lib.data.corpora import LabelledCorpus, ParallelCorpus
from transformer_lib.evaluation.scores import Score
from transformer_lib.fast import fast_training
from transformer_lib.pretrained.translator import Translator
from transformer_lib.runs import classification, read_recipe, translation

TRANSLATOR = """
[data]
corpus = "grammar"
tokens = "words"
max_len = 12
[model]
d_model = 16
n_heads = 2
d_ff = 16
n_encoder_layers = 1
n_decoder_layers = 1
[training]
steps = 4
batch_tokens = 256
warmup = 4
save_every = 2
precision = "float32"
"""
CLASSIFIER = """
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
max_len = 6
[training]
task = "classify"
epochs = 4
batch_size = 4
pooling = "mean"
"""


DOG = "der Hund schläft".encode()
WORDS = ("dull", "fine")
NOUNS = ("film", "plot", "cast", "song", "scene")
ROWS = tuple((f"{each} {n}", label) for n in NOUNS for label, each in enumerate(WORDS))
LONG = ("a fine film with a dull plot and a fine cast", 1)
TINY = LabelledCorpus("tiny", ("negative", "positive"), (*ROWS, LONG), ROWS, ROWS)


@pytest.fixture(scope="module", autouse=True)
def small_corpora():
    """Put a small part of the grammar in the place of the whole."""
    whole = corpora.load("grammar")
    parts = {"train": whole.train[:400], "valid": whole.valid[:40],
             "test": whole.test[:30]}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "load", {"grammar": replace(whole, **parts)}.get)
        patch.setattr(corpora, "load_labelled", {"tiny": TINY}.get)
        yield


def train(folder: Path, recipe: str, *options: str) -> None:
    """Run the command with a recipe of its own, in the folder `run`."""
    folder.mkdir(exist_ok=True)
    config = folder / "tiny.toml"
    config.write_text(recipe)
    out = ["--out", str(folder / "run")]
    main(["train", "--config", str(config), *out, "--quiet", *options])


def weights_in(folder: Path) -> bytes:
    return (folder / "run" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    train(folder, TRANSLATOR)
    return folder


def test_a_run_is_repeated_resumed_and_measured_again(trained, tmp_path, capsys):
    torch.manual_seed(99)  # no one else's: the recipe has a seed
    train(tmp_path, TRANSLATOR)
    printed = capsys.readouterr().out
    assert weights_in(trained) == weights_in(tmp_path)
    assert "nrefs:1|bs:1000|seed:12345|case:mixed" in printed
    assert "\ngreedy search\n" in printed and "\nbeam search, 4 beams\n" in printed
    with pytest.raises(SystemExit, match="holds a run already; --resume resumes it"):
        train(tmp_path, TRANSLATOR)
    train(tmp_path, TRANSLATOR, "--resume")
    assert weights_in(trained) == weights_in(tmp_path)
    assert len(read_log(trained / "run")) == 4 + 2
    capsys.readouterr()
    with pytest.raises(SystemExit, match="error: there is no model 'nonesuch'"):
        main(["score", str(trained / "run"), "nonesuch"])
    measured = capsys.readouterr().out
    noted = json.loads((trained / "run" / "scores.json").read_text())
    scores = [Score(**each) for found in noted["searches"] for each in found["scores"]]
    assert all(f"  {score}\n" in measured for score in scores)
    source, translation, _ = noted["examples"][0]
    assert load(trained / "run").translate([source]) == [translation]


def test_a_classifier_is_trained_measured_and_saved(tmp_path, capsys):
    train(tmp_path, CLASSIFIER)
    printed, said = capsys.readouterr()
    assert said == "1 of 31 texts are longer than max_len 6 and are truncated\n"
    assert "% of 10 right (95 % interval" in printed
    log = read_log(tmp_path / "run")
    looks = [line for line in log if "valid_nats" in line]
    assert [line["step"] for line in looks] == [3, 6, 9, 12]  # 4 epochs of 11 texts
    assert len(log) == 12 + 4
    data = classification.prepare(read_recipe(tmp_path / "tiny.toml"))
    stored = load_classifier(tmp_path / "run")
    assert printed.endswith(classification.describe(stored, data))


def test_a_run_is_the_epochs_of_a_chapter_and_returns_what_it_stores(tmp_path):
    (tmp_path / "a.toml").write_text(CLASSIFIER.replace("d_ff", "dropout = 0.3\nd_ff"))
    recipe = read_recipe(tmp_path / "a.toml")
    data, training = classification.prepare(recipe), recipe.training
    trained = classification.train(recipe, data, tmp_path / "run").model
    model = classification.new_model(recipe, data)
    optimizer = classification.make_optimizer(model, training)
    rows = data.rows["train"]
    with fast_training(model):  # as a run does
        for epoch in range(training.epochs):
            classification.train_epoch(model, optimizer, rows, training, epoch)
    rounded = model.head.weight.half().float()
    assert not torch.equal(rounded, model.head.weight)
    for each in (trained, load_classifier(tmp_path / "run").model):
        assert torch.equal(each.head.weight, rounded)


def test_sentences_that_are_too_long_are_left_out(trained):
    data = translation.prepare(read_recipe(trained / "tiny.toml"))
    longest = max(len(ids) for pair in data.steps.pairs for ids in pair)
    assert longest == 12
    encode = data.tokenizer.encode
    long = [pair for pair in data.corpus.train if max(map(len, map(encode, pair))) > 12]
    assert data.skipped == len(long) == len(data.corpus.train) - len(data.steps.pairs)
    assert long


def own_files(folder: Path) -> list[str]:
    """Write 100 pairs into two files, and return the options that name them."""
    folder.mkdir(exist_ok=True)
    options = []
    for option, ending, word in ("source", "fr", "numéro"), ("target", "es", "número"):
        path = folder / f"mine.{ending}"
        lines = [f"{word} {n % 7} {n}\n" for n in range(100)]
        path.write_text("".join(lines), encoding="utf-8")
        options += [f"--{option}", str(path)]
    return options


def test_two_files_of_ones_own_take_the_place_of_the_corpus(tmp_path, capsys):
    options = own_files(tmp_path)
    train(tmp_path, TRANSLATOR, *options)
    printed = capsys.readouterr()
    assert "of 5 sentences" in printed.out and not printed.err
    data = json.loads((tmp_path / "run/recipe.json").read_text())["data"]
    assert (data["corpus"], data["source"]) == ("", options[1])
    assert "▁número" in load(tmp_path / "run").tokenizer.tokens([*range(20)])
    main(["score", str(tmp_path / "run")])  # finds the files again


def test_a_run_is_scored_and_resumed_with_its_own_sentences_only(tmp_path, capsys):
    """With one line more, sentences of the test may have been training sentences."""
    options = own_files(tmp_path)
    train(tmp_path, TRANSLATOR, *options)
    capsys.readouterr()
    run = str(tmp_path / "run")
    main(["score", run])
    scores = capsys.readouterr().out
    for path in options[1::2]:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("new\n")
    for again in (
        lambda: main(["score", run]),
        lambda: train(tmp_path, TRANSLATOR, *options, "--resume"),
    ):
        with pytest.raises(SystemExit, match="other sentences: train changed, and"):
            again()
    main(["score", run, *own_files(tmp_path / "as they were")])
    assert capsys.readouterr() == (scores, "")
    (tmp_path / "run" / "sentences.json").unlink()  # a run of an earlier version
    with pytest.raises(SystemExit, match=r"run holds no sentences\.json, which says"):
        main(["score", run, *own_files(tmp_path / "as they were")])
    with pytest.raises(SystemExit, match="grammar was trained on the corpus grammar"):
        main(["score", "grammar", *options])


def test_a_changed_test_sentence_is_noticed_too(tmp_path, capsys):
    options = own_files(tmp_path)
    train(tmp_path, TRANSLATOR, *options)
    source, target = map(Path, options[1::2])
    test = ParallelCorpus.from_files(source, target).test
    target.write_text(target.read_text().replace(test[0][1], "otro"))
    with pytest.raises(SystemExit, match="other sentences: test changed"):
        main(["score", str(tmp_path / "run")])


def test_pairs_that_are_too_long_are_said_before_training_and_spoil_nothing(
    tmp_path, capsys, monkeypatch
):
    """A long validation pair ended every run after its last step, without scores."""
    options = own_files(tmp_path)
    source, target = map(Path, options[1::2])
    parts = ParallelCorpus.from_files(source, target)
    longer = target.read_text()
    first = longer.split("\n").index(parts.train[0][1]) + 1
    for _, text in (*parts.train[:30], parts.valid[2]):
        longer = longer.replace(f"{text}\n", f"{text} {'y ' * 300}\n")
    target.write_text(longer)
    train(tmp_path, TRANSLATOR, *options)
    assert capsys.readouterr().err == (
        "30 of 90 training pairs are longer than max_len 12 and are left out, first "
        f"in line {first}\n"
        "1 of 5 validation pairs are longer than max_len 12 and are left out\n"
    )
    noted = json.loads((tmp_path / "run/scores.json").read_text())["valid_nats"]
    assert noted == pytest.approx(read_log(tmp_path / "run")[-1]["valid_nats"], 0.01)
    main(["score", str(tmp_path / "run")])
    monkeypatch.setattr(translation, "train", None)  # what is said comes before
    with pytest.raises(TypeError):
        train(tmp_path, TRANSLATOR, *options, "--resume")
    assert "30 of 90 training pairs" in capsys.readouterr().err


def test_files_named_in_a_recipe_are_beside_it(tmp_path, monkeypatch):
    own_files(tmp_path)
    files = 'source = "mine.fr"\ntarget = "mine.es"'
    recipe = TRANSLATOR.replace('corpus = "grammar"', files)
    monkeypatch.chdir(Path(__file__).parent)
    train(tmp_path, recipe)
    monkeypatch.chdir(tmp_path.parent)
    main(["score", str(tmp_path / "run")])
    reversed_ = recipe.replace("[data]", "[data]\nreverse = true")
    (tmp_path / "a.toml").write_text(reversed_)
    data = translation.prepare(read_recipe(tmp_path / "a.toml"))
    assert data.corpus.test[0][0].startswith("número")
    (tmp_path / "mine.es").unlink()
    with pytest.raises(SystemExit, match=rf"No such file .*{tmp_path}/mine\.es"):
        main(["score", str(tmp_path / "run")])


def test_bleu_splits_words_as_the_recipe_and_the_command_say(tmp_path, capsys):
    options = own_files(tmp_path)
    for path in options[1::2]:
        digits = str.maketrans("0123456789 ", "零一二三四五六七八九的")
        text = Path(path).read_text().translate(digits).replace("n", "这只猫")
        Path(path).write_text(text, encoding="utf-8")
    words = 'bleu_tokenize = "zh"\ntokens = "subwords"'
    train(tmp_path, TRANSLATOR.replace('tokens = "words"', words), *options)
    assert "|tok:zh|" in (printed := capsys.readouterr().out)
    assert "hardly any" not in printed
    main(["score", str(tmp_path / "run"), "--tokenize", "13a"])
    assert "|tok:13a|" in (printed := capsys.readouterr().out)
    assert printed.count("hardly any: take --tokenize zh") == 1
    unknown = 'bleu_tokenize = "mecab"'
    with pytest.raises(SystemExit, match="one of none, zh, .* not 'mecab'"):
        main(["score", str(tmp_path / "run"), "--tokenize", "mecab"])
    with pytest.raises(SystemExit, match="one of none, zh, .* not 'mecab'"):
        train(tmp_path / "b", TRANSLATOR.replace("[data]", f"[data]\n{unknown}"))
    assert not (tmp_path / "b" / "run").exists()


# --- what is there instead of a run or a translator -----------------------------------


@pytest.fixture(scope="module")
def other_folders(tmp_path_factory):
    """A classifier, and a run that was stopped before its end."""
    folder = tmp_path_factory.mktemp("others")
    train(folder, CLASSIFIER)
    (folder / "run").rename(folder / "classifier")
    train(folder, TRANSLATOR)
    (folder / "run" / "config.json").unlink()
    (folder / "run").rename(folder / "stopped")
    return folder


@pytest.mark.parametrize("command", ["translate", "score", "export"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "classifier",
            "error: .*/config.json .* that of a classifier, which",
        ),
        ("stopped", "error: the run in .*/stopped is not finished: .* --resume"),
    ],
)
def test_a_folder_without_a_translator_is_told_from_others(
    other_folders, command, name, said
):
    folder = str(other_folders / name)
    words = ["--model", folder, "a"] if command == "translate" else [folder]
    with pytest.raises(SystemExit, match=said):
        main([command, *words])


def test_nothing_is_resumed_where_there_is_no_run(tmp_path, other_folders):
    with pytest.raises(SystemExit, match="/run holds no run to resume: it has no rec"):
        train(tmp_path, TRANSLATOR, "--resume")
    assert not (tmp_path / "run").exists()


def test_a_classifier_has_no_files_of_ones_own(tmp_path):
    with pytest.raises(SystemExit, match="corpus with labels, .* not from two files"):
        train(tmp_path, CLASSIFIER, *own_files(tmp_path))


def given_lines(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_line_that_cannot_be_translated_is_named_and_takes_no_other_along(
    monkeypatch, capsys
):
    long = b"der Hund " * 200
    given_lines(monkeypatch, b"\n \t\n" + DOG + b"\r\n" + long + b"\n" + DOG + b"\n")
    said = "^error: line 4 has 401 tokens, .* most 128; 1 of 3 are not translated$"
    with pytest.raises(SystemExit, match=said):
        main(["translate", "--model", "grammar", "--beams", "1"])
    assert capsys.readouterr().out == "\n\nthe dog sleeps\n\nthe dog sleeps\n"
    given_lines(monkeypatch, DOG + b"\n\nB\xe4r\n")
    with pytest.raises(SystemExit, match="standard input, line 3: 'utf-8' codec"):
        main(["translate", "--model", "grammar"])


def test_an_empty_translation_is_an_unsure_one(monkeypatch, capsys):
    """Its probability can't be computed, and the whole command failed."""
    monkeypatch.setattr(Translator, "translate", lambda *_: ["", "the dog"])
    main(["translate", "--model", "grammar", "die Katze", "der Hund"])
    printed = capsys.readouterr()
    assert printed.out == "\nthe dog\n"
    assert "grammar is unsure of 1 of 2 translations" in printed.err


def test_bytes_that_are_no_characters_of_the_shell_are_named():
    """Python hands them on as half characters: this is Latin-1 in a shell of UTF-8."""
    word = b"H\xfctte".decode("utf-8", "surrogateescape")
    with pytest.raises(SystemExit, match="sentence 2 is not written in utf-8, .* LANG"):
        main(["translate", "der Hund", word])


def test_a_model_too_short_for_the_test_is_refused_before_it_is_trained(tmp_path):
    recipe = TRANSLATOR.replace("max_len = 12", "max_len = 7")
    with pytest.raises(SystemExit, match="^error: test sentence .* raise it in"):
        train(tmp_path, recipe.replace("d_ff", "max_len = 7\nd_ff"))
    assert not (tmp_path / "run").exists()


# --- as a shell sees them -------------------------------------------------------------

COMMANDS = ("translate", "train", "score", "export")


def command(*words: str) -> subprocess.CompletedProcess:
    run = [sys.executable, "-m", "transformer_lib", *words]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    some_now(
        [
            ([], 0, COMMANDS),
            (["judge", "the cat"], 2, COMMANDS),
            (["train", "--help"], 0, ["--config", "--out", "--resume", "codes: 0"]),
            (["train", "--source", "a"], 2, ["--source and --target go together"]),
            (["train", "--config", "no"], 1, ["error: there is no recipe no; .* gram"]),
            (["score", "no"], 1, ["error: there is no model 'no'"]),
            (["translate", "--model", "no", "a"], 1, ["error: there is no model 'no'"]),
        ],
        *(2, 4),
    ),
)
def test_a_command_answers_and_exits_as_a_shell_expects(words, code, said):
    done = command(*words)
    assert done.returncode == code
    answer = done.stderr if code else done.stdout
    assert all(re.search(each, answer, re.DOTALL) for each in said)
    assert "Traceback" not in done.stderr
    assert not code or not done.stdout


@pytest.mark.slow
def test_terms_that_are_not_open_are_told():
    done = command("translate", "--model", "multi30k-de-en", "Ein Hund.")
    assert done.stderr.startswith("The terms of multi30k-de-en: the publishers allow ")
    listed = command("translate", "--help").stdout
    assert "  home-assistant: Apache License 2.0; the notice is beside" in listed
    free = command("translate", "Das Licht ist an.")
    assert (free.stdout, free.stderr) == ("The light is on.\n", "")
    unsure = command("translate", "Das Licht ist an.", "Ein Mann mit rotem Hut.").stderr
    assert "home-assistant is unsure of 1 of 2 translations, first of 'Ein M" in unsure
    assert "learned from sentences of the Home Assistant" in unsure


def shell(line: str, given: bytes = b"") -> subprocess.CompletedProcess:
    """Run a line in which TRANSLATE stands for the command with the smallest model."""
    words = f"{sys.executable} -m transformer_lib translate --model grammar --beams 1"
    run = ["bash", "-c", line.replace("TRANSLATE", words)]
    return subprocess.run(run, cwd=ROOT, input=given, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "given", "error"),
    [
        ("TRANSLATE <&-", b"", "there is no sentence, and standard input is closed"),
        ("TRANSLATE 'der Hund' >&-", b"", "standard output is closed"),
        ("TRANSLATE Hund >/dev/full", b"", "standard output: No space left on device"),
        ("TRANSLATE", DOG + b"\nB\xe4r\n", "standard input, line 2: 'utf-8' codec"),
    ],
)
def test_a_stream_that_fails_is_one_line_and_exit_code_1(line, given, error):
    done = shell(line, given)
    assert (done.returncode, done.stdout) == (1, b"")
    said = done.stderr.decode()
    assert said.startswith(f"error: {error}") and said.count("\n") == 1


@pytest.mark.slow
def test_lines_are_translated_blank_ones_and_a_byte_order_mark_too():
    done = shell("TRANSLATE", b"\xef\xbb\xbf" + DOG + b"\r\n\n" + DOG)
    assert done.stdout == b"the dog sleeps\n\nthe dog sleeps\n"
    # More lines than a pipe holds, and a reader of one.
    done = shell("set -o pipefail; TRANSLATE | head -n 1", 5_000 * (DOG + b"\n"))
    assert done.stdout == b"the dog sleeps\n"
    assert (done.returncode, done.stderr) == (141, b"")


WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from transformer_lib.cli import main

for line in LINES:
    try:
        main(line.split())
    except SystemExit as end:
        print(end.code)
"""
MISSING = {"altair", "filelock", "matplotlib", "pandas", "PIL", "pooch", "pydantic",
           "sacrebleu", "sklearn", "tqdm", "transformers", "yaml"}  # fmt: skip


def test_the_smallest_installation_translates_and_says_what_else_needs(tmp_path):
    lines = ["translate --model grammar der Hund", "train --help", "score grammar",
             f"export grammar --out {tmp_path / 'out'}"]  # fmt: skip
    code = f"MISSING, LINES = {MISSING}, {lines}\n{WITHOUT_EXTRAS}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    *translated, trained, scored, exported = done.stdout.decode().splitlines()
    assert len(translated) == 2, done.stderr
    assert 'train needs pydantic, which is not installed: pip install "' in trained
    for said, extra in (trained, "train"), (scored, "train"), (exported, "export"):
        assert said.endswith(f'pip install "transformer-lib[{extra}]"')


def test_ctrl_c_while_a_command_is_being_loaded_is_quiet(tmp_path):
    """Here it comes when PyTorch, which takes longest, is imported.

    A process in the background may have been told to ignore it, and its children too.
    """
    (tmp_path / "torch.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    )
    (tmp_path / "theirs").mkdir()  # another program, which imports the library
    (tmp_path / "theirs" / "__init__.py").write_text("import transformer_lib")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    said = {}
    for name in "transformer_lib", "theirs":
        done = subprocess.run(
            [sys.executable, "-m", name],
            env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        assert done.returncode == -signal.SIGINT
        said[name] = done.stderr.decode()
    assert said["transformer_lib"] == ""
    assert "KeyboardInterrupt" in said["theirs"]  # with a traceback of its own
