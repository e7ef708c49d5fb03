"""Exported folders, opened by the programs they are for: the same tokens as ours."""

from dataclasses import replace
from functools import cache

import ctranslate2
import pytest
import torch
import transformers
from ctranslate2.converters import TransformersConverter
from small_models import BOS, EOS, SRC, make_config, make_model

import transformer_lib as tl
from transformer_lib import cli
from transformer_lib.convert import export
from transformer_lib.convert import to_hugging_face as module
from transformer_lib.convert.to_hugging_face import their_ids, to_hugging_face
from transformer_lib.data import corpora
from transformer_lib.data.normalize import normalize

pytestmark = pytest.mark.slow  # as a whole

MAX_LEN = 40
SENTENCES = [german for _, german in corpora.load("home-assistant").test][:200]
KINDS = pytest.mark.parametrize("kind", ["Marian", "Pegasus"])


@cache
def translator(kind: str) -> tl.Translator:
    """The shipped model is pre-norm; the other has all that Marian has a place for."""
    shipped = tl.load("home-assistant")
    if kind == "Pegasus":
        return shipped
    n_tokens = len(shipped.tokenizer)
    model = make_model(
        src_vocab_size=n_tokens, tgt_vocab_size=n_tokens, max_len=MAX_LEN, d_model=32,
        n_heads=4, activation="swish", head_bias=True, tie_embeddings="decoder",
    )  # fmt: skip
    return tl.Translator(model.float(), shipped.tokenizer)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("exported")
    for kind in ("Marian", "Pegasus"):
        export(translator(kind), place / kind)
    return place


def our_tokens(kind: str) -> list[list[str]]:
    """What greedy search writes, eos included."""
    ours = translator(kind)
    src = tl.pad_batch([ours.tokenizer.encode(each) for each in SENTENCES], 0)
    found = tl.greedy_decode(ours.model, src, make_config(MAX_LEN))
    name = ours.tokenizer._engine.id_to_token
    return [[*map(name, hypothesis.ids)] for hypothesis in found]


@KINDS
def test_transformers_and_ctranslate2_write_the_same_tokens(folders, kind, tmp_path):
    expected = our_tokens(kind)
    assert len({*map(tuple, expected)}) > 50
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / kind)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folders / kind)
    assert type(model).__name__.startswith(kind)
    batch = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    for row, ids in zip(expected, model.generate(**batch)[:, 1:], strict=True):
        theirs = tokenizer.convert_ids_to_tokens(ids)
        assert theirs[: len(row)] == row and {*theirs[len(row) :]} <= {"<pad>"}

    TransformersConverter(str(folders / kind)).convert(str(tmp_path / "ct2"))
    engine = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    sources = [
        tokenizer.convert_ids_to_tokens(tokenizer(s).input_ids) for s in SENTENCES
    ]
    found = engine.translate_batch(
        sources, beam_size=1, max_decoding_length=MAX_LEN, return_end_token=True
    )
    assert [result.hypotheses[0] for result in found] == expected


@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize(
    "choices",
    [
        {"attention_bias": False, "activation": "gelu"},
        {"tie_embeddings": "all", "head_bias": True},
        {"tie_embeddings": "decoder", "scale_embeddings": False, "pad_id": 3},
    ],
)
@torch.no_grad()
def test_logits_of_hugging_face_are_ours(choices, norm_first):
    model = make_model(norm_first=norm_first, **choices).float()
    theirs, pad = to_hugging_face(model, BOS, EOS), model.config.pad_id
    ids = their_ids(model.config)  # of ours, and of theirs
    src, tgt_in = SRC.clone(), torch.tensor([[BOS, 5, 6], [BOS, 4, 2]] * 2)
    src[src == 3], src[src == 0] = 4, pad
    started = ids[tgt_in]
    started[:, 0] = theirs.config.decoder_start_token_id
    found = theirs(ids[src], (src != pad).long(), decoder_input_ids=started)
    found, ours = found.logits[..., ids], model(src, tgt_in)
    assert (found[..., pad] < -1e8).all()  # padding is never written
    found[..., pad] = ours[..., pad]
    torch.testing.assert_close(found, ours, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("match", "spoil"),
    [
        ("feed_forward.activation computes something else", "activation"),
        ("Hugging Face computes other logits", "writing"),
    ],
)
def test_what_computes_something_else_is_not_exported(match, spoil, monkeypatch):
    model = make_model()
    if spoil == "activation":
        model.encoder.layers[0].feed_forward.activation = torch.nn.GELU()
    else:  # a mistake in what writes their model
        weights = module._reordered_weights
        monkeypatch.setattr(
            module,
            "_reordered_weights",
            lambda model: {k: w * 1.001 for k, w in weights(model).items()},
        )
    with pytest.raises(ValueError, match=match):
        to_hugging_face(model, BOS, EOS)


def test_the_tokenizer_of_a_folder_cuts_as_ours(folders):
    odd = ["  Licht  an ", "<eos> ist ein Wort", "a\u202eb", "\ufeffx", "é😀", "a\nb",
           "$x^2$"]  # fmt: skip
    ours = translator("Pegasus").tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(folders / "Pegasus")
    ids = theirs(odd).input_ids
    cut = [ours.encode(text.strip()) for text in odd]
    name = ours._engine.id_to_token
    assert [*map(theirs.convert_ids_to_tokens, ids)] == [[*map(name, x)] for x in cut]
    for text, row in zip(odd[1:], ids[1:], strict=True):
        assert theirs.decode(row, skip_special_tokens=True) == normalize(text)


def test_the_command_writes_a_folder_or_nothing(tmp_path, capsys):
    def command(name: str, folder: str) -> None:
        cli.main(["export", name, "--out", str(tmp_path / folder)])

    command("home-assistant", "mine")
    assert "README.md" in capsys.readouterr().out
    assert "Apache" in (tmp_path / "mine/README.md").read_text()
    ours = translator("Pegasus")
    odd = replace(ours.model.config, norm_eps=1e-3)
    tl.Translator(tl.Transformer(odd), ours.tokenizer).save(tmp_path / "odd")
    for name, folder, message in (
        ("home-assistant", "mine", "is there already"),
        (str(tmp_path / "odd"), "other", "norm_eps is 0.001"),
        ("nobody", "other", "no model 'nobody'"),
    ):
        with pytest.raises(SystemExit, match=message):
            command(name, folder)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "odd"}
