"""From a language model to an assistant: what each step of the training does.

A small language model first learns plain texts, a German sentence and then its English
translation. Then it learns a conversation: roles, a template, and an answer that ends.
Then it learns which of its own answers a judge prefers. The judge is the grammar that
made the sentences. `python benchmarks/assistant.py` makes all runs and records them.
"""

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_book.grammar import explain
from transformer_lib import (
    GenerationConfig,
    SamplingConfig,
    Tokenizer,
    TransformerConfig,
    greedy_decode,
    pad_batch,
    sample,
)
from transformer_lib.data import corpora
from transformer_lib.model.language_model import LanguageModel

Texts = Sequence[list[int]]
Pairs = Sequence[tuple[str, str]]

N_TEXTS = 10_000  # pairs that become plain texts; the others are for the later steps
N_EXAMPLES = 200  # conversations of the fine-tuning
N_ASKED = 2400  # prompts that the model answers twice for the judge
BETA = 1.0
SIZES = {
    "d_model": 64, "n_heads": 4, "d_ff": 256, "n_decoder_layers": 4, "max_len": 64,
    "dropout": 0.0, "norm_first": True, "tie_embeddings": "decoder",
}  # fmt: skip
# Steps, texts of a batch, and the highest rate.
PLAN = {
    "texts": (700, 32, 4e-3),
    "answers": (60, 32, 5e-4),
    "preferences": (60, 32, 1e-4),
}


class Task:
    """Sentences, and how they are written for the model.

    Attributes:
        user, assistant: ids of the two roles, which no plain text holds.
    """

    def __init__(self) -> None:
        corpus = corpora.load("grammar").reversed()  # German to English
        pairs = list(corpus.train)
        self.tokenizer = Tokenizer.from_words(text for pair in pairs for text in pair)
        self.user, self.assistant = len(self.tokenizer), len(self.tokenizer) + 1
        self.plain, self.rest = pairs[:N_TEXTS], pairs[N_TEXTS:]
        self.valid, self.test = list(corpus.valid), list(corpus.test[:300])

    def config(self) -> TransformerConfig:
        """Return the sizes of the model, with two tokens more for the roles."""
        size = len(self.tokenizer) + 2
        return TransformerConfig(src_vocab_size=size, tgt_vocab_size=size, **SIZES)

    def text(self, german: str, english: str) -> list[int]:
        """Return a plain text: bos, German, eos, English, eos."""
        return [*self.plain_prompt(german), *self.tokenizer.encode(english)]

    def plain_prompt(self, german: str) -> list[int]:
        """Return the beginning of a plain text, up to its first eos."""
        return self.tokenizer.encode(german, bos=True)

    def said(self, ids: Sequence[int]) -> str:
        """Return the words of an answer, without the tokens of roles."""
        return self.tokenizer.decode([i for i in ids if i < self.user])

    def prompt(self, german: str) -> list[int]:
        """Return bos, the user's role, German, the assistant's role."""
        words = self.tokenizer.encode(german)[:-1]  # without eos
        return [self.tokenizer.bos_id, self.user, *words, self.assistant]


def left(prompts: Texts, pad_id: int) -> Tensor:
    """Pad prompts on the left, so that all end in the last column."""
    longest = max(map(len, prompts))
    return torch.tensor([[pad_id] * (longest - len(ids)) + ids for ids in prompts])


def answer_labels(ids: Tensor, assistant: int, pad_id: int) -> Tensor:
    """Return what to predict, with pad_id wherever no answer is predicted.

    Args:
        ids: (batch, length), texts with one answer, padded on the right.
        assistant: id of the role after which the answer begins.
        pad_id: what the loss ignores.

    Returns:
        (batch, length - 1)
    """
    in_answer = (ids[:, :-1] == assistant).cumsum(dim=1) > 0
    return ids[:, 1:].where(in_answer, pad_id)


def answer_log_prob(model: LanguageModel, ids: Tensor, labels: Tensor) -> Tensor:
    """Return the log probability of each answer, (batch,)."""
    pad_id = model.config.pad_id
    nats = F.cross_entropy(
        model(ids[:, :-1]).mT, labels, ignore_index=pad_id, reduction="none"
    )
    return -nats.sum(dim=1)


def preference_loss(chosen: Tensor, rejected: Tensor, beta: float = BETA) -> Tensor:
    """Return the loss of DPO (Rafailov et al. 2023), the mean of a batch.

    Args:
        chosen: (batch,), log probability of the preferred answer minus that of the
            model before this step of the training.
        rejected: (batch,), the same of the other answer.
        beta: how soon a lead is large enough.
    """
    return -F.logsigmoid(beta * (chosen - rejected)).mean()


def steps_of(
    model: LanguageModel, n_steps: int, rate: float
) -> Iterator[torch.optim.Optimizer]:
    """Yield Adam before each step, with a rate that rises and then falls to 0."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    warm = max(1, n_steps // 7)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, 1 - step / n_steps)
    )
    for _ in range(n_steps):
        optimizer.zero_grad()
        yield optimizer
        optimizer.step()
        schedule.step()


def learn_texts(
    model: LanguageModel, texts: Texts, kind: str, seed: int, assistant: int | None
) -> None:
    """Train on texts: on all tokens, or on those after a role only.

    Args:
        model: changes in place.
        texts: ids; those of a batch are about equally long.
        kind: of `PLAN`.
        seed: of the order.
        assistant: the role; None counts all tokens.
    """
    n_steps, size, rate = PLAN[kind]
    rng, pad_id = random.Random(seed), model.config.pad_id
    texts = sorted(texts, key=len)
    for _ in steps_of(model, n_steps, rate):
        start = rng.randrange(max(1, len(texts) - size + 1))
        ids = pad_batch(texts[start : start + size], pad_id)
        labels = ids[:, 1:]
        if assistant is not None:
            labels = answer_labels(ids, assistant, pad_id)
        F.cross_entropy(model(ids[:, :-1]).mT, labels, ignore_index=pad_id).backward()


def learn_preferences(
    model: LanguageModel, task: Task, pairs: Sequence[tuple[list[int], ...]], seed: int
) -> None:
    """Train on pairs of a preferred and another text by DPO; changes in place."""
    n_steps, size, rate = PLAN["preferences"]
    before, rng = copy.deepcopy(model).requires_grad_(False), random.Random(seed)
    pad_id = model.config.pad_id
    for _ in steps_of(model, n_steps, rate):
        batch = rng.sample(pairs, size)
        gains = []
        for texts in zip(*batch, strict=True):
            ids = pad_batch(texts, pad_id)
            labels = answer_labels(ids, task.assistant, pad_id)
            with torch.no_grad():
                reference = answer_log_prob(before, ids, labels)
            gains.append(answer_log_prob(model, ids, labels) - reference)
        preference_loss(*gains).backward()


def is_right(german: str, english: str) -> bool:
    """Ask the judge: does the grammar translate the English into this German?"""
    try:
        return explain(english).german == german
    except ValueError:  # the grammar does not make this sentence
        return False


def search_for(task: Task) -> GenerationConfig:
    """Return what every answer keeps to."""
    ids = task.tokenizer
    return GenerationConfig(bos_id=ids.bos_id, eos_id=ids.eos_id, max_len=30)


def ask_twice(
    model: LanguageModel, task: Task, asked: Pairs, seed: int
) -> list[tuple[str, str, str]]:
    """Sample two answers to each prompt; return those that the judge tells apart.

    Returns:
        German, the answer that is right, and the other one.
    """
    generator = torch.Generator().manual_seed(seed)
    said = []
    prompts = left([task.prompt(german) for german, _ in asked], task.tokenizer.pad_id)
    for _ in range(2):
        found = sample(model, prompts, search_for(task), SamplingConfig(), generator)
        said.append([task.said(each.ids) for each in found])
    told = []
    for (german, _), first, second in zip(asked, *said, strict=True):
        if not (first and second):  # one of them says nothing
            continue
        verdicts = is_right(german, first), is_right(german, second)
        if verdicts == (True, False):
            told.append((german, first, second))
        elif verdicts == (False, True):
            told.append((german, second, first))
    return told


@torch.no_grad()
def judge(
    model: LanguageModel, task: Task, seed: int, plain: bool = False
) -> dict[str, float]:
    """Measure a model on sentences that it has not seen.

    Returns:
        exact: share of greedy answers that are the wanted translation.
        sampled: share of sampled answers that are right.
        ended: share of greedy answers that end by themselves.
        text_nats: loss on plain texts, nats per token, prompts counted.
        answer_nats: minus the mean log probability of the wanted answer.
    """
    pad_id, model = task.tokenizer.pad_id, model.eval()
    make = task.plain_prompt if plain else task.prompt
    prompts = left([make(german) for german, _ in task.test], pad_id)
    found = greedy_decode(model, prompts, search_for(task))
    said = [task.said(each.ids) for each in found]
    generator = torch.Generator().manual_seed(seed)
    drawn = sample(model, prompts, search_for(task), SamplingConfig(), generator)
    right = [
        is_right(german, task.said(each.ids))
        for (german, _), each in zip(task.test, drawn, strict=True)
    ]
    texts = pad_batch([task.text(*pair) for pair in task.valid], pad_id)
    nats = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], ignore_index=pad_id)
    chats = pad_batch([whole(task, *pair) for pair in task.test], pad_id)
    labels = answer_labels(chats, task.assistant, pad_id)
    model.train()
    return {
        "exact": sum(a == b for a, (_, b) in zip(said, task.test, strict=True))
        / len(said),
        "sampled": sum(right) / len(right),
        "ended": sum(each.finished for each in found) / len(found),
        "text_nats": nats.item(),
        "answer_nats": -answer_log_prob(model, chats, labels).mean().item(),
    }


def whole(task: Task, german: str, english: str) -> list[int]:
    """Return a conversation: the prompt, the answer, eos."""
    return [*task.prompt(german), *task.tokenizer.encode(english)]


def run(task: Task, seed: int) -> Iterator[dict[str, Any]]:
    """Train through all steps; yield what is measured after each, and two controls."""
    role = task.assistant
    torch.manual_seed(seed)
    fresh = LanguageModel(task.config())
    model = copy.deepcopy(fresh)
    learn_texts(model, [task.text(*p) for p in task.plain], "texts", seed, None)
    yield {"stage": "plain texts, no template", **judge(model, task, seed, plain=True)}
    yield {"stage": "plain texts, with template", **judge(model, task, seed)}

    examples = random.Random(seed).sample(task.rest, N_EXAMPLES)
    chats = [whole(task, *pair) for pair in examples]
    for stage, start, counted in (
        ("200 answers, no plain texts", fresh, role),
        ("200 answers and prompts", model, None),
        ("200 answers", model, role),
    ):
        tuned = copy.deepcopy(start)
        learn_texts(tuned, chats, "answers", seed, counted)
        yield {"stage": stage, **judge(tuned, task, seed)}

    known = set(examples)
    asked = [pair for pair in task.rest if pair not in known]
    asked = random.Random(seed).sample(asked, N_ASKED)
    told = ask_twice(tuned, task, asked, seed)
    better = [whole(task, german, good) for german, good, _ in told]
    worse = [whole(task, german, bad) for german, _, bad in told]
    preferred = copy.deepcopy(tuned)
    pairs = list(zip(better, worse, strict=True))
    learn_preferences(preferred, task, pairs, seed)
    yield {
        "stage": "then DPO", "n_pairs": len(told), **judge(preferred, task, seed)
    }  # fmt: skip
    control = copy.deepcopy(tuned)
    learn_texts(control, better, "answers", seed, role)
    yield {"stage": "or the chosen answers only", **judge(control, task, seed)}
