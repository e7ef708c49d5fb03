"""Train six small models and let three of them write together.

`python benchmarks/ensembles.py` writes
`transformer_book/experiments/results/ensembles.json`, which chapter 11 reads. The
models are those of the first row of `benchmarks/ablations.py`, with the seeds 1 to 6.
Half a minute a model on one core.
"""

from dataclasses import asdict

import torch
from tqdm import tqdm
from turns import processor

from transformer_book.experiments.ablations import (
    PAPER,
    PLAN,
    VARIANTS,
    train_to_the_end,
    write_results,
)
from transformer_book.experiments.ensembles import SEEDS, STUDY, measure
from transformer_book.experiments.modern import STUDIES
from transformer_lib.fast import keep_freed_memory
from transformer_lib.runs.recipe import read_recipe
from transformer_lib.runs.translation import prepare

N_THREADS = 1


def main() -> None:
    """Train all models, translate, and write the record."""
    torch.set_num_threads(N_THREADS)
    keep_freed_memory()
    study = STUDIES["ablations"]
    data = prepare(read_recipe(study.recipe, **study.data))
    models = {
        seed: train_to_the_end(VARIANTS[PAPER], data, seed)[0].eval()
        for seed in tqdm(SEEDS, unit="model")
    }
    versions = f"{N_THREADS} thread(s), torch {torch.__version__}"
    record = {"plan": asdict(PLAN), "machine": f"{processor()}, {versions}"}
    write_results({**record, "runs": measure(models, data)}, STUDY)


if __name__ == "__main__":
    main()
