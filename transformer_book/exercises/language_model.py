"""Graders of the chapter on language models."""

import torch

from transformer_book.exercises.grading import grader, is_missing
from transformer_lib import TransformerConfig
from transformer_lib.model.language_model import LanguageModel


@grader(
    cases=lambda: [(torch.arange(1, 11).view(2, 5), torch.tensor([2, 4]), 0)],
    right="From the last token of the prompt on, every prediction counts.",
)
def check_hide_prompt(ids, n_prompt, pad_id):
    """The labels of texts whose prompts don't count.

    ids (batch, length), the lengths of the prompts (batch,), and pad_id ->
    (batch, length - 1).
    """
    in_target = torch.arange(1, ids.size(1)) >= n_prompt[:, None]
    return ids[:, 1:].where(in_target, pad_id)


check_hide_prompt.mistake(
    "the first token of the answer must count: the prompt's end predicts it.",
    lambda ids, n_prompt, pad_id: check_hide_prompt.solve(ids, n_prompt + 1, pad_id),
)
check_hide_prompt.mistake(
    "the last token of the prompt must not count: it is no part of the answer.",
    lambda ids, n_prompt, pad_id: check_hide_prompt.solve(ids, n_prompt - 1, pad_id),
)
check_hide_prompt.mistake(
    "return what is predicted, not what is read.",
    lambda ids, n_prompt, pad_id: ids.where(
        torch.arange(5) >= n_prompt[:, None], pad_id
    )[:, :-1],
)


def _make_model(kind=LanguageModel):
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 12, "n_heads": 2}
    torch.default_generator.manual_seed(3)
    model = kind(TransformerConfig(**sizes, n_decoder_layers=2, norm_first=True))
    return None if is_missing(model) else model.eval().requires_grad_(False)


@grader(
    cases=lambda: [(_make_model(), [1, 4, 7], [5, 9, 2]), (_make_model(), [1], [3, 2])],
    right="The sum over the answer, each token predicted where the one before it is "
    "read.",
)
def check_continuation(model, prompt, answer):
    """The log-probability of an answer.

    A model that returns logits (1, length, vocab_size), a prompt and an answer, lists
    of ids -> a float.
    """
    log_probs = model(torch.tensor([prompt + answer]))[0].log_softmax(dim=-1)
    predictions = log_probs[len(prompt) - 1 : -1]  # (answer_len, vocab_size)
    return predictions.gather(1, torch.tensor(answer)[:, None]).sum().item()


def _read_where_it_stands(model, prompt, answer):
    log_probs = model(torch.tensor([prompt + answer]))[0].log_softmax(dim=-1)
    predictions = log_probs[len(prompt) :]
    return predictions.gather(1, torch.tensor(answer)[:, None]).sum().item()


check_continuation.mistake(
    "the answer is predicted one position earlier than it is read.",
    _read_where_it_stands,
)
check_continuation.mistake(
    "only the answer counts, not the prompt.",
    lambda model, prompt, answer: check_continuation.solve(
        model, [1], prompt[1:] + answer
    ),
)
check_continuation.mistake(
    "add the logarithms up; their mean makes long answers look better.",
    lambda model, prompt, answer: (
        check_continuation.solve(model, prompt, answer) / len(answer)
    ),
)


def _run_prefix_model(answer, ids, n_prompt):
    model = _make_model(answer)
    return None if model is None else model(ids, n_prompt)


@grader(
    cases=lambda: [(torch.randint(3, 11, (2, 6)), torch.tensor([2, 4]))],
    right="A prompt is seen from both sides, and the rest is causal.",
    run=_run_prefix_model,
)
class check_prefix_model(LanguageModel):
    """A class: a language model with a prefix mask.

    Its forward takes ids (batch, length) and n_prompt (batch,) -> logits (batch,
    length, vocab_size).
    """

    def forward(self, ids, n_prompt):
        """-> logits (batch, length, vocab_size)."""
        positions = torch.arange(ids.size(1))
        causal = positions[:, None] >= positions
        in_prompt = positions < n_prompt[:, None]  # (batch, length)
        mask = self.join(causal, in_prompt)
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))

    def join(self, causal, in_prompt):
        """(length, length), (batch, length) -> (batch, 1, length, length)."""
        return causal | in_prompt[:, None, None, :]


class _CausalPrompt(check_prefix_model.solve):
    def join(self, causal, in_prompt):
        return causal


class _LongestPrompt(check_prefix_model.solve):
    def join(self, causal, in_prompt):
        return causal | in_prompt.any(dim=0)[None, None, None]


class _PromptAsQueries(check_prefix_model.solve):
    def join(self, causal, in_prompt):
        return causal | in_prompt[:, None, :, None]


check_prefix_model.mistake(
    "the prompt is causal, too: its tokens must see each other.", _CausalPrompt
)
check_prefix_model.mistake("each text has a prompt of its own length.", _LongestPrompt)
check_prefix_model.mistake(
    "nothing after the prompt may be seen before its time.", _PromptAsQueries
)


@grader(
    cases=lambda: [tuple(torch.randn(2, 5).softmax(dim=-1)) for _ in range(3)],
    right="What comes out has the large model's probabilities, whatever the draft's "
    "are.",
)
def check_speculation(p, q):
    """One token, drafted with q and wanted with p.

    Two tensors (vocab_size,) -> what is drawn from after a rejection, what comes out.
    """
    rest = (p - q).clamp(min=0)
    rest = rest / rest.sum()
    kept = torch.minimum(p, q)
    return rest, kept + (1 - kept.sum()) * rest


def _rest_not_scaled(p, q):
    rest, kept = (p - q).clamp(min=0), torch.minimum(p, q)
    return rest, kept + (1 - kept.sum()) * rest


def _rest_is_p(p, q):
    kept = torch.minimum(p, q)
    return p, kept + (1 - kept.sum()) * p


def _rest_always_drawn(p, q):
    rest, _ = check_speculation.solve(p, q)
    return rest, torch.minimum(p, q) + rest


check_speculation.mistake(
    "divide the rest by its sum: probabilities add up to 1.", _rest_not_scaled
)
check_speculation.mistake(
    "the rest is max(0, p - q), not p: kept tokens have had their chance.", _rest_is_p
)
check_speculation.mistake(
    "the rest is drawn from only if the draft is rejected.", _rest_always_drawn
)
