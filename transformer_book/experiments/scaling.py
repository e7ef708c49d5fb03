"""Loss against parameters and tokens: language models of four sizes on four lengths.

The texts are the English captions of Multi30k, each read once at most. What is measured
is the loss on captions that no model has read. Each size also gets a run that costs as
many operations as those of the others. A second plan asks what dropout does if
texts are read once, and if they are read again and again. All runs are made and
recorded by `python benchmarks/scaling.py`.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from transformer_lib import Tokenizer, TransformerConfig, count_parameters, pad_batch
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.model.language_model import LanguageModel

WIDTHS = (8, 16, 32, 64)
N_TOKENS = (32_000, 64_000, 128_000, 256_000)
SEEDS = (1, 2, 3)
RATES = {8: 5e-2, 16: 3e-2, 32: 2e-2, 64: 1.5e-2}  # after a few trials
OPERATIONS = 3.2e10  # of each size's run at equal compute
PASSES = ((1, 0.0), (1, 0.1), (16, 0.0), (16, 0.1))  # over 64,000 and 4,000 tokens
PASSES_WIDTH, PASSES_TOKENS = 32, 64_000
VOCAB_SIZE, SIZE = 1000, 32  # tokens that exist, captions of a batch


def read_texts(folder: str | None = None) -> tuple[Tokenizer, list, list]:
    """Return the tokenizer, and the ids of captions to learn and of those to test.

    Args:
        folder: of the published files, as for `load_multi30k`.
    """
    corpus = load_multi30k(folder)
    learn = [english for english, _ in corpus.train]
    tokenizer = Tokenizer.train(learn, VOCAB_SIZE)
    parts = learn, [english for english, _ in corpus.valid]
    return tokenizer, *(
        [tokenizer.encode(text, bos=True) for text in part] for part in parts
    )


def make_config(
    width: int, vocab_size: int, pad_id: int, dropout: float = 0.0
) -> TransformerConfig:
    """Return the sizes of a model: two layers, heads of 16 features."""
    return TransformerConfig(
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        pad_id=pad_id,
        d_model=width,
        n_heads=max(1, width // 16),
        d_ff=4 * width,
        n_decoder_layers=2,
        max_len=128,
        dropout=dropout,
        norm_first=True,
        tie_embeddings="decoder",
    )


def tokens_at_equal_compute(width: int) -> int:
    """Return how many tokens a model can read for `OPERATIONS`, by 6ND."""
    model = LanguageModel(make_config(width, VOCAB_SIZE, 0))
    return round(OPERATIONS / (6 * count_parameters(model)))


def batches(texts: Sequence[list[int]], n_tokens: int, seed: int) -> list[list]:
    """Draw captions until they have so many tokens to predict; sort into batches."""
    rng, drawn, left = random.Random(seed), [], n_tokens
    for ids in rng.sample(list(texts), len(texts)):
        if left <= 0:
            break
        drawn.append(ids)
        left -= len(ids) - 1
    drawn.sort(key=len)  # neighbors are about equally long: little padding
    found = [drawn[i : i + SIZE] for i in range(0, len(drawn), SIZE)]
    rng.shuffle(found)
    return found


def run(
    width: int,
    n_tokens: int,
    seed: int,
    texts: tuple[Tokenizer, list, list],
    passes: int = 1,
    dropout: float = 0.0,
) -> dict[str, Any]:
    """Train one model; return its size and its loss in nats per token.

    Args:
        width: of the model.
        n_tokens: that it predicts in training.
        seed: of its first weights, and of which captions it reads in which order.
        texts: what `read_texts` returns.
        passes: how often it reads each caption.
        dropout: rate.
    """
    tokenizer, learn, test = texts
    torch.manual_seed(seed)
    pad_id = tokenizer.pad_id
    model = LanguageModel(make_config(width, len(tokenizer), pad_id, dropout))
    plan = batches(learn, n_tokens // passes, seed) * passes
    optimizer = torch.optim.Adam(model.parameters(), lr=RATES[width], betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / 20, 1 - step / len(plan)),
    )
    n_read = 0
    for batch in plan:
        ids = pad_batch(batch, pad_id)
        n_read += (ids[:, 1:] != pad_id).sum().item()
        optimizer.zero_grad()
        nats(model, ids).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        total = n = 0.0
        for batch in split(sorted(test, key=len)):
            ids = pad_batch(batch, pad_id)
            count = (ids[:, 1:] != pad_id).sum().item()
            total, n = total + nats(model, ids).item() * count, n + count
    return {
        "width": width,
        "n_tokens": n_read,
        "passes": passes,
        "dropout": dropout,
        "seed": seed,
        "n_parameters": count_parameters(model),
        "nats": round(total / n, 4),
    }


def split(texts: list) -> Iterator[list]:
    """Yield texts in hundreds."""
    for start in range(0, len(texts), 100):
        yield texts[start : start + 100]


def nats(model: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of all next tokens that are no padding."""
    pad_id = model.config.pad_id
    return F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=pad_id)
