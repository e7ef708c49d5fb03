"""Models of ours as folders that other programs open.

    export(load("runs/mine"), Path("mine-onnx"), "onnx")

marian     for `MarianMTModel` of Hugging Face, and CTranslate2
pegasus    the same for pre-norm models, which Marian has no place for
onnx       two graphs for ONNX Runtime: the encoder, and one step of the decoder

Each folder has a README with a program that translates, which the tests run.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import tokenizers
from safetensors.torch import save
from tokenizers import normalizers, processors
from torch import Tensor

from transformer_lib.convert.to_hugging_face import pad_last, to_marian, to_pegasus
from transformer_lib.convert.to_onnx import DECODER_STEP, ENCODER, to_onnx
from transformer_lib.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_lib.files import write_bytes, write_text
from transformer_lib.model.checks import check_choice
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import CONFIG, TOKENIZER, WEIGHTS, Translator

Format = Literal["marian", "pegasus", "onnx"]
FORMATS: tuple[Format, ...] = get_args(Format)

HUGGING_FACE_README = """\
# A translator for transformers and CTranslate2

Its weights stand in `{architecture}`. It starts targets with `<pad>`, as the library's
models of that kind do, and writes at most {max_len} tokens.

{terms}```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)

def translate(sentences, **options):
    batch = tokenizer(sentences, return_tensors="pt", padding=True)
    ids = model.generate(**batch, **options)
    return tokenizer.batch_decode(ids, skip_special_tokens=True)
```

`translate(sentences)` searches greedily; `num_beams=4` searches with beams. For
CTranslate2: `ct2-transformers-converter --model FOLDER --output_dir OTHER`.
"""

ONNX_README = """\
# A translator for ONNX Runtime

`{encoder}` reads

- `src` (batch, src_len): ids, padded with {pad_id}

and gives

- `memory` ({n_layers}, 2, batch, {n_heads}, src_len, {d_head}): keys and values of the
  source for each layer of the decoder.

`{decoder}` reads

- `ids` (batch, 1): the last token of each target;
- `src` and `memory`;
- `past` ({n_layers}, 2, batch, {n_heads}, length, {d_head}): keys and values of the
  tokens before, of length 0 at first

and gives

- `logits` (batch, {vocab_size}) of the next token;
- `present`: the next step's `past`.

{terms}```python
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

folder = Path(folder)
encoder = onnxruntime.InferenceSession(folder / "{encoder}")
decoder = onnxruntime.InferenceSession(folder / "{decoder}")
tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.encode_special_tokens = True  # "<eos>" in a sentence is no end of it
PAD, BOS, EOS = (tokenizer.token_to_id(t) for t in ("<pad>", "<bos>", "<eos>"))

def translate(sentence, max_len={max_len}):
    src = np.array([tokenizer.encode(sentence).ids])
    [memory] = encoder.run(None, {{"src": src}})
    past = np.zeros((*memory.shape[:4], 0, memory.shape[5]), np.float32)
    ids = [BOS]
    while len(ids) <= max_len and ids[-1] != EOS:
        last = {{"ids": np.array([ids[-1:]]), "past": past}}
        logits, past = decoder.run(None, last | {{"src": src, "memory": memory}})
        logits[:, PAD] = -np.inf
        ids.append(int(logits[0].argmax()))
    return tokenizer.decode(ids)
```
"""


def export(
    translator: Translator, folder: Path, to: Format, terms: str | None = None
) -> None:
    """Write a translator as a folder that another program opens, whole or not at all.

    Args:
        translator: with a tokenizer of ours.
        folder: must not exist.
        to: "marian", "pegasus" or "onnx".
        terms: under which the model may be used, for its README.

    Raises:
        ValueError: the format is unknown, or has no place for something in the model.
        TypeError: the tokenizer is somebody else's.
        FileExistsError: there is such a folder.
        ImportError: a package that writes the format is not installed.
    """
    check_choice("to", to, FORMATS)
    if not isinstance(translator.tokenizer, Tokenizer):
        raise TypeError(
            "only a tokenizer of ours can be exported, not "
            f"{type(translator.tokenizer).__name__}"
        )
    if folder.exists():
        raise FileExistsError(f"{folder} is there already; choose another folder")
    note = f"Terms: {terms}\n\n" if terms else ""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        if to == "onnx":
            _write_onnx(translator, unfinished, note)
        else:
            write = {"marian": to_marian, "pegasus": to_pegasus}[to]
            _write_hugging_face(translator, unfinished, write, note)
        unfinished.chmod(0o755)
        os.rename(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _write_onnx(translator: Translator, folder: Path, terms: str) -> None:
    config = translator.model.config
    to_onnx(translator.model, folder)
    write_text(folder / TOKENIZER, _tokenizer_with_eos(translator.tokenizer).to_str())
    readme = ONNX_README.format(
        encoder=ENCODER,
        decoder=DECODER_STEP,
        pad_id=config.pad_id,
        n_layers=config.n_decoder_layers,
        n_heads=config.n_heads,
        d_head=config.d_model // config.n_heads,
        vocab_size=config.tgt_vocab_size,
        max_len=config.max_len,
        terms=terms,
    )
    write_text(folder / "README.md", readme)


def _write_hugging_face(
    translator: Translator,
    folder: Path,
    convert: Callable[[Transformer, int], tuple[dict[str, Tensor], dict[str, Any]]],
    terms: str,
) -> None:
    tokenizer, max_len = translator.tokenizer, translator.model.config.max_len
    weights, options = convert(translator.model, tokenizer.bos_id)
    engine = json.loads(_tokenizer_with_eos(tokenizer).to_str())
    if options["model_type"] == "marian":
        their_id = {int(i): n for n, i in enumerate(pad_last(translator.model.config))}
        engine = _renumbered(engine, their_id)
    vocabulary = engine["model"]["vocab"]
    special = {
        "pad_token_id": options["pad_token_id"],
        "bos_token_id": vocabulary[BOS],
        "eos_token_id": vocabulary[EOS],
        "decoder_start_token_id": options["pad_token_id"],
    }
    weights = {name: weight.contiguous() for name, weight in weights.items()}
    write_bytes(folder / WEIGHTS, save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, json.dumps(engine, ensure_ascii=False, indent=1))
    _write_json(folder / CONFIG, options | special | {"forced_eos_token_id": None})
    # Length counts the start token here, and does not in our library.
    longest = {"max_length": max_len + 1, "num_beams": 1, "do_sample": False}
    _write_json(folder / "generation_config.json", special | longest)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "bos_token": BOS,
        "eos_token": EOS,
        "unk_token": UNK,
        "model_max_length": max_len,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "<eos>" in a sentence is no end of it
    }
    _write_json(folder / "tokenizer_config.json", settings)
    readme = HUGGING_FACE_README.format(
        architecture=options["architectures"][0], max_len=max_len, terms=terms
    )
    write_text(folder / "README.md", readme)


def _tokenizer_with_eos(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """Let the engine itself do what `Translator` does around it: strip, and end."""
    engine = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    engine.normalizer = normalizers.Sequence([normalizers.Strip(), engine.normalizer])
    engine.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}",
        pair=f"$A $B {EOS}",
        special_tokens=[(EOS, tokenizer.eos_id)],
    )
    return engine


def _renumbered(engine: dict[str, Any], new_id: dict[int, int]) -> dict[str, Any]:
    """Give the tokens of a tokenizer in JSON other ids."""
    vocabulary = engine["model"]["vocab"]
    for token, number in vocabulary.items():
        vocabulary[token] = new_id[number]
    engine["model"]["vocab"] = dict(
        sorted(vocabulary.items(), key=lambda item: item[1])
    )
    for token in engine["added_tokens"]:
        token["id"] = new_id[token["id"]]
    engine["added_tokens"].sort(key=lambda token: token["id"])
    for token in engine["post_processor"]["special_tokens"].values():
        token["ids"] = [new_id[number] for number in token["ids"]]
    return engine


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=1) + "\n")
