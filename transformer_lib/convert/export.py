"""Models of ours as folders that other programs open.

    export(load("runs/mine"), Path("mine-exported"))

They are folders of Hugging Face, for transformers and CTranslate2. Each has a README
that says how to translate with it, and where the others' beams differ.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import normalizers, processors

from transformer_lib.convert.to_hugging_face import their_ids, to_hugging_face
from transformer_lib.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_lib.pretrained.translator import Translator

README = """\
# A translator for transformers and CTranslate2

{terms}Open it with `AutoTokenizer` and `AutoModelForSeq2SeqLM` of transformers.
For CTranslate2: `ct2-transformers-converter --model FOLDER --output_dir OTHER`.

Greedy search writes the same tokens everywhere. With several beams, CTranslate2 ends
its search by another rule: a few odd sentences are translated otherwise (7 of 37 that
were tried), and none is translated by nothing at all.
"""


def export(translator: Translator, folder: Path, terms: str | None = None) -> None:
    """Write a translator as a folder that another program opens, whole or not at all.

    Args:
        translator: with a tokenizer of ours.
        folder: must not exist.
        terms: under which the model may be used, for its README.

    Raises:
        ValueError: their models have no place for something in this one.
        FileExistsError: there is such a folder.
        ImportError: transformers is not installed.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} is there already; choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        unfinished = Path(place) / folder.name
        unfinished.mkdir()
        _write_model_and_tokenizer(translator, unfinished)
        note = f"Terms: {terms}\n\n" if terms else ""
        text = README.format(terms=note)
        (unfinished / "README.md").write_text(text, encoding="utf-8")
        unfinished.rename(folder)


def _write_model_and_tokenizer(translator: Translator, folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    ours, config = translator.tokenizer, translator.model.config
    model = to_hugging_face(translator.model, ours.bos_id, ours.eos_id)
    # Length counts the start token here, and does not in our library.
    model.generation_config.update(max_length=config.max_len + 1, num_beams=1)
    model.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_their_engine(ours, their_ids(config).tolist()),
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


def _their_engine(tokenizer: Tokenizer, new_id: list[int]) -> tokenizers.Tokenizer:
    """Make an engine that gives the ids of the exported model; eos and bos keep theirs.

    It does by itself what `Translator` does around ours: strip, and end with eos.
    """
    content: dict[str, Any] = json.loads(tokenizer.to_json())
    vocabulary = content["model"]["vocab"]
    vocabulary.update({token: new_id[old] for token, old in vocabulary.items()})
    engine = tokenizers.Tokenizer.from_str(json.dumps(content))
    engine.normalizer = normalizers.Sequence([normalizers.Strip(), engine.normalizer])
    engine.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}",
        pair=f"$A $B {EOS}",
        special_tokens=[(EOS, tokenizer.eos_id)],
    )
    return engine
