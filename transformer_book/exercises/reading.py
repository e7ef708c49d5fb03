"""Graders of the chapter on reading attention."""

from functools import cache
from itertools import product
from statistics import fmean

import torch

from transformer_book.exercises.grading import Seen, fill, grader
from transformer_book.grammar import explain
from transformer_lib import MultiHeadAttention, load, record_attention, split_words
from transformer_lib.data.batches import make_batch
from transformer_lib.data.corpora import load_grammar
from transformer_lib.evaluation import alignment

GOAL = 0.11  # error rate that exercise 4 asks for

_FOUND = [{(0, 0), (1, 1), (2, 2), (3, 4)}, {(0, 1), (2, 0)}]
_SURE = [{(0, 0), (1, 1)}, {(1, 0), (0, 1), (2, 2)}]
_POSSIBLE = [{(0, 0), (1, 1), (2, 2), (2, 3)}, {(1, 0), (0, 1), (2, 2), (2, 0)}]


@grader(
    lambda: [(_FOUND[:], _SURE[:], _POSSIBLE[:])],
    "Sure links must be found, possible ones may be.",
    ("this is one minus the error rate.",
     lambda *links: 1 - check_error_rate.solve(*links)),
    ("only the sure links count here; a possible one that is found is no error.",
     lambda found, sure, possible: check_error_rate.solve(found, sure, sure)),
    ("this is the mean of the sentences' rates; count the links of all of them.",
     lambda *links: fmean(
         check_error_rate.solve(*([one] for one in each))
         for each in zip(*links, strict=True))),
)  # fmt: skip
def check_error_rate(found, sure, possible):
    """Lists of sets of links, one set a sentence: found, sure, possible -> AER."""
    return alignment.alignment_error_rate(found, sure, possible).error_rate


def _draw_weights():
    scores = torch.randn(3, 2, 5, 5).masked_fill(~torch.ones(5, 5).tril().bool(), -1e9)
    return [(scores.softmax(dim=-1), torch.tensor([5, 3, 2]))]


@grader(
    _draw_weights,
    "One number a head, from queries that have a token before them.",
    ("rows of padding are counted; use only queries below the sentence's length.",
     lambda weights, lengths: check_previous_weight.solve(weights, 0 * lengths + 5)),
    ("this is the weight on the token itself.", {"offset": 0}),
    ("this is the weight on the next token: rows are queries.",
     lambda weights, lengths: check_previous_weight.solve(weights.mT, lengths)),
)  # fmt: skip
def check_previous_weight(weights, lengths, offset=-1):
    """The mean weight on the token before the query.

    weights of a decoder's self-attention (batch, n_heads, length, length), the number
    of real tokens of each sentence (batch,) -> (n_heads,).
    """
    queries = torch.arange(1, weights.size(2))
    wanted = weights[:, :, queries, queries + offset].transpose(1, 2)
    return wanted[queries < lengths[:, None]].mean(dim=0)


def _output(answer, attention, head, x):
    """What the attention returns afterwards; None if that is the same as before."""
    before = attention(x, x, x)
    answer(attention, head)
    after = attention(x, x, x)
    return None if torch.equal(before, after) else after


@grader(
    lambda: [(fill(MultiHeadAttention(6, 3)), 1, torch.randn(2, 4, 6))],
    "The head is gone, and nothing else has moved.",
    ("rows of out_proj.weight are outputs of the block; a head's numbers come in by "
     "its columns.",
     {"part": lambda attention, head: attention.out_proj.weight[head]}),
    ("the values' bias is left: their weights sum to 1, so it is still added.",
     {"part": lambda attention, head: attention.v_proj.weight[head]}),
    ("the bias of out_proj belongs to no head; leave it.",
     lambda *given: (check_pruning.solve(*given), given[0].out_proj.bias.data.zero_())),
    run=_output,
)  # fmt: skip
@torch.no_grad()
def check_pruning(
    attention, head, part=lambda attention, head: attention.out_proj.weight[:, head]
):
    """Change the parameters so that a head adds nothing, and all else stays.

    A MultiHeadAttention, the number of a head -> nothing.
    """
    size = attention.d_head
    part(attention, slice(head * size, (head + 1) * size)).zero_()


@cache
def _sentences():
    """Weights and gold links of held-out sentences."""
    translator = load("grammar")
    tokenizer, model = translator.tokenizer, translator.model
    examples = [explain(english) for english, _ in load_grammar().test[300:360]]
    encode = tokenizer.encode
    pairs = [(encode(e.german), encode(e.english)) for e in examples]
    batch = make_batch(pairs, bos_id=tokenizer.bos_id, pad_id=tokenizer.pad_id)
    with record_attention(model) as maps, torch.no_grad():
        model(batch.src, batch.tgt_in)
    cross = [weights for name, weights in maps.items() if name.endswith("cross_attn")]
    joined = torch.stack(cross, dim=1)  # (batch, n_layers, n_heads, tgt_len, src_len)
    weights = [
        each[..., : len(split_words(e.english)), : len(split_words(e.german))]
        for e, each in zip(examples, joined, strict=True)
    ]
    return weights, [{(g, e) for e, g in each.alignment} for each in examples]


def _score(found):
    return alignment.alignment_error_rate(found, _sentences()[1])


def _best_head():
    """The error rate of the best single head."""
    heads = [each.flatten(0, 1) for each in _sentences()[0]]  # (all heads, ...)
    links = alignment.links_from_weights
    return min(_score([*map(links, h)]).error_rate for h in zip(*heads, strict=True))


def _impossible(found, weights):
    """A link of a word that a pair doesn't have."""
    for links, each in zip(found, weights, strict=True):
        *_, tgt_len, src_len = each.shape
        if wrong := {*links} - {*product(range(src_len), range(tgt_len))}:
            return *min(wrong), src_len, tgt_len
    return None


@grader(
    lambda: [([w.clone() for w in _sentences()[0]],)],
    lambda found: (
        f"{_score(found[0])}, where the best single head has {_best_head():.2f}."
    ),
    ("({}, {}) is no link (source word, target word) of {} and {} words.",
     Seen(_impossible), lambda w: check_aligner.solve(w) | {(99, 0)}),
    (f"{{}}; the best single head has {{:.2f}}. Ask for less than {GOAL}.",
     Seen(lambda found, weights: (
              (score := _score(found)).error_rate >= GOAL
              and (score, _best_head()))),
     lambda w: alignment.links_from_weights(w[1, 1])),
    run=lambda answer, weights: [answer(w) for w in weights],
    any_answer=True,
)  # fmt: skip
def check_aligner(weights):
    """Align words by attention; tried on 60 sentences that the model hasn't seen.

    weights (n_layers, n_heads, tgt_len, src_len) of the words of a pair, row j being
    the position that produces target word j -> the set of links (source word, target
    word).
    """
    joint = (weights[0, 1] + weights[0, 2] + weights[1, 0]) / 3
    largest, target = joint.max(dim=0)
    # A German word chooses as well, where it is clear.
    clear = {(i, int(j)) for i, j in enumerate(target) if largest[i] > 0.3}
    return alignment.links_from_weights(joint) | clear
