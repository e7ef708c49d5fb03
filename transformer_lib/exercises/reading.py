"""Graders of the chapter on reading attention."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from transformer_lib.data.batches import make_batch
from transformer_lib.data.corpora.grammar import explain, load_grammar
from transformer_lib.data.examples import split_words
from transformer_lib.evaluation.alignment import (
    Link,
    alignment_error_rate,
    links_from_weights,
)
from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    compare,
    right,
    unanswered,
    wrong,
)
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.pretrained.translator import load

GOAL = 0.11  # error rate that exercise 4 asks for


def check_error_rate(
    answer: Callable[[list, list, list], object],
) -> Feedback:
    """Grade the alignment error rate with sure and possible links.

    Args:
        answer: takes lists of sets of links, one set a sentence: found, sure and
            possible; the sure ones are among the possible. Returns AER.
    """
    found = [{(0, 0), (1, 1), (2, 2), (3, 4)}, {(0, 1), (2, 0)}]
    sure = [{(0, 0), (1, 1)}, {(1, 0), (0, 1), (2, 2)}]
    possible = [{(0, 0), (1, 1), (2, 2), (2, 3)}, {(1, 0), (0, 1), (2, 2), (2, 0)}]
    result = call(answer, *([set(s) for s in each] for each in (found, sure, possible)))
    if isinstance(result, (int, float)):
        result = torch.tensor(float(result), dtype=torch.float64)
    expected = alignment_error_rate(found, sure, possible)
    only_sure = alignment_error_rate(found, sure)
    f1 = 2 / (1 / expected.precision + 1 / expected.recall)
    pairs = zip(found, sure, possible, strict=True)
    each = [alignment_error_rate([a], [s], [p]).error_rate for a, s, p in pairs]
    mistakes = {
        "this is one minus the error rate.": 1 - expected.error_rate,
        "only the sure links count here; a possible one that is found is no error.": (
            only_sure.error_rate
        ),
        "this is the mean of the sentences' rates; count the links of all of them.": (
            sum(each) / 2
        ),
        "this is 1 minus the F1 score, which weighs precision and recall otherwise.": (
            1 - f1
        ),
        "this is the precision.": expected.precision,
        "this is the recall.": expected.recall,
    }
    tensors = {k: torch.tensor(v, dtype=torch.float64) for k, v in mistakes.items()}
    right_one = torch.tensor(expected.error_rate, dtype=torch.float64)
    if problem := compare(result, right_one, tensors):
        return problem
    return right("Sure links must be found, possible ones may be.")


def check_previous_weight(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the mean weight on the token before the query.

    Args:
        answer: takes weights of a decoder's self-attention, (batch, n_heads, length,
            length), and lengths (batch,), the number of real tokens of each sentence;
            returns (n_heads,).
    """
    lengths = torch.tensor([5, 3, 2])
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 2, 5, 5, generator=generator, dtype=torch.float64)
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    weights = scores.masked_fill(~past, -torch.inf).softmax(dim=-1)
    result = call(answer, weights.clone(), lengths.clone())
    before = weights.diagonal(-1, dim1=2, dim2=3)  # (batch, n_heads, length - 1)
    after = weights.mT.diagonal(-1, dim1=2, dim2=3)
    real = torch.arange(1, 5) < lengths[:, None]  # (batch, length - 1)

    def mean(values: Tensor, counted: Tensor) -> Tensor:
        return values.transpose(1, 2)[counted].mean(dim=0)

    expected = mean(before, real)
    n_queries = real.sum()
    first = (before.transpose(1, 2) * real[..., None]).sum(dim=(0, 1))
    each = [mean(before[i : i + 1], real[i : i + 1]) for i in range(3)]
    mistakes = {
        "rows of padding are counted; use only queries below the sentence's length.": (
            mean(before, torch.ones_like(real))
        ),
        "the first query is counted, but it has no token before it.": (
            first / (n_queries + 3)
        ),
        "every sentence counts the same here; every query should.": (
            torch.stack(each).mean(dim=0)
        ),
        "this is the weight on the token itself.": (
            mean(weights.diagonal(dim1=2, dim2=3)[..., 1:], real)
        ),
        "this is the weight on the next token: rows are queries.": mean(after, real),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("One number a head, from queries that have a token before them.")


def check_pruning(answer: Callable[[MultiHeadAttention, int], object]) -> Feedback:
    """Grade the removal of one head from an attention, in its weights.

    Args:
        answer: takes a MultiHeadAttention and the number of a head, and changes the
            attention's parameters so that this head adds nothing to the output. All
            else must stay.
    """
    attention, x = _attention()
    head, size = 1, attention.d_head
    result = call(answer, attention, head)
    if isinstance(result, Feedback):
        return result
    found = attention(x, x, x)
    columns = slice(head * size, (head + 1) * size)
    if torch.equal(found, _changed({})(x)):
        return unanswered(None)
    mistakes = {
        "rows of out_proj.weight are outputs of the block; a head's numbers come in by "
        "its columns.": _changed({"out_proj.weight": (columns, slice(None))}),
        "the values' bias is left: their weights sum to 1, so it is still added.": (
            _changed({"v_proj.weight": (columns, slice(None))})
        ),
        "the columns of a head stand side by side: head * d_head and those after.": (
            _changed({"out_proj.weight": (slice(None), slice(head, None, 3))})
        ),
        "the bias of out_proj belongs to no head; leave it.": _changed(
            {"out_proj.weight": (slice(None), columns), "out_proj.bias": (slice(None),)}
        ),
        "this removes head 0, whatever head is asked for.": _changed(
            {"out_proj.weight": (slice(None), slice(0, size))}
        ),
    }
    expected = _changed({"out_proj.weight": (slice(None), columns)})(x)
    outputs = {message: change(x) for message, change in mistakes.items()}
    if problem := compare(found, expected, outputs, atol=1e-9):
        return problem
    return right("The head is gone, and nothing else has moved.")


def check_aligner(answer: Callable[[Tensor], object]) -> Feedback:
    """Grade a way to read links from all cross-attention weights of a sentence pair.

    Args:
        answer: takes weights (n_layers, n_heads, tgt_len, src_len) of the words of a
            pair, row j being the position that produces target word j; returns the
            set of links (source word, target word). It is tried on 60 sentences that
            the model has not learned from, in the chapter's shipped model.
    """
    found, gold = [], []
    for weights, links in _sentences():
        result = call(answer, weights.clone())
        if problem := unanswered(result):
            return problem
        if not isinstance(result, set):
            return wrong(f"expected a set of links, but got {type(result).__name__}.")
        tgt_len, src_len = weights.shape[2:]
        for link in result:
            if not _is_link(link, src_len, tgt_len):
                return wrong(
                    f"{link!r} is no link (source word, target word) of {src_len} and "
                    f"{tgt_len} words."
                )
        found.append(result)
        gold.append(links)
    if not any(found):
        return wrong("no link at all was found.")
    rate = alignment_error_rate(found, gold)
    best = min(_rates_of_heads())
    if rate.error_rate >= GOAL:
        return wrong(
            f"{rate}; the best single head has {best:.2f}. Ask for less than {GOAL}."
        )
    return right(f"{rate}, where the best single head has {best:.2f}.")


def _attention() -> tuple[MultiHeadAttention, Tensor]:
    """Return an attention of 3 heads with biases, in float64, and an input."""
    generator = torch.Generator().manual_seed(0)
    attention = MultiHeadAttention(6, 3).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.normal_(generator=generator)
    x = torch.randn(2, 4, 6, generator=generator, dtype=torch.float64)
    return attention, x


def _changed(zeroed: dict[str, tuple]) -> Callable[[Tensor], Tensor]:
    """Return an attention in which some parameters are zero."""
    attention, _ = _attention()
    with torch.no_grad():
        for name, place in zeroed.items():
            attention.get_parameter(name)[place] = 0.0
    return lambda x: attention(x, x, x)


def _is_link(link: object, src_len: int, tgt_len: int) -> bool:
    whole = isinstance(link, tuple) and all(isinstance(n, int) for n in link)
    return (
        whole and len(link) == 2 and 0 <= link[0] < src_len and 0 <= link[1] < tgt_len
    )


@lru_cache(maxsize=1)
def _sentences() -> tuple[tuple[Tensor, tuple[Link, ...]], ...]:
    """Return weights and gold links of held-out sentences."""
    translator = load("grammar")
    tokenizer, model = translator.tokenizer, translator.model
    held_out = load_grammar().test[200:260]
    examples = [explain(english) for english, _ in held_out]
    pairs = [
        (tokenizer.encode(e.english), tokenizer.encode(e.german)) for e in examples
    ]
    batch = make_batch(pairs, bos_id=tokenizer.bos_id, pad_id=tokenizer.pad_id)
    with record_attention(model) as maps, torch.no_grad():
        model(batch.src, batch.tgt_in)
    cross = [weights for name, weights in maps.items() if name.endswith("cross_attn")]
    joined = torch.stack(cross, dim=1)  # (batch, n_layers, n_heads, tgt_len, src_len)
    return tuple(
        (joined[n, ..., : len(split_words(e.german)), : len(split_words(e.english))],
         e.alignment)
        for n, e in enumerate(examples)
    )  # fmt: skip


def _rates_of_heads() -> list[float]:
    """Return the error rate of every single head."""
    gold = [links for _, links in _sentences()]
    n_layers, n_heads = _sentences()[0][0].shape[:2]
    return [
        alignment_error_rate(
            [links_from_weights(w[layer, head]) for w, _ in _sentences()], gold
        ).error_rate
        for layer in range(n_layers)
        for head in range(n_heads)
    ]
