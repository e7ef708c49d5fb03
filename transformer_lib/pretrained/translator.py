"""Models as they are kept and used: weights, configuration and tokenizer together.

model.safetensors    the weights, in half precision
config.json          fields of TransformerConfig
tokenizer.json       text to ids and back
scores.json          what was measured, of shipped models
recipe.json          how it was trained
README.md            the model card: data, terms, scores, how it was made
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from transformer_lib.data.batches import pad_batch
from transformer_lib.data.examples import require_texts
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import RECIPE, write_bytes, write_text
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import Decoding, make_decoder
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.modern import ModernConfig, build_model
from transformer_lib.model.transformer import Transformer
from transformer_lib.probe import require_described, require_room_in_half
from transformer_lib.weights import load_weights

MODELS = Path(__file__).parent / "models"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
SCORES = "scores.json"
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Translator:
    """A model with the tokenizer of both its languages.

    Attributes:
        model: the Transformer.
        tokenizer: text to ids and back.
        decoder: how the model is asked; its own modules with a cache if None.

    Raises:
        ValueError: the model has another number of tokens than the tokenizer or another
            padding, or the decoder is one of another model.
    """

    model: Transformer
    tokenizer: Tokenizer
    decoder: Decoding | None = None

    def __post_init__(self) -> None:
        """Refuse a vocabulary that does not fit."""
        config, n_tokens = self.model.config, len(self.tokenizer)
        if not config.src_vocab_size == config.tgt_vocab_size == n_tokens:
            raise ValueError(
                f"the tokenizer has {n_tokens} tokens, but the model "
                f"{config.src_vocab_size} and {config.tgt_vocab_size}"
            )
        if getattr(self.tokenizer, "pad_id", config.pad_id) != config.pad_id:
            raise ValueError(
                f"the tokenizer pads with {self.tokenizer.pad_id}, but the model takes "
                f"{config.pad_id} for padding"
            )
        if getattr(self.decoder, "model", self.model) is not self.model:
            raise ValueError("the decoder is one of another model")

    def fast(self) -> "Translator":
        """Return a translator that decodes in less time on a CPU, with an engine.

        The engine is made once, of the weights as they are now, and proven to compute
        what the model computes. It is frozen: later changes of the model, a hook or an
        edit or a recording of its attention, say, don't concern `translate`. An engine
        serves one thread at a time, and refuses a second one.

        Raises:
            ValueError: the engine doesn't know a part of the model, or the two differ.
        """
        from transformer_lib.fast import make_engine

        return replace(self, decoder=make_engine(self.model))

    def translate(
        self,
        sentences: Sequence[str],
        n_beams: int = 1,
        batch_tokens: int = 4096,
        extra_len: int = 50,
        progress: bool = False,
    ) -> list[str]:
        """Translate sentences, in batches of similar length.

        Args:
            sentences: in the source language.
            n_beams: targets kept by beam search; 1 is greedy search, which is faster.
            batch_tokens: source tokens in a batch, padding counted.
            extra_len: tokens by which a translation may be longer than its source, as
                in section 6.1 of the paper.
            progress: show a progress bar.

        Returns:
            One translation each, in the order given.

        Raises:
            TypeError: sentences is a text instead of a list of texts, or one of them is
                no text.
            ValueError: a sentence holds no word, or is longer than the model allows;
                its number, from 1, is in the message. extra_len is negative.
        """
        require_texts("sentences", sentences)
        if extra_len < 0:  # the end of each translation would be cut off
            raise ValueError(f"extra_len must be at least 0, not {extra_len}")
        ids = [self._encode(i, text) for i, text in enumerate(sentences, start=1)]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]), reverse=True)
        batches: Iterable[list[int]] = []
        while order:
            size = max(1, batch_tokens // len(ids[order[0]]))
            batches.append(order[:size])
            order = order[size:]
        if progress:
            from tqdm.auto import tqdm

            batches = tqdm(batches, unit="batch")
        decoder = make_decoder(self.model) if self.decoder is None else self.decoder
        translations = [""] * len(ids)
        for rows in batches:
            some = [ids[row] for row in rows]
            found = self._decode(some, n_beams, extra_len, decoder)
            for row, text in zip(rows, found, strict=True):
                translations[row] = text
        return translations

    def _encode(self, number: int, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"sentence {number} is {text!r}, not a text")
        try:
            ids = self.tokenizer.encode(text.strip())
        except ValueError as error:
            raise ValueError(f"sentence {number}: {error}") from None
        most = self.model.config.max_len
        if len(ids) > most:
            raise ValueError(
                f"sentence {number} has {len(ids)} tokens, but the model takes at most "
                f"{most}"
            )
        return ids

    def _decode(
        self, rows: list[list[int]], n_beams: int, extra_len: int, decoder: Decoding
    ) -> list[str]:
        tokenizer, most = self.tokenizer, self.model.config.max_len
        device = next(self.model.parameters()).device
        src = pad_batch(rows, self.model.config.pad_id).to(device)
        config = GenerationConfig(
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            max_len=[min(len(ids) + extra_len, most) for ids in rows],
        )
        if n_beams == 1:
            best = greedy_decode(self.model, src, config, decoder)
        else:
            found = beam_search(self.model, src, config, n_beams, decoder=decoder)
            best = [hypotheses[0] for hypotheses in found]
        return [tokenizer.decode(hypothesis.ids) for hypothesis in best]

    def save(self, folder: str | Path) -> None:
        """Write the model, in half precision, each file whole or not at all.

        Raises:
            ValueError: what would be loaded computes something else; see `save_model`.
        """
        config = asdict(self.model.config)
        save_model(Path(folder), self.model, config, self.tokenizer, _transformer)


def shipped_models() -> list[str]:
    """Return the names of the models that come with the book, in alphabetical order."""
    return sorted(path.parent.name for path in MODELS.glob(f"*/{CONFIG}"))


def find(name: str | Path) -> Path:
    """Return the folder of a shipped model, or the given folder of another.

    Raises:
        FileNotFoundError: there is no such model; the message lists those there are.
    """
    folder = MODELS / name if (MODELS / name).is_dir() else Path(name)
    if (folder / RECIPE).is_file() and not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"the run in {name} is not finished: the command that started it, with "
            "--resume, goes on with it"
        )
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"there is no model {str(name)!r}: no folder of that name has a {CONFIG}, "
            f"and the shipped models are {', '.join(shipped_models())}"
        )
    return folder


def load(name: str | Path) -> Translator:
    """Read a model, ready to translate on the CPU in single precision.

    Args:
        name: of a shipped model, or the path of a folder.

    Raises:
        FileNotFoundError: there is no such model; the message lists those there are.
        ValueError: a file is damaged, or the weights do not fit the configuration.
    """
    model, tokenizer, _ = load_model(find(name), _transformer)
    return Translator(model, tokenizer)


def _transformer(config: dict[str, Any]) -> Transformer:
    if "classes" in config:
        raise ValueError("it is that of a classifier, which `load_classifier` reads")
    return build_model(read_config(config))


def read_config(fields: dict[str, Any]) -> TransformerConfig:
    """Make the configuration that a file describes, of the paper's parts or later ones.

    Raises:
        ValueError: it has a field that no configuration has, or a value is refused.
        TypeError: a field is missing.
    """
    later, paper = (
        {field.name for field in dataclasses.fields(kind)}
        for kind in (ModernConfig, TransformerConfig)
    )
    if unknown := fields.keys() - later:
        raise ValueError(f"no configuration has the field {', '.join(sorted(unknown))}")
    kind = TransformerConfig if fields.keys() <= paper else ModernConfig
    return kind(**fields)


def read_terms(name: str | Path, what: str = "Terms") -> str | None:
    """Return under which terms a model may be used, as its card says; None without one.

    Args:
        name: as for `load`.
        what: another line of the card; "Sentences" says from what the model learned.
    """
    card = find(name) / "README.md"
    lines = card.read_text(encoding="utf-8").splitlines() if card.is_file() else []
    mark = f"- {what}: "
    return next((x.removeprefix(mark) for x in lines if x.startswith(mark)), None)


def save_model(
    folder: Path,
    model: nn.Module,
    config: dict[str, Any],
    tokenizer: Tokenizer,
    build: Callable[[dict[str, Any]], nn.Module],
) -> None:
    """Write the three files of a model; weights that are tied are stored once.

    Before the first byte is written, the model is proven to be the one that
    `load_model` would make of the files: `build` makes a new one, and both compute the
    same numbers. What the model is made of doesn't matter: compiled parts, subclasses,
    and hooks that only look are saved as what they compute.

    Args:
        folder: is made if it is missing.
        model: in any state.
        config: what `build` makes the model of, plain data.
        tokenizer: of this library.
        build: as for `load_model`.

    Raises:
        ValueError: the model computes something else than its configuration says; or a
            weight is NaN or too large for half precision, or half precision would
            change what the model computes. Nothing is written.
        AttributeError: the tokenizer is another library's; nothing is written.
    """
    from safetensors.torch import save

    text, description = tokenizer.to_json(), json.dumps(config, indent=1) + "\n"
    twin = require_described(model, lambda: build(json.loads(description)))
    weights = require_room_in_half(twin)
    write_bytes(folder / WEIGHTS, save(weights))
    write_text(folder / CONFIG, description)
    write_text(folder / TOKENIZER, text)


def load_model(
    folder: Path, build: Callable[[dict[str, Any]], Model]
) -> tuple[Model, Tokenizer, dict[str, Any]]:
    """Read the three files of a model: in evaluation mode, its tokenizer, its config.

    Args:
        folder: of the model.
        build: makes the model of what its configuration says.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: one is damaged, or belongs to another model.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path, weights = folder / CONFIG, folder / WEIGHTS
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise TypeError("it holds no table of fields")
        model = build(config)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} describes no model: {error}") from None
    try:
        load_weights(model.eval(), load_file(weights), str(weights))
    except SafetensorError as error:
        raise ValueError(f"{weights} is truncated or damaged: {error}") from None
    return model, Tokenizer.load(folder / TOKENIZER), config
