"""Exported folders, opened by the programs they are for: the same tokens as ours."""

import re
from functools import cache
from pathlib import Path

import ctranslate2
import onnxruntime
import pytest
import torch
import transformers
from ctranslate2.converters import TransformersConverter
from reference import draw_parameters
from small_models import SRC, make_model

from transformer_lib import cli
from transformer_lib.convert import export, from_marian
from transformer_lib.convert.to_hugging_face import pad_last, to_marian
from transformer_lib.convert.to_onnx import to_onnx
from transformer_lib.data import corpora
from transformer_lib.data.batches import pad_batch
from transformer_lib.generation.constraints import GenerationConfig
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import Translator, load

pytestmark = pytest.mark.slow  # as a whole

RECIPE = """
[data]
corpus = "grammar"
tokens = "words"
reverse = true
max_len = 64

[model]
d_model = 64
n_heads = 4
d_ff = 128
n_encoder_layers = 2
n_decoder_layers = 2
max_len = 64
dropout = 0.0

[training]
steps = 300
batch_tokens = 1000
warmup = 100
save_every = 100
average = 1
seed = 1
"""
BOS, EOS = 1, 2
MAX_LEN = 40
SENTENCES = [german for _, german in corpora.load("home-assistant").test][:200]


@cache
def pre_norm() -> Translator:
    """The shipped model."""
    return load("home-assistant")


@cache
def post_norm() -> Translator:
    """A freshly drawn model, with everything that Marian has a place for."""
    tokenizer = pre_norm().tokenizer
    config = TransformerConfig(
        src_vocab_size=len(tokenizer), tgt_vocab_size=len(tokenizer), max_len=MAX_LEN,
        d_model=32, n_heads=4, d_ff=48, n_encoder_layers=2, n_decoder_layers=2,
        activation="swish", head_bias=True, tie_embeddings="decoder",
    )  # fmt: skip
    torch.manual_seed(0)
    return Translator(draw_parameters(Transformer(config)).float().eval(), tokenizer)


MODELS = {"marian": post_norm, "pegasus": pre_norm, "onnx": pre_norm}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Folders in each format, written when they are asked for."""
    folders = tmp_path_factory.mktemp("exported")

    def write(to: str) -> Path:
        if not (folders / to).exists():
            export(MODELS[to](), folders / to, to, "free for all")
        return folders / to

    return write


def our_ids(translator: Translator, sentences: list[str]) -> list[list[int]]:
    """What greedy search writes, eos included."""
    rows = [translator.tokenizer.encode(sentence) for sentence in sentences]
    config = GenerationConfig(bos_id=BOS, eos_id=EOS, max_len=MAX_LEN)
    found = greedy_decode(translator.model, pad_batch(rows, 0), config)
    return [hypothesis.ids for hypothesis in found]


def up_to_eos(ids: list[int], eos_id: int) -> list[int]:
    return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids


def their_program(folder: Path):
    """Run the program in the folder's README; return its function `translate`."""
    (program,) = re.findall(
        r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S
    )
    names: dict = {"folder": str(folder)}
    exec(program, names)
    return names["translate"]


@pytest.mark.parametrize("to", ["marian", "pegasus"])
def test_transformers_writes_the_same_tokens(exported, to) -> None:
    folder, translator = exported(to), MODELS[to]()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert type(model).__name__ in (
        "MarianMTModel", "PegasusForConditionalGeneration"
    )  # fmt: skip
    settings = model.generation_config
    assert settings.num_beams == 1
    assert not settings.do_sample
    assert settings.max_length == translator.model.config.max_len + 1
    batch = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    ids = model.generate(**batch, max_new_tokens=MAX_LEN)[:, 1:].tolist()
    theirs = [
        tokenizer.convert_ids_to_tokens(up_to_eos(row, tokenizer.eos_token_id))
        for row in ids
    ]
    name = translator.tokenizer._engine.id_to_token
    assert theirs == [[*map(name, row)] for row in our_ids(translator, SENTENCES)]


@pytest.mark.parametrize("to", ["marian", "pegasus"])
def test_ctranslate2_writes_the_same_tokens(exported, to, tmp_path) -> None:
    folder, translator = exported(to), MODELS[to]()
    TransformersConverter(str(folder)).convert(str(tmp_path / "ct2"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = [
        tokenizer.convert_ids_to_tokens(ids)
        for ids in tokenizer(SENTENCES)["input_ids"]
    ]
    engine = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    found = engine.translate_batch(
        tokens, beam_size=1, max_decoding_length=MAX_LEN, return_end_token=True,
    )  # fmt: skip
    name = translator.tokenizer._engine.id_to_token
    theirs = [result.hypotheses[0] for result in found]
    assert theirs == [[*map(name, row)] for row in our_ids(translator, SENTENCES)]


@pytest.mark.parametrize("to", ["marian", "pegasus", "onnx"])
def test_the_program_in_the_readme_translates_as_ours(exported, to) -> None:
    folder = exported(to)
    assert "Terms: free for all" in (folder / "README.md").read_text()
    translate = their_program(folder)
    ours = MODELS[to]().translate(SENTENCES, extra_len=1000)
    theirs = [translate(s) for s in SENTENCES] if to == "onnx" else translate(SENTENCES)
    assert theirs == ours


def test_a_batch_with_padding_gives_the_same_logits_in_onnx_runtime(
    exported, tmp_path
) -> None:
    model = make_model(norm_first=True, attention_bias=False).float()
    to_onnx(model, tmp_path)
    encoder, decoder = (
        onnxruntime.InferenceSession(tmp_path / name)
        for name in ("encoder.onnx", "decoder_step.onnx")
    )
    src, tgt_in = SRC.numpy(), torch.tensor([[1, 3, 5, 6]] * len(SRC))
    [memory] = encoder.run(None, {"src": src})
    past, logits = memory[:, :, :, :, :0], []
    for position in range(4):
        ids = tgt_in[:, position : position + 1].numpy()
        inputs = {"ids": ids, "src": src, "memory": memory, "past": past}
        step, past = decoder.run(None, inputs)
        logits.append(torch.from_numpy(step))
    with torch.no_grad():
        ours = model(SRC, tgt_in)
    torch.testing.assert_close(torch.stack(logits, 1), ours, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"attention_bias": False, "activation": "gelu"},
        {"tie_embeddings": "all", "head_bias": True},
        {"tie_embeddings": "decoder", "scale_embeddings": False, "pad_id": 3},
    ],
)
def test_marian_read_back_gives_our_logits(choices) -> None:
    model = make_model(**choices).float()
    theirs = to_marian(model, BOS, EOS)
    back = from_marian(theirs.state_dict(), theirs.config)
    our_id = pad_last(model.config)  # of each of theirs
    to_theirs = our_id.argsort()
    src, tgt_in = SRC.clone(), torch.tensor([[3, 5, 6], [4, 4, 2]] * 2)
    src[src == 0], tgt_in[tgt_in == 3] = model.config.pad_id, 4
    tgt_in[:, 0] = BOS
    started = to_theirs[tgt_in]
    started[:, 0] = back.config.pad_id
    with torch.no_grad():
        ours = model(src, tgt_in)[..., our_id]
        found = back(to_theirs[src], started)
    torch.testing.assert_close(found[..., :-1], ours[..., :-1], rtol=1e-4, atol=1e-4)
    assert (found[..., -1] < -1e8).all()  # padding is never written


def test_the_tokenizer_of_a_folder_cuts_as_ours(exported) -> None:
    odd = [
        "  Licht  an ",
        "<eos> ist ein Wort",
        "a\u202eb",
        "\ufeffx",
        "é😀",
        "a\nb",
        "$x^2$",
    ]
    ours = pre_norm().tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(exported("pegasus"))
    assert theirs(odd)["input_ids"] == [ours.encode(text.strip()) for text in odd]
    for text in odd[1:]:
        ids = ours.encode(text)
        assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids) == text


def test_the_command_writes_a_folder_or_nothing(tmp_path, capsys) -> None:
    def command(name: str, to: str, folder: str) -> None:
        cli.main(["export", name, "--to", to, "--out", str(tmp_path / folder)])

    command("home-assistant", "pegasus", "mine")
    assert "README.md" in capsys.readouterr().out
    assert "Apache" in (tmp_path / "mine/README.md").read_text()
    for name, to, folder, message in (
        ("home-assistant", "pegasus", "mine", "is there already"),
        ("home-assistant", "marian", "other", "norm_first is True"),
        ("nobody", "onnx", "other", "no model 'nobody'"),
    ):
        with pytest.raises(SystemExit, match=message):
            command(name, to, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_run_of_ones_own_leaves_the_book(tmp_path) -> None:
    """Train a post-norm translator, export it three times, translate with each."""
    recipe = tmp_path / "mine.toml"
    recipe.write_text(RECIPE)
    run = str(tmp_path / "run")
    cli.main(["train", "--config", str(recipe), "--out", run, "--quiet"])
    translator = load(run)
    sentences = [pair[1] for pair in corpora.load("grammar").test][:200]
    ours = translator.translate(sentences, extra_len=1000)
    assert len(set(ours)) > 100
    for to in ("marian", "onnx"):
        folder = tmp_path / to
        cli.main(["export", run, "--to", to, "--out", str(folder)])
        translate = their_program(folder)
        found = translate(sentences) if to == "marian" else [*map(translate, sentences)]
        assert found == ours
