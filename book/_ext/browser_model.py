"""The model of the pages as scripts that they load: 8-bit weights and the tokenizer.

Each row of a matrix is divided by a scale of its own, so that its largest number is
127, and rounded. Biases and layer norms stay as they are. Each script calls
`machine_model`: the first one with an object of sizes, tokens, the merges of the
tokenizer, and where each tensor lies; the others with a part of all numbers in base64,
since a page that is opened from a file may load scripts and nothing else, and a reader
wants to see how much has come.
"""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from transformer_book.charts.trace import quantize
from transformer_lib.files import write_text
from transformer_lib.pretrained.translator import Translator, load

MODEL = "multi30k-de-en"  # its name, and that of the scripts
SISTER = "multi30k-en-de"  # the other way round
PART = 600_000  # letters of a script


def model_data(translator: Translator) -> dict[str, Any]:
    """Return what `load` of engine.js takes.

    That engine knows the kind of Transformer that the pages have, and no other.
    """
    config = translator.model.config
    tokenizer = json.loads(translator.tokenizer.to_json())["model"]
    tensors, stored = [], bytearray()

    def store(numbers: np.ndarray) -> int:
        start = len(stored)
        stored.extend(numbers.tobytes())
        stored.extend(bytes(-len(stored) % 4))  # the next one starts at a multiple of 4
        return start

    for name, weight in translator.model.named_parameters():
        entry: dict[str, Any] = {"name": name, "shape": list(weight.shape)}
        if weight.dim() == 2:
            numbers, scales = quantize(weight.detach())
            entry |= {"offset": store(numbers.numpy()), "scale": store(scales.numpy())}
        else:
            entry["offset"] = store(weight.detach().numpy())
        tensors.append(entry)
    ids = tokenizer["vocab"]
    return {
        "config": {
            name: getattr(config, name)
            for name in ("n_heads", "d_model", "n_encoder_layers", "n_decoder_layers",
                         "norm_eps", "max_len", "pad_id")
        },
        "tokens": sorted(ids, key=ids.__getitem__),
        "merges": [ids[piece] for pair in tokenizer["merges"] for piece in pair],
        "tensors": tensors,
        "data": base64.b64encode(stored).decode("ascii"),
    }  # fmt: skip


def write_scripts(folder: Path, name: str = MODEL) -> list[Path]:
    """Write a model of the pages as scripts, each whole or not at all."""
    data = model_data(load(name))
    numbers = data.pop("data")
    arguments = [data]
    arguments += [numbers[i : i + PART] for i in range(0, len(numbers), PART)]
    paths = []
    for number, argument in enumerate(arguments):
        text = json.dumps(argument, ensure_ascii=False, separators=(",", ":"))
        paths.append(folder / f"{name}-{number:02}.js")
        write_text(paths[-1], f"machine_model({text});\n")
    return paths
