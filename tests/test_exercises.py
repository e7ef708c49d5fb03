"""Every grader lets its solution pass and names each mistake of its table."""

import importlib
import pkgutil
import re
import subprocess
import sys
from contextlib import suppress

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import transformer_lib as tl
from transformer_book import exercises
from transformer_book.exercises.grading import Feedback, Grader, Mistake, run_module
from transformer_book.exercises.masks import MISTAKES as FLAWS
from transformer_book.exercises.masks import mystery_attention
from transformer_lib.convert import sinusoid_halves

MODULES = [
    module.name
    for module in pkgutil.iter_modules(exercises.__path__, f"{exercises.__name__}.")
]
GRADERS = {
    name.removeprefix("check_"): grader
    for module in MODULES
    for name, grader in vars(importlib.import_module(module)).items()
    if isinstance(grader, Grader)
}
FUNCTIONS = [name for name, grader in GRADERS.items() if callable(grader.solve)]
DIRECT = [name for name in FUNCTIONS if GRADERS[name].run is Grader.run]
MISTAKES = {
    f"{name}: {mistake.sentence}": (GRADERS[name], mistake)
    for name in GRADERS
    for mistake in GRADERS[name].mistakes
}
CHANGED = {"identity_start", "pruning", "accumulation"}  # graded by what they change


def ask(grader: Grader, answer: object) -> Feedback:
    """Grade an answer, which may have several parts."""
    return grader(*(answer if isinstance(answer, tuple) else [answer]))


# What holds for every grader.


@pytest.mark.parametrize("name", GRADERS)
def test_the_solution_passes_and_leaves_the_random_numbers_alone(name):
    before = torch.get_rng_state()
    feedback = ask(GRADERS[name], GRADERS[name].solve)
    assert feedback.status == "right", feedback
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("grader", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_gets_its_own_sentence(grader, mistake):
    sentence = re.escape(mistake.sentence)
    if mistake.sign:
        sentence = re.sub(r"\\\{[^}]*\\\}", ".+", sentence)
    assert mistake.answers
    for answer in mistake.answers:
        feedback = ask(grader, answer)
        assert feedback.status == "wrong"
        assert re.fullmatch(f"(.*: )?{sentence}", feedback.message), feedback
        for case in grader.make_cases():  # two that fail alike would be the same
            with suppress(Mistake):
                grader.run(answer, *case)


@pytest.mark.parametrize("name", GRADERS)
def test_no_answer_is_not_attempted(name):
    for nothing in (None, ...):
        assert repr(GRADERS[name](nothing)) == "… Not attempted yet."
        if name in FUNCTIONS:
            assert GRADERS[name](lambda *case, it=nothing: it).status == "open"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_error_and_a_wrong_type_are_told(name):
    wrong = GRADERS[name](lambda *case: object())
    assert wrong.status == "wrong" or name in CHANGED, wrong
    failed = GRADERS[name](lambda *case: 1 / 0)
    assert failed.status == "wrong"
    assert "your function raised ZeroDivisionError: division" in failed.message


@pytest.mark.parametrize("name", DIRECT)
def test_wrong_shapes_and_an_argument_changed_in_place_are_named(name):
    grader = GRADERS[name]

    def spoil(*case):
        result = grader.solve(*case)
        result = result.clone() if isinstance(result, Tensor) else result
        for argument in case:
            if isinstance(argument, Tensor):
                argument.zero_()
            elif isinstance(argument, list):
                argument.clear()
        return result

    case = grader.make_cases()[0]
    changeable = any(isinstance(argument, Tensor | list) for argument in case)
    message = "was changed in place" if changeable else grader.right
    assert message in grader(spoil).message
    if isinstance(grader.solve(*case), Tensor):
        longer = grader(lambda *case: grader.solve(*case)[None])
        assert re.search("expected .*, but got .* of shape", longer.message), longer


def test_graders_are_imported_without_what_is_slow():
    slow = "{'lightning', 'transformers', 'altair', 'matplotlib'}"
    modules = ", ".join(MODULES)
    code = f"import sys, {modules}; sys.exit(bool({slow} & {{*sys.modules}}))"
    subprocess.run([sys.executable, "-c", code], check=True)


# The engine, on small graders.

check_double = Grader(
    lambda x: 2 * x,
    lambda: [(2,), (3,), (0,)],
    "Doubled.",
)
check_double.mistake("x is squared.", lambda x: x * x)
check_double.mistake("it is always 5.", lambda x: 5)
check_double.mistake("2 is added.", lambda x: x + 2)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: x**2, "x = 3: x is squared."),  # right for 2
        (lambda x: x + 2, "x = 3: 2 is added."),  # 5 here, but not always
        (lambda x: 4 if x == 2 else 5, "x = 3: it is always 5."),  # nothing fits all
        (lambda x: 9, "x = 2: expected 4, but got 9."),
        (lambda x: 4 if x == 2 else None, "x = 3: nothing is returned here."),
        (lambda x: 12 // x * x // 3, "x = 3: expected 6, but got 4."),
    ],
)
def test_a_mistake_is_named_in_the_first_case_where_it_shows(answer, message):
    assert check_double(answer).message == message


@pytest.mark.parametrize(
    ("solution", "answer", "message"),
    [
        (torch.eye(2), torch.zeros(2, 2), "the entry at (0, 0) is 0, but should be 1."),
        (torch.eye(2), torch.tensor([[1, 0], [0, torch.nan]]), "(1, 1) is nan"),
        (torch.eye(2), torch.eye(2).long(), "expected numbers of shape (2, 2), but"),
        ((torch.eye(2), torch.eye(3)), [torch.eye(2), -torch.eye(3)], "(0, 0) is -1"),
        ((1.0, 2.0), [torch.tensor(1.0), 2], "✓"),
        ((1.0, 2.0), (1.0, 2.0, 3.0), "expected (1.0, 2.0), but got (1.0, 2.0, 3.0)."),
        (["a"], [1], "expected list of str, but got list of number."),
        ({1}, None, "…"),
    ],
)
def test_a_result_is_compared_part_by_part(solution, answer, message):
    grader = Grader(lambda x: solution, lambda: [(1,)], "Right.")
    assert message in repr(grader(lambda x: answer))


class Shifted(tl.LayerNorm):
    """A layer norm with a mistake."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


check_norm = Grader(
    tl.LayerNorm,
    lambda: [((7,), (torch.randn(3, 7),), {"gain": 2 * torch.ones(7)})],
    "It normalizes.",
    run=run_module,
)
check_norm.mistake("the bias is 1.", Shifted)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (tl.LayerNorm, "✓ It normalizes."),
        (Shifted, "the bias is 1."),
        (nn.Module, "… Not attempted yet."),
        (nn.Identity, "the module needs a parameter gain."),
        (lambda width: tl.LayerNorm(width + 1), "size mismatch for gain"),
        (lambda width: 3, "'int' object has no attribute"),
    ],
)
def test_a_module_gets_known_weights_and_is_graded_by_what_it_computes(answer, message):
    assert message in repr(check_norm(answer))


# The solutions are right: others' code, and the library's, passes as well.


class GroupedByTorch(tl.MultiHeadAttention):
    """Grouped-query attention by PyTorch's own option, without biases."""

    def __init__(self, d_model, n_heads, n_groups):
        super().__init__(d_model, n_heads, bias=False)
        self.k_proj = nn.Linear(d_model, n_groups * self.d_head)
        self.v_proj = nn.Linear(d_model, n_groups * self.d_head)

    def forward(self, query, key, value):
        projected = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        heads = (x.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for x in projected)
        z = F.scaled_dot_product_attention(*heads, enable_gqa=True)
        return self.out_proj(z.transpose(1, 2).flatten(2))


class Renamed(nn.RMSNorm):
    """PyTorch's own norm, whose weight gets the name that was asked for."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = self.weight


@torch.no_grad()
def prune_by_values(attention, head):
    rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
    attention.v_proj.weight[rows] = attention.v_proj.bias[rows] = 0.0


def size_of_a_real_cache(n_layers, d_model, n_sentences, n_beams, tgt_len, src_len):
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "d_model": d_model}
    sizes |= {"n_heads": 2, "d_ff": 5, "n_decoder_layers": n_layers}
    model = tl.Transformer(tl.TransformerConfig(**sizes, n_encoder_layers=1))
    decoder = tl.IncrementalDecoder(model, capacity=tgt_len)
    with torch.no_grad():
        decoder.prefill(torch.full((n_sentences, src_len), 4), n_beams=n_beams)
        decoder.read(torch.full((n_sentences * n_beams, tgt_len), 4))
    return decoder.cache.n_bytes


def size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "cache_size": size_of_a_real_cache,
        "grouped_query": GroupedByTorch,
        "parameters": lambda d, h, bias: size(tl.MultiHeadAttention(d, h, bias=bias)),
        "parameter_count": lambda *sizes: size(
            tl.Transformer(exercises.full_model._config(*sizes))
        ),
        "pruning": prune_by_values,
        "rms_norm": Renamed,
        "schedule": tl.learning_rate,
        "table": lambda table: sinusoid_halves(*table.shape, "marian"),
        "token_loss": lambda logits, tgt_out, pad_id: F.cross_entropy(
            logits.mT, tgt_out, ignore_index=pad_id
        ),
    }.items(),
)
def test_other_right_answers_pass(name, answer):
    feedback = ask(GRADERS[name], answer)
    assert feedback.status == "right", feedback


def test_every_mystery_behaves_otherwise_and_c_as_the_library():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    outputs = {
        name: mystery_attention(name)(x, x, tl.causal_mask(6)) for name in "ABCDE"
    }
    for name, output in outputs.items():
        assert output.isfinite().all()
        same = [other for other in outputs if torch.allclose(output, outputs[other])]
        assert same == [name]
    expected, _ = tl.scaled_dot_product_attention(x, x, x, tl.causal_mask(6))
    torch.testing.assert_close(outputs["C"], expected)
    assert {*GRADERS["diagnosis"].solve.values()} == {*FLAWS}
