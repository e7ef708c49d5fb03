"""Every grader lets its solution pass and names each mistake of its table."""

import ast
import contextlib
import importlib
import io
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_book.exercises import full_model, masks, reading
from transformer_book.exercises.attention import check_softmax
from transformer_book.exercises.caching import check_cache_size
from transformer_book.exercises.dialects import check_table, check_unpack
from transformer_book.exercises.embeddings import check_segments
from transformer_book.exercises.encoder import check_sorting_network
from transformer_book.exercises.grading import Feedback, Grader, Seen
from transformer_book.exercises.masks import check_diagnosis, mystery_attention
from transformer_book.exercises.multi_head import check_grouped_query
from transformer_book.exercises.residual import check_connection, check_rms_norm
from transformer_lib import exercises
from transformer_lib.generation.incremental import IncrementalDecoder
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import (
    Embeddings,
    PositionalEncoding,
    sinusoid_table,
)
from transformer_lib.model.layers import DecoderLayer, LayerNorm, SublayerConnection
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loop import learning_rate

GRADERS = {
    f"{module.name}.{name}": grader
    for module in pkgutil.iter_modules(exercises.__path__)
    for name, grader in vars(
        importlib.import_module(f"{exercises.__name__}.{module.name}")
    ).items()
    if isinstance(grader, Grader)
}
FUNCTIONS = [name for name, grader in GRADERS.items() if callable(grader.solution)]
MISTAKES = [
    (name, text) for name, grader in GRADERS.items() for text in grader.mistakes
]
CHANGED = {  # what counts is what the answer does to its argument
    "residual.check_identity_start",
    "reading.check_pruning",
    "training.check_accumulation",
}

DIRECT = [name for name in FUNCTIONS if GRADERS[name].run is Grader.run]

each_grader = pytest.mark.parametrize("name", GRADERS)
each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_direct = pytest.mark.parametrize("name", DIRECT)  # called with the case itself


def ask(grader: Grader, answer: object) -> Feedback:
    """Grade an answer, which may have several parts."""
    return grader(*answer) if isinstance(answer, tuple) else grader(answer)


# What holds for every grader.


@each_grader
def test_the_solution_passes_and_leaves_the_random_numbers_alone(name):
    grader, before = GRADERS[name], torch.get_rng_state()
    assert ask(grader, grader.solution).passed, ask(grader, grader.solution)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "sentence"), MISTAKES)
def test_each_mistake_gets_its_own_sentence(name, sentence):
    told = re.escape(sentence)
    if isinstance(GRADERS[name].mistakes[sentence], Seen):
        told = re.sub(r"\\\{[^}]*\\\}", ".+", told)
    for answer in GRADERS[name].answers_with(sentence):
        feedback = ask(GRADERS[name], answer)
        assert feedback.status == "wrong"
        assert re.fullmatch(f"(.*: )?{told}", feedback.message), feedback
        assert "{}" not in feedback.message


@each_grader
def test_no_answer_is_not_attempted(name):
    for nothing in (None, ...):
        assert repr(GRADERS[name](nothing)) == "… Not attempted yet."
        if name in FUNCTIONS:
            assert GRADERS[name](lambda *given, it=nothing: it).status == "open"


@each_function
def test_an_error_in_the_answer_is_reported(name):
    feedback = GRADERS[name](lambda *given: 1 / 0)
    assert feedback.status == "wrong"
    assert "your function raised ZeroDivisionError: division" in feedback.message


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - CHANGED))
def test_a_wrong_type_is_named(name):
    feedback = GRADERS[name](lambda *given: object())
    assert feedback.status == "wrong"
    assert re.search(r"expected .*, but got object\.", feedback.message), feedback


@each_direct
def test_wrong_shapes_and_numbers_are_named(name):
    """Wrong in a way that is in no table."""
    solve = (grader := GRADERS[name]).solution
    result = solve(*grader.make_cases()[0])
    if isinstance(result, Tensor):
        longer = grader(lambda *given: solve(*given)[None])
        assert "expected shape (" in longer.message, longer
        if result.is_floating_point():
            nothing = grader(lambda *given: solve(*given) * torch.nan)
            assert "numbers are NaN or infinity." in nothing.message
        turn = result.dtype == torch.bool
        other = grader(lambda *g: solve(*g).flip(-1) if turn else 3 * solve(*g) + 1000)
    elif isinstance(result, int | float):
        other = grader(lambda *given: 3 * solve(*given) + 1000)
    else:
        return
    told = "some numbers are off|the entry at .* should be|expected .*, but got|"
    told += "but so do|must start with"  # what graders find without an example
    assert other.status == "wrong"
    assert re.search(told, other.message), other


@each_direct
def test_an_argument_that_is_changed_in_place_is_named(name):
    grader = GRADERS[name]

    def answer(*given):
        result = grader.solution(*given)
        result = result.clone() if isinstance(result, Tensor) else result
        for argument in given:
            if isinstance(argument, Tensor):
                argument.zero_()
            elif isinstance(argument, list | set):
                argument.clear()
        return result

    feedback, changeable = grader(answer), (Tensor, list, set)
    if any(isinstance(argument, changeable) for argument in grader.make_cases()[0]):
        assert "was changed in place" in feedback.message, feedback
    else:
        assert feedback.passed


# The engine, on a small grader.


class Shifted(LayerNorm):
    """A layer norm with a mistake."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


def run_norm(module: type, width: int, x: Tensor) -> Tensor:
    norm = module(width)
    nn.init.constant_(norm.gain, 2.0)
    return norm(x)


check_norm = Grader(
    "a class: LayerNorm(d_model), with a gain and a bias",
    cases=lambda: [(4, torch.randn(3, 4)), (7, torch.randn(2, 7))],
    run=run_norm,
    solution=LayerNorm,
    right="It normalizes.",
    mistakes={
        "the bias is 1.": Shifted,
        "the last number is {}.": Seen(
            lambda y, d, x: y[-1, -1].item() == 3 and 3, None
        ),
    },
)


def test_a_class_is_graded_by_what_its_modules_compute():
    assert repr(check_norm(LayerNorm)) == "✓ It normalizes."
    told = "✗ width = 4, x = tensor of shape (3, 4): the bias is 1."
    assert repr(check_norm(Shifted)) == told
    feedback = check_norm(lambda width: nn.Linear(width, width))
    assert "AttributeError: 'Linear' object has no attribute 'gain'" in feedback.message
    assert check_norm.__doc__ == check_norm.task


def double(x):
    return 2 * x


check_double = Grader(
    "x -> 2 * x",
    cases=lambda: [(2,), (3,), (0,)],
    solution=double,
    right="Doubled.",
    mistakes={
        "x is squared.": lambda x: x * x,
        "it is always 5.": lambda x: 5,
        "2 is added.": lambda x: x + 2,
    },
)


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


# Right answers of another kind than the solution.


class SegmentsByTheLibrary(nn.Module):
    def __init__(self, vocab_size, n_segments, d_model):
        super().__init__()
        self.words = Embeddings(vocab_size, PositionalEncoding(9, d_model))
        self.tokens, self.segments = (
            self.words.tokens,
            nn.Embedding(n_segments, d_model),
        )

    def forward(self, ids, segments):
        return self.words(ids) + self.segments(segments)


def forward_without_target_padding(model, src, tgt_in):
    mask = padding_mask(src, 0)
    features = model.decode(
        tgt_in, model.encode(src, mask), mask, causal_mask(tgt_in.size(1))
    )
    return model.lm_head(features)


def attend_by_the_module(query, key, value, matrices, n_heads):
    attention = MultiHeadAttention(12, n_heads, bias=False)
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    for name, matrix in zip(names, matrices, strict=True):
        attention.get_submodule(name).weight = nn.Parameter(matrix.T)
    nn.init.zeros_(attention.out_proj.bias)
    return attention(query, key, value)


class GroupedByTorch(MultiHeadAttention):
    """Grouped-query attention by PyTorch's own option, without biases."""

    def __init__(self, d_model, n_heads, n_groups):
        super().__init__(d_model, n_heads, bias=False)
        self.k_proj = nn.Linear(d_model, n_groups * self.d_head)
        self.v_proj = nn.Linear(d_model, n_groups * self.d_head)
        self.kernel = lambda q, k, v, *rest: F.scaled_dot_product_attention(
            q, k, v, enable_gqa=True
        )

    def split_heads(self, x):
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


class LayerWithAnotherAttention(DecoderLayer):
    def __init__(self, back, first, second, feed_forward, *options):
        super().__init__(back, first, feed_forward, *options)
        self.second = second
        self.second_connection = SublayerConnection(back.d_model, *options)

    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        a, b = self.cross_attn, self.second
        x = self.self_attn_connection(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.cross_attn_connection(x, lambda x: a(x, first, first, first_mask))
        x = self.second_connection(x, lambda x: b(x, second, second, second_mask))
        return self.feed_forward_connection(x, self.feed_forward)


@torch.no_grad()
def prune_by_values(attention, head):
    rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
    attention.v_proj.weight[rows] = attention.v_proj.bias[rows] = 0.0


class NormByLength(nn.Module):
    """RMS norm: the length of a vector is its root mean square times sqrt(d_model)."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        square = torch.linalg.vector_norm(x, dim=2) ** 2 / len(self.gain)
        return torch.einsum("bld,bl,d->bld", x, (square + self.eps) ** -0.5, self.gain)


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "embeddings.check_segments": SegmentsByTheLibrary,
        "decoder.check_two_sources": LayerWithAnotherAttention,
        "full_model.check_forward": forward_without_target_padding,
        "multi_head.check_grouped_query": GroupedByTorch,
        "multi_head.check_multi_head": attend_by_the_module,
        "multi_head.check_parameters": lambda d, h, bias: sum(
            p.numel() for p in MultiHeadAttention(d, h, bias=bias).parameters()
        ),
        "reading.check_pruning": prune_by_values,
        "residual.check_rms_norm": NormByLength,
        "training.check_schedule": learning_rate,
        "training.check_token_loss": lambda logits, tgt_out, pad_id: F.cross_entropy(
            logits.mT, tgt_out, ignore_index=pad_id
        ),
    }.items(),
)
def test_other_right_answers_pass(name, answer):
    assert GRADERS[name](answer).passed, GRADERS[name](answer)


def test_a_norm_must_be_a_module_with_a_gain_of_the_right_shape():
    feedback = check_rms_norm(nn.Identity)
    assert (
        feedback.message == "the module has no parameter named gain; use nn.Parameter."
    )
    feedback = check_rms_norm(lambda d_model, eps: NormByLength(d_model + 1, eps))
    assert feedback.message == "expected a gain of shape (7,), but got (8,)."


def test_a_class_without_a_forward_is_not_attempted():
    assert repr(check_rms_norm(nn.Module)) == "… Not attempted yet."


def test_a_sorting_network_passes_at_any_width():
    w_1, b_1, w_2, b_2 = check_sorting_network.solution
    wider = torch.cat([w_1, w_1], dim=1), torch.zeros(2), torch.cat([w_2, 0 * w_2]), b_2
    assert "with d_ff = 2" in check_sorting_network(*wider).message
    assert check_sorting_network(w_1, b_1, w_2, ...).status == "open"
    for n in range(4):
        wrong = [w_1, b_1, w_2, b_2]
        wrong[n] = 1.0
        name = ("W_1", "b_1", "W_2", "b_2")[n]
        assert f"{name} should be a tensor" in check_sorting_network(*wrong).message


def test_the_packed_order_is_pytorchs():
    layer = nn.MultiheadAttention(6, 2, bias=False, batch_first=True)
    layer.out_proj.weight.data.copy_(torch.eye(6))
    inputs = torch.randn(3, 1, 4, 6).unbind(0)
    matrices = check_unpack.solution(layer.in_proj_weight)
    q, k, v = (
        (x @ w.T).unflatten(-1, (2, 3)).transpose(1, 2)
        for x, w in zip(inputs, matrices, strict=True)
    )
    expected = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(*inputs)[0], expected)


def test_the_solution_makes_marians_own_table():
    import transformers

    options = transformers.MarianConfig(
        d_model=16, encoder_layers=0, decoder_layers=0, max_position_embeddings=7
    )
    theirs = transformers.MarianMTModel(options).model.encoder.embed_positions.weight
    torch.testing.assert_close(check_table.solution(sinusoid_table(7, 16)), theirs)


def test_the_size_asked_for_is_the_size_of_a_cache():
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "d_model": 12, "n_heads": 2}
    sizes |= {"d_ff": 5, "n_encoder_layers": 1, "n_decoder_layers": 3}
    decoder = IncrementalDecoder(Transformer(TransformerConfig(**sizes)), capacity=11)
    with torch.no_grad():
        decoder.prefill(torch.full((5, 13), 4), n_beams=7)
        decoder.read(torch.full((35, 11), 4))
    cache = decoder.cache
    assert cache.n_bytes == check_cache_size.solution(3, 12, 5, 7, 11, 13)


# The book's own solutions: answers that were written without these tables.


def names(node: ast.AST, context: type) -> set[str]:
    """Names read or bound in a piece of code; its arguments and functions are both."""
    nodes = list(ast.walk(node))
    found = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, context))
    inner = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    inner |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return inner | {n.id for n in found}


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a cell defines for the rest of the notebook."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return [*names(node, ast.Store)] if isinstance(node, ast.Assign) else []


def graded(path: Path) -> Iterator[tuple[str, str]]:
    """What each exercise cell says today, and what is stored.

    Of the cells before it, only the definitions run that it needs.
    """
    definitions, namespace = {}, {}

    def run(node: ast.stmt) -> None:
        for name in sorted(names(node, ast.Load) - names(node, ast.Store)):
            if source := definitions.pop(name, None):
                run(source)
        exec(compile(ast.Module([node], []), path.name, "exec"), namespace)

    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        code = "".join(cell["source"])
        if cell["cell_type"] != "code" or "%pip" in code:
            continue
        statements = ast.parse(code).body
        definitions |= {name: node for node in statements for name in bound(node)}
        stored = re.findall(
            r"[✓…] [^\"\\]+", json.dumps(cell["outputs"], ensure_ascii=False)
        )
        checks = [node for node in statements if "check_" in ast.unparse(node)]
        checks = [node for node in checks if isinstance(node, ast.Expr | ast.For)]
        if not (stored and checks):
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            for node in checks:
                if isinstance(node, ast.Expr):
                    node.value = (
                        ast.parse(f"print({ast.unparse(node.value)})").body[0].value
                    )
                run(node)
        yield re.findall("[✓…✗] .+", said.getvalue()), stored


CHAPTERS = sorted(Path(__file__).parents[1].glob("book/[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem[:2])
def test_the_book_s_stubs_and_solutions_are_told_what_is_stored(path):
    cells = list(graded(path))
    assert len(cells) >= 6
    for said, stored in cells:
        assert said == stored


# What a table can't say.


def test_the_case_that_fails_is_told():
    right = check_connection.solution
    feedback = check_connection(lambda *given: right(*given) + given[-1])
    assert feedback.message.startswith("norm_first = True: some numbers are off")
    feedback = check_softmax(lambda scores: scores.exp() / scores.exp().sum(-1, True))
    assert feedback.message.startswith(
        "scores = [[1000.0, 999.0], [998.0, 1000.0]]: exp"
    )


def test_the_width_of_a_projection_is_named():
    def all_wide(d_model, n_heads, n_groups):
        return MultiHeadAttention(d_model, n_heads)

    feedback = check_grouped_query(all_wide)
    told = (
        "k_proj is nn.Linear(12, 12), but with these sizes it must be nn.Linear(12, 4)"
    )
    assert told in feedback.message


def test_projections_must_have_the_names_that_were_asked_for():
    class Unnamed(nn.Module):
        def forward(self, query, key, value):
            return query

    feedback = check_grouped_query(lambda *sizes: Unnamed())
    assert "four nn.Linear layers: q_proj, k_proj, v_proj, out_proj" in feedback.message


def test_a_class_of_segments_needs_its_two_tables():
    class Stub(nn.Module):
        pass

    class OneTable(SegmentsByTheLibrary):
        def __init__(self, vocab_size, n_segments, d_model):
            super().__init__(vocab_size, n_segments, d_model)
            self.segments = nn.Embedding(n_segments + 1, d_model)

    class NoTable(SegmentsByTheLibrary):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.segments = nn.Linear(3, 6)

    assert check_segments(Stub).status == "open"
    assert (
        "has shape (4, 6), but it should be (3, 6)" in check_segments(OneTable).message
    )
    assert (
        "should be an nn.Embedding, but it is Linear" in check_segments(NoTable).message
    )


def test_a_design_must_be_a_configuration():
    feedback = full_model.check_design({"d_model": 256})
    assert "expected a TransformerConfig, but got dict" in feedback.message


def test_links_must_be_pairs_of_whole_numbers():
    assert "whole number" in reading.check_aligner(lambda w: {(0.5, 0)}).message
    told = "expected a set, but got list."
    assert reading.check_aligner(lambda w: [(0, 0), w]).message == told


def test_no_diagnosis_is_not_attempted():
    assert check_diagnosis(dict.fromkeys("ABCDE", "?")).status == "open"
    assert check_diagnosis({}).status == "open"
    assert "expected a dictionary" in check_diagnosis("correct").message


def test_every_mystery_behaves_otherwise_and_c_as_the_library():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    outputs = {name: mystery_attention(name)(x, x, causal_mask(6)) for name in "ABCDE"}
    for name, output in outputs.items():
        assert output.isfinite().all()
        same = [other for other in outputs if torch.allclose(output, outputs[other])]
        assert same == [name]
    expected, _ = scaled_dot_product_attention(x, x, x, causal_mask(6))
    torch.testing.assert_close(outputs["C"], expected)
    assert {*check_diagnosis.solution.values()} == {*masks.MISTAKES}
    with pytest.raises(ValueError, match="not 'F'"):
        mystery_attention("F")
