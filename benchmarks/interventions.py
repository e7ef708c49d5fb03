"""Measure what changes to the translator do to 300 captions of Multi30k's test set.

    python -m benchmarks.interventions

These are changes that a reader can make on the page "The translator". The results go to
`transformer_book/experiments/results/interventions.json`, from which that page draws
its table. The captions are read from the folder that `load_multi30k` uses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer_book.charts.trace import intervene
from transformer_book.resampling import bleu_counts, interval, paired_bootstrap
from transformer_lib import (
    GenerationConfig,
    Translator,
    greedy_decode,
    load,
    pad_batch,
)
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.evaluation import bleu
from transformer_lib.files import write_text
from transformer_lib.generation import RecomputingDecoder

RESULTS = (
    Path(__file__).parents[1]
    / "transformer_book/experiments/results/interventions.json"
)
MODEL, N_SENTENCES, BATCH = "multi30k-de-en", 300, 50
CROSS = [f"decoder.layers.{i}.cross_attn" for i in range(3)]
EVERY = list(range(8))
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "source positions off": {"src_positions": False},
    "target positions off": {"tgt_positions": False},
    "causal mask off": {"causal": False},
    "one cross-attention head removed": {"without": {CROSS[1]: [0]}},
    "cross-attention cut in layer 1": {"without": {CROSS[0]: EVERY}},
    "cross-attention cut in layer 2": {"without": {CROSS[1]: EVERY}},
    "cross-attention cut in layer 3": {"without": {CROSS[2]: EVERY}},
    "cross-attention cut in all layers": {"without": dict.fromkeys(CROSS, EVERY)},
}


def write(
    translator: Translator, sources: list[list[int]], edits: dict[str, Any]
) -> list[list[int]]:
    """Translate greedily, reading everything again at every step.

    Without a causal mask, what was read before changes with every token.
    """
    model, tokenizer = translator.model, translator.tokenizer
    max_len = [len(row) + 50 for row in sources]
    config = GenerationConfig(tokenizer.bos_id, tokenizer.eos_id, max_len=max_len)
    src = pad_batch(sources, tokenizer.pad_id)
    with intervene(model, edits):
        found = greedy_decode(model, src, config, RecomputingDecoder(model))
    return [hypothesis.ids for hypothesis in found]


@torch.inference_mode()
def losses(
    translator: Translator,
    sources: list[list[int]],
    targets: list[list[int]],
    edits: dict[str, Any],
) -> list[float]:
    """Return each target's loss in nats per token, read one sentence at a time.

    Without a causal mask, padding behind a target would be seen.
    """
    model, bos_id = translator.model, translator.tokenizer.bos_id
    found = []
    with intervene(model, edits):
        for src, tgt in zip(sources, targets, strict=True):
            logits = model(torch.tensor([src]), torch.tensor([[bos_id, *tgt[:-1]]]))[0]
            loss = nn.functional.cross_entropy(logits, torch.tensor(tgt))
            found.append(loss.item())
    return found


def measure(translator: Translator, pairs: list[tuple[str, str]]) -> list[dict]:
    """Return a row for each of CHANGES."""
    tokenizer = translator.tokenizer
    sources = [tokenizer.encode(src) for src, _ in pairs]
    references = [tokenizer.encode(tgt) for _, tgt in pairs]
    rows, own, untouched, whole = [], None, None, None
    for name, edits in CHANGES.items():
        written = [
            ids
            for start in range(0, len(sources), BATCH)
            for ids in write(translator, sources[start : start + BATCH], edits)
        ]
        texts = [tokenizer.decode(ids) for ids in written]
        score = bleu(texts, [tgt for _, tgt in pairs])
        counts = np.array(
            [bleu_counts(a, b) for a, (_, b) in zip(texts, pairs, strict=True)]
        )
        whole = counts if whole is None else whole
        given = losses(translator, sources, references, edits)
        # The first is the model as it was trained.
        own, untouched = own or written, untouched or given
        mine = losses(translator, sources, own, edits)
        rows.append(
            {
                "change": name,
                "bleu": round(score.value, 1),
                "difference": [
                    round(bound, 1)
                    for bound in interval(paired_bootstrap(counts, whole))
                ],
                "other_words": sum(a != b for a, b in zip(written, own, strict=True)),
                "loss_of_references": round(sum(given) / len(given), 2),
                "loss_of_own": round(sum(mine) / len(mine), 2),
                "lower_loss_of_references": sum(
                    a < b for a, b in zip(given, untouched, strict=True)
                ),
            }
        )
    return rows


def main() -> None:
    """Measure and store the record."""
    pairs = [(de, en) for en, de in load_multi30k().test[:N_SENTENCES]]
    record = {
        "command": "python -m benchmarks.interventions",
        "model": MODEL,
        "data": f"the first {N_SENTENCES} captions of Multi30k's test set of 2016",
        "n_sentences": len(pairs),
        "rows": measure(load(MODEL), pairs),
    }
    write_text(RESULTS, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
