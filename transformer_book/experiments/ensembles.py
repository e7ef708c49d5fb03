"""Several models that write one translation: a decoder object that asks them all.

`benchmarks/ensembles.py` trains six small models that differ in their seed alone, and
records what each of them and what three of them together translate.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.experiments.ablations import PLAN, Plan
from transformer_lib.evaluation.scores import exact_match
from transformer_lib.generation.incremental import Decoding, make_decoder
from transformer_lib.pretrained.translator import Translator
from transformer_lib.runs.translation import Data
from transformer_lib.weights import average_tensors

STUDY = "ensembles"  # its record
SEEDS = (1, 2, 3, 4, 5, 6)
GROUPS = ((1, 2, 3), (4, 5, 6))  # seeds of the models that work together
ALONE = "alone"
PROBABILITIES = "mean of probabilities"
LOGARITHMS = "mean of log-probabilities"
WEIGHTS = "mean of weights"


class Ensemble:
    """Asks several decoders for the next token, and averages their probabilities.

    Args:
        decoders: of models with the same target vocabulary.
    """

    def __init__(self, decoders: Sequence[Decoding]) -> None:
        self.decoders = decoders

    @property
    def length(self) -> int:
        """How many tokens of the targets were read."""
        return self.decoders[0].length

    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Let all of them read the source (batch, src_len)."""
        for decoder in self.decoders:
            decoder.prefill(src, n_beams)

    def step(self, ids: Tensor) -> Tensor:
        """Return the logarithm of the mean probability: (n_rows, vocab_size)."""
        each = [d.step(ids).log_softmax(dim=-1) for d in self.decoders]
        return torch.stack(each).logsumexp(dim=0) - math.log(len(each))

    def reorder(self, parents: Tensor) -> None:
        """Let all of them go on from the same parents (n_sentences, n_beams)."""
        for decoder in self.decoders:
            decoder.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Let all of them keep these sentences only."""
        for decoder in self.decoders:
            decoder.select(sentences)


class LogEnsemble(Ensemble):
    """The same with the mean of the log-probabilities."""

    def step(self, ids: Tensor) -> Tensor:
        """Return the mean log-probability: (n_rows, vocab_size)."""
        each = [d.step(ids).log_softmax(dim=-1) for d in self.decoders]
        return torch.stack(each).mean(dim=0)


def measure(models: dict[int, nn.Module], data: Data, plan: Plan = PLAN) -> list[Any]:
    """Translate held-out sentences with every model, and with groups of them.

    Args:
        models: seed -> the trained model.
        data: what `runs.prepare` made of the recipe "grammar".
        plan: says how many sentences are translated.

    Returns:
        A run for each way to translate: its name, the seeds of its models, the share
        of translations that are right to the letter, and the numbers of the others.
    """
    sources, references = zip(*data.corpus.test[: plan.n_test], strict=True)

    def run(
        name: str, seeds: Sequence[int], model: nn.Module, decoder: Decoding
    ) -> dict[str, Any]:
        said = Translator(model, data.tokenizer, decoder).translate(sources)
        wrong = [i for i, text in enumerate(said) if text != references[i]]
        exact = round(exact_match(said, references), 4)
        return {"variant": name, "seeds": [*seeds], "exact": exact, "wrong": wrong}

    runs = [run(ALONE, [s], m, make_decoder(m)) for s, m in models.items()]
    for seeds in GROUPS:
        some = [models[seed] for seed in seeds]
        for name, kind in ((PROBABILITIES, Ensemble), (LOGARITHMS, LogEnsemble)):
            decoder = kind([make_decoder(model) for model in some])
            runs.append(run(name, seeds, some[0], decoder))
        mixed = type(some[0])(some[0].config).eval()
        mixed.load_state_dict(average_tensors([m.state_dict() for m in some]))
        runs.append(run(WEIGHTS, seeds, mixed, make_decoder(mixed)))
    return runs
