"""Graders of the chapter on reading attention."""

from functools import lru_cache
from statistics import fmean

import torch

from transformer_book.exercises.grading import Grader, Seen
from transformer_lib.data.batches import make_batch
from transformer_lib.data.corpora.grammar import explain, load_grammar
from transformer_lib.data.examples import split_words
from transformer_lib.evaluation.alignment import (
    alignment_error_rate,
    links_from_weights,
)
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.pretrained.translator import load

GOAL = 0.11  # error rate that exercise 4 asks for

_FOUND = [{(0, 0), (1, 1), (2, 2), (3, 4)}, {(0, 1), (2, 0)}]
_SURE = [{(0, 0), (1, 1)}, {(1, 0), (0, 1), (2, 2)}]
_POSSIBLE = [{(0, 0), (1, 1), (2, 2), (2, 3)}, {(1, 0), (0, 1), (2, 2), (2, 0)}]


def _error_rate(found, sure, possible):
    return alignment_error_rate(found, sure, possible).error_rate


def _mean_rate(*links):
    return fmean(
        _error_rate(*([one] for one in each)) for each in zip(*links, strict=True)
    )


def _f1_rate(*links):
    score = alignment_error_rate(*links)
    return 1 - 2 / (1 / score.precision + 1 / score.recall)


check_error_rate = Grader(
    "lists of sets of links, one set a sentence: found, sure, possible -> AER",
    cases=lambda: [(_FOUND[:], _SURE[:], _POSSIBLE[:])],
    solution=_error_rate,
    right="Sure links must be found, possible ones may be.",
    mistakes={
        "this is one minus the error rate.": lambda *links: 1 - _error_rate(*links),
        "only the sure links count here; a possible one that is found is no error.":
            lambda found, sure, possible: _error_rate(found, sure, sure),
        "this is the mean of the sentences' rates; count the links of all of them.":
            _mean_rate,
        "this is 1 minus the F1 score, which weighs precision and recall otherwise.":
            _f1_rate,
        "this is the precision.": lambda *links: alignment_error_rate(*links).precision,
        "this is the recall.": lambda *links: alignment_error_rate(*links).recall,
    },
)  # fmt: skip


def _previous_weight(weights, lengths, offset=-1, more=0):
    """Mean weight on the token `offset` further on, over queries from 1."""
    here, queries = weights.size(2), torch.arange(1, weights.size(2))
    keys = (queries + offset).clamp(max=here - 1)
    wanted = weights[:, :, queries, keys].transpose(
        1, 2
    )  # (batch, length - 1, n_heads)
    real = queries < lengths[:, None]
    return wanted[real].sum(dim=0) / (real.sum() + more)


def _draw_weights():
    scores = torch.randn(3, 2, 5, 5).masked_fill(~torch.ones(5, 5).tril().bool(), -1e9)
    return [(scores.softmax(dim=-1), torch.tensor([5, 3, 2]))]


check_previous_weight = Grader(
    "weights of a decoder's self-attention (batch, n_heads, length, length), the "
    "number of real tokens of each sentence (batch,) -> mean weight on the token "
    "before the query, (n_heads,)",
    cases=_draw_weights,
    solution=_previous_weight,
    right="One number a head, from queries that have a token before them.",
    mistakes={
        "rows of padding are counted; use only queries below the sentence's length.":
            lambda weights, lengths: _previous_weight(weights, 0 * lengths + 5),
        "the first query is counted, but it has no token before it.": {"more": 3},
        "every sentence counts the same here; every query should.": (
            lambda weights, lengths: torch.stack(
                [_previous_weight(weights[[i]], lengths[[i]]) for i in range(3)]
            ).mean(dim=0)
        ),
        "this is the weight on the token itself.": {"offset": 0},
        "this is the weight on the next token: rows are queries.":
            lambda weights, lengths: _previous_weight(weights.mT, lengths),
    },
)  # fmt: skip


def _zero(*changes):
    """Zero these parts of parameters, given as (name, index of head)."""

    @torch.no_grad()
    def prune(attention, head):
        for name, index in changes:
            size = attention.d_head
            attention.get_parameter(name)[index(head, size)] = 0.0

    return prune


def _rows(head, size):
    return slice(head * size, (head + 1) * size)


def _columns(head, size):
    return ..., _rows(head, size)


def _draw_attention():
    attention = MultiHeadAttention(6, 3)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    return [(attention, 1, torch.randn(2, 4, 6))]


def _output(answer, attention, head, x):
    """What the attention returns afterwards; None if that is the same as before."""
    before = attention(x, x, x)
    answer(attention, head)
    after = attention(x, x, x)
    return None if torch.equal(before, after) else after


check_pruning = Grader(
    "a MultiHeadAttention, the number of a head -> nothing; changes the parameters so "
    "that this head adds nothing to the output, and all else stays",
    cases=_draw_attention,
    run=_output,
    solution=_zero(("out_proj.weight", _columns)),
    right="The head is gone, and nothing else has moved.",
    mistakes={
        "rows of out_proj.weight are outputs of the block; a head's numbers come in by "
        "its columns.": _zero(("out_proj.weight", _rows)),
        "the values' bias is left: their weights sum to 1, so it is still added.":
            _zero(("v_proj.weight", _rows)),
        "the columns of a head stand side by side: head * d_head and those after.":
            _zero(("out_proj.weight", lambda head, size: (..., slice(head, 6, 3)))),
        "the bias of out_proj belongs to no head; leave it.":
            _zero(("out_proj.weight", _columns), ("out_proj.bias", lambda *head: ...)),
        "this removes head 0, whatever head is asked for.":
            _zero(("out_proj.weight", lambda head, size: _columns(0, size))),
    },
)  # fmt: skip


@lru_cache(maxsize=1)
def _sentences():
    """Weights and gold links of held-out sentences."""
    translator = load("grammar")
    tokenizer, model = translator.tokenizer, translator.model
    examples = [explain(english) for english, _ in load_grammar().test[300:360]]
    pairs = [
        (tokenizer.encode(e.german), tokenizer.encode(e.english)) for e in examples
    ]
    batch = make_batch(pairs, bos_id=tokenizer.bos_id, pad_id=tokenizer.pad_id)
    with record_attention(model) as maps, torch.no_grad():
        model(batch.src, batch.tgt_in)
    cross = [weights for name, weights in maps.items() if name.endswith("cross_attn")]
    joined = torch.stack(cross, dim=1)  # (batch, n_layers, n_heads, tgt_len, src_len)
    sizes = [
        (len(split_words(e.english)), len(split_words(e.german))) for e in examples
    ]
    weights = [joined[n, ..., :tgt, :src] for n, (tgt, src) in enumerate(sizes)]
    return weights, [{(g, e) for e, g in each.alignment} for each in examples]


def _score(found):
    return alignment_error_rate(found, _sentences()[1])


def _best_head():
    """The error rate of the best single head."""
    weights, _ = _sentences()
    n_layers, n_heads = weights[0].shape[:2]
    heads = ((layer, head) for layer in range(n_layers) for head in range(n_heads))
    return min(
        _score([links_from_weights(w[h]) for w in weights]).error_rate for h in heads
    )


def _joint_links(weights):
    """Links of three heads; a German word chooses as well, where it is clear."""
    joint = (weights[0, 1] + weights[0, 2] + weights[1, 0]) / 3
    largest, target = joint.max(dim=0)
    clear = {(i, int(j)) for i, j in enumerate(target) if largest[i] > 0.3}
    return links_from_weights(joint) | clear


def _impossible(found, weights):
    for links, each in zip(found, weights, strict=True):
        tgt_len, src_len = each.shape[2:]
        for i, j in links:
            if i not in range(src_len) or j not in range(tgt_len):
                return i, j, src_len, tgt_len
    return None


check_aligner = Grader(
    "weights (n_layers, n_heads, tgt_len, src_len) of the words of a pair, row j "
    "being the position that produces target word j -> the set of links (source word, "
    "target word). It is tried on 60 sentences that the model has not learned from.",
    cases=lambda: [([w.clone() for w in _sentences()[0]],)],
    run=lambda answer, weights: [answer(w) for w in weights],
    solution=_joint_links,
    right=lambda found: (
        f"{_score(found[0])}, where the best single head has {_best_head():.2f}."
    ),
    any_answer=True,
    mistakes={
        "({}, {}) is no link (source word, target word) of {} and {} words.":
            Seen(_impossible, lambda w: _joint_links(w) | {(99, 0)}),
        "no link at all was found.":
            Seen(lambda found, weights: not any(found), lambda w: set()),
        f"{{}}; the best single head has {{:.2f}}. Ask for less than {GOAL}.": Seen(
            lambda found, weights: (
                (_score(found), _best_head())
                if _score(found).error_rate >= GOAL
                else None
            ),
            lambda w: links_from_weights(w[1, 1]),
        ),
    },
)  # fmt: skip
