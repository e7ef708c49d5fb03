"""A trained classifier as it is kept and used: weights, classes and tokenizer together.

model.safetensors    the weights, in half precision
config.json          fields of TransformerConfig, the pooling and the classes' names
tokenizer.json       text to ids
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from transformer_lib.data.batches import pad_batch
from transformer_lib.data.texts import encode_texts
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.generation.greedy import without_dropout
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.modern import build_model
from transformer_lib.pretrained.translator import load_model, read_config, save_model

BATCH_SIZE = 64


@dataclass(frozen=True)
class Classification:
    """What a classifier says about one text.

    Attributes:
        label: the most probable class, by name.
        probability: that the model gives to it.
        was_truncated: the text was longer than the model reads; its end was not seen.
        n_unknown: words that the model does not know. Texts of nothing else, and of as
            many, all get the same classification.
    """

    label: str
    probability: float
    was_truncated: bool
    n_unknown: int


@dataclass(frozen=True)
class Classifier:
    """A model with its tokenizer and the names of its classes.

    Attributes:
        model: the encoder with its head.
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
        model, n_tokens, n_classes = self.model, len(self.tokenizer), len(self.classes)
        sizes = model.config.src_vocab_size, model.head.out_features
        if sizes != (n_tokens, n_classes):
            raise ValueError(
                f"the model has {sizes[0]} tokens and {sizes[1]} classes, but got "
                f"{n_tokens} and {n_classes}"
            )
        if self.tokenizer.pad_id != model.config.pad_id:
            raise ValueError(
                f"the tokenizer pads with {self.tokenizer.pad_id}, but the model takes "
                f"{model.config.pad_id} for padding"
            )

    @torch.no_grad()
    def classify(self, texts: Sequence[str]) -> list[Classification]:
        """Classify each text; one that is longer than the model reads is truncated.

        Raises:
            ValueError: a text is empty; its number, from 1, is in the message.
        """
        config, device = self.model.config, self.model.head.weight.device
        rows, truncated = encode_texts(self.tokenizer, texts, config.max_len)
        too_long = set(truncated)
        found: list[Classification] = []
        with without_dropout(self.model):
            for start in range(0, len(rows), BATCH_SIZE):
                some = rows[start : start + BATCH_SIZE]
                src = pad_batch(some, config.pad_id).to(device)
                best = zip(*self.model(src).softmax(-1).max(-1), strict=True)
                for ids, (probability, label) in zip(some, best, strict=True):
                    found.append(
                        Classification(
                            label=self.classes[label],
                            probability=probability.item(),
                            was_truncated=len(found) + 1 in too_long,
                            n_unknown=ids.count(self.tokenizer.unk_id),
                        )
                    )
        return found

    def save(self, folder: str | Path) -> None:
        """Write everything, in half precision, each file whole or not at all.

        Raises:
            ValueError: what would be loaded computes something else; see `save_model`.
        """
        config = {
            "classes": list(self.classes),
            "pooling": self.model.pool.pooling,
            "model": asdict(self.model.config),
        }
        save_model(Path(folder), self.model, config, self.tokenizer, _classifier)


def load_classifier(folder: str | Path) -> Classifier:
    """Read a classifier, ready to classify on the CPU in single precision.

    Raises:
        FileNotFoundError: the folder holds no classifier.
        ValueError: a file is damaged, or the weights do not fit the configuration.
    """
    model, tokenizer, config = load_model(Path(folder), _classifier)
    return Classifier(model, tokenizer, tuple(config["classes"]))


def _classifier(config: dict[str, Any]) -> EncoderClassifier:
    if "classes" not in config:
        raise ValueError("it is that of a translator, which `load` reads")
    n_classes, pooling = len(config["classes"]), config["pooling"]
    return build_model(
        read_config(config["model"]),
        lambda sizes: EncoderClassifier(sizes, n_classes, pooling),
    )
