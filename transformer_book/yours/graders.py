"""Graders of the nine parts: each takes what a source has defined, by name.

    GRADERS["attention"]({"scaled_dot_product_attention": function})  # a Feedback

A mistake is written as a learner makes it: as a replacement in the solution's text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.exercises import grading
from transformer_book.exercises.grading import Feedback, Grader, Mistake, fill
from transformer_book.yours.names import namespace, read, solution_of
from transformer_lib.model.config import TransformerConfig

Change = tuple[str, str]  # what is replaced in the solution, and by what
Answer = dict[str, Any]
SHAPE = "{shape}"  # in a sentence: the shape of what was returned


@dataclass(eq=False)
class PartGrader(Grader):
    """A grader of one or several definitions; its answers may be sources of ours.

    Attributes:
        part: the name of the part.
        n_hard: how many of the last cases `runs` leaves out: a mistake may fail there
            that runs in every model.
        returns: what each of several results is called, if there are several.
    """

    part: str = ""
    n_hard: int = 0
    returns: Sequence[str] = ()
    _known: dict[tuple[str, int], Any] = field(default_factory=dict)
    _drawn: list[tuple] = field(default_factory=list)

    def __call__(self, answer: Answer) -> Feedback:
        """Run what was defined, and say what to do next."""
        feedback = super().__call__(answer)
        if feedback.status == "open":
            results = self._run_all(answer, self.make_cases())
            for case, result in zip(self.make_cases(), results, strict=True):
                name = case[0] if isinstance(case[0], str) else [*answer][0]
                if result is None and _does_something(answer[name]):
                    returns = f"{name} returns nothing"
                    if any(each is not None for each in results):
                        returns = self._say_when(case, returns)
                        return Feedback("wrong", returns)
                    return Feedback("wrong", f"{returns}: write return.")
            if any(result is not None for result in results):
                first = self.make_cases()[results.index(None)]
                return Feedback("wrong", f"{first[0]} returns nothing yet.")
        return feedback

    def wrong(self, sentence: str, *changes: Change | Sequence[Change]) -> None:
        """Name a mistake by replacements in the solution, or several at once.

        Raises:
            ValueError: a text that is to be replaced is not there, or twice.
        """
        sources = []
        for change in changes:
            source = solution_of(self.part)
            for old, new in [change] if isinstance(change[0], str) else change:
                if source.count(old) != 1:
                    raise ValueError(f"{old!r} stands {source.count(old)} times")
                source = source.replace(old, new)
            sources.append(source)
        self.mistake(sentence, *sources)

    def runs(self, answer: Answer) -> bool:
        """Whether an answer returns the right shapes, with any numbers in them."""
        results = self._run_all(answer, self.make_cases())
        expected = self._run_all(self.solve, results)
        asked = slice(len(results) - self.n_hard)
        kinds = [[*map(grading._kind, each[asked])] for each in (results, expected)]
        return kinds[0] == kinds[1]

    def error_of(self, answer: Answer) -> Exception | None:
        """Return what an answer raises first, as it was raised."""
        for case in self.make_cases():
            try:
                self.run(answer, *case)
            except Mistake:
                return None
            except Exception as error:
                return error
        return None

    def make_cases(self) -> list[tuple]:
        """Return the cases, drawn once: what may be changed in place is copied."""
        self._drawn = self._drawn or super().make_cases()
        return [
            tuple(each.clone() if isinstance(each, Tensor) else each for each in case)
            for case in self._drawn
        ]

    def _run_all(self, answer: Any, cases: Sequence[tuple]) -> list[Any]:
        if isinstance(answer, str):  # ours: it always does the same
            return [self._run_own(answer, number) for number in range(len(cases))]
        with torch.no_grad():
            return super()._run_all(answer, cases)

    def _run_own(self, source: str, number: int) -> Any:
        """Return what a source of ours returns for one case; it is run once."""
        if (source, number) not in self._known:
            case, answer = self.make_cases()[number], read(self.part, source)
            [self._known[source, number]] = self._run_all(answer, [case])
        return self._known[source, number]

    def _recognize(
        self, number: int, results: list[Any], expected: list[Any]
    ) -> str | None:
        """Find the mistake with this result, and with most of the others too."""
        fitting = {}
        for mistake in self.mistakes:
            for source in mistake.answers:
                other = self._run_own(source, number)
                if self._agree(results[number], other, expected[number]):
                    others = self._run_all(source, results)
                    agreed = sum(map(self._agree, results, others, expected))
                    if agreed == len(results):
                        return _with_shape(mistake.sentence, results[number])
                    if not isinstance(other, Mistake):  # many raise the same error
                        fitting.setdefault(agreed, mistake.sentence)
        if not fitting:
            return None
        return _with_shape(fitting[max(fitting)], results[number])

    def _find_mistake(
        self, number: int, results: list[Any], expected: list[Any], case: tuple
    ) -> str | None:
        """Name what is wrong with the result of one case, kinds and NaN in words."""
        problem = super()._find_mistake(number, results, expected, case)
        result, wanted = results[number], expected[number]
        if result is None:
            return self._say_when(case, problem.rstrip("."))
        kinds = grading._kind(wanted), grading._kind(result)
        if problem == "expected {}, but got {}.".format(*kinds):
            return f"expected {_in_words(wanted)}, but got {_in_words(result)}."
        if problem and problem.startswith("the entry at "):
            return self._find_nan(result) or self._say_where(problem, result, wanted)
        return problem

    def _say_when(self, case: tuple, problem: str) -> str:
        """Say which arguments lead past a return that others reach."""
        if "mask" not in self._names:
            return f"{problem}: write return."
        when = "without" if case[self._names.index("mask")] is None else "with"
        return f"{when} a mask, {problem}: move return out of the if, where both come."

    def _say_where(self, problem: str, result: Any, wanted: Any) -> str:
        """Write into a sentence about an entry which result it is an entry of."""
        for name, one, other in zip(self.returns, result, wanted, strict=False):
            if not grading._close(one, other, self.atol):
                return problem.replace(" is ", f" of {name} is ", 1)
        return problem

    def _find_nan(self, result: Any) -> str | None:
        """Say where the first NaN stands, if there is one."""
        several = result if isinstance(result, tuple | list) else [result]
        names = self.returns or ["your answer"] * len(several)
        for name, each in zip(names, several, strict=False):
            if isinstance(each, Tensor) and each.isnan().any():
                index = tuple(each.isnan().nonzero()[0].tolist())
                return f"{name} holds NaN, first at {index}."
        return None

    def _write_arguments(self, case: tuple) -> str:
        """Write what is called, in a part with several definitions, and how."""
        told = dict(zip(self._names, case, strict=False))
        if "name" not in told:
            return super()._write_arguments(case)
        order = told.get("norm_first")
        how = "" if order is None else f" with norm_first={order}"
        return f"{told['name']}{how}: "


def _with_shape(sentence: str, result: Any) -> str:
    """Write into a sentence, if it asks for it, which shape came."""
    shape = tuple(getattr(result, "shape", ()))
    return sentence.replace(SHAPE, str(shape))


def _in_words(value: Any) -> str:
    """Say what a value is, as a chapter calls it."""
    if value is None:
        return "nothing"
    if isinstance(value, Tensor) and value.dim():
        of = "" if value.is_floating_point() else f" and dtype {value.dtype}"
        return f"a tensor of shape {tuple(value.shape)}{of}"
    if isinstance(value, tuple | list):
        if len(value) < 4 and any(isinstance(each, Tensor) for each in value):
            return f"({', '.join(map(_in_words, value))})"
        first = value[0] if value else 0
        several = "lists" if isinstance(first, list) else "numbers"
        return f"a {type(value).__name__} of {several}"
    if isinstance(value, int | float | Tensor):
        return "a number"
    return f"a value of type {type(value).__name__}"


def _does_something(definition: Any) -> bool:
    """Whether a function, or a module's forward, holds more than "..."."""
    function = getattr(definition, "forward", definition)
    code = getattr(function, "__code__", None)
    empty = (lambda: None).__code__.co_code
    return code is not None and len(code.co_code) > len(empty)


def _grader_of(part: str, **options: Any) -> PartGrader:
    """Make the grader of a part, whose solution is the book's."""
    return PartGrader(solution_of(part), part=part, **options)


def instead(old: str, *others: str) -> list[Change]:
    """List what else may stand in the place of a text, each a mistake by itself."""
    return [(old, other) for other in others]


def each_and_both(one: Change, other: Change) -> list[Change | list[Change]]:
    """List two mistakes of one kind: each by itself, then both at once."""
    return [one, other, [one, other]]


def use(
    answer: Answer, name: str, sizes: tuple, parameters: dict[str, Tensor], *inputs: Any
) -> Any:
    """Make a reader's module, give it the book's parameters by name, and call it.

    Returns:
        What the module returns; None if nothing is written yet.

    Raises:
        Mistake: a parameter is missing, or has another shape, or there is one more.
    """
    if getattr(answer[name], "forward", None) is nn.Module.forward:
        return None
    try:
        module = answer[name](*sizes)
    except AttributeError as error:
        if "before Module.__init__" not in str(error):
            raise
        raise Mistake("__init__ must begin with super().__init__().") from None
    if not isinstance(module, nn.Module):
        raise Mistake(f"it must be a module: class {name}(nn.Module).")
    own = module.state_dict()
    fitting = {
        key: value
        for key, value in parameters.items()
        if key in own and own[key].shape == value.shape
    }
    module.load_state_dict(fitting, strict=False)
    try:
        result = module.eval()(*inputs)
    except NameError as error:
        missing = getattr(error, "name", None)
        if not missing or not hasattr(module, missing):
            raise
        raise Mistake(f"{missing} belongs to the module: self.{missing}.") from None
    if result is None:  # an empty forward comes first
        return None
    for key, value in parameters.items():
        if key not in own:
            raise Mistake(f"the module needs a parameter {key}: keep __init__.")
        if own[key].shape != value.shape:
            shapes = tuple(own[key].shape), tuple(value.shape)
            raise Mistake(
                f"{key} has the shape {shapes[0]}, but it must be {shapes[1]}."
            )
    for key, _ in module.named_parameters():
        if key not in parameters:
            raise Mistake(f"{key} is not among the book's parameters: keep __init__.")
    return result


def _draw_parameters(name: str, *sizes: Any) -> dict[str, Tensor]:
    """Draw parameters of the book's module with these sizes, far from its start."""
    return fill(namespace()[name](*sizes)).state_dict()


# Chapter 1


def _run_positions(answer, n_positions, d_model):
    return answer["sinusoid_table"](n_positions, d_model)


positions = _grader_of(
    "positions",
    cases=lambda: [(7, 12), (1, 6), (40, 8)],
    right="Every position has a vector of its own, and pair after pair turns slower.",
    run=_run_positions,
    atol=1e-4,
)
positions.wrong(
    "positions start at 0, but yours start at 1.",
    ("arange(n_positions)", "arange(1, n_positions + 1)"),
)
positions.wrong(
    "every position has the same vector: the angle grows with the position.",
    *instead("arange(n_positions)", "zeros(n_positions)", "ones(n_positions)"),
)
positions.wrong(
    "sines and cosines take turns: column 2i holds a sine, column 2i + 1 its cosine.",
    (
        "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)",
        "torch.cat([angle.sin(), angle.cos()], dim=-1)",
    ),
)
positions.wrong(
    "the sine comes first, then the cosine.",
    ("angle.sin(), angle.cos()", "angle.cos(), angle.sin()"),
)
positions.wrong(
    "sines and cosines, both of the same angle.",
    *instead(
        "angle.sin(), angle.cos()",
        "angle.sin(), angle.sin()",
        "angle.cos(), angle.cos()",
    ),
)
positions.wrong(
    "the exponent of pair i is 2i / d_model.",
    *instead("even / d_model", "even / 2 / d_model", "even * 2 / d_model", "even"),
)
positions.wrong(
    "a sine and its cosine have the same angle: both exponents are 2i / d_model.",
    (
        "    waves = torch.stack([angle.sin(), angle.cos()], dim=-1)",
        "    other = positions[..., None] / 10_000 ** ((even + 1) / d_model)\n"
        "    waves = torch.stack([angle.sin(), other.cos()], dim=-1)",
    ),
)
positions.wrong(
    "divide the position by 10000^(2i / d_model): later pairs turn slower.",
    ("/ 10_000 **", "* 10_000 **"),
)
positions.wrong("10000, with four zeros.", *instead("10_000", "1_000", "100_000"))


# Chapter 2


def _run_attention(answer, query, key, value, mask):
    masked = () if mask is None else (mask,)
    return answer["scaled_dot_product_attention"](query, key, value, *masked)


def _draw_mask(*shape):
    """Draw a mask in which every query has a key left."""
    mask = torch.rand(*shape) < 0.6
    mask[..., 1] = True
    return mask


def _draw_attention():
    one, few = (2 * torch.randn(5, 9), *torch.randn(2, 7, 9)), torch.randn(7, 4)
    many = 2 * torch.randn(2, 3, 5, 9), *torch.randn(2, 2, 3, 7, 9)
    return [
        (*one, None),
        (*many, _draw_mask(2, 1, 5, 7)),
        (*one[:2], few, _draw_mask(5, 7)),
    ]


attention = _grader_of(
    "attention",
    cases=_draw_attention,
    right="Every query has weights that sum to 1, and gets a mixture of the values.",
    run=_run_attention,
    n_hard=1,
    returns=("the output", "the weights"),
)
_ROOT = " / math.sqrt(query.size(-1))"
_SOFTMAX = "weights = scores.softmax(dim=-1)\n"
_HIDE = 'scores.masked_fill(~mask, float("-inf"))'
attention.wrong(
    "divide the scores by the square root of d_head.",
    *instead(_ROOT, "", " / query.size(-1)", " * math.sqrt(query.size(-1))"),
)
attention.wrong(
    "you took the root of another axis: d_head is the last axis of query, "
    "query.size(-1).",
    *(
        (_ROOT, f" / math.sqrt({each}.size({axis}))")
        for each, axis in [
            *(("query", axis) for axis in (-2, 0, 1)),
            *(("key", axis) for axis in (-2, 0, 1)),
            *(("value", axis) for axis in (-1, 1)),
        ]
    ),
)
attention.wrong(
    "d_head ** 1 / 2 is d_head / 2: the power comes first. Write d_head ** 0.5.",
    (_ROOT, " / (query.size(-1) ** 1 / 2)"),
)
attention.wrong(
    "scores / d_head ** 1 / 2 is divided by d_head, and then by 2: the power comes "
    "first. Write d_head ** 0.5.",
    (_ROOT, " / query.size(-1) ** 1 / 2"),
)


def _a_written_width(result, query, key, value, mask):
    """What stands under the root that divides all scores, if it isn't d_head."""
    if mask is not None or not _sums_to_1(result[1], -1) or (result[1] <= 0).any():
        return False
    logs, scores = result[1].log(), query @ key.transpose(-2, -1)
    logs = logs - logs.mean(dim=-1, keepdim=True)
    scores = scores - scores.mean(dim=-1, keepdim=True)
    factor = float((logs * scores).sum() / (scores * scores).sum())
    if factor <= 0 or float((logs - factor * scores).abs().max()) > 0.01:
        return False
    under = 1 / factor**2
    return abs(under / query.size(-1) - 1) > 0.01 and f"{under:.3g}"


attention.mistake(
    "the scores are divided by the root of {}, whatever the width: under the root "
    "belongs d_head, query.size(-1), and no number that is written out.",
    sign=_a_written_width,
)
_UNZEROED = ("weights.masked_fill(~mask, 0.0)", "weights")


def _another_axis(result, query, key, value, mask):
    """Whether the weights sum to 1 along another axis than the keys'."""
    weights = result[1]
    if (weights < 0).any() or _sums_to_1(weights, -1):
        return False
    return any(_sums_to_1(weights, axis) for axis in range(weights.dim() - 1))


def _sums_to_1(weights, axis):
    """Whether all sums are 1, but those of NaN: there, softmax found no score left."""
    sums = weights.sum(dim=axis)
    sums = sums[~sums.isnan()]
    return sums.numel() > 0 and bool(((sums - 1).abs() < 1e-4).all())


_AXIS = "softmax must run over the keys, the last axis, dim=-1: every row sums to 1."
attention.wrong(
    _AXIS,
    *(
        change
        for axis in ("-2", "0", "1", "2", "-3")
        for other in [(_SOFTMAX, _SOFTMAX.replace("-1", axis))]
        for change in (other, [other, _UNZEROED], [other, _UNZEROED, (_HIDE, "scores")])
    ),
)
attention.mistake(_AXIS, sign=_another_axis)
attention.wrong(
    "all weights together sum to 1, but those of each query should: divide by the sum "
    "over the last axis, .sum(dim=-1, keepdim=True).",
    (_SOFTMAX, "weights = scores.exp() / scores.exp().sum()\n"),
)
attention.wrong(
    "softmax is missing: the scores must become weights.",
    (_SOFTMAX, "weights = scores\n"),
)
attention.wrong(
    "the weights average the values, not the keys.",
    ("weights @ value", "weights @ key"),
)
attention.wrong(
    "the weights average the values, not the scores: softmax makes weights of scores.",
    ("weights @ value", "scores @ value"),
)
attention.wrong(
    "the second thing to return is the weights, not the scores.",
    ("value, weights", "value, scores"),
)
attention.wrong(
    "the keys must be turned in their last two axes only: key.transpose(-2, -1).",
    *instead(
        "key.transpose(-2, -1)", "key.transpose(0, 1)", "key.transpose(1, 2)", "key"
    ),
)
_TURNED = ("key.transpose(-2, -1)", "key.permute(*range(key.dim())[::-1])")
attention.wrong(
    ".T turns all axes around, and here a batch and heads stand before the last two: "
    "query is (2, 3, 5, 9), key (2, 3, 7, 9). Use key.transpose(-2, -1).",
    _TURNED,
    [_TURNED, (_HIDE, "scores"), _UNZEROED],
    [_TURNED, (_HIDE, "scores + mask"), _UNZEROED],
    [_TURNED, (_HIDE, "scores.masked_fill(~mask, 0.0)"), _UNZEROED],
    [_TURNED, (_HIDE, _HIDE.replace("~", "")), _UNZEROED],
)
attention.wrong(
    "the mask is not used: before the softmax, write "
    'scores = scores.masked_fill(~mask, float("-inf")), since masked_fill returns new '
    "scores and leaves the old ones as they are.",
    [(_HIDE, "scores"), _UNZEROED],
)
attention.wrong(
    "a mask can't be added, since True counts as 1: masked_fill hides a score.",
    [(_HIDE, "scores + mask"), _UNZEROED],
    [(_HIDE, "scores - mask.float()"), _UNZEROED],
)
attention.wrong(
    "hide a score by minus infinity, not by plus infinity.",
    [(_HIDE, _HIDE.replace("-inf", "inf")), _UNZEROED],
)
attention.wrong(
    "the mask is upside down: True means that the query may attend to the key.",
    (_HIDE, _HIDE.replace("~", "")),
    [(_HIDE, _HIDE.replace("~", "")), _UNZEROED],
)
attention.wrong(
    "hide keys before the softmax; now the weights don't sum to 1.",
    (_HIDE, "scores"),
    [(_HIDE, "scores"), ("weights.masked_fill(~mask, 0.0)", "weights * mask")],
)
attention.wrong(
    "a score of 0 hides nothing, since exp(0) is 1: fill with minus infinity.",
    [
        (_HIDE, "scores.masked_fill(~mask, 0.0)"),
        _UNZEROED,
    ],
    [
        (_HIDE, "scores * mask"),
        _UNZEROED,
    ],
)
attention.wrong(
    "a mask holds many truths, and is neither true nor false itself: use `if mask is "
    "not None`.",
    ("    if mask is not None:\n        scores", "    if mask:\n        scores"),
)
attention.wrong(
    "return two things, first the output and then the weights.",
    ("value, weights", "value"),
    ("return weights @ value, weights", "return weights"),
)
attention.wrong(
    "return both in the other order: first the output, then the weights.",
    ("return weights @ value, weights", "return weights, weights @ value"),
)


# Chapter 3


def _run_heads(answer, query, key, value, mask, d_model, n_heads, parameters):
    inputs = (query, key, value) if mask is None else (query, key, value, mask)
    sizes = d_model, n_heads
    return use(answer, "MultiHeadAttention", sizes, parameters, *inputs)


def _draw_heads():
    cases = []
    for sizes, mask in (
        ((18, 2), None),
        ((12, 3), _draw_mask(2, 1, 1, 7)),
        ((12, 3), _draw_mask(5, 7)),
    ):
        inputs = torch.randn(2, 5, sizes[0]), *torch.randn(2, 2, 7, sizes[0])
        parameters = _draw_parameters("MultiHeadAttention", *sizes)
        cases.append((*inputs, mask, *sizes, parameters))
    return cases


heads = _grader_of(
    "heads",
    cases=_draw_heads,
    right="Project, split, attend, join, project: every head has its own mixture.",
    run=_run_heads,
    atol=1e-4,
)
_SPLIT = "x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)"
_VIEWED = "x.reshape(x.size(0), self.n_heads, x.size(1), self.d_head)"
_JOIN = "x.transpose(1, 2).flatten(-2)"
_JOINED = "x.reshape(x.size(0), x.size(2), -1)"
_ATTEND = "scaled_dot_product_attention(q, k, v, mask)"
heads.wrong(
    "words and heads are mixed: a view alone doesn't split or join. Split the last "
    "axis, then transpose; transpose, then join.",
    *each_and_both((_SPLIT, _VIEWED), (_JOIN, _JOINED)),
)
heads.wrong(
    "a head owns d_head neighboring numbers: unflatten to (n_heads, d_head).",
    (_SPLIT, "x.unflatten(-1, (self.d_head, self.n_heads)).permute(0, 3, 1, 2)"),
    [
        (_SPLIT, "x.unflatten(-1, (self.d_head, self.n_heads)).permute(0, 3, 1, 2)"),
        (_JOIN, "x.permute(0, 2, 3, 1).flatten(-2)"),
    ],
)
heads.wrong(
    "d_head is d_model / n_heads, the width of one head; the scores are divided by "
    "its square root.",
    *instead(
        _ATTEND,
        "scaled_dot_product_attention(q / self.n_heads**0.5, k, v, mask)",
        "scaled_dot_product_attention(q * self.d_head**0.5, k, v, mask)",
    ),
)
heads.wrong(
    "there are n_heads heads, no more and no fewer.",
    *instead(
        "self.d_model, self.n_heads = d_model, n_heads",
        "self.d_model, self.n_heads = d_model, (n_heads := max(1, n_heads // 2))",
        "self.d_model, self.n_heads = d_model, (n_heads := 1)",
    ),
)
heads.wrong(
    "the joined heads pass through out_proj at the end.",
    ("self.out_proj(self.join_heads(output))", "self.join_heads(output)"),
)
heads.wrong(
    "query, key and value each pass through their own projection.",
    ("self.q_proj(query)", "query"),
    ("self.k_proj(key)", "key"),
    ("self.v_proj(value)", "value"),
    [("self.k_proj(key)", "self.q_proj(key)"), ("v_proj(value)", "q_proj(value)")],
    ("self.k_proj(key)", "self.v_proj(key)"),
    ("self.v_proj(value)", "self.k_proj(value)"),
)
heads.wrong(
    "keys and values are exchanged.",
    (_ATTEND, "scaled_dot_product_attention(q, v, k, mask)"),
)
heads.wrong(
    "keys and values come from key and value: only the query asks.",
    [("self.k_proj(key)", "self.k_proj(query)"), ("v_proj(value)", "v_proj(query)")],
    ("self.v_proj(value)", "self.v_proj(key)"),
    ("self.k_proj(key)", "self.k_proj(value)"),
)
heads.wrong(
    "the mask must be passed on to the attention.",
    (_ATTEND, "scaled_dot_product_attention(q, k, v)"),
)
heads.wrong(
    "return the output only.",
    (
        "self.out_proj(self.join_heads(output))",
        "self.out_proj(self.join_heads(output)), _",
    ),
)


heads.wrong(
    "split_heads ends with transpose(1, 2): the heads stand before the length, and "
    "each attends by itself.",
    (_SPLIT, _SPLIT.removesuffix(".transpose(1, 2)")),
    [(_SPLIT, _SPLIT.removesuffix(".transpose(1, 2)")), (_JOIN, "x.flatten(-2)")],
)
heads.wrong(
    "to join, transpose back first, transpose(1, 2), and then flatten the last two "
    "axes.",
    (_JOIN, "x.flatten(-2)"),
)
heads.wrong(
    "scaled_dot_product_attention returns two things, first the output and then the "
    "weights: output, _ = …",
    *instead("output, _ = ", "_, output = ", "output = "),
    [("output, _ = ", "output = "), ("self.join_heads(output)", "output")],
    *(
        [("output, _ = ", "output = "), (_JOIN, f"x.{name}")]
        for name in ("shape", "size", "permute", "reshape", "view", "flatten")
    ),
)
heads.wrong(
    "the order is query, key, value, mask.",
    *instead(
        _ATTEND,
        "scaled_dot_product_attention(k, q, v, mask)",
        "scaled_dot_product_attention(v, k, q, mask)",
        "scaled_dot_product_attention(k, v, q, mask)",
        "scaled_dot_product_attention(mask, q, k, v)",
    ),
)


# Chapter 4


def _run_masks(answer, name, ids, pad_id):
    """A mask; the causal one needs a length only."""
    given = (ids,) if pad_id is None else (ids, pad_id)
    return answer[name](*given)


# One row has its padding on the left, where the causal mask doesn't hide it.
_IDS = [[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 0, 5, 9, 9]]

masks = _grader_of(
    "masks",
    cases=lambda: [
        ("padding_mask", torch.tensor(_IDS), 9),
        ("causal_mask", 4, None),
        ("padding_mask", torch.tensor([[3, 4, 0, 0]]), 0),
        ("causal_mask", 6, None),
    ],
    right="Padding is hidden as a key, and no query sees what comes after it.",
    run=_run_masks,
)
_PADDED, _TRIANGLE = "(ids != pad_id)", "torch.ones(length, length, dtype=torch.bool)"
_AXES = "[:, None, None, :]"
masks.wrong(
    "the mask is upside down: True must mean that the query may attend.",
    (_PADDED, "(ids == pad_id)"),
    (f"{_TRIANGLE}.tril()", f"{_TRIANGLE}.triu(1)"),
)
masks.wrong(
    "each query sees its own position and those before: row i, columns 0 to i.",
    (".tril()", ".triu(-1)"),
    (f"{_TRIANGLE}.tril()", "torch.eye(length, dtype=torch.bool)"),
)
masks.wrong(
    "triu keeps what comes after each position: what comes before is kept by tril.",
    (".tril()", ".triu()"),
)
masks.wrong(
    "each query sees itself, too: row i, columns 0 to i. tril(-1) leaves the diagonal "
    "out.",
    (".tril()", ".tril(-1)"),
)
masks.wrong(
    "query i must not see i + 1: in training, that is its own answer.",
    (".tril()", ".tril(1)"),
)
masks.wrong("the future is not hidden.", (".tril()", ""))
masks.wrong(
    "padding is not hidden.",
    *instead(_PADDED, "(ids == ids)", "torch.ones_like(ids, dtype=torch.bool)"),
)
masks.wrong(
    "padding is what equals pad_id, whichever number that is.",
    *instead(_PADDED, "(ids != 0)", "(ids > pad_id)", "(ids < pad_id)"),
)
masks.wrong(
    "the shape must be (batch, 1, 1, k_len), with a 1 for the heads and a 1 for the "
    f"queries: yours is {SHAPE}.",
    *instead(
        _AXES,
        "",
        "[:, None]",
        "[None, None]",
        "[None]",
        "[:, None, None, None]",
        "[:, :, None, None]",
    ),
)
masks.wrong(
    f"the causal mask is a square, (length, length): yours is {SHAPE}.",
    *instead(".tril()", ".tril()[None]", ".tril()[None, None]", ".tril()[0]"),
)
masks.wrong(
    "the padding mask hides keys, the last axis, and not queries.",
    *instead(
        _AXES,
        "[:, None, :, None]",
        "[:, None, :, None] & (ids != pad_id)[:, None, None, :]",
    ),
)
masks.wrong(
    "a mask here is boolean, True where the query may attend: ids != pad_id is that "
    "already.",
    (_PADDED, "(ids != pad_id).long()"),
    (_PADDED, "(ids != pad_id).float()"),
)
masks.wrong(
    "a mask here is boolean, True where the query may attend: make the ones with "
    "dtype=torch.bool, or write .bool() at the end.",
    (f"{_TRIANGLE}.tril()", "torch.ones(length, length).tril()"),
    (f"{_TRIANGLE}.tril()", f"{_TRIANGLE}.tril().long()"),
)


# Chapter 5


class _FixedDropout(nn.Module):
    """Drops the same numbers every time, in evaluation too."""

    def forward(self, x):
        """(batch, length, up to 12) -> the same."""
        return x * torch.tensor([0.0, 2.0, 2.0, 0.0, 2.0, 0.0] * 2)[: x.size(-1)]


def _run_sublayers(
    answer, name, x, sublayer, norm_first, sizes, parameters, drops=False
):
    """One of the three modules; a connection is given its sub-layer, too."""
    inputs = (x,) if sublayer is None else (x, sublayer)
    result = use(answer, name, sizes, parameters, *inputs)
    if not drops or result is None:
        return result

    def make(*sizes):
        module = answer[name](*sizes)
        if not hasattr(module, "dropout"):  # left out altogether: it isn't asked
            module = read("sublayers", solution_of("sublayers"))[name](*sizes)
        module.dropout = _FixedDropout()
        return module

    return use({name: make}, name, sizes, parameters, *inputs)


def _draw_sublayers():
    x, bend = 2 * torch.randn(2, 5, 6) + 1, partial(_bend, torch.randn(6, 6))
    cases = [
        ("LayerNorm", x, None, None, (6, 0.5), False),
        ("FeedForward", x, None, None, (6, 11), False),
        ("FeedForward", x, None, None, (6, 11), True),
    ]
    for drops in (False, True):
        for norm_first in (True, False):
            sizes = 6, 0.1, norm_first, 0.01
            cases.append(("SublayerConnection", x, bend, norm_first, sizes, drops))
    return [
        (name, *others, sizes, _draw_parameters(name, *sizes), drops)
        for name, *others, sizes, drops in cases
    ]


def _bend(matrix, x):
    return torch.tanh(x @ matrix) + 0.5


sublayers = _grader_of(
    "sublayers",
    cases=_draw_sublayers,
    right="Each position is normalized and passed through the network by itself, and x "
    "is added as it came in.",
    run=_run_sublayers,
)
_NORM = "F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)"
_BY_HAND = (
    "(x - x.mean(-1, keepdim=True)) / "
    "(x.var(-1, keepdim=True, correction=0) + self.eps).sqrt() * self.gain + self.bias"
)
_PRE = "x + self.dropout(sublayer(self.norm(x)))"
_POST = "self.norm(x + self.dropout(sublayer(x)))"


def _norm(old, new):
    """A layer norm by hand, with a mistake."""
    if _BY_HAND.count(old) != 1:
        raise ValueError(f"{old!r} is not in it, or twice")
    return _NORM, _BY_HAND.replace(old, new)


sublayers.wrong(
    "the variance divides by n, not by n - 1: correction=0.",
    _norm("correction=0", "correction=1"),
    *instead(
        _NORM,
        "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps)"
        " * self.gain + self.bias",
        "(x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)"
        " * self.gain + self.bias",
    ),
)
sublayers.wrong(
    "eps stands inside the root, beside the variance.",
    _norm("+ self.eps).sqrt()", ").sqrt()"),
    _norm("+ self.eps).sqrt()", ").sqrt().add(self.eps)"),
    (_NORM, _NORM.replace(", self.eps)", ")")),
)
sublayers.wrong(
    "divide by the root of the variance.", _norm("+ self.eps).sqrt()", "+ self.eps)")
)
sublayers.wrong(
    "multiply by the gain, and add the bias at the end.",
    _norm(" * self.gain + self.bias", ""),
    _norm(" * self.gain", ""),
    _norm(" + self.bias", ""),
    (_NORM, "F.layer_norm(x, self.gain.shape, eps=self.eps)"),
)
sublayers.wrong(
    "each position has its own mean and variance, over its features: dim=-1.",
    *instead(
        _NORM,
        _BY_HAND.replace("-1", "1"),
        _BY_HAND.replace("-1", "0"),
        _BY_HAND.replace("-1", "(0, 1)"),
        _BY_HAND.replace("-1", "(1, 2)"),
        _BY_HAND.replace("-1", "(0, 1, 2)"),
        _BY_HAND.replace("-1", "1").replace("correction=0", "correction=1"),
        _BY_HAND.replace("-1", "0").replace("correction=0", "correction=1"),
        _BY_HAND.replace("-1", "(0, 1, 2)").replace("=0", "=1"),
    ),
)
sublayers.wrong(
    "keepdim=True keeps the axis of the mean and of the variance, so that both fit x.",
    (_NORM, _BY_HAND.replace(", keepdim=True", "")),
    _norm("x.mean(-1, keepdim=True)", "x.mean(-1)"),
    _norm("x.var(-1, keepdim=True, correction=0)", "x.var(-1, correction=0)"),
)
sublayers.wrong(
    "the variance stands under the root, not the standard deviation: x.var.",
    _norm("x.var(", "x.std("),
    _norm("x.var(-1, keepdim=True, correction=0)", "x.std(-1, keepdim=True)"),
)
sublayers.wrong(
    "subtract the mean first, in parentheses, and then divide.",
    _norm("(x - x.mean(-1, keepdim=True))", "x - x.mean(-1, keepdim=True)"),
)
sublayers.wrong(
    "multiply by self.gain and add self.bias: they are exchanged.",
    (_NORM, _NORM.replace("self.gain, self.bias", "self.bias, self.gain")),
)
sublayers.wrong("subtract the mean.", _norm("(x - x.mean(-1, keepdim=True))", "x"))
sublayers.wrong(
    "nothing is normalized.",
    *instead(_NORM, "x * self.gain + self.bias", "x"),
)
_NETWORK = "self.contract(self.dropout(self.activation(self.expand(x))))"
sublayers.wrong(
    "the activation is missing: without it, two matrices are one.",
    (_NETWORK, "self.contract(self.expand(x))"),
)
sublayers.wrong(
    "the activation is self.activation, the ReLU: max(0, x).",
    *instead(
        _NETWORK,
        "self.contract(F.gelu(self.expand(x)))",
        "self.contract(self.expand(x).sigmoid())",
        "self.contract(self.expand(x).tanh())",
        "self.contract(self.expand(x).softmax(dim=-1))",
    ),
)
sublayers.wrong(
    "self.contract comes last: it leads from d_ff back to d_model.",
    *instead(
        _NETWORK,
        "self.activation(self.expand(x))",
        "self.expand(x)",
        "self.expand(self.activation(self.contract(x)))",
    ),
)
sublayers.wrong(
    "the activation stands between the two matrices.",
    *instead(
        _NETWORK,
        "self.activation(self.contract(self.expand(x)))",
        "self.activation(self.contract(self.activation(self.expand(x))))",
        "self.contract(self.expand(self.activation(x)))",
    ),
)
sublayers.wrong(
    "the network has a dropout of its own, between the activation and self.contract.",
    *instead(
        _NETWORK,
        "self.contract(self.activation(self.expand(x)))",
        "self.dropout(self.contract(self.activation(self.expand(x))))",
        "self.contract(self.activation(self.expand(self.dropout(x))))",
    ),
)
sublayers.wrong(
    "the network adds nothing itself: the connection around it does.",
    (_NETWORK, f"x + {_NETWORK}"),
)
sublayers.wrong(
    "x must be added: the sub-layer writes only a correction.",
    *each_and_both(
        (_PRE, _PRE.removeprefix("x + ")), (_POST, _POST.replace("x + ", ""))
    ),
)
sublayers.wrong(
    "norm_first=True is pre-norm, x + f(norm(x)); otherwise norm(x + f(x)).",
    *instead("if self.norm_first", "if not self.norm_first", "if True", "if False"),
)
sublayers.wrong(
    "the norm is missing.",
    *each_and_both(
        (_PRE, "x + self.dropout(sublayer(x))"),
        (_POST, "x + self.dropout(sublayer(x))"),
    ),
)
sublayers.wrong(
    "add x exactly as it came in; in pre-norm, only the sub-layer reads its norm.",
    (_PRE, _PRE.replace("x + ", "self.norm(x) + ")),
    *instead(
        _POST,
        "x + self.norm(self.dropout(sublayer(x)))",
        "x + self.dropout(self.norm(sublayer(x)))",
    ),
)
sublayers.wrong(
    "in pre-norm, the norm stands before the sub-layer: sublayer(self.norm(x)).",
    *instead(
        _PRE,
        "x + self.norm(sublayer(x))",
        "x + self.dropout(self.norm(sublayer(x)))",
        "x + self.dropout(self.norm(sublayer(self.norm(x))))",
    ),
)
sublayers.wrong(
    "dropout belongs to the sub-layer's output alone, before x is added.",
    *instead(
        _PRE,
        "self.dropout(x + sublayer(self.norm(x)))",
        "x + sublayer(self.norm(x))",
        "x + sublayer(self.dropout(self.norm(x)))",
    ),
    *instead(
        _POST,
        "self.norm(self.dropout(x + sublayer(x)))",
        "self.dropout(self.norm(x + sublayer(x)))",
        "self.norm(x + sublayer(x))",
        "self.norm(x + sublayer(self.dropout(x)))",
    ),
)


# Chapter 6


def _blocks(n_attentions):
    """The book's attentions and a network, for a layer of width 6."""
    names = namespace()
    attentions = [names["MultiHeadAttention"](6, 2) for _ in range(n_attentions)]
    return *attentions, names["FeedForward"](6, 11)


def _run_encoder(answer, x, src_mask, norm_first, parameters):
    sizes = *_blocks(1), 0.1, norm_first, 0.01
    return use(answer, "EncoderLayer", sizes, parameters, x, src_mask)


def _real(*lengths, longest):
    """A padding mask for sentences of these lengths."""
    return (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None, None]


def _draw_encoder():
    parameters = _draw_parameters("EncoderLayer", *_blocks(1))
    x, mask = torch.randn(2, 5, 6), _real(5, 3, longest=5)
    return [(x.clone(), mask, order, parameters) for order in (True, False)]


encoder = _grader_of(
    "encoder",
    cases=_draw_encoder,
    right="Gather from all positions, then think alone; each half adds a correction.",
    run=_run_encoder,
    atol=1e-4,
)
_GATHER = "lambda x: self.self_attn(x, x, x, src_mask)"
_THINK = "return self.feed_forward_connection(x, self.feed_forward)"
_FIRST = f"x = self.self_attn_connection(x, {_GATHER})"
encoder.wrong(
    "the mask must be passed on to the attention.",
    (_GATHER, "lambda x: self.self_attn(x, x, x)"),
)
encoder.wrong(
    "the feed-forward network is missing.",
    (_THINK, "return x"),
)
encoder.wrong(
    "first self-attention, then the feed-forward network.",
    [
        (_FIRST, "x = self.feed_forward_connection(x, self.feed_forward)"),
        (_THINK, f"return self.self_attn_connection(x, {_GATHER})"),
    ],
)
encoder.wrong(
    "each half has its own connection, with its own norm.",
    *each_and_both(
        (_THINK, _THINK.replace("feed_forward_connection", "self_attn_connection")),
        (_FIRST, _FIRST.replace("self_attn_connection", "feed_forward_connection")),
    ),
)
encoder.wrong(
    "call both connections: they add x, and they hold the norms.",
    *instead(
        _FIRST,
        "x = self.self_attn(x, x, x, src_mask)",
        "x = x + self.self_attn(x, x, x, src_mask)",
    ),
    *instead(_THINK, "return self.feed_forward(x)", "return x + self.feed_forward(x)"),
    [
        (_FIRST, "x = self.self_attn(x, x, x, src_mask)"),
        (_THINK, "return self.feed_forward(x)"),
    ],
    [
        (_FIRST, "x = x + self.self_attn(x, x, x, src_mask)"),
        (_THINK, "return x + self.feed_forward(x)"),
    ],
)
encoder.wrong(
    "the connection adds x already; don't add it again.",
    *each_and_both(
        (_FIRST, _FIRST.replace("x = ", "x = x + ")),
        (_THINK, _THINK.replace("return ", "return x + ")),
    ),
)
encoder.wrong(
    "the attention must read what the connection hands it (in pre-norm, the norm of "
    "x) as query, key and value.",
    *instead(
        _GATHER,
        "lambda _: self.self_attn(x, x, x, src_mask)",
        "lambda y: self.self_attn(y, x, x, src_mask)",
    ),
)
encoder.wrong(
    "self-attention takes query, key, value and mask: x, x, x, src_mask.",
    *instead(
        _GATHER,
        "lambda x: self.self_attn(x, src_mask)",
        "lambda x: self.self_attn(x, x, src_mask)",
    ),
)
encoder.wrong(
    "the mask goes in as it is: True means that the query may attend.",
    (_GATHER, "lambda x: self.self_attn(x, x, x, ~src_mask)"),
)
encoder.wrong(
    "a connection takes x first, and then the sub-layer.",
    *each_and_both(
        (_FIRST, f"x = self.self_attn_connection({_GATHER}, x)"),
        (_THINK, "return self.feed_forward_connection(self.feed_forward, x)"),
    ),
)
encoder.wrong(
    "the connection normalizes x already; don't do it again.",
    (
        _GATHER,
        "lambda x: self.self_attn(*[self.self_attn_connection.norm(x)] * 3, src_mask)",
    ),
    (
        _FIRST,
        _FIRST.replace("connection(x", "connection(self.self_attn_connection.norm(x)"),
    ),
)
encoder.wrong(
    "what self-attention has written must go on into the second half.",
    *instead(_FIRST, _FIRST.replace("x = ", "y = "), "x = x"),
)
encoder.wrong(
    "a connection takes the sub-layer itself, a function of one argument, and not "
    "what it returns.",
    (_GATHER, "self.self_attn(x, x, x, src_mask)"),
    (_THINK, _THINK.replace("self.feed_forward)", "self.feed_forward(x))")),
)
encoder.wrong(
    "the sub-layer is called with x alone, and attention needs query, key, value, and "
    "mask: wrap it, lambda x: self.self_attn(x, x, x, src_mask).",
    *instead(
        _GATHER,
        "self.self_attn",
        "lambda x: self.self_attn(x, mask=src_mask)",
        "lambda x: self.self_attn(query=x, mask=src_mask)",
    ),
)


# Chapter 7


def _run_decoder(answer, name, x, memory, masks, norm_first, parameters):
    """A layer; or, of a target and bos_id, what the decoder reads."""
    if name == "shift_right":
        return answer[name](x, memory)
    sizes = *_blocks(2), 0.1, norm_first, 0.01
    return use(answer, name, sizes, parameters, x, memory, *masks)


def _draw_decoder():
    parameters = _draw_parameters("DecoderLayer", *_blocks(2))
    cases = [("shift_right", torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)]
    cases[0] += None, None, None
    # One length for both, so that exchanged masks run; then two.
    for src_len, order in ((5, True), (7, False)):
        source = _real(src_len, src_len - 2, longest=src_len)
        masks = source, torch.ones(5, 5).tril().bool()
        inputs = torch.randn(2, 5, 6), torch.randn(2, src_len, 6) + 1
        cases.append(("DecoderLayer", *inputs, masks, order, parameters))
    return cases[1:] + cases[:1]


decoder = _grader_of(
    "decoder",
    cases=_draw_decoder,
    right="Back at the target, across at the source, then alone; and every position "
    "reads the token before the one it must predict.",
    run=_run_decoder,
    atol=1e-4,
)


def _begins_with_a_row(result, name, target, bos_id, *_):
    """Whether the first row is all bos_id: some leave the others as memory had them."""
    return name == "shift_right" and bool((result[0] == bos_id).all())


_BACK = "self.self_attn(x, x, x, tgt_mask)"
_ACROSS = "self.cross_attn(x, memory, memory, src_mask)"
_LOOK_BACK = "        x = self.self_attn_connection(x, look_back)\n"
_LOOK_ACROSS = "        x = self.cross_attn_connection(x, look_across)\n"
_SHIFT = "torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)"
decoder.wrong(
    "the memory is never read: keys and values of cross-attention come from it.",
    *instead(
        _ACROSS,
        "self.cross_attn(x, x, x, tgt_mask)",
        "self.cross_attn(x, x, x)",
        "self.cross_attn(x, x, x, src_mask)",
    ),
    (_LOOK_ACROSS, ""),
)
decoder.wrong(
    "in cross-attention, the target asks: x is the query, the memory key and value.",
    *instead(
        _ACROSS,
        "self.cross_attn(memory, x, x, src_mask)",
        "self.cross_attn(memory, memory, memory, src_mask)",
        "self.cross_attn(x, memory, x, src_mask)",
        "self.cross_attn(x, x, memory, src_mask)",
        "self.cross_attn(memory, memory, x, src_mask)",
        "self.cross_attn(memory, x, memory, src_mask)",
        "self.cross_attn(memory, x, x, tgt_mask)",
    ),
)
decoder.wrong(
    "the memory is for cross-attention only: in self-attention, x is query, key and "
    "value.",
    *instead(
        _BACK,
        "self.self_attn(x, memory, memory, tgt_mask)",
        "self.self_attn(x, memory, memory, src_mask)",
    ),
)
decoder.wrong(
    "each mask has its own place: tgt_mask in self-attention, src_mask in "
    "cross-attention.",
    (_ACROSS, "self.cross_attn(x, memory, memory, src_mask & tgt_mask)"),
    (_BACK, "self.self_attn(x, x, x, src_mask & tgt_mask)"),
)
decoder.wrong(
    "what each connection returns must go on: x = self.…_connection(x, …).",
    [
        (_LOOK_BACK, _LOOK_BACK.replace("x = ", "")),
        (_LOOK_ACROSS, _LOOK_ACROSS.replace("x = ", "")),
    ],
)
decoder.wrong(
    "a connection takes the sub-layer itself, a function of one argument, and not "
    "what it returns.",
    (_LOOK_BACK, _LOOK_BACK.replace("look_back", "look_back(x)")),
    (_LOOK_ACROSS, _LOOK_ACROSS.replace("look_across", "look_across(x)")),
    (_THINK, _THINK.replace("self.feed_forward)", "self.feed_forward(x))")),
)
decoder.wrong(
    "the sub-layer is called with x alone, and attention needs query, key, value, and "
    "mask: wrap it, lambda x: self.self_attn(x, x, x, tgt_mask), and in "
    "cross-attention with memory as key and value.",
    (_LOOK_BACK, _LOOK_BACK.replace("look_back", "self.self_attn")),
    (_LOOK_ACROSS, _LOOK_ACROSS.replace("look_across", "self.cross_attn")),
    (_BACK, "self.self_attn(x, mask=tgt_mask)"),
    (_ACROSS, "self.cross_attn(x, mask=src_mask)"),
)
decoder.wrong(
    "self-attention takes query, key, value and mask: x, x, x, tgt_mask.",
    *instead(_BACK, "self.self_attn(x, tgt_mask)", "self.self_attn(x, x, tgt_mask)"),
)
decoder.wrong(
    "the masks are exchanged: tgt_mask is for looking back, src_mask for the memory.",
    [
        (_BACK, "self.self_attn(x, x, x, src_mask)"),
        (_ACROSS, "self.cross_attn(x, memory, memory, tgt_mask)"),
    ],
    (_BACK, "self.self_attn(x, x, x, src_mask)"),
    (_ACROSS, "self.cross_attn(x, memory, memory, tgt_mask)"),
)
decoder.wrong(
    "the future is seen: looking back needs tgt_mask.",
    (_BACK, "self.self_attn(x, x, x)"),
    [
        (_BACK, "self.self_attn(x, x, x)"),
        (_ACROSS, "self.cross_attn(x, memory, memory)"),
    ],
)
decoder.wrong(
    "the source's padding is seen: cross-attention needs src_mask.",
    (_ACROSS, "self.cross_attn(x, memory, memory)"),
)
decoder.wrong(
    "the order is: back at the target, across at the source, then the network.",
    [(_LOOK_BACK, ""), (_LOOK_ACROSS, _LOOK_ACROSS + _LOOK_BACK)],
    [
        (_LOOK_BACK, ""),
        (
            _LOOK_ACROSS,
            "        x = self.feed_forward_connection(x, self.feed_forward)\n",
        ),
        (
            _THINK,
            "x = self.self_attn_connection(x, look_back)\n"
            "        return self.cross_attn_connection(x, look_across)",
        ),
    ],
)
decoder.wrong("self-attention is missing.", (_LOOK_BACK, ""))
decoder.wrong("the feed-forward network is missing.", (_THINK, "return x"))
decoder.wrong(
    "each of the three sub-layers has its own connection, with its own norm.",
    (_LOOK_ACROSS, _LOOK_ACROSS.replace("cross_attn_", "self_attn_")),
    *instead(
        _THINK,
        _THINK.replace("feed_forward_connection", "self_attn_connection"),
        _THINK.replace("feed_forward_connection", "cross_attn_connection"),
    ),
)
decoder.wrong(
    "the two attentions have weights of their own: self_attn and cross_attn.",
    (_ACROSS, _ACROSS.replace("cross_attn", "self_attn")),
    (_BACK, _BACK.replace("self.self_attn", "self.cross_attn")),
)
decoder.wrong(
    "the memory is read as it is: the connection hands on the norm of x only.",
    (
        _ACROSS,
        "self.cross_attn(x, *[self.cross_attn_connection.norm(memory)] * 2, src_mask)",
    ),
)
decoder.wrong(
    "call all three connections: they add x, and they hold the norms.",
    *instead(
        _LOOK_BACK, "        x = x + look_back(x)\n", "        x = look_back(x)\n"
    ),
    *instead(
        _LOOK_ACROSS, "        x = x + look_across(x)\n", "        x = look_across(x)\n"
    ),
    *instead(_THINK, "return self.feed_forward(x)", "return x + self.feed_forward(x)"),
    [
        (_LOOK_BACK, "        x = x + look_back(x)\n"),
        (_LOOK_ACROSS, "        x = x + look_across(x)\n"),
        (_THINK, "return x + self.feed_forward(x)"),
    ],
    [
        (_LOOK_BACK, "        x = look_back(x)\n"),
        (_LOOK_ACROSS, "        x = look_across(x)\n"),
        (_THINK, "return self.feed_forward(x)"),
    ],
)
decoder.wrong(
    "each attention must read what its connection hands it (in pre-norm, the norm of "
    "x), not the x outside.",
    [
        ("def look_back(x)", "def look_back(_)"),
        ("def look_across(x)", "def look_across(_)"),
    ],
    ("def look_back(x)", "def look_back(_)"),
    ("def look_across(x)", "def look_across(_)"),
)
decoder.wrong(
    "nothing is shifted: every position would read its own answer.",
    (_SHIFT, "target.clone()"),
)
decoder.wrong(
    "this is shifted left: every position would read the token after its answer.",
    *instead(
        _SHIFT,
        "target.roll(-1, dims=1)",
        "torch.cat([target[:, 1:], torch.full_like(target[:, :1], bos_id)], dim=1)",
    ),
)
decoder.wrong(
    "bos_id stands in front, and of the target all but the last token follows: "
    "target[:, :-1].",
    *instead(
        _SHIFT,
        "torch.cat([torch.full_like(target[:, :1], bos_id), target[:, 1:]], dim=1)",
        "torch.cat([target[:, :-1], torch.full_like(target[:, :1], bos_id)], dim=1)",
    ),
)
decoder.wrong(
    "shift along the row, the second axis: dim=1, and target[:, :-1].",
    *instead(
        _SHIFT,
        "torch.cat([torch.full_like(target[:1], bos_id), target[:-1]], dim=0)",
        "target.roll(1, dims=0)",
        "torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]])",
    ),
)
_ROW = (
    "out[0] is the first row, and not the first column: bos_id stands at the start of "
    "every row, out[:, 0]."
)
_SHIFTED = f"    return {_SHIFT}"
decoder.wrong(
    _ROW,
    *(
        (
            _SHIFTED,
            f"    out = {start}\n"
            + "".join(f"    {line}\n" for line in lines)
            + "    return out",
        )
        for start in ("target.clone()", "torch.zeros_like(target)")
        for order in (1, -1)
        for lines in [("out[:, 1:] = target[:, :-1]", "out[0] = bos_id")[::order]]
    ),
)
decoder.mistake(_ROW, sign=_begins_with_a_row)
decoder.wrong(
    "the first token is bos_id, whichever number that is.",
    (_SHIFT, "torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)"),
)
decoder.wrong(
    "ids are whole numbers.",
    (
        _SHIFT,
        "torch.cat([torch.full(target[:, :1].shape, 1.0 * bos_id), target[:, :-1]], 1)",
    ),
)
decoder.wrong(
    "every row must start with bos_id; roll puts its last token there.",
    (_SHIFT, "target.roll(1, dims=1)"),
)
decoder.wrong(
    "shift by one position, not by two.",
    (
        _SHIFT,
        "torch.cat([torch.full_like(target[:, :2], bos_id), target[:, :-2]], dim=1)",
    ),
)
decoder.wrong(
    "the length stays the same: the last token is read by nobody.",
    *instead(
        _SHIFT,
        "torch.cat([torch.full_like(target[:, :1], bos_id), target], dim=1)",
        "target[:, :-1]",
    ),
)


# Chapter 8


def _run_model(answer, src, tgt_in, config, parameters):
    return use(answer, "Transformer", (config,), parameters, src, tgt_in)


def _draw_model():
    """A tied pre-norm model; a post-norm model with two vocabularies.

    The target has no padding: nobody reads what is predicted there. The second's
    padding is 3, and 0 a token like others.
    """
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 11}
    sizes |= {"n_encoder_layers": 1, "n_decoder_layers": 1}
    src = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 4, 10, 5], [1, 9, 6, 7]])
    cases = []
    for tgt_vocab_size, norm_first, pad_id in ((13, True, 0), (11, False, 3)):
        config = TransformerConfig(
            src_vocab_size=13,
            tgt_vocab_size=tgt_vocab_size,
            norm_first=norm_first,
            tie_embeddings="all" if norm_first else "none",
            pad_id=pad_id,
            **sizes,
        )
        parameters = _draw_parameters("Transformer", config)
        cases.append((src.clone(), tgt_in.clone(), config, parameters))
        src, tgt_in = (torch.where(ids == 0, 3, ids) for ids in (src, tgt_in))
        src[0, 1] = tgt_in[0, 1] = 0
    return cases


model = _grader_of(
    "model",
    cases=_draw_model,
    right="From ids to logits: the whole Transformer.",
    run=_run_model,
    atol=1e-3,
)
_HEAD = "self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))"
_ENCODED = "self.encoder(self.src_embeddings(src), src_mask)"
_DECODED = "self.decoder(x, memory, src_mask, tgt_mask)"
_CAUSAL = "tgt_mask = tgt_mask & causal_mask(tgt_in.size(1))"
_READ, _READS = "x = self.tgt_embeddings(tgt_in)", ("src", "tgt_in")
model.wrong(
    "return logits: no softmax follows lm_head.",
    *instead(
        _HEAD,
        f"{_HEAD}.softmax(dim=-1)",
        f"{_HEAD}.log_softmax(dim=-1)",
        f"{_HEAD}.argmax(dim=-1)",
    ),
)
model.wrong(
    "embed the ids first: encoder and decoder read vectors.",
    (_ENCODED, "self.encoder(src, src_mask)"),
    (_READ, "x = tgt_in"),
)
model.wrong(
    "the order is tgt_in, memory, src_mask, tgt_mask.",
    (_HEAD, "self.lm_head(self.decode(memory, tgt_in, src_mask, tgt_mask))"),
)
model.wrong(
    "tgt_in is shifted already: read it as it is.",
    (_READ, "x = self.tgt_embeddings(tgt_in.roll(1, dims=1))"),
)
model.wrong(
    "the causal mask is for the target only: the source is known as a whole.",
    (
        "src_mask = padding_mask(src, self.config.pad_id)",
        "src_mask = padding_mask(src, self.config.pad_id) & causal_mask(src.size(1))",
    ),
    (_ENCODED, f"{_ENCODED[:-1]} & causal_mask(src.size(1)))"),
)
model.wrong(
    "the causal mask is as long as the target: tgt_in.size(1).",
    (_CAUSAL, _CAUSAL.replace("size(1)", "size(0)")),
)
model.wrong(
    "lm_head is missing: it turns features into a logit for each token.",
    (_HEAD, _HEAD.removeprefix("self.lm_head(").removesuffix(")")),
)
model.wrong(
    "return the logits of all positions.",
    *instead(_HEAD, f"{_HEAD}[:, -1]", f"{_HEAD}[:, -1:]"),
)
model.wrong(
    "the decoder sees the future: its self-attention needs the causal mask.",
    (_CAUSAL, "tgt_mask = tgt_mask"),
    (_HEAD, "self.lm_head(self.decode(tgt_in, memory, src_mask))"),
    *instead(_DECODED, "self.decoder(x, memory, src_mask)", "self.decoder(x, memory)"),
)
model.wrong(
    "the source's padding is seen: the encoder and cross-attention need its mask.",
    *each_and_both(
        (_ENCODED, "self.encoder(self.src_embeddings(src))"),
        (_DECODED, "self.decoder(x, memory, None, tgt_mask)"),
    ),
)
_SRC_PAD, _TGT_PAD = (f"padding_mask({ids}, self.config.pad_id)" for ids in _READS)
_SRC_0, _TGT_0 = (f"padding_mask({ids}, 0)" for ids in _READS)
model.wrong(
    "padding is what equals config.pad_id, whichever number that is.",
    *each_and_both((_SRC_PAD, _SRC_0), (_TGT_PAD, _TGT_0)),
)
model.wrong(
    "the stack's last norm is missing: call self.encoder and self.decoder themselves.",
    (
        f"return {_ENCODED}",
        "x = self.src_embeddings(src)\n"
        "        for layer in self.encoder.layers:\n"
        "            x = layer(x, src_mask)\n"
        "        return x",
    ),
    (
        f"return {_DECODED}",
        "for layer in self.decoder.layers:\n"
        "            x = layer(x, memory, src_mask, tgt_mask)\n"
        "        return x",
    ),
)
model.wrong(
    "call the embeddings themselves: they scale the token vectors and add positions.",
    *each_and_both(
        (_READ, "x = self.tgt_embeddings.tokens(tgt_in)"),
        (_ENCODED, "self.encoder(self.src_embeddings.tokens(src), src_mask)"),
    ),
    (_READ, "x = self.tgt_embeddings.scale * self.tgt_embeddings.tokens(tgt_in)"),
)
model.wrong(
    "source and target have embeddings of their own.",
    (_READ, "x = self.src_embeddings(tgt_in)"),
    (_ENCODED, "self.encoder(self.tgt_embeddings(src), src_mask)"),
)
model.wrong(
    "the encoder is missing: the memory is what it makes of the source.",
    (f"return {_ENCODED}", "return self.src_embeddings(src)"),
)
model.wrong(
    "the decoder is missing.",
    (f"return {_DECODED}", "return x"),
)


# Chapters 0 and 11


class _Model:
    """Answers as a Transformer does: the next token depends on all that was read."""

    def __init__(self):
        self.reads_left = 40

    def __call__(self, src, tgt_in):
        """(1, src_len), (1, tgt_len) -> logits (1, tgt_len, 29)."""
        return self.lm_head(self.decode(tgt_in, self.encode(src)))

    def encode(self, src, src_mask=None):
        """(1, src_len) -> (1, 1, 1)."""
        return src.sum(dim=1)[:, None, None]

    def decode(self, tgt_in, memory, src_mask=None, tgt_mask=None):
        """(1, tgt_len) -> (1, tgt_len, 1)."""
        self.reads_left -= 1
        if self.reads_left < 0:
            raise Mistake(
                "this never ends: a target is cut when it has max_len tokens."
            )
        read = tgt_in * 7 + 3 * torch.arange(tgt_in.size(1))
        return read.cumsum(dim=1)[..., None] + memory

    def lm_head(self, features):
        """(..., 1) -> (..., 29)."""
        return (features * torch.arange(1, 30) * 0.37).sin()


def _run_search(answer, src, bos_id, eos_id, max_len):
    return answer["greedy_decode"](_Model(), src, bos_id, eos_id, max_len)


search = _grader_of(
    "search",
    # The first ends with the fifth token, the second is cut.
    cases=lambda: [
        (torch.tensor([[5, 7, 9, 4, 3]]), 2, 7, 12),
        (torch.tensor([[5, 7, 9, 4, 3]]), 2, 30, 6),
    ],
    right="The likeliest token, again and again, until the end.",
    run=_run_search,
)


_LIKELIEST = "logits[0, -1].argmax().item()"
search.wrong(
    "take the likeliest token: the one with the largest logit.",
    *instead(
        _LIKELIEST,
        "logits[0, -1].topk(2).indices[1].item()",
        "logits[0, -1].argmin().item()",
    ),
)
search.wrong(
    "compare the tokens of the last position, logits[0, -1]: one number for each "
    "token of the vocabulary.",
    *instead(
        _LIKELIEST,
        "logits.argmax().item()",
        "logits[0].argmax(dim=0)[-1].item()",
        "logits[0, :, -1].argmax().item()",
        "logits[:, -1].argmax(dim=0)[0].item()",
    ),
)
search.wrong(
    "argmax gives the likeliest token's id; max gives its logit.",
    (_LIKELIEST, "logits[0, -1].max().item()"),
)
search.wrong(
    "the model takes the source first, then the target.",
    ("model(src, torch.tensor([target]))", "model(torch.tensor([target]), src)"),
)
search.wrong(
    "return after the loop, and not in it: one token is no sentence yet.",
    ("    return target[1:]", "        return target[1:]"),
)
search.wrong(
    "the model reads batches, here of one: src as it is, and torch.tensor([target]).",
    ("tensor([target])", "tensor(target)"),
    ("= model(src,", "= model(src[0],"),
)
search.wrong(
    "a target starts with bos_id.",
    [
        ("target = [bos_id]", "target = [eos_id]"),
        ("target[-1] != eos_id and ", "(len(target) < 2 or target[-1] != eos_id) and "),
    ],
    [
        ("target = [bos_id]", "target = [0]"),
        ("target[-1] != eos_id and ", "(len(target) < 2 or target[-1] != eos_id) and "),
    ],
)
search.wrong(
    "go on while the last token is not eos_id, and stop when it is.",
    ("!= eos_id", "== eos_id"),
)
search.wrong(
    "take the last row of the logits: it is about the token that comes next.",
    (_LIKELIEST, "logits[0, 0].argmax().item()"),
)
search.wrong(
    "the model must read the whole target each time, and not its last token only.",
    ("tensor([target])", "tensor([target[-1:]])"),
)
search.wrong("stop after eos_id.", ("target[-1] != eos_id and ", ""))
search.wrong(
    "eos_id belongs to the target: it is the last of its ids.",
    ("return target[1:]", "return [token for token in target[1:] if token != eos_id]"),
)
search.wrong("bos_id doesn't belong to the result.", ("target[1:]", "target"))
search.wrong(
    "a target has at most max_len tokens, without bos_id.",
    *instead(
        "len(target) <= max_len", "len(target) < max_len", "len(target) <= max_len + 1"
    ),
)
search.wrong(
    "this never ends: a target is cut when it has max_len tokens.",
    (" and len(target) <= max_len", ""),
)
search.wrong(
    "return a list of ids, without bos_id.",
    *instead(
        "return target[1:]",
        "return torch.tensor(target[1:])",
        "return torch.tensor([target[1:]])",
        "return [target[1:]]",
    ),
)


GRADERS = {
    grader.part: grader
    for grader in (
        positions, attention, heads, masks, sublayers, encoder, decoder, model, search,
    )
}  # fmt: skip
