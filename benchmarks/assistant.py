"""Make assistants of a small language model: `python benchmarks/assistant.py`.

The results go to `transformer_book/experiments/results/assistant.json`, from which
chapter 18 draws its table. Two or three minutes on one core.
"""

from typing import Any

import torch
from tqdm import tqdm
from turns import processor

from transformer_book.experiments import assistant
from transformer_book.experiments.ablations import write_results

SEEDS = (1, 2, 3)


def main() -> None:
    """Go through all steps with each seed; write the record after each."""
    torch.set_num_threads(1)
    task = assistant.Task()
    record: dict[str, Any] = {
        "plan": {
            **assistant.PLAN,
            "beta": assistant.BETA,
            "n_texts": assistant.N_TEXTS,
            "n_examples": assistant.N_EXAMPLES,
            "n_asked": assistant.N_ASKED,
            "n_test": len(task.test),
        },
        "machine": f"{processor()}, torch {torch.__version__}",
        "runs": [],
    }
    for seed in tqdm(SEEDS, unit="seed"):
        for found in assistant.run(task, seed):
            numbers = {
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in found.items()
            }
            record["runs"].append({"seed": seed, **numbers})
        write_results(record, "assistant")


if __name__ == "__main__":
    main()
