"""Recipes: everything that decides a training run, in one TOML file.

    [data]       which sentences, which tokens
    [model]      fields of TransformerConfig, all but the vocabulary sizes
    [training]   how long, how fast, how often saved

With `task = "classify"` in its last table, a recipe trains a classifier. The recipes
of the shipped models are in the folder `configs`.
"""

import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from transformer_lib.files import RECIPE
from transformer_lib.model.classifier import Pooling
from transformer_lib.model.config import TransformerConfig

Tokens = Literal["subwords", "words"]
Precision = Literal["auto", "float32"]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]  # what PyTorch's generators take

CONFIGS = Path(__file__).parent / "configs"
# True is no integer, "3" no number, and NaN and infinity are none either.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@checked_dataclass(frozen=True, kw_only=True, config=STRICT)
class DataRecipe:
    """Which sentences, which tokens.

    Attributes:
        corpus: its name for `corpora.load`; "" for two files of your own.
        source, target: these files, one sentence a line, the translation of each in
            the same line of the other. Their paths in a TOML file start at its folder.
        reverse: translate in the other direction: a corpus of the package from German
            to English, two files from target to source.
        tokens: "subwords", or "words" for a corpus with a closed vocabulary.
        vocab_size: number of subwords, both languages together.
        max_len: most tokens of a sentence, eos counted; longer pairs are left out of
            training and validation.
        bleu_tokenize: how BLEU splits translations into words; see `bleu`.
    """

    corpus: str = ""
    source: str = ""
    target: str = ""
    reverse: bool = False
    tokens: Tokens = "subwords"
    vocab_size: Count = 4000
    max_len: Count = 100
    bleu_tokenize: str = "13a"

    def __post_init__(self) -> None:
        """Refuse no sentences, and sentences from two places."""
        given = bool(self.corpus), bool(self.source), bool(self.target)
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError(
                "name a corpus, or give source and target, two text files; not "
                f"corpus {self.corpus!r}, source {self.source!r} and target "
                f"{self.target!r}"
            )


@checked_dataclass(frozen=True, kw_only=True, config=STRICT)
class TrainingRecipe:
    """How long, how fast, how often saved.

    Attributes:
        steps: number of steps.
        batch_tokens: positions in a batch, padding counted: what has to fit into
            memory.
        gradient_accumulation: batches whose gradients are added for one step.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        smoothing: of the labels.
        max_norm: norm to which a longer gradient is clipped.
        save_every: steps between two checkpoints, each after the validation loss has
            been measured; divides steps.
        average: last checkpoints whose weights are averaged in the end.
        seed: of the first weights, of the order of sentences, and of dropout.
        precision: "auto" multiplies matrices in 16 bits where the device is made for
            it, "float32" never does.
        fast: train with the layers of `transformer_lib.fast`, which compute the same in
            less time on a CPU, and draw dropout from other random numbers.
    """

    steps: Count
    batch_tokens: Count = 4096
    gradient_accumulation: Count = 1
    warmup: Count = 4000
    rate_scale: Positive = 1.0
    smoothing: Share = 0.1
    max_norm: Positive = 1.0
    save_every: Count = 1000
    average: Count = 1
    seed: Seed = 0
    precision: Precision = "auto"
    fast: bool = True

    def __post_init__(self) -> None:
        """Refuse values that don't work together."""
        if self.steps % self.save_every != 0:
            raise ValueError(
                f"save_every {self.save_every} does not divide steps {self.steps}: "
                "the last step would not be saved"
            )
        if self.average > self.steps // self.save_every:
            raise ValueError(
                f"average {self.average} asks for more checkpoints than the "
                f"{self.steps // self.save_every} that are saved"
            )


@checked_dataclass(frozen=True, kw_only=True, config=STRICT)
class ClassifierTraining:
    """How a classifier pools and learns.

    Attributes:
        task: "classify".
        epochs: times that every text is seen; a checkpoint follows each.
        batch_size: texts in a batch.
        rate: learning rate of AdamW, constant.
        weight_decay: of AdamW.
        pooling: how all positions become one vector.
        seed: of the first weights, of the order of texts, and of dropout.
        precision, fast: as for a translator.
    """

    task: Literal["classify"] = "classify"
    epochs: Count
    batch_size: Count = 32
    rate: Positive = 0.001
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    pooling: Pooling = "max"
    seed: Seed = 0
    precision: Precision = "float32"
    fast: bool = True


@checked_dataclass(frozen=True, kw_only=True, config=STRICT)
class ModelRecipe(TransformerConfig):
    """TransformerConfig with ranges; the data set the vocabulary."""

    src_vocab_size: int = field(default=1, init=False)
    tgt_vocab_size: int = field(default=1, init=False)
    pad_id: int = field(default=0, init=False)
    d_model: Count = TransformerConfig.d_model
    n_heads: Count = TransformerConfig.n_heads
    d_ff: Count = TransformerConfig.d_ff
    max_len: Count = TransformerConfig.max_len
    n_encoder_layers: Natural = TransformerConfig.n_encoder_layers
    n_decoder_layers: Natural = TransformerConfig.n_decoder_layers
    dropout: Share = TransformerConfig.dropout
    attention_dropout: Share = TransformerConfig.attention_dropout
    activation_dropout: Share = TransformerConfig.activation_dropout


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run.

    Attributes:
        data: which sentences, which tokens.
        model: fields of TransformerConfig, all but the vocabulary sizes.
        training: how long, how fast, how often saved.
    """

    data: DataRecipe
    training: TrainingRecipe | ClassifierTraining
    model: dict[str, Any] = field(default_factory=dict)

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """Complete the model's description with the size of the shared vocabulary."""
        return TransformerConfig(
            src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, **self.model
        )


def read_recipe(name: str | Path, **data: Any) -> Recipe:
    """Read a recipe.

    Args:
        name: of a file in the folder `configs`, without ".toml"; or the path of any
            other file, with it. Paths of sentences in it start at its folder.
        data: what takes the place of values in its table [data].

    Raises:
        FileNotFoundError: there is no such recipe; the message lists those there are.
        ValueError: the file is no TOML, or a table, key or value is wrong; the message
            names the file, the key, the value and what was expected.
    """
    path = Path(name) if str(name).endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.toml")))
        raise FileNotFoundError(f"there is no recipe {name}; the shipped ones: {known}")
    tables = _parse(path, tomllib.loads)
    own = dict(tables.get("data", {}))
    for name in ("source", "target"):
        if own.get(name) and isinstance(own[name], str):
            own[name] = str((path.parent / own[name]).resolve())
    return make_recipe({**tables, "data": {**own, **data}}, path)


def read_stored_recipe(folder: str | Path) -> Recipe:
    """Read the recipe in the folder of a run or of a model.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged, or something in it is wrong.
    """
    path = Path(folder) / RECIPE
    return make_recipe(_parse(path, json.loads), path)


def _parse(path: Path, loads: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    """Read tables of a file."""
    try:
        # "-sig": an editor may have put a byte-order mark in front.
        tables = loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    rest = tables.values() if isinstance(tables, dict) else [tables]
    if not all(isinstance(table, dict) for table in rest):
        raise ValueError(f"{path}: a recipe holds tables and nothing else")
    return tables


def recipe_text(recipe: Recipe) -> str:
    """Return a recipe as it is stored in the folder of a run."""
    return json.dumps(asdict(recipe), indent=1) + "\n"


def make_recipe(
    tables: dict[str, dict[str, Any]], source: str | Path = "recipe"
) -> Recipe:
    """Check the three tables of a recipe and put them together.

    Args:
        tables: "data", "training" and, if the defaults won't do, "model".
        source: what messages call the recipe: its file, for example.

    Raises:
        ValueError: a table or key is unknown or missing, or a value has the wrong type
            or is out of range.
    """
    kind = (
        ClassifierTraining if "task" in tables.get("training", {}) else TrainingRecipe
    )
    kinds = {"data": DataRecipe, "training": kind, "model": ModelRecipe}
    if unknown := [name for name in tables if name not in kinds]:
        raise ValueError(
            f"{source}: unknown table {unknown}; expected {', '.join(kinds)}"
        )
    data, training, model = (
        _check(kind, tables.get(name, {}), f"{source}: [{name}]")
        for name, kind in kinds.items()
    )
    if kind is ClassifierTraining and not data.corpus:
        raise ValueError(
            f"{source}: a classifier learns from a corpus with labels, reviews or "
            "imdb, not from two files of sentences"
        )
    if data.max_len > model.max_len:
        raise ValueError(
            f"{source}: [model] max_len = {model.max_len} is less than max_len = "
            f"{data.max_len} of [data]: such sentences would not fit"
        )
    return Recipe(data=data, training=training, model=tables.get("model", {}))


def difference(first: Recipe, second: Recipe) -> str | None:
    """Name the first value in which two recipes differ, or return None."""
    one, other = asdict(first), asdict(second)
    for table in one:
        for key in {**one[table], **other[table]}:
            mine, theirs = one[table].get(key), other[table].get(key)
            if mine != theirs:
                return f"{key} is {mine!r} in one and {theirs!r} in the other"
    return None


def _check(kind: type, values: dict[str, Any], where: str) -> Any:
    """Make a table, or raise a ValueError with all that pydantic finds wrong in it."""
    try:
        return kind(**values)
    except ValidationError as error:
        wrong = []
        for each in error.errors():
            key = "".join(map(str, each["loc"]))  # none: all of the table together
            what = f" {key} = {values[key]!r}" if key in values else f" {key}".rstrip()
            wrong.append(f"{where}{what}: {each['msg']}")
    raise ValueError("; ".join(wrong))
