"""A file is the old one or the new one, never a half; damaged ones are named."""

import errno
import os
from pathlib import Path

import pytest
import torch
from small_run import small_recipe

import transformer_lib as tl
from transformer_lib.files import remove_leftovers, write_text
from transformer_lib.runs.checkpoint import load_checkpoint, save_checkpoint
from transformer_lib.runs.recipe import read_recipe, read_stored_recipe, recipe_text


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path, monkeypatch, step):
    path = tmp_path / "new" / "file.txt"
    write_text(path, "older")
    write_text(path, "müde")

    def full(*names):
        raise OSError(errno.ENOSPC, "No space left on device", *names[1:])

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match=r"No space left .*file\.txt'"):
        write_text(path, "new")
    assert path.read_bytes() == "müde".encode()
    assert os.listdir(path.parent) == ["file.txt"]


def test_leftovers_are_removed_and_nothing_else(tmp_path):
    for name in (".file.x1y2.tmp", "file.tmp", ".hidden"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "file.tmp"]


# --- damaged files --------------------------------------------------------------------

TOML = '[data]\ncorpus = "grammar"\n[training]\nsteps = 4\nsave_every = 2\n'
READERS = {
    "config.json": tl.load,
    "tokenizer.json": lambda folder: tl.Tokenizer.load(folder / "tokenizer.json"),
    "model.safetensors": tl.load,
    "classifier/config.json": lambda folder: tl.load_classifier(folder / "classifier"),
    "a.pt": lambda folder: load_checkpoint(folder / "a.pt"),
    "recipe.json": read_stored_recipe,
    "a.toml": lambda folder: read_recipe(folder / "a.toml"),
}


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
    model = tl.EncoderClassifier(config, 2)
    tl.Classifier(model, tokenizer, ("no", "yes")).save(folder / "classifier")
    save_checkpoint(folder / "a.pt", {"step": 3, "weights": {"a": torch.ones(5)}})
    write_text(folder / "recipe.json", recipe_text(small_recipe()))
    write_text(folder / "a.toml", TOML)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"", "config.json"),
        ("config.json", b"[1]", "config.json"),
        ("tokenizer.json", b"{", "tokenizer.json"),
        ("model.safetensors", b"\xff", "model.safetensors"),
        ("classifier/config.json", b'{"classes": ["a"]}', "describes no model"),
        ("a.pt", b"[1]", "a.pt is no checkpoint, or damaged: "),
        ("recipe.json", b"{", "recipe.json"),
        ("recipe.json", b"[1]", "recipe.json: a recipe holds tables"),
        ("a.toml", b"[data", "a.toml"),
        ("a.toml", b"\xff", "a.toml"),
    ],
)
def test_a_damaged_file_is_named_in_one_line(folder, name, content, message):
    path = folder / name
    whole = path.read_bytes()
    READERS[name](folder)
    path.write_bytes(content)
    try:
        with pytest.raises(ValueError, match=message) as caught:
            READERS[name](folder)
    finally:
        path.write_bytes(whole)
    assert "\n" not in str(caught.value)
