"""Models of ours as folders that other programs open.

    export(load("runs/mine"), Path("mine-onnx"), "onnx")

hugging-face     for transformers and CTranslate2
onnx             two graphs for ONNX Runtime: the encoder, and a step of the decoder

Each folder has a README that says how to translate with it.
"""

import json
import tempfile
from pathlib import Path
from typing import Any, Literal, get_args

import tokenizers
from tokenizers import normalizers, processors

from transformer_lib.convert.to_hugging_face import their_ids, to_hugging_face
from transformer_lib.convert.to_onnx import to_onnx
from transformer_lib.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_lib.pretrained.translator import TOKENIZER, Translator

Format = Literal["hugging-face", "onnx"]
FORMATS: tuple[Format, ...] = get_args(Format)

HUGGING_FACE_README = """\
# A translator for transformers and CTranslate2

{terms}Open it with `AutoTokenizer` and `AutoModelForSeq2SeqLM` of transformers.
For CTranslate2: `ct2-transformers-converter --model FOLDER --output_dir OTHER`.
"""

ONNX_README = """\
# A translator for ONNX Runtime

`encoder.onnx` computes keys and values of the source for each layer of the decoder,
`decoder_step.onnx` the logits of the next token and the keys and values of all tokens.

{terms}```python
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

folder = Path(folder)
encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")
decoder = onnxruntime.InferenceSession(folder / "decoder_step.onnx")
tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.encode_special_tokens = True  # "<eos>" in a sentence is no end of it
PAD, BOS, EOS = (tokenizer.token_to_id(t) for t in ("<pad>", "<bos>", "<eos>"))

def translate(sentence, max_len={max_len}):
    src = np.array([tokenizer.encode(sentence).ids])
    [memory] = encoder.run(None, {{"src": src}})
    past, ids = memory[:, :, :, :, :0], [BOS]
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
        to: "hugging-face" or "onnx".
        terms: under which the model may be used, for its README.

    Raises:
        ValueError: the format has no place for something in the model.
        FileExistsError: there is such a folder.
        ImportError: a package that writes the format is not installed.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} is there already; choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        unfinished = Path(place) / folder.name
        unfinished.mkdir()
        engine = _engine_with_eos(translator.tokenizer)
        readme = HUGGING_FACE_README
        if to == "onnx":
            readme = ONNX_README
            to_onnx(translator.model, unfinished)
            engine.save(str(unfinished / TOKENIZER))
        else:
            _write_hugging_face(translator, unfinished, engine)
        note = f"Terms: {terms}\n\n" if terms else ""
        text = readme.format(terms=note, max_len=translator.model.config.max_len)
        (unfinished / "README.md").write_text(text, encoding="utf-8")
        unfinished.rename(folder)


def _write_hugging_face(
    translator: Translator, folder: Path, engine: tokenizers.Tokenizer
) -> None:
    from transformers import PreTrainedTokenizerFast

    ours, config = translator.tokenizer, translator.model.config
    model = to_hugging_face(translator.model, ours.bos_id, ours.eos_id)
    # Length counts the start token here, and does not in our library.
    model.generation_config.update(max_length=config.max_len + 1, num_beams=1)
    model.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_renumbered(engine, their_ids(config).tolist()),
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=UNK,
        model_max_length=config.max_len,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,  # "<eos>" in a sentence is no end of it
    )
    tokenizer.save_pretrained(folder)


def _engine_with_eos(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """Let the engine itself do what `Translator` does around it: strip, and end."""
    engine = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    engine.normalizer = normalizers.Sequence([normalizers.Strip(), engine.normalizer])
    engine.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}",
        pair=f"$A $B {EOS}",
        special_tokens=[(EOS, tokenizer.eos_id)],
    )
    return engine


def _renumbered(
    engine: tokenizers.Tokenizer, new_id: list[int]
) -> tokenizers.Tokenizer:
    """Give the tokens the ids of the exported model; eos and bos keep theirs."""
    content: dict[str, Any] = json.loads(engine.to_str())
    vocabulary = content["model"]["vocab"]
    vocabulary.update({token: new_id[old] for token, old in vocabulary.items()})
    return tokenizers.Tokenizer.from_str(json.dumps(content))
