"""Files of any content: read, or refused before they cost memory."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile_values import attempt, fast
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transformer_lib as tl
from transformer_lib import files
from transformer_lib.data.corpora import imdb, parallel
from transformer_lib.model import checks
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained import translator as translators
from transformer_lib.training.checkpoint import load_checkpoint, save_checkpoint
from transformer_lib.training.recipe import (
    make_recipe,
    read_recipe,
    read_stored_recipe,
    recipe_text,
)

TOO_LARGE = [
    ({"d_model": 10**9}, r"d_model 1000000000, .* make a model of at least [\d,]{20,}"),
    ({"d_ff": 10**12}, r"d_ff 1000000000000, .* but 20,000,000,000 is the most"),
    ({"n_encoder_layers": 10**6}, "n_encoder_layers must be at most 1000, not 1000000"),
    ({"n_decoder_layers": 10**30}, "n_decoder_layers must be at most 1000, not 10"),
    ({"learned_positions": True, "max_len": 10**12}, "max_len 1000000000000 make"),
]
RECIPE = {"data": {"corpus": "grammar"}, "training": {"steps": 4, "save_every": 2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A file of each kind that the library reads."""
    folder = tmp_path_factory.mktemp("files")
    tokenizer = tl.Tokenizer.train(["der Hund schläft"], 270)
    config = tl.TransformerConfig(
        src_vocab_size=len(tokenizer), tgt_vocab_size=len(tokenizer), d_model=8,
        n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1, max_len=16,
    )  # fmt: skip
    tl.Translator(tl.Transformer(config), tokenizer).save(folder)
    classifier = tl.EncoderClassifier(config, 2)
    tl.Classifier(classifier, tokenizer, ("no", "yes")).save(folder / "classifier")
    state = {"step": 3, "weights": {"a": torch.ones(5)}, "other": [1, None, "x"]}
    save_checkpoint(folder / "a.pt", state)
    text = recipe_text(make_recipe(RECIPE))
    (folder / "recipe.json").write_text(text, encoding="utf-8")
    toml = '[data]\ncorpus = "grammar"\n[training]\nsteps = 4\nsave_every = 2\n'
    (folder / "a.toml").write_text(toml, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("change", "message"), TOO_LARGE)
def test_a_model_that_no_computer_holds_is_refused(folder, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        tl.TransformerConfig(src_vocab_size=9, tgt_vocab_size=9, **change)
    with pytest.raises(ValueError, match=message):
        make_recipe({**RECIPE, "model": change})
    for path, load in (
        (folder / "config.json", lambda: tl.load(folder)),
        (folder / "classifier" / "config.json",
         lambda: tl.load_classifier(folder / "classifier")),
    ):  # fmt: skip
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text)
        fields.get("model", fields).update(change)
        wrong = changed(path, json.dumps(fields).encode())
        with wrong, pytest.raises(ValueError, match=message):
            load()
        load()


@pytest.mark.parametrize("name", tl.PRESETS)
def test_no_more_parameters_are_counted_than_there_are(name, monkeypatch) -> None:
    with torch.device("meta"):
        right = count_parameters(tl.Transformer(tl.PRESETS[name]))
    monkeypatch.setattr(checks, "MOST_NUMBERS", 1)
    with pytest.raises(ValueError, match="make a model") as refused:
        replace(tl.PRESETS[name], dropout=0.0)
    [counted] = re.findall(r"at least ([\d,]+) parameters", str(refused.value))
    assert right / 4 < int(counted.replace(",", "")) <= right


def test_a_model_is_not_made_before_its_weights_fit(folder, monkeypatch) -> None:
    devices = []

    def make(config: tl.TransformerConfig) -> tl.Transformer:
        devices.append(torch.get_default_device().type)
        return tl.Transformer(config)

    monkeypatch.setattr(translators, "Transformer", make)
    path = folder / "config.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    wrong = changed(path, json.dumps({**fields, "d_ff": 50_000_000}).encode())
    message = r"\(8, 8\) in .*safetensors, but \(50000000, 8\)"
    with wrong, pytest.raises(ValueError, match=message):
        tl.load(folder)
    assert devices == ["meta"]  # there, shapes have no numbers
    tl.load(folder)
    assert devices == ["meta", "meta", "cpu"]


READERS = {
    "config.json": tl.load,
    "tokenizer.json": lambda folder: tl.Tokenizer.load(folder / "tokenizer.json"),
    "model.safetensors": tl.load,
    "classifier/config.json": lambda folder: tl.load_classifier(folder / "classifier"),
    "a.pt": lambda folder: load_checkpoint(folder / "a.pt"),
    "recipe.json": read_stored_recipe,
    "a.toml": lambda folder: read_recipe(folder / "a.toml"),
}


@pytest.mark.parametrize(
    "name", [name for name in READERS if name.endswith(("json", "toml"))]
)
def test_a_text_without_end_or_bottom_is_refused(folder, name, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "MOST_TEXT", 20)
        with pytest.raises(ValueError, match=rf"{name}.* bytes are more than 20"):
            READERS[name](folder)
    nested = b"a = " * name.endswith("toml") + 100_000 * b"["
    with changed(folder / name, nested), pytest.raises(ValueError, match=name):
        READERS[name](folder)


changes = st.lists(
    st.tuples(
        st.sampled_from(["cut", "drop", "insert", "repeat", "digit"]),
        st.one_of(st.integers(0, 400), st.integers(0, 20_000)),
        st.binary(min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=3,
)


def damage(content: bytes, how: list[tuple[str, int, bytes]]) -> bytes:
    for what, start, other in how:
        start %= len(content) + 1
        before, after = content[:start], content[start:]
        content = {
            "cut": before,
            "drop": before + after[len(other) :],
            "insert": before + other + after,
            "repeat": before + after[:20] + after,
            "digit": before + b"%d" % other[0] + after[1:],
        }[what]
    return content


@settings(fast, suppress_health_check=[*HealthCheck])
@pytest.mark.parametrize("name", READERS)
@given(how=changes)
def test_a_damaged_file_is_read_or_refused(folder, name, how) -> None:
    path = folder / name
    content = damage(path.read_bytes(), how)
    with changed(path, content):
        attempt(READERS[name], folder)
    if name != "a.pt":
        return
    packed = io.BytesIO()  # a whole archive with a damaged list of what is in it
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(packed, "w") as other:
        for member in whole.namelist():
            text = whole.read(member)
            other.writestr(member, damage(text, how) if "pkl" in member else text)
    with changed(path, packed.getvalue()):
        attempt(load_checkpoint, path)


class changed:  # noqa: N801
    """A file has another content inside the `with` block."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content

    def __enter__(self) -> None:
        self.before = self.path.read_bytes()
        self.path.write_bytes(self.content)

    def __exit__(self, *_: Any) -> None:
        self.path.write_bytes(self.before)


# --- archives that unpack to more than anyone expects ---------------------------------


def test_packed_sentences_have_a_bound(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(parallel, "MOST_BYTES", 1000)
    path = tmp_path / "train.en.gz"
    path.write_bytes(gzip.compress(500 * b"a\n"))
    assert parallel.read_lines(path) == 500 * ["a"]
    path.write_bytes(gzip.compress(500 * b"a\n" + b"b"))
    with pytest.raises(ValueError, match=r"train\.en\.gz unpacks to more than 1,000 "):
        parallel.read_lines(path)


def long_name(archive: tarfile.TarFile) -> None:
    """A member whose name alone has so many bytes, which tarfile reads at once."""
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 200_000
    archive.addfile(member, io.BytesIO(200_000 * b"a"))
    archive.addfile(tarfile.TarInfo("a"))


def other_member(archive: tarfile.TarFile) -> None:
    """A file that is skipped, which means unpacked and forgotten."""
    member = tarfile.TarInfo("aclImdb/README")
    member.size = 200_000
    archive.addfile(member, io.BytesIO(bytes(200_000)))


def many_reviews(archive: tarfile.TarFile) -> None:
    for number in range(100):
        member = tarfile.TarInfo(f"aclImdb/train/pos/{number}_9.txt")
        member.size = 2000
        archive.addfile(member, io.BytesIO(2000 * b"a"))


def nothing(archive: tarfile.TarFile) -> None:
    pass


@pytest.mark.parametrize(
    ("members", "tail"),
    [(long_name, 0), (other_member, 0), (many_reviews, 0), (nothing, 200_000)],
)
def test_an_archive_of_reviews_has_a_bound(
    members, tail, tmp_path, monkeypatch
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        members(archive)
    path = tmp_path / "aclImdb.tar.gz"
    path.write_bytes(gzip.compress(packed.getvalue() + bytes(tail)))
    monkeypatch.setattr(imdb, "MOST_UNPACKED", 100_000)
    with pytest.raises(ValueError, match=r"gz unpacks to more than 100,000 bytes"):
        imdb.read_archive(path)
    monkeypatch.setattr(imdb, "MOST_UNPACKED", 1_000_000)
    imdb.read_archive(path)


def test_a_checkpoint_does_not_unpack_to_more_than_it_is(folder, tmp_path) -> None:
    path = tmp_path / "b.pt"
    with (
        zipfile.ZipFile(folder / "a.pt") as whole,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in whole.namelist():
            packed.writestr(member, whole.read(member))
        packed.writestr("archive/data/9", bytes(10**6))
    with pytest.raises(ValueError, match=r"bytes claim to unpack to 1,00\d,\d{3}"):
        load_checkpoint(path)
