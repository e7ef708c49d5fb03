"""Graders of the chapter on reading attention."""

from functools import cache
from itertools import product
from statistics import fmean

import torch

from transformer_book.exercises.grading import fill, grader
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
    cases=lambda: [(_FOUND[:], _SURE[:], _POSSIBLE[:])],
    right="Sure links must be found, possible ones may be.",
)
def check_error_rate(found, sure, possible):
    """Lists of sets of links, one set a sentence: found, sure, possible -> AER."""
    return alignment.alignment_error_rate(found, sure, possible).error_rate


def _mean_of_sentences(found, sure, possible):
    sentences = zip(found, sure, possible, strict=True)
    return fmean(check_error_rate.solve([f], [s], [p]) for f, s, p in sentences)


check_error_rate.mistake(
    "this is one minus the error rate.",
    lambda *links: 1 - check_error_rate.solve(*links),
)
check_error_rate.mistake(
    "only the sure links count here; a possible one that is found is no error.",
    lambda found, sure, possible: check_error_rate.solve(found, sure, sure),
)
check_error_rate.mistake(
    "this is the mean of the sentences' rates; count the links of all of them.",
    _mean_of_sentences,
)


def _draw_weights():
    scores = torch.randn(3, 2, 5, 5).masked_fill(~torch.ones(5, 5).tril().bool(), -1e9)
    return [(scores.softmax(dim=-1), torch.tensor([5, 3, 2]))]


@grader(
    cases=_draw_weights,
    right="One number a head, from queries that have a token before them.",
)
def check_previous_weight(weights, lengths):
    """The mean weight on the token before the query.

    weights of a decoder's self-attention (batch, n_heads, length, length), the number
    of real tokens of each sentence (batch,) -> (n_heads,).
    """
    queries = torch.arange(1, weights.size(2))
    previous = weights[:, :, queries, queries - 1].transpose(1, 2)
    return previous[queries < lengths[:, None]].mean(dim=0)


def _weight_on_itself(weights, lengths):
    queries = torch.arange(1, weights.size(2))
    own = weights[:, :, queries, queries].transpose(1, 2)
    return own[queries < lengths[:, None]].mean(dim=0)


check_previous_weight.mistake(
    "rows of padding are counted; use only queries below the sentence's length.",
    lambda weights, lengths: check_previous_weight.solve(weights, 0 * lengths + 5),
)
check_previous_weight.mistake(
    "this is the weight on the token itself.", _weight_on_itself
)
check_previous_weight.mistake(
    "this is the weight on the next token: rows are queries.",
    lambda weights, lengths: check_previous_weight.solve(weights.mT, lengths),
)


def _run_pruning(answer, attention, head, x):
    """What the attention returns afterwards; None if that is the same as before."""
    before = attention(x, x, x)
    answer(attention, head)
    after = attention(x, x, x)
    return None if torch.equal(before, after) else after


@grader(
    cases=lambda: [(fill(MultiHeadAttention(6, 3)), 1, torch.randn(2, 4, 6))],
    right="The head is gone, and nothing else has moved.",
    run=_run_pruning,
)
@torch.no_grad()
def check_pruning(attention, head):
    """Change the parameters so that a head adds nothing, and all else stays.

    A MultiHeadAttention, the number of a head -> nothing.
    """
    attention.out_proj.weight[:, _features(attention, head)] = 0.0


def _features(attention, head):
    return slice(head * attention.d_head, (head + 1) * attention.d_head)


@torch.no_grad()
def _prune_rows(attention, head):
    attention.out_proj.weight[_features(attention, head)] = 0.0


@torch.no_grad()
def _prune_values_without_bias(attention, head):
    attention.v_proj.weight[_features(attention, head)] = 0.0


@torch.no_grad()
def _prune_bias_too(attention, head):
    check_pruning.solve(attention, head)
    attention.out_proj.bias.zero_()


check_pruning.mistake(
    "rows of out_proj.weight are outputs of the block; a head's numbers come in by "
    "its columns.",
    _prune_rows,
)
check_pruning.mistake(
    "the values' bias is left: their weights sum to 1, so it is still added.",
    _prune_values_without_bias,
)
check_pruning.mistake(
    "the bias of out_proj belongs to no head; leave it.", _prune_bias_too
)


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
        padded[..., : len(split_words(e.english)), : len(split_words(e.german))]
        for e, padded in zip(examples, joined, strict=True)
    ]
    return weights, [{(g, e) for e, g in example.alignment} for example in examples]


def _score(links):
    return alignment.alignment_error_rate(links, _sentences()[1])


def _best_head():
    """The error rate of the best single head."""
    sentences = [weights.flatten(0, 1) for weights in _sentences()[0]]
    heads = zip(*sentences, strict=True)  # of each, its weights in all sentences
    links = alignment.links_from_weights
    return min(_score([*map(links, head)]).error_rate for head in heads)


@grader(
    cases=lambda: [([weights.clone() for weights in _sentences()[0]],)],
    right=lambda results: (
        f"{_score(results[0])}, where the best single head has {_best_head():.2f}."
    ),
    run=lambda answer, sentences: [answer(weights) for weights in sentences],
    any_answer=True,
)
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


def _impossible_link(results, sentences):
    """A link of a word that a pair doesn't have."""
    for links, weights in zip(results, sentences, strict=True):
        *_, tgt_len, src_len = weights.shape
        if impossible := {*links} - {*product(range(src_len), range(tgt_len))}:
            return *min(impossible), src_len, tgt_len
    return None


def _missed_goal(results, sentences):
    score = _score(results)
    return (score, _best_head()) if score.error_rate >= GOAL else None


check_aligner.mistake(
    "({}, {}) is no link (source word, target word) of {} and {} words.",
    lambda weights: check_aligner.solve(weights) | {(99, 0)},
    sign=_impossible_link,
)
check_aligner.mistake(
    f"{{}}; the best single head has {{:.2f}}. Ask for less than {GOAL}.",
    lambda weights: alignment.links_from_weights(weights[1, 1]),
    sign=_missed_goal,
)
