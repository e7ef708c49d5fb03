"""Recipes: everything that decides a training run, in one TOML file.

    [data]       which sentences, which tokens
    [model]      fields of TransformerConfig, all but the vocabulary sizes
    [training]   how long, how fast, how often saved

With `task = "classify"` in its last table, a recipe trains a classifier. The recipes
of the shipped models are in the folder `configs`.
"""

import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from transformer_lib.model.classifier import Pool, Pooling
from transformer_lib.model.config import TransformerConfig

Tokens = Literal["subwords", "words"]
Precision = Literal["auto", "float32"]
CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Which sentences, which tokens.

    Attributes:
        corpus: its name for `corpora.load`.
        reverse: translate from German to English instead.
        tokens: "subwords", or "words" for a corpus with a closed vocabulary.
        vocab_size: number of subwords, both languages together.
        max_len: most tokens of a sentence, eos counted; longer pairs are left out of
            training.
    """

    corpus: str
    reverse: bool = False
    tokens: Tokens = "subwords"
    vocab_size: int = 4000
    max_len: int = 100


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """How long, how fast, how often saved.

    Attributes:
        steps: number of steps.
        batch_tokens: positions in a batch, padding counted: what has to fit into
            memory.
        batches_a_step: batches whose gradients are added for one step.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        smoothing: of the labels.
        max_norm: length to which a longer gradient is cut.
        save_every: steps between two checkpoints, each after a look at the validation
            sentences; divides steps.
        average: last checkpoints whose weights are averaged in the end.
        seed: of the first weights, of the order of sentences, and of dropout.
        precision: "auto" multiplies matrices in 16 bits where the device is made for
            it, "float32" never does.
    """

    steps: int
    batch_tokens: int = 4096
    batches_a_step: int = 1
    warmup: int = 4000
    rate_scale: float = 1.0
    smoothing: float = 0.1
    max_norm: float = 1.0
    save_every: int = 1000
    average: int = 1
    seed: int = 0
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        """Refuse what can't work together."""
        for name in ("steps", "batches_a_step", "warmup", "save_every", "average"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1, not {getattr(self, name)}"
                )
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


@dataclass(frozen=True, kw_only=True)
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
    """

    task: Literal["classify"] = "classify"
    epochs: int
    batch_size: int = 32
    rate: float = 0.001
    weight_decay: float = 0.01
    pooling: Pooling = "max"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what can't work."""
        if min(self.epochs, self.batch_size) < 1 or self.rate <= 0:
            raise ValueError(
                "epochs and batch_size must be at least 1 and rate above 0, not "
                f"{self.epochs}, {self.batch_size} and {self.rate}"
            )
        Pool(self.pooling, 1)  # refuses what there is not


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


def read_recipe(name: str | Path) -> Recipe:
    """Read a recipe.

    Args:
        name: of a file in the folder `configs`, without ".toml"; or the path of any
            other file, with it.

    Raises:
        FileNotFoundError: there is no such recipe; the message lists those there are.
        ValueError: the file is no TOML, or a value is unknown or out of range.
        TypeError: a value has the wrong type.
    """
    path = Path(name) if str(name).endswith(".toml") else CONFIGS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.toml")))
        raise FileNotFoundError(f"there is no recipe {name}; the shipped ones: {known}")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return make_recipe(tables)
    except TypeError as error:
        raise TypeError(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def make_recipe(tables: dict[str, dict[str, Any]]) -> Recipe:
    """Check the three tables of a recipe and put them together.

    Raises:
        ValueError: a table or key is unknown or missing, or a value out of range.
        TypeError: a value has the wrong type.
    """
    _check_keys(tables, {"data", "model", "training"}, "recipe")
    model = tables.get("model", {})
    sizes = {"src_vocab_size", "tgt_vocab_size"}
    names = {entry.name for entry in fields(TransformerConfig)} - sizes
    _check_keys(model, names, "[model]")
    training = tables.get("training", {})
    classify = training.get("task") == "classify"
    kind = ClassifierTraining if classify else TrainingRecipe
    recipe = Recipe(
        data=_fill(DataRecipe, tables.get("data", {}), "[data]"),
        training=_fill(kind, training, "[training]"),
        model=model,
    )
    recipe.model_config(vocab_size=recipe.data.vocab_size)  # refuses what can't work
    return recipe


def difference(first: Recipe, second: Recipe) -> str | None:
    """Name the first value in which two recipes differ, or return None."""
    one, other = asdict(first), asdict(second)
    for table in one:
        for key in {**one[table], **other[table]}:
            mine, theirs = one[table].get(key), other[table].get(key)
            if mine != theirs:
                return f"{key} is {mine!r} in one and {theirs!r} in the other"
    return None


def _fill(kind: type, values: dict[str, Any], table: str) -> Any:
    wanted = {entry.name: entry for entry in fields(kind)}
    _check_keys(values, set(wanted), table)
    for name, value in values.items():
        expected = {"int": int, "float": (int, float), "bool": bool}.get(
            getattr(wanted[name].type, "__name__", ""), str
        )
        if not isinstance(value, expected) or (
            isinstance(value, bool) and expected is not bool
        ):
            raise TypeError(f"{name} can't be {value!r}")
        choices = get_args(wanted[name].type)  # of a Literal
        if choices and value not in choices:
            raise ValueError(f"{name} must be one of {choices}, not {value!r}")
    try:
        return kind(**values)
    except TypeError as error:  # a value without default is missing
        raise ValueError(f"{table}: {error}") from None


def _check_keys(values: dict[str, Any], known: set[str], place: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(
            f"{place} has {unknown[0]!r}, which is none of {', '.join(sorted(known))}"
        )
