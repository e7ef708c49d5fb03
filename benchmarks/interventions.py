"""Measure what changes to the translator do to 300 captions of Multi30k's test set.

    python -m benchmarks.interventions

These are changes that a reader can make on the page "The translator". The results go to
`transformer_book/experiments/results/interventions.json`, from which that page draws
its table. The captions are read from the folder that `load_multi30k` uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib import Transformer, Translator, causal_mask, load, pad_batch
from transformer_lib import padding_mask as make_padding_mask
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.evaluation.scores import bleu
from transformer_lib.files import write_text
from transformer_lib.interpret.interventions import edit_weights, without_head
from transformer_lib.pretrained.translator import DEFAULT

RESULTS = (
    Path(__file__).parents[1]
    / "transformer_book/experiments/results/interventions.json"
)
N_SENTENCES, BATCH = 300, 50
CROSS = [f"decoder.layers.{i}.cross_attn" for i in range(3)]
EVERY = list(range(8))
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "source positions off": {"src_positions": False},
    "target positions off": {"tgt_positions": False},
    "causal mask off": {"causal": False},
    "one cross-attention head removed": {"without": {CROSS[1]: [0]}},
    "cross-attention cut in layer 0": {"without": {CROSS[0]: EVERY}},
    "cross-attention cut in layer 1": {"without": {CROSS[1]: EVERY}},
    "cross-attention cut in layer 2": {"without": {CROSS[2]: EVERY}},
    "cross-attention cut in all layers": {"without": dict.fromkeys(CROSS, EVERY)},
}


@contextmanager
def intervene(model: Transformer, edits: dict[str, Any]) -> Iterator[None]:
    """Change a model inside the block, as `intervene` of the pages' engine does.

    Hidden tokens and the causal mask are not its business: masks are arguments.
    """
    heads = edits.get("without", {})
    with ExitStack() as stack:
        for embeddings, name in (
            (model.src_embeddings, "src_positions"),
            (model.tgt_embeddings, "tgt_positions"),
        ):
            if not edits.get(name, True):
                hook = embeddings.positions.register_forward_hook(
                    lambda *args: args[-1] * 0
                )
                stack.callback(hook.remove)
        stack.enter_context(
            edit_weights(model, {name: without_head(*h) for name, h in heads.items()})
        )
        yield


def target_mask(length: int, edits: dict[str, Any]) -> Tensor | None:
    """Return the decoder's mask: None where the causal mask is switched off."""
    return causal_mask(length) if edits.get("causal", True) else None


@torch.inference_mode()
def write(
    translator: Translator, sources: list[list[int]], edits: dict[str, Any]
) -> list[list[int]]:
    """Translate greedily, reading everything again at every step."""
    model, tokenizer = translator.model, translator.tokenizer
    src = pad_batch(sources, tokenizer.pad_id)
    src_mask = make_padding_mask(src, tokenizer.pad_id)
    ids = torch.full((len(sources), 1), tokenizer.bos_id)
    limits = torch.tensor([len(row) + 50 for row in sources])
    done = torch.zeros(len(sources), dtype=torch.bool)
    with intervene(model, edits):
        memory = model.encode(src, src_mask)
        while not done.all():
            tgt_mask = target_mask(ids.size(1), edits)
            x = model.decode(ids, memory, src_mask, tgt_mask)
            logits = model.lm_head(x[:, -1])
            logits[:, tokenizer.pad_id] = -torch.inf
            best = logits.argmax(dim=-1)
            ids = torch.cat([ids, best[:, None]], dim=1)
            done |= (best == tokenizer.eos_id) | (ids.size(1) > limits)
    return [_until_eos(row, tokenizer.eos_id) for row in ids[:, 1:].tolist()]


def _until_eos(ids: list[int], eos_id: int) -> list[int]:
    return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids


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
            memory = model.encode(torch.tensor([src]))
            tgt_in = torch.tensor([[bos_id, *tgt[:-1]]])
            x = model.decode(tgt_in, memory, None, target_mask(len(tgt), edits))
            logits = model.lm_head(x)[0]
            loss = nn.functional.cross_entropy(logits, torch.tensor(tgt))
            found.append(loss.item())
    return found


def measure(translator: Translator, pairs: list[tuple[str, str]]) -> list[dict]:
    """Return a row for each of CHANGES."""
    tokenizer = translator.tokenizer
    sources = [tokenizer.encode(src) for src, _ in pairs]
    references = [tokenizer.encode(tgt) for _, tgt in pairs]
    rows, own, untouched = [], None, None
    for name, edits in CHANGES.items():
        written = [
            ids
            for start in range(0, len(sources), BATCH)
            for ids in write(translator, sources[start : start + BATCH], edits)
        ]
        texts = [tokenizer.decode(ids) for ids in written]
        score = bleu(texts, [tgt for _, tgt in pairs])
        given = losses(translator, sources, references, edits)
        # The first is the model as it was trained.
        own, untouched = own or written, untouched or given
        mine = losses(translator, sources, own, edits)
        rows.append(
            {
                "change": name,
                "bleu": round(score.value, 1),
                "interval": [round(score.low, 1), round(score.high, 1)],
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
    translator = load(DEFAULT)
    pairs = load_multi30k().test[:N_SENTENCES]
    pairs = [(de, en) for en, de in pairs]
    rows = measure(translator, pairs)
    record = {
        "command": "python -m benchmarks.interventions",
        "model": DEFAULT,
        "data": f"the first {N_SENTENCES} captions of Multi30k's test set of 2016",
        "n_sentences": len(pairs),
        "rows": rows,
    }
    write_text(RESULTS, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
