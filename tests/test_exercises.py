"""Every grader lets its solution pass and names each mistake of its table."""

import importlib
import pkgutil
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_book import exercises
from transformer_book.exercises.grading import Feedback, Grader, Seen, run_module
from transformer_book.exercises.masks import MISTAKES as FLAWS
from transformer_book.exercises.masks import mystery_attention
from transformer_lib import (
    DecoderLayer,
    Embeddings,
    IncrementalDecoder,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    SublayerConnection,
    Transformer,
    TransformerConfig,
    causal_mask,
    learning_rate,
    padding_mask,
    scaled_dot_product_attention,
    sinusoid_table,
)

GRADERS = {
    name.removeprefix("check_"): grader
    for module in pkgutil.iter_modules(exercises.__path__, f"{exercises.__name__}.")
    for name, grader in vars(importlib.import_module(module.name)).items()
    if isinstance(grader, Grader)
}
FUNCTIONS = [name for name, grader in GRADERS.items() if callable(grader.solution)]
DIRECT = [name for name in FUNCTIONS if GRADERS[name].run is Grader.run]
MISTAKES = [(name, text) for name, grader in GRADERS.items() for text in grader.table]
CHANGED = {"identity_start", "pruning", "accumulation"}  # graded by what they change

each_grader = pytest.mark.parametrize("name", GRADERS)
each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_direct = pytest.mark.parametrize("name", DIRECT)  # called with the case itself


def ask(name: str, answer: object) -> Feedback:
    """Grade an answer, which may have several parts."""
    return GRADERS[name](*(answer if isinstance(answer, tuple) else [answer]))


# What holds for every grader.


@each_grader
def test_the_solution_passes_and_leaves_the_random_numbers_alone(name):
    before = torch.get_rng_state()
    feedback = ask(name, GRADERS[name].solution)
    assert feedback.passed, feedback
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "sentence"), MISTAKES)
def test_each_mistake_gets_its_own_sentence(name, sentence):
    told = re.escape(sentence)
    if isinstance(GRADERS[name].table[sentence], Seen):
        told = re.sub(r"\\\{[^}]*\\\}", ".+", told)
    for answer in GRADERS[name].answers_with(sentence):
        feedback = ask(name, answer)
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
    told = r"expected .*, but got object\.|'object' object has no attribute 'update'"
    assert re.search(told, feedback.message), feedback


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
    told = "the entry at .* should be|expected .*, but got|but so do"
    assert other.status == "wrong"
    assert re.search(told, other.message), other


@each_direct
def test_an_argument_that_is_changed_in_place_is_named(name):
    grader, changeable = GRADERS[name], (Tensor, list, set)

    def answer(*given):
        result = grader.solution(*given)
        result = result.clone() if isinstance(result, Tensor) else result
        for argument in given:
            if isinstance(argument, changeable):
                argument.zero_() if isinstance(argument, Tensor) else argument.clear()
        return result

    feedback = grader(answer)
    if any(isinstance(argument, changeable) for argument in grader.make_cases()[0]):
        assert "was changed in place" in feedback.message, feedback
    else:
        assert feedback.passed


def test_every_grader_can_be_imported_without_what_is_slow():
    assert {f"check_{name}" for name in GRADERS} - {*dir(exercises)} == {
        "check_align", "check_count", "check_one_head"  # of chapter 0
    }  # fmt: skip
    slow = "{'lightning', 'transformers', 'altair', 'matplotlib'}"
    code = (
        f"import sys, {exercises.__name__}; sys.exit(bool({slow} & {{*sys.modules}}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The engine, on small graders.

check_double = Grader(
    lambda x: 2 * x,
    cases=lambda: [(2,), (3,), (0,)],
    right="Doubled.",
    mistakes=lambda solve: {
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


class Shifted(LayerNorm):
    """A layer norm with a mistake."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


check_norm = Grader(
    LayerNorm,
    cases=lambda: [
        ((width,), (torch.randn(3, width),), {"gain": 2 * torch.ones(width)})
        for width in (4, 7)
    ],
    run=run_module,
    right="It normalizes.",
    mistakes=lambda solve: {"the bias is 1.": Shifted},
)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (LayerNorm, "✓ It normalizes."),
        (Shifted, "✗ sizes = (4,): the bias is 1."),
        (nn.Module, "… Not attempted yet."),
        (
            nn.Identity,
            "✗ sizes = (4,): the module needs a parameter gain of shape (4,).",
        ),
        (
            lambda width: LayerNorm(width + 1),
            "✗ sizes = (4,): the module needs a parameter gain of shape (4,).",
        ),
        (lambda width: 3, "✗ sizes = (4,): expected a module, but got int."),
    ],
)
def test_a_module_gets_known_weights_and_is_graded_by_what_it_computes(answer, message):
    assert repr(check_norm(answer)) == message


# Right answers of another kind than the solution.


class SegmentsByTheLibrary(nn.Module):
    def __init__(self, vocab_size, n_segments, d_model):
        super().__init__()
        self.words = Embeddings(vocab_size, PositionalEncoding(9, d_model))
        self.tokens = self.words.tokens
        self.segments = nn.Embedding(n_segments, d_model)

    def forward(self, ids, segments):
        return self.words(ids) + self.segments(segments)


def forward_without_target_padding(model, src, tgt_in):
    mask = padding_mask(src, 0)
    memory = model.encode(src, mask)
    return model.lm_head(
        model.decode(tgt_in, memory, mask, causal_mask(tgt_in.size(1)))
    )


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

    def forward(self, query, key, value):
        projected = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        heads = (x.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for x in projected)
        z = F.scaled_dot_product_attention(*heads, enable_gqa=True)
        return self.out_proj(z.transpose(1, 2).flatten(2))


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


def size_of_a_real_cache(n_layers, d_model, n_sentences, n_beams, tgt_len, src_len):
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "d_model": d_model}
    sizes |= {"n_heads": 2, "d_ff": 5, "n_decoder_layers": n_layers}
    model = Transformer(TransformerConfig(**sizes, n_encoder_layers=1))
    decoder = IncrementalDecoder(model, capacity=tgt_len)
    with torch.no_grad():
        decoder.prefill(torch.full((n_sentences, src_len), 4), n_beams=n_beams)
        decoder.read(torch.full((n_sentences * n_beams, tgt_len), 4))
    return decoder.cache.n_bytes


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "cache_size": size_of_a_real_cache,
        "segments": SegmentsByTheLibrary,
        "two_sources": LayerWithAnotherAttention,
        "forward": forward_without_target_padding,
        "grouped_query": GroupedByTorch,
        "multi_head": attend_by_the_module,
        "parameters": lambda d, h, bias: sum(
            p.numel() for p in MultiHeadAttention(d, h, bias=bias).parameters()
        ),
        "parameter_count": lambda vocab_size, d_model, d_ff, n_layers: sum(
            p.numel()
            for p in Transformer(
                exercises.full_model._config(vocab_size, d_model, d_ff, n_layers)
            ).parameters()
        ),
        "pruning": prune_by_values,
        "rms_norm": lambda d_model, eps: Renamed(d_model, eps),
        "schedule": learning_rate,
        "shift": lambda target, bos_id: torch.cat(
            [torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1
        ),
        "token_loss": lambda logits, tgt_out, pad_id: F.cross_entropy(
            logits.mT, tgt_out, ignore_index=pad_id
        ),
        "sorting_network": (
            torch.tensor([[1.0, 1.0], [-1.0, -1.0]]),
            torch.zeros(2),
            torch.tensor([[-1.0, 1.0], [0.0, 0.0]]),
            torch.zeros(2),
        ),
    }.items(),
)
def test_other_right_answers_pass(name, answer):
    assert ask(name, answer).passed, ask(name, answer)


class Renamed(nn.RMSNorm):
    """PyTorch's own norm, whose weight gets the name that was asked for."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = self.weight


def test_the_packed_order_is_pytorchs():
    layer = nn.MultiheadAttention(6, 2, bias=False, batch_first=True)
    layer.out_proj.weight.data.copy_(torch.eye(6))
    inputs = torch.randn(3, 1, 4, 6).unbind(0)
    matrices = GRADERS["unpack"].solution(layer.in_proj_weight)
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
    ours = GRADERS["table"].solution(sinusoid_table(7, 16))
    torch.testing.assert_close(ours, theirs)


# What a table can't say.


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        (
            "softmax",
            lambda s: s.exp() / s.exp().sum(-1, True),
            r"scores = \[\[1000.0.*exp",
        ),
        ("sorting_network", (1.0, *[torch.zeros(2)] * 3), "W_1 should be a tensor"),
        ("design", {"d_model": 256}, "expected type TransformerConfig, but got dict"),
        ("aligner", lambda w: {(0.5, 0)}, "expected type int"),
        ("aligner", lambda w: [(0, 0), w], "expected type set, but got list."),
        ("diagnosis", dict.fromkeys("ABCDE", "?"), "Not attempted"),
        ("diagnosis", {}, "Not attempted"),
        ("diagnosis", "correct", "expected type dict"),
    ],
)
def test_what_has_no_row_in_a_table_is_told(name, answer, message):
    assert re.search(message, ask(name, answer).message)


def test_every_mystery_behaves_otherwise_and_c_as_the_library():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    outputs = {name: mystery_attention(name)(x, x, causal_mask(6)) for name in "ABCDE"}
    for name, output in outputs.items():
        assert output.isfinite().all()
        same = [other for other in outputs if torch.allclose(output, outputs[other])]
        assert same == [name]
    expected, _ = scaled_dot_product_attention(x, x, x, causal_mask(6))
    torch.testing.assert_close(outputs["C"], expected)
    assert {*GRADERS["diagnosis"].solution.values()} == {*FLAWS}
