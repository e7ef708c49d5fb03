"""Graders of the chapter on language models."""

import torch

from transformer_book.exercises.grading import grader, is_missing
from transformer_lib import TransformerConfig
from transformer_lib.model.language_model import LanguageModel


@grader(
    lambda: [(torch.arange(1, 11).view(2, 5), torch.tensor([2, 4]), 0)],
    "From the last token of the prompt on, every prediction counts.",
    ("the first token of the answer must count: the prompt's end predicts it.",
     lambda ids, n, pad_id: check_hide_prompt.solve(ids, n + 1, pad_id)),
    ("the last token of the prompt must not count: it is no part of the answer.",
     lambda ids, n, pad_id: check_hide_prompt.solve(ids, n - 1, pad_id)),
    ("return what is predicted, not what is read.",
     lambda ids, n, pad_id: ids.where(torch.arange(5) >= n[:, None], pad_id)[:, :-1]),
)  # fmt: skip
def check_hide_prompt(ids, n_prompt, pad_id):
    """The labels of texts whose prompts don't count.

    ids (batch, length), the lengths of the prompts (batch,), and pad_id ->
    (batch, length - 1).
    """
    in_target = torch.arange(1, ids.size(1)) >= n_prompt[:, None]
    return ids[:, 1:].where(in_target, pad_id)


def _make_model(kind=LanguageModel):
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 12, "n_heads": 2}
    torch.default_generator.manual_seed(3)
    model = kind(TransformerConfig(**sizes, n_decoder_layers=2, norm_first=True))
    return None if is_missing(model) else model.eval().requires_grad_(False)


@grader(
    lambda: [(_make_model(), [1, 4, 7], [5, 9, 2]), (_make_model(), [1], [3, 2])],
    "The sum over the answer, each token predicted where the one before it is read.",
    ("the answer is predicted one position earlier than it is read.", {"shift": 0}),
    ("only the answer counts, not the prompt.",
     lambda model, *ids: check_continuation.solve(model, [1], ids[0][1:] + ids[1])),
    ("add the logarithms up; their mean makes long answers look better.",
     lambda model, *ids: check_continuation.solve(model, *ids) / len(ids[1])),
)  # fmt: skip
def check_continuation(model, prompt, answer, shift=1):
    """The log-probability of an answer.

    A model that returns logits (1, length, vocab_size), a prompt and an answer, lists
    of ids -> a float.
    """
    log_probs = model(torch.tensor([prompt + answer]))[0].log_softmax(dim=-1)
    rows = log_probs[len(prompt) - shift :]
    return float(sum(row[token] for row, token in zip(rows, answer, strict=False)))


@grader(
    lambda: [(torch.randint(3, 11, (2, 6)), torch.tensor([2, 4]))],
    "A prompt is seen from both sides, and the rest is causal.",
    ("the prompt is causal, too: its tokens must see each other.",
     {"see": lambda causal, prompt: causal}),
    ("each text has a prompt of its own length.",
     {"see": lambda causal, prompt: causal | prompt.any(dim=0)[None, None, None]}),
    ("nothing after the prompt may be seen before its time.",
     {"see": lambda causal, prompt: causal | prompt[:, None, :, None]}),
    run=lambda answer, *given: (model := _make_model(answer)) and model(*given),
)  # fmt: skip
class check_prefix_model(LanguageModel):
    """A class: a language model with a prefix mask.

    Its forward takes ids (batch, length) and n_prompt (batch,) -> logits (batch,
    length, vocab_size).
    """

    see = staticmethod(lambda causal, prompt: causal | prompt[:, None, None, :])

    def forward(self, ids, n_prompt):
        """-> logits (batch, length, vocab_size)."""
        numbers = torch.arange(ids.size(1))
        mask = self.see(numbers[:, None] >= numbers, numbers < n_prompt[:, None])
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


@grader(
    lambda: [tuple(torch.randn(2, 5).softmax(dim=-1)) for _ in range(3)],
    "What comes out has the large model's probabilities, whatever the draft's are.",
    ("divide the rest by its sum: probabilities add up to 1.", {"total": 1.0}),
    ("the rest is max(0, p - q), not p: kept tokens have had their chance.",
     {"rest_of": lambda p, q: p}),
    ("the rest is drawn from only if the draft is rejected.", {"rejected": 1.0}),
)  # fmt: skip
def check_speculation(p, q, total=None, rejected=None, rest_of=torch.sub):
    """One token, drafted with q and wanted with p.

    Two tensors (vocab_size,) -> what is drawn from after a rejection, what comes out.
    """
    rest = rest_of(p, q).clamp(min=0)
    rest = rest / (total or rest.sum())
    kept = torch.minimum(p, q)
    return rest, kept + (rejected or 1 - kept.sum()) * rest
