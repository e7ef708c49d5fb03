"""Right answers pass, and each common mistake gets the message that names it."""

import pytest
import torch

from transformer_lib.evaluation.alignment import (
    alignment_error_rate,
    links_from_weights,
)
from transformer_lib.exercises.reading import (
    check_aligner,
    check_error_rate,
    check_previous_weight,
    check_pruning,
)


def rate(found, sure, possible):
    hits = n_links = 0
    for a, s, p in zip(found, sure, possible, strict=True):
        hits += len(a & s) + len(a & p)
        n_links += len(a) + len(s)
    return 1 - hits / n_links


def joined(found, sure, possible):
    a, s, p = (
        {(n, *link) for n, links in enumerate(each) for link in links}
        for each in (found, sure, possible)
    )
    return len(a & p) / len(a), len(a & s) / len(s)


def f1_rate(found, sure, possible):
    precision, recall = joined(found, sure, possible)
    return 1 - 2 * precision * recall / (precision + recall)


def mean_rate(found, sure, possible):
    pairs = zip(found, sure, possible, strict=True)
    rates = [rate([a], [s], [p]) for a, s, p in pairs]
    return sum(rates) / len(rates)


def test_the_error_rate_passes() -> None:
    assert check_error_rate(rate).passed
    ready = lambda a, s, p: alignment_error_rate(a, s, p).error_rate  # noqa: E731
    assert check_error_rate(ready).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, s, p: 1 - rate(a, s, p), "one minus the error rate"),
        (lambda a, s, p: rate(a, s, s), "only the sure links count"),
        (mean_rate, "mean of the sentences' rates"),
        (f1_rate, "F1 score"),
        (lambda *sets: joined(*sets)[0], "this is the precision"),
        (lambda *sets: joined(*sets)[1], "this is the recall"),
        (lambda a, s, p: 0.123, "some numbers are off"),
        (lambda a, s, p: "small", "expected a tensor"),
    ],
)
def test_mistakes_in_the_error_rate_are_named(answer, message) -> None:
    feedback = check_error_rate(answer)
    assert feedback.status == "wrong" and message in feedback.message


def before(weights, lengths, first=1):
    rows = []
    for n, length in enumerate(lengths.tolist()):
        rows += [weights[n, :, q, q - 1] for q in range(first, length)]
    return torch.stack(rows).mean(dim=0)


def counting_first(weights, lengths):
    n_queries = sum(length - 1 for length in lengths.tolist())
    return before(weights, lengths) * n_queries / (n_queries + len(lengths))


def per_sentence(weights, lengths):
    each = [before(weights[n : n + 1], lengths[n : n + 1]) for n in range(len(lengths))]
    return torch.stack(each).mean(dim=0)


def itself(weights, lengths):
    rows = []
    for n, length in enumerate(lengths.tolist()):
        rows += [weights[n, :, q, q] for q in range(1, length)]
    return torch.stack(rows).mean(dim=0)


def test_the_previous_weight_passes() -> None:
    assert check_previous_weight(before).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda w, n: before(w, torch.full_like(n, w.size(2))),
            "rows of padding are counted",
        ),
        (counting_first, "the first query is counted"),
        (per_sentence, "every sentence counts the same"),
        (itself, "the weight on the token itself"),
        (lambda w, n: before(w.mT, n), "rows are queries"),
        (lambda w, n: before(w, n).mean(), "expected shape (2,)"),
    ],
)
def test_mistakes_in_the_previous_weight_are_named(answer, message) -> None:
    feedback = check_previous_weight(answer)
    assert feedback.status == "wrong" and message in feedback.message


def zero(part, place):
    @torch.no_grad()
    def prune(attention, head):
        size = attention.d_head
        names = {"mine": slice(head * size, (head + 1) * size),
                 "stride": slice(head, None, attention.n_heads),
                 "zero": slice(0, size), "all": slice(None)}  # fmt: skip
        index = tuple(names[name] for name in place)
        attention.get_parameter(part)[index] = 0.0

    return prune


@torch.no_grad()
def prune_with_bias(attention, head):
    zero("out_proj.weight", ("all", "mine"))(attention, head)
    attention.out_proj.bias.zero_()


def test_pruning_passes_in_two_ways() -> None:
    assert check_pruning(zero("out_proj.weight", ("all", "mine"))).passed

    def by_values(attention, head):
        zero("v_proj.weight", ("mine", "all"))(attention, head)
        zero("v_proj.bias", ("mine",))(attention, head)

    assert check_pruning(by_values).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (zero("out_proj.weight", ("mine", "all")), "rows of out_proj.weight"),
        (zero("v_proj.weight", ("mine", "all")), "the values' bias is left"),
        (zero("out_proj.weight", ("all", "stride")), "stand side by side"),
        (prune_with_bias, "the bias of out_proj"),
        (zero("out_proj.weight", ("all", "zero")), "this removes head 0"),
        (zero("q_proj.weight", ("mine", "all")), "some numbers are off"),
    ],
)
def test_mistakes_in_pruning_are_named(answer, message) -> None:
    feedback = check_pruning(answer)
    assert feedback.status == "wrong" and message in feedback.message


def test_an_attention_that_was_not_touched_is_not_attempted() -> None:
    assert check_pruning(lambda attention, head: None).status == "open"


def clear_links(weights):
    mean = weights[1, :2].mean(dim=0)
    largest, source = mean.max(dim=1)
    return {(int(i), j) for j, i in enumerate(source) if largest[j] > 0.4}


def test_two_heads_and_a_threshold_make_a_better_aligner() -> None:
    assert check_aligner(clear_links).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda w: links_from_weights(w[1, 1]), "Ask for less than 0.11"),
        (lambda w: list(clear_links(w)), "expected a set of links, but got list"),
        (lambda w: {(j, i) for i, j in clear_links(w)} | {(99, 0)}, "is no link"),
        (lambda w: {(0.5, 0)}, "(0.5, 0) is no link"),
        (lambda w: set(), "no link at all"),
    ],
)
def test_aligners_that_do_not_reach_the_goal_are_told_why(answer, message) -> None:
    feedback = check_aligner(answer)
    assert feedback.status == "wrong" and message in feedback.message
