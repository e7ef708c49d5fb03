"""Two files of one's own: tokenized once, mapped, made again if not as they were."""

import hashlib
import os
import random
import resource
from itertools import islice
from pathlib import Path

import pytest
import torch

from transformer_lib.data import Steps, limit_lengths
from transformer_lib.data import pairs_file as made
from transformer_lib.data.corpora import parallel
from transformer_lib.data.corpora.parallel import PARTS, OwnFiles, ParallelCorpus
from transformer_lib.data.pairs_file import digests, read_held_out, read_pairs_file
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import RECIPE
from transformer_lib.runs import translation
from transformer_lib.runs.evaluate import PAIRS, encode_pairs
from transformer_lib.runs.recipe import Recipe, make_recipe, recipe_text
from transformer_lib.runs.sentences import checksums, note_sentences
from transformer_lib.training.processes import Processes

RNG = random.Random(0)
WORDS = [
    "der",
    "Hund",
    "schläft",
    "müde",
    "日本",
    "🙂",
    "é",
    "don't",
    "<eos>",
    "x\xa0y",
]
SOURCES = [" ".join(RNG.choices(WORDS, k=RNG.randint(1, 9))) for _ in range(400)]
TARGETS = [" ".join(RNG.choices(WORDS, k=RNG.randint(1, 9))) for _ in range(400)]


def write_files(folder: Path, sources: list[str], targets: list[str]) -> None:
    for name, lines in ("a.de", sources), ("a.en", targets):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def recipe_for(folder: Path, **data) -> Recipe:
    files = {"source": str(folder / "a.de"), "target": str(folder / "a.en")}
    return make_recipe(
        {
            "data": {"vocab_size": 280, "max_len": 30, **files, **data},
            "model": {"max_len": 9000},
            "training": {"steps": 4, "save_every": 4, "batch_tokens": 9000,
                         "gradient_accumulation": 3},
        }
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A run's folder, beside two files."""
    write_files(tmp_path, SOURCES, TARGETS)
    return tmp_path / "run"


def prepare(folder: Path, **data) -> translation.Data:
    return translation.prepare(recipe_for(folder.parent, **data), folder)


# --- what is in the file --------------------------------------------------------------

MANY = [" ".join(str(3000 * n + m) for m in range(3000)) for n in range(24)]


@pytest.mark.parametrize(
    ("data", "sources", "bytes_an_id"),
    [
        ({}, SOURCES, 2),
        ({"reverse": True}, SOURCES, 2),
        ({"tokens": "words", "max_len": 8}, SOURCES, 2),
        ({"tokens": "words", "max_len": 9000}, MANY, 4),  # more than 65,536 words
    ],
)
def test_ids_are_those_of_each_sentence_alone(folder, data, sources, bytes_an_id):
    write_files(folder.parent, sources, TARGETS[: len(sources)])
    found = prepare(folder, **data)
    files = [folder.parent / "a.de", folder.parent / "a.en"]
    corpus = ParallelCorpus.from_files(*(files[::-1] if data.get("reverse") else files))
    pairs = encode_pairs(found.tokenizer, corpus.train)
    longest = data.get("max_len", 30)
    pairs, long = limit_lengths(pairs, longest, "skip")
    assert list(found.steps.pairs) == pairs and found.skipped == len(long)
    assert (len(long) > 0) == (sources is SOURCES)
    assert found.corpus.test == corpus.test and found.corpus.valid == corpus.valid
    assert found.corpus.checksums == checksums(corpus)
    assert found.steps.pairs._ids.itemsize == bytes_an_id


def test_steps_are_those_of_the_same_pairs_in_a_list(folder):
    mapped, ids = prepare(folder).steps, {"bos_id": 1, "pad_id": 0}
    listed = Steps(list(mapped.pairs), 9000, 3, 0, **ids)
    for first in 1, 5:
        steps = (each.starting_at(first) for each in (mapped, listed))
        for mine, theirs in islice(zip(*steps, strict=True), 8):
            for one, other in zip(mine, theirs, strict=True):
                assert torch.equal(one.src, other.src)
                assert torch.equal(one.tgt_out, other.tgt_out)
    assert listed.digest != mapped.digest == prepare(folder).steps.digest


def test_tokens_are_learned_from_a_sample_whose_size_is_said(folder, monkeypatch):
    whole = prepare(folder)
    assert not any("sample" in note for note in whole.notes)
    monkeypatch.setattr(parallel, "MOST_LEARNED", 150)
    sampled = prepare(folder, max_len=29)
    train = len(SOURCES) - len(whole.corpus.valid) - len(whole.corpus.test)
    learned = [
        pair for part, pair in islice(own(folder), 0, None, 3) if part == "train"
    ]
    assert sampled.notes[0] == (
        f"the tokens are learned from a sample, {len(learned)} of {train} pairs"
    )
    texts = [text for pair in learned for text in pair]
    assert sampled.tokenizer.to_json() == Tokenizer.train(texts, 280).to_json()


def own(folder: Path) -> OwnFiles:
    return OwnFiles.read(folder.parent / "a.de", folder.parent / "a.en")


# --- when it is made again ------------------------------------------------------------


def cut(path: Path, folder: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(place: float):
    def change(path: Path, folder: Path) -> None:
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 4
        path.write_bytes(content)

    return change


def other_version(path: Path, folder: Path) -> None:
    content = path.read_bytes().replace(b"pairs 1", b"pairs 0", 1)[:-32]
    path.write_bytes(content + hashlib.sha256(content).digest())


def longer_file(path: Path, folder: Path) -> None:
    for name in "a.de", "a.en":
        with (folder / name).open("a") as file:
            file.write("neu\n")


@pytest.mark.parametrize(
    "change",
    [
        cut,
        lambda path, folder: path.write_bytes(b""),
        lambda path, folder: path.write_bytes(path.read_bytes() + b"\0"),
        other_version,
        *map(flip, (0.1, 0.4, 0.7, 0.9999)),
        longer_file,
    ],
)
def test_what_is_damaged_or_of_something_else_is_made_again(
    folder, change, monkeypatch
):
    first, path = prepare(folder), folder / PAIRS
    content = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(translation, "write_pairs_file", None)
        assert prepare(folder).steps.digest == first.steps.digest  # is read, not made
        change(path, folder.parent)
        with pytest.raises(TypeError):
            prepare(folder)
    again = prepare(folder)
    if change is longer_file:
        assert len(again.steps.pairs) > len(first.steps.pairs)
    else:
        assert path.read_bytes() == content
    assert os.listdir(folder) == [PAIRS]


@pytest.mark.parametrize("data", [{"max_len": 29}, {"vocab_size": 281}])
def test_other_settings_make_another_file(folder, data):
    assert prepare(folder).steps.digest != prepare(folder, **data).steps.digest


def test_a_run_by_another_recipe_is_refused_and_keeps_its_file(folder):
    prepare(folder)
    content = (folder / PAIRS).read_bytes()
    (folder / RECIPE).write_text(recipe_text(recipe_for(folder.parent)))
    with pytest.raises(ValueError, match="vocab_size is 280 in one and 281 in the"):
        prepare(folder, vocab_size=281)
    assert (folder / PAIRS).read_bytes() == content
    prepare(folder)


def test_files_that_were_moved_or_are_scored_otherwise_are_the_same(folder):
    digest = prepare(folder).steps.digest
    moved = folder.parent / "moved"
    moved.mkdir()
    for name in "a.de", "a.en":
        (folder.parent / name).rename(moved / name)
    recipe = recipe_for(moved, bleu_tokenize="char")
    assert translation.prepare(recipe, folder).steps.digest == digest


def test_a_run_of_other_sentences_is_refused_before_anything_is_tokenized(
    folder, monkeypatch
):
    first, path = prepare(folder), folder / PAIRS
    note_sentences(folder, checksums(first.corpus))
    content = path.read_bytes()
    longer_file(path, folder.parent)
    monkeypatch.setattr(translation, "write_pairs_file", None)
    with pytest.raises(ValueError, match="started with other sentences: train changed"):
        prepare(folder)
    assert path.read_bytes() == content


# --- what can go wrong ----------------------------------------------------------------


def test_a_full_disk_is_named_and_leaves_what_was_there(folder):
    def prepare_on_a_full_disk(**data):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, limits[1]))
        try:
            prepare(folder, **data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with pytest.raises(OSError, match=r"too large: .*pairs\.ids'"):
        prepare_on_a_full_disk()
    assert os.listdir(folder) == []
    prepare(folder)
    content = (folder / PAIRS).read_bytes()
    with pytest.raises(OSError, match=r"too large: .*pairs\.ids'"):
        prepare_on_a_full_disk(max_len=29)
    assert os.listdir(folder) == [PAIRS] and (folder / PAIRS).read_bytes() == content


def refuse_to_learn(data, texts):
    raise AssertionError("tokens are learned")


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (SOURCES, TARGETS[:-1], r"a\.de has 400 lines, but a\.en has 399"),
        (SOURCES, [*TARGETS[:-1], " \u200b"], r"a\.en, line 400 is empty"),
        ([*SOURCES[:-1], ""], TARGETS, r"a\.de, line 400 is empty"),
        (["a"] * 400, TARGETS, "1 different sentences, but at least 20"),
    ],
)
def test_files_are_refused_before_anything_is_tokenized(
    folder, monkeypatch, sources, targets, message
):
    write_files(folder.parent, sources, targets)
    monkeypatch.setattr(translation, "_learn_tokenizer", refuse_to_learn)
    with pytest.raises(ValueError, match=message):
        prepare(folder)
    assert not folder.exists()


def test_files_in_which_nothing_is_short_enough_are_refused(folder):
    with pytest.raises(ValueError, match="none of 3.. pairs fits into max_len 1"):
        prepare(folder, max_len=1)
    assert os.listdir(folder) == []


def test_files_that_change_meanwhile_are_noticed(folder, monkeypatch):
    def learn(data, texts):
        longer_file(folder, folder.parent)
        return Tokenizer.train(texts, 280)

    monkeypatch.setattr(translation, "_learn_tokenizer", learn)
    with pytest.raises(ValueError, match=r"a\.de or .*a\.en changed while"):
        prepare(folder)
    assert os.listdir(folder) == []


# --- who else reads it ----------------------------------------------------------------


def test_other_processes_map_what_the_first_one_made(folder, monkeypatch):
    recipe, second = recipe_for(folder.parent), Processes(rank=1, size=2)
    monkeypatch.setattr(Processes, "wait", lambda self: None)
    with pytest.raises(FileNotFoundError, match=PAIRS):
        translation.prepare(recipe, folder, processes=second)
    first = prepare(folder)
    monkeypatch.setattr(translation, "_make_pairs_file", None)
    data = translation.prepare(recipe, folder, processes=second)
    assert data.steps.digest == first.steps.digest and data.corpus == first.corpus


def test_without_a_folder_nothing_is_left(folder, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setattr("tempfile.tempdir", None)
    data = translation.prepare(recipe_for(folder.parent))
    assert os.listdir(elsewhere) == [] and not folder.exists()
    assert data.steps.digest == prepare(folder).steps.digest
    next(data.steps.starting_at(1))


def test_held_out_sentences_are_read_from_the_file_if_it_is_theirs(folder, monkeypatch):
    path, files = folder / PAIRS, [folder.parent / "a.de", folder.parent / "a.en"]
    data = prepare(folder)
    assert read_pairs_file(path).key.items() >= digests(*files).items()
    with monkeypatch.context() as patch:
        patch.setattr(made, "OwnFiles", None)
        assert read_held_out(path, *files) == data.corpus
    assert read_held_out(folder / "none", *files) == data.corpus
    longer_file(path, folder.parent)
    changed = read_held_out(path, *files).checksums
    assert changed["train"] != data.corpus.checksums["train"]
    assert {*changed} == {*PARTS}
