"""A trained classifier as it is kept and used: weights, classes and tokenizer together.

model.safetensors    the weights, in half precision
config.json          fields of TransformerConfig, the pooling and the classes' names
tokenizer.json       text to ids
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from transformer_lib.data.batches import pad_batch
from transformer_lib.data.texts import encode_texts
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import write_bytes, write_text
from transformer_lib.generation.greedy import without_dropout
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.state_dict import load_weights
from transformer_lib.pretrained.translator import CONFIG, TOKENIZER, WEIGHTS


@dataclass(frozen=True)
class Judgment:
    """What a classifier makes of one text.

    Attributes:
        label: the likeliest class, by name.
        probability: that the model gives to it.
        was_cut: the text was longer than the model reads; its end was not seen.
        n_unknown: words that the model does not know. Texts of as many unknown words
            and no other all get the same judgment.
    """

    label: str
    probability: float
    was_cut: bool
    n_unknown: int


@dataclass(frozen=True)
class Classifier:
    """A model with its tokenizer and the names of its classes.

    Attributes:
        model: the encoder that judges.
        tokenizer: text to ids.
        classes: what each logit stands for.

    Raises:
        ValueError: the model has another number of tokens or classes.
    """

    model: EncoderClassifier
    tokenizer: Tokenizer
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a vocabulary or classes that do not fit."""
        n_tokens, n_classes = self.model.config.src_vocab_size, _n_classes(self.model)
        if (n_tokens, n_classes) != (len(self.tokenizer), len(self.classes)):
            raise ValueError(
                f"the model has {n_tokens} tokens and {n_classes} classes, but got "
                f"{len(self.tokenizer)} and {len(self.classes)}"
            )

    @torch.no_grad()
    def judge(self, texts: Sequence[str], batch_size: int = 64) -> list[Judgment]:
        """Judge each text; one that is longer than the model reads is cut.

        Raises:
            ValueError: a text is empty; its number, from 1, is in the message.
        """
        config = self.model.config
        rows, cut = encode_texts(self.tokenizer, texts, config.max_len)
        judgments = []
        with without_dropout(self.model):
            for start in range(0, len(rows), batch_size):
                src = pad_batch(rows[start : start + batch_size], config.pad_id)
                logits = self.model(src.to(self.model.head.weight.device))
                for best, label in zip(*logits.softmax(-1).max(-1), strict=True):
                    number = len(judgments) + 1
                    n_unknown = rows[number - 1].count(self.tokenizer.unk_id)
                    judgments.append(
                        Judgment(
                            self.classes[label], best.item(), number in cut, n_unknown
                        )
                    )
        return judgments

    def save(self, folder: str | Path) -> None:
        """Write everything, in half precision, each file whole or not at all."""
        folder = Path(folder)
        state = self.model.state_dict()
        weights = {name: each.half().contiguous() for name, each in state.items()}
        write_bytes(folder / WEIGHTS, save(weights))
        config = {
            "classes": list(self.classes),
            "pooling": self.model.pool.pooling,
            "model": asdict(self.model.config),
        }
        write_text(folder / CONFIG, json.dumps(config, indent=1) + "\n")
        self.tokenizer.save(folder / TOKENIZER)


def load_classifier(folder: str | Path) -> Classifier:
    """Read a classifier, ready to judge on the CPU in single precision.

    Raises:
        FileNotFoundError: the folder holds no classifier.
        ValueError: a file is damaged, or the weights do not fit the configuration.
    """
    folder = Path(folder)
    try:
        content = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        config, classes = TransformerConfig(**content["model"]), content["classes"]
        model = EncoderClassifier(config, len(classes), content["pooling"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / CONFIG} describes no classifier: {error!r}"
        ) from None
    try:
        weights = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise ValueError(
            f"{folder / WEIGHTS} is truncated or damaged: {error}"
        ) from None
    load_weights(model, weights, str(folder / WEIGHTS))
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    return Classifier(model.eval(), tokenizer, tuple(classes))


def _n_classes(model: EncoderClassifier) -> int:
    return model.head.out_features
