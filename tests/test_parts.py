"""The nine parts that a reader writes: stubs, solutions, graders, mistakes to try."""

import ast
import inspect
import json
import re
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import pytest
import torch
from torch import nn

from book._ext.toc import ROOT
from transformer_book.experiments import mistakes as counts
from transformer_book.yours.graders import SHAPE
from transformer_book.yours.names import DEFINES, book_sources, namespace
from transformer_book.yours.parts import (
    COUNTS,
    PARTS,
    PREAMBLE,
    answer_of,
    build,
    error_of,
    program,
    runs,
)
from transformer_book.yours.source import open_stub, plain, short_docstring
from transformer_lib import GenerationConfig, greedy_decode, load
from transformer_lib.model import attention, layers
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

SIZES = {"d_model": 12, "n_heads": 2, "d_ff": 19, "n_encoder_layers": 2}
CONFIG = TransformerConfig(
    src_vocab_size=13, tgt_vocab_size=13, n_decoder_layers=2, norm_first=True, **SIZES
)
SRC = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 4, 10, 5], [1, 9, 6, 7]])
MISTAKES = [
    pytest.param(name, mistake.sentence, answer, id=f"{name}: {mistake.sentence[:40]}")
    for name, part in PARTS.items()
    for mistake in part.grader.mistakes
    for answer in mistake.answers
]
TRIES = [
    pytest.param(name, each, id=f"{name}: {each.label}")
    for name, part in PARTS.items()
    for each in part.tries
]


def written(name, source):
    """What a reader's source defines, as the page executes it."""
    space = namespace(name)
    exec(compile(source, f"<your {name}>", "exec"), space)
    return answer_of(name, space)


def solved():
    """All names, of all solutions."""
    return {
        each: thing
        for name, part in PARTS.items()
        for each, thing in written(name, part.solution).items()
    }


def fill(model):
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, float(parameter.dim() == 1), 0.5)
    return model.eval().requires_grad_(False)


def filled(name, *bodies):
    """The stub of a part, with these in the places of its first "..."."""
    source = PARTS[name].stub
    for body in bodies:
        source = re.sub(r"^ +\.\.\.\n", body, source, count=1, flags=re.MULTILINE)
    return source


# Other ways to write each part that are right.
SPELLINGS = {
    "positions": [
        """
def sinusoid_table(n_positions, d_model):
    vectors = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = pos / 10_000 ** (2 * i / d_model)
            vectors[pos, 2 * i] = math.sin(angle)
            vectors[pos, 2 * i + 1] = math.cos(angle)
    return vectors
""",
        """
def sinusoid_table(n_positions, d_model):
    pos = torch.arange(n_positions).float().unsqueeze(1)
    speed = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2) / d_model)
    table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = torch.sin(pos * speed)
    table[:, 1::2] = torch.cos(pos * speed)
    return table
""",
    ],
    "attention": [
        """
def scaled_dot_product_attention(query, key, value, mask=None, dropout=0.0):
    d_head = query.shape[-1]
    scores = torch.matmul(query, key.mT) / d_head ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == False, -1e9)
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights
""",
        """
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-math.inf))
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = powers / powers.sum(-1, keepdim=True)
    return [weights @ v, weights]
""",
    ],
    "heads": [
        """
def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.q_proj(query), self.n_heads)
        k = split_heads(self.k_proj(key), self.n_heads)
        v = split_heads(self.v_proj(value), self.n_heads)
        z, _ = scaled_dot_product_attention(q, k, v, mask)
        return self.out_proj(z.transpose(1, 2).flatten(-2))
""",
        """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.out_proj = nn.Linear(d_model, d_model)
        for name in "qkv":
            setattr(self, f"{name}_proj", nn.Linear(d_model, d_model, bias=bias))

    def forward(self, query, key, value, mask=None):
        b, t, _ = query.shape
        q = self.q_proj(query).view(b, t, self.h, self.d).permute(0, 2, 1, 3)
        k = self.k_proj(key).view(b, -1, self.h, self.d).permute(0, 2, 1, 3)
        v = self.v_proj(value).view(b, -1, self.h, self.d).permute(0, 2, 1, 3)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        z = F.softmax(scores, dim=-1) @ v
        z = z.permute(0, 2, 1, 3).contiguous().view(b, t, self.h * self.d)
        return self.out_proj(z)
""",
        """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d = d_model // n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, query, key, value, mask=None):
        parts = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        qs, ks, vs = (x.split(self.d, dim=-1) for x in parts)
        if mask is not None and mask.dim() == 4:
            mask = mask[:, 0]
        heads = [
            scaled_dot_product_attention(q, k, v, mask)[0]
            for q, k, v in zip(qs, ks, vs)
        ]
        return self.out_proj(torch.cat(heads, dim=-1))
""",
    ],
    "masks": [
        """
def padding_mask(ids, pad_id):
    return (ids != pad_id).unsqueeze(1).unsqueeze(2)


def causal_mask(length, device=None):
    position = torch.arange(length)
    return position[None, :] <= position[:, None]
""",
        """
def padding_mask(ids, pad_id):
    batch, length = ids.shape
    return ~(ids == pad_id).view(batch, 1, 1, length)


def causal_mask(n):
    rows = [[key <= query for key in range(n)] for query in range(n)]
    return torch.tensor(rows)
""",
    ],
    "sublayers": [
        """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, correction=0)
        return (x - mean) / (variance + self.eps) ** 0.5 * self.gain + self.bias


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.contract(self.expand(x).relu())


class SublayerConnection(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False, eps=1e-5):
        super().__init__()
        self.norm, self.norm_first = LayerNorm(d_model, eps), norm_first

    def forward(self, x, sublayer):
        if not self.norm_first:
            return self.norm(x + sublayer(x))
        return sublayer(self.norm(x)) + x
""",
        filled(
            "sublayers",
            "        return layer_norm(x, self.gain, self.bias, self.eps)\n",
            """        bent = torch.maximum(self.expand(x), torch.tensor(0.0))
        return self.contract(self.dropout(bent))
""",
            """        y = self.norm(x) if self.norm_first else x
        y = x + self.dropout(sublayer(y))
        return y if self.norm_first else self.norm(y)
""",
        ),
    ],
    "encoder": [
        """
class EncoderLayer(nn.Module):
    def __init__(self, self_attn, feed_forward, dropout, norm_first, eps):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        options = self_attn.d_model, dropout, norm_first, eps
        self.self_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(self, x, src_mask=None):
        def look_around(normed):
            return self.self_attn(normed, normed, normed, mask=src_mask)

        y = self.self_attn_connection(x, look_around)
        z = self.feed_forward_connection(y, lambda y: self.feed_forward(y))
        return z
""",
        """
class EncoderLayer(nn.Module):
    def __init__(self, self_attn, feed_forward, dropout, norm_first, eps):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        options = self_attn.d_model, dropout, norm_first, eps
        self.self_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)
        self.norm_first = norm_first

    def forward(self, x, src_mask=None):
        first, second = self.self_attn_connection, self.feed_forward_connection
        if self.norm_first:
            n = first.norm(x)
            x = x + self.self_attn(n, n, n, src_mask)
            return x + self.feed_forward(second.norm(x))
        x = first.norm(x + self.self_attn(x, x, x, src_mask))
        return second.norm(x + self.feed_forward(x))
""",
    ],
    "decoder": [
        """
class DecoderLayer(nn.Module):
    def __init__(self, self_attn, cross_attn, feed_forward, dropout, norm_first, eps):
        super().__init__()
        self.self_attn, self.cross_attn = self_attn, cross_attn
        self.feed_forward = feed_forward
        for name in "self_attn", "cross_attn", "feed_forward":
            part = SublayerConnection(self_attn.d_model, dropout, norm_first, eps)
            setattr(self, f"{name}_connection", part)

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        x = self.self_attn_connection(x, lambda y: self.self_attn(y, y, y, tgt_mask))
        x = self.cross_attn_connection(
            x, lambda y: self.cross_attn(y, memory, memory, src_mask)
        )
        return self.feed_forward_connection(x, self.feed_forward)


def shift_right(target, bos_id):
    shifted = target.roll(1, dims=1)
    shifted[:, 0] = bos_id
    return shifted
""",
        filled(
            "decoder",
            """        def look_back(y):
            return self.self_attn(query=y, key=y, value=y, mask=tgt_mask)

        def look_across(y):
            return self.cross_attn(query=y, key=memory, value=memory, mask=src_mask)

        y = self.self_attn_connection(x, look_back)
        y = self.cross_attn_connection(y, look_across)
        return self.feed_forward_connection(y, self.feed_forward)
""",
            """    first = torch.full((target.size(0), 1), bos_id)
    return torch.cat((first, target[:, :-1]), dim=-1)
""",
        ),
    ],
    "model": [
        filled(
            "model",
            """        src_mask = padding_mask(src, self.config.pad_id)
        tgt_mask = causal_mask(tgt_in.size(1))
        memory = self.encoder(self.src_embeddings(src), src_mask)
        y = self.tgt_embeddings(tgt_in)
        return self.lm_head(self.decoder(y, memory, src_mask, tgt_mask))
""",
        ),
        filled(
            "model",
            """        src_mask = padding_mask(src, self.config.pad_id)
        tgt_mask = padding_mask(tgt_in, self.config.pad_id)
        tgt_mask = tgt_mask & causal_mask(tgt_in.shape[1])
        memory = self.encode(src, src_mask)
        features = self.decode(tgt_in, memory, src_mask, tgt_mask)
        return features @ self.lm_head.weight.T
""",
            "        return self.encoder(self.src_embeddings(src), src_mask)\n",
            """        embedded = self.tgt_embeddings(tgt_in)
        return self.decoder(embedded, memory, src_mask, tgt_mask)
""",
        ),
    ],
    "search": [
        """
def greedy_decode(model, src, bos_id, eos_id, max_len):
    memory = model.encode(src)
    written = torch.full((1, 1), bos_id)
    for length in range(1, max_len + 1):
        x = model.decode(written, memory, None, None)
        best = model.lm_head(x[:, -1]).argmax(dim=-1)
        written = torch.cat([written, best[:, None]], dim=1)
        if best.item() == eos_id:
            break
    return written[0, 1:].tolist()
""",
        """
def greedy_decode(model, src, bos_id, eos_id, max_len):
    found = []
    while len(found) < max_len:
        probabilities = model(src, torch.tensor([[bos_id, *found]]))[0, -1].softmax(0)
        _, token = probabilities.max(dim=0)
        found.append(int(token))
        if token == eos_id:
            return found
    return found
""",
        """
def greedy_decode(model, src, bos_id, eos_id, max_len):
    target = [torch.tensor(bos_id)]
    while target[-1] != eos_id and len(target) <= max_len:
        target.append(model(src, torch.stack(target)[None])[0, -1].argmax())
    return target[1:]
""",
    ],
}


@pytest.mark.parametrize("name", PARTS)
def test_the_solution_is_right_and_the_stub_is_open(name):
    part = PARTS[name]
    assert part.grader(written(name, part.solution)).status == "right"
    assert repr(part.grader(written(name, part.stub))) == "… Not attempted yet."
    assert runs(name, written(name, part.solution))
    assert not runs(name, written(name, part.stub))
    assert max(map(len, part.stub.split("\n"))) <= 88
    assert "->" not in re.sub('"""(.|\n)*?"""', "", part.stub)  # no annotations
    assert (ROOT / f"book/{part.chapter}.ipynb").is_file()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        pytest.param(name, source, id=f"{name} {i}")
        for name, sources in SPELLINGS.items()
        for i, source in enumerate(sources)
    ],
)
def test_other_spellings_are_right(name, source):
    answer = written(name, source)
    feedback = PARTS[name].grader(answer)
    assert feedback.status == "right", feedback
    assert runs(name, answer)
    assert error_of(name, answer) is None
    own = {**solved(), **answer}
    model, library = build(CONFIG, own), fill(Transformer(CONFIG))
    model.load_state_dict(library.state_dict())
    torch.testing.assert_close(model.eval()(SRC, TGT_IN), library(SRC, TGT_IN))


@pytest.mark.parametrize(("name", "sentence", "source"), MISTAKES)
def test_each_mistake_gets_its_own_sentence(name, sentence, source):
    feedback = PARTS[name].grader(written(name, source))
    assert feedback.status == "wrong"
    told = re.escape(sentence).replace(re.escape(SHAPE), r"\([\d, ]+\)")
    assert re.fullmatch(f"(.*: )?{told}", feedback.message), feedback


@pytest.mark.parametrize(("name", "each"), TRIES)
def test_each_try_is_a_named_mistake_that_runs(name, each):
    feedback = PARTS[name].grader(written(name, each.source))
    assert feedback.status == "wrong"
    sentences = [mistake.sentence for mistake in PARTS[name].grader.mistakes]
    assert any(feedback.message.endswith(sentence) for sentence in sentences), feedback
    assert runs(name, written(name, each.source))
    assert 0 <= each.changed <= counts.N_SENTENCES
    assert re.fullmatch(r"[A-Z].+\.", each.why)


@pytest.mark.parametrize("name", [name for name in PARTS if len(DEFINES[name]) > 1])
def test_what_is_half_written_is_told(name):
    part = PARTS[name]
    whole, empty = written(name, part.solution), written(name, part.stub)
    for left in DEFINES[name]:
        feedback = part.grader({**whole, left: empty[left]})
        assert feedback.status == "wrong"
        told = f"{left} returns nothing yet|{left}.*: nothing is returned here"
        assert re.match(told, feedback.message), feedback


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("attention", "return weights @", "weights @", "attention returns nothing: w"),
        ("masks", "return (ids", "(ids", "padding_mask returns nothing: write return"),
        ("heads", "return self.out", "self.out", "MultiHeadAttention returns nothing"),
        ("heads", "        super().__init__()\n", "", r"begin with super\(\)"),
        ("heads", "self.q_proj(query)", "q_proj(query)", "module: self.q_proj"),
    ],
)
def test_a_slip_of_python_is_named(name, old, new, told):
    source = PARTS[name].solution
    assert source.count(old) == 1
    feedback = PARTS[name].grader(written(name, source.replace(old, new)))
    assert feedback.status == "wrong"
    assert re.search(told, feedback.message), feedback


ZEROED = """    if mask is not None:
        # Softmax over no key at all is 0 / 0: such a row becomes zero. Its gradient
        # does too, since masked_fill passes none back to what it has filled.
        weights = weights.masked_fill(~mask, 0.0)
    return"""
ROOT_OF = "the scores are divided by the root of {}, whatever the width"
ATTENTION = {  # what is replaced and by what, and what is told
    "a width written out": ("query.size(-1)", "2", ROOT_OF.format(2)),
    "a divisor written out": ("math.sqrt(query.size(-1))", "8", ROOT_OF.format(64)),
    "all axes turned": ("key.transpose(-2, -1)", "key.T", ".T turns all axes around"),
    "turned and unmasked": (
        "key.transpose(-2, -1) / math.sqrt(query.size(-1))\n    if mask is not None:\n"
        '        scores = scores.masked_fill(~mask, float("-inf"))',
        "key.T / math.sqrt(query.size(-1))\n    if mask is not None:\n        pass",
        ".T turns all axes around",
    ),
    "hidden and not kept": (
        "scores = scores.masked_fill",
        "scores.masked_fill",
        "write scores = scores.masked_fill(",
    ),
    "one sum for all queries": (
        "scores.softmax(dim=-1)",
        "scores.exp() / scores.exp().sum()",
        "all weights together sum to 1, but those of each query should",
    ),
    "divided twice": (
        "math.sqrt(query.size(-1))",
        "query.size(-1) ** 1 / 2",
        "is divided by d_head, and then by 2",
    ),
    "return inside": (
        ZEROED,
        "    if mask is not None:\n        return",
        "without a mask, scaled_dot_product_attention returns nothing: move return out",
    ),
    "return inside the other": (
        ZEROED,
        "    if mask is None:\n        return",
        "with a mask, nothing is returned here: move return out of the if",
    ),
    "which entry": (
        "weights @ value, weights",
        "weights @ value, weights + 1",
        "the entry at (0, 0) of the weights is ",
    ),
    "another entry": (
        "weights @ value, weights",
        "weights @ value + 1, weights",
        "the entry at (0, 0) of the output is ",
    ),
}


@pytest.mark.parametrize(("old", "new", "told"), ATTENTION.values(), ids=ATTENTION)
def test_what_an_attention_lacks_is_named(old, new, told):
    source = PARTS["attention"].solution
    assert source.count(old) == 1
    source = source.replace(old, new)
    if "scores = scores.masked_fill" not in source:
        source = source.replace(ZEROED, "    return")
    feedback = PARTS["attention"].grader(written("attention", source))
    assert feedback.status == "wrong"
    assert told in feedback.message, feedback


@pytest.mark.parametrize("hide", ["scores", "scores.masked_fill(~mask, -1e9)"])
@pytest.mark.parametrize("axis", [-2, 0, 1])
def test_a_softmax_over_another_axis_is_named(axis, hide):
    source = PARTS["attention"].solution
    source = source.replace('scores.masked_fill(~mask, float("-inf"))', hide)
    source = source.replace("weights.masked_fill(~mask, 0.0)", "weights")
    source = source.replace("softmax(dim=-1)", f"softmax(dim={axis})")
    feedback = PARTS["attention"].grader(written("attention", source))
    assert "softmax must run over the keys, the last axis" in feedback.message


def test_two_mistakes_at_once_are_named_one_by_one():
    grader = PARTS["masks"].grader
    source = PARTS["masks"].solution.replace("tril()", "tril(1)")
    both = source.replace("ids != pad_id", "ids == pad_id")
    assert "padding_mask" in grader(written("masks", both)).message
    assert "upside down" in grader(written("masks", both)).message
    assert "query i must not see i + 1" in grader(written("masks", source)).message


BAD = {  # of two parts, one function and one class: what is returned instead
    "a list": ("{}.tolist()", "expected a tensor of shape .* got a list"),
    "NaN": ("{} * math.nan", r"your answer holds NaN, first at \(0,"),
    "another shape": ("{}[None]", "expected a tensor .* got a tensor of shape"),
    "a text": ("str({})", "expected .* got a value of type str"),
}


@pytest.mark.parametrize(("returned", "message"), BAD.values(), ids=BAD)
def test_bad_results_get_a_sentence(returned, message):
    line = "waves.to(torch.get_default_dtype())"
    source = PARTS["positions"].solution.replace(line, returned.format(line))
    feedback = PARTS["positions"].grader(written("positions", source))
    assert feedback.status == "wrong" and re.search(message, feedback.message), feedback
    line = "self.out_proj(self.join_heads(output))"
    source = PARTS["heads"].solution.replace(line, returned.format(line))
    feedback = PARTS["heads"].grader(written("heads", source))
    assert feedback.status == "wrong" and re.search(message, feedback.message), feedback


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("attention", "    weights = scores.softmax(dim=-1)\n", "query"),
        ("encoder", "        x = self.self_attn_connection(", "x"),
        ("decoder", "    return torch.cat(", "target"),
    ],
)
def test_an_argument_changed_in_place_is_named(name, line, what):
    """What it returns is right all the same."""
    indent = " " * (len(line) - len(line.lstrip()))
    later = f"{indent}{what}, old = {what}.clone(), {what}\n{indent}old.zero_()\n"
    source = PARTS[name].solution
    assert source.count(line) == 1
    feedback = PARTS[name].grader(written(name, source.replace(line, later + line)))
    named = {"target": "x"}.get(what, what)  # shift_right's is the first, too
    assert f"the result is right, but {named} was changed in place" in feedback.message


def test_parameters_must_be_the_books():
    lacks = SPELLINGS["heads"][0].replace("out_proj", "output")
    feedback = PARTS["heads"].grader(written("heads", lacks))
    assert "the module needs a parameter out_proj.weight" in feedback.message
    more = SPELLINGS["heads"][0].replace(
        "        self.n_heads",
        "        self.more = nn.Linear(2, 2)\n        self.n_heads",
    )
    feedback = PARTS["heads"].grader(written("heads", more))
    assert "more.weight is not among the book's parameters" in feedback.message
    none = (
        SPELLINGS["heads"][0].replace("(nn.Module)", "").replace("super()", "object()")
    )
    none = none.replace("object().__init__()", "pass")
    feedback = PARTS["heads"].grader(written("heads", none))
    assert "d_model = 18, n_heads = 2: it must be a module" in feedback.message
    other = PARTS["heads"].solution.replace(
        "self.k_proj = nn.Linear(d_model, d_model, bias=bias)",
        "self.k_proj = nn.Linear(d_model, 2 * d_model, bias=bias)",
    )
    other = other.replace("self.k_proj(key)", "self.k_proj(key)[..., : self.d_model]")
    feedback = PARTS["heads"].grader(written("heads", other))
    wanted = "k_proj.weight has the shape (36, 18), but it must be (18, 18)"
    assert wanted in feedback.message
    post = PARTS["sublayers"].solution.replace("self.norm(x + self", "(x + self")
    feedback = PARTS["sublayers"].grader(written("sublayers", post))
    told = "SublayerConnection with norm_first=False: the norm is missing"
    assert told in feedback.message


def test_an_error_is_returned_with_its_traceback():
    source = PARTS["attention"].solution.replace("softmax(dim=-1)", "softmex(dim=-1)")
    answer = written("attention", source)
    assert "your function raised" in PARTS["attention"].grader(answer).message
    error = error_of("attention", answer)
    assert isinstance(error, AttributeError) and error.__traceback__ is not None
    assert not runs("attention", answer)


def test_endless_recursion_is_told():
    source = "def causal_mask(length): return causal_mask(length)\n"
    source += "def padding_mask(ids, pad_id): return (ids != pad_id)[:, None, None]\n"
    feedback = PARTS["masks"].grader(written("masks", source))
    assert "causal_mask: your function raised RecursionError" in feedback.message


def test_a_missing_definition_is_named():
    with pytest.raises(ValueError, match="called causal_mask"):
        written("masks", "def padding_mask(ids, pad_id): ...")


def test_a_source_finds_all_names_but_those_it_must_define():
    whole = namespace()
    for name in PARTS:
        hidden = whole.keys() - namespace(name).keys()
        assert hidden == {*DEFINES[name]} | ({"sinusoids"} & hidden)
    assert namespace()["EncoderLayer"] is not namespace()["EncoderLayer"]


# The model


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("parts", ["none", "all", *PARTS])
def test_the_built_model_is_the_librarys(parts, norm_first):
    config = replace(CONFIG, norm_first=norm_first)
    own = (
        solved() if parts in ("all", "none") else written(parts, PARTS[parts].solution)
    )
    model = build(config, {} if parts == "none" else own)
    library = fill(Transformer(config))
    model.load_state_dict(library.state_dict())
    model.eval()
    torch.testing.assert_close(model(SRC, TGT_IN), library(SRC, TGT_IN))


@pytest.mark.parametrize(("name", "each"), TRIES)
def test_a_mistake_reaches_the_model(name, each):
    """Whatever a part returns is what the model computes with."""
    if name == "search" or each.label == "shift by nothing":
        return
    model = build(CONFIG, written(name, each.source)).eval()
    library = fill(Transformer(CONFIG))
    model.load_state_dict(library.state_dict())
    assert not torch.allclose(model(SRC, TGT_IN), library(SRC, TGT_IN))


def test_with_all_parts_nothing_of_the_books_is_used():
    """Of what parts define: their places in the book's names are empty."""
    own, used = solved(), set()
    for name, part in PARTS.items():
        space = namespace(name)
        for other, thing in own.items():
            if other not in DEFINES[name]:
                space[other] = thing
        exec(part.solution, space)
        for each in DEFINES[name]:
            own[each] = space[each]

    def watch(name, thing):
        def called(*args, **options):
            used.add(name)
            return thing(*args, **options)

        return called

    watched = {name: watch(name, thing) for name, thing in own.items()}
    for name in own:  # what each of them finds
        scope = getattr(own[name], "__globals__", None) or own[name].forward.__globals__
        scope.update({n: w for n, w in watched.items() if n != name})
    model = build(CONFIG, watched).eval()
    model(SRC, TGT_IN)
    assert used == own.keys() - {"greedy_decode", "shift_right"}


def test_greedy_search_finds_what_the_librarys_finds():
    translator = load("grammar")
    search = namespace()["greedy_decode"]
    tokenizer = translator.tokenizer
    ends = tokenizer.bos_id, tokenizer.eos_id
    for text in ("der Hund schläft", "die Katze sieht den kleinen Hund", "ich"):
        src = torch.tensor([tokenizer.encode(text)])
        for max_len in (3, 30):
            config = GenerationConfig(*ends, max_len)
            [expected] = greedy_decode(translator.model, src, config)
            with torch.inference_mode():
                assert (
                    search(translator.model.eval(), src, *ends, max_len) == expected.ids
                )


# The texts


def test_what_runs_in_the_page_imports_nothing_else():
    for file in "names", "parts", "graders", "source":
        path = ROOT / f"transformer_book/yours/{file}.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in getattr(node, "names", [])]
            if isinstance(node, ast.Import):
                found = names
            elif isinstance(node, ast.ImportFrom):
                found = [node.module]
            else:
                continue
            for name in found:
                known = name.split(".")[0] in sys.stdlib_module_names
                own = name.startswith(
                    ("torch", "transformer_lib.model", "transformer_book")
                )
                assert known or own, (file, name)


def test_a_plain_source_has_no_cache_no_guards_no_annotations():
    text = plain(
        '''
def attend(x: int, cache: dict | None = None, *, eps=1e-5) -> int:
    """Attend.

    Args:
        x: what is read. It is long.
        cache: kept.

    Returns:
        A number. And more.
    """
'''.replace(", *, eps=1e-5", "")
        + """    # a guard
    if x < 0:
        raise ValueError(x)
    y: int = look(x, cache=cache)  # kept
    if cache is not None:
        y = cache[y]
    return y
""",
        ("cache",),
    )
    assert (
        text
        == '''
def attend(x):
    """Attend.

    Args:
        x: what is read. It is long.

    Returns:
        A number.
    """
    y = look(x)  # kept
    return y
'''
    )
    assert open_stub(text).endswith('    """\n    ...\n')
    assert short_docstring("One.\n\nTwo.", (), brief=True) == "One."


def test_the_solutions_hold_nothing_of_what_they_leave_out():
    text = "".join(part.solution for part in PARTS.values())
    for gone in ("cache", "d_inputs", "kernel", "device", "Tensor", "raise"):
        assert gone not in text, gone
    for module in attention, layers:  # which have it
        assert "cache" in inspect.getsource(module)


def test_a_saved_part_and_a_saved_program_run():
    saved = {}
    exec(PREAMBLE, saved)
    assert saved.keys() >= namespace().keys() - {"greedy_decode", "shift_right"}
    exec(PARTS["encoder"].solution, saved)
    layer = saved["EncoderLayer"](saved["MultiHeadAttention"](12, 2), nn.Identity())
    assert layer(torch.randn(2, 5, 12)).shape == (2, 5, 12)
    for sources in ({}, {name: part.solution for name, part in PARTS.items()}):
        text, printed = program(sources), StringIO()
        with redirect_stdout(printed):
            exec(compile(text, "saved.py", "exec"), {"__name__": "__main__"})
        assert printed.getvalue() == "A dog is playing in the snow.\n"
    both = [name for names in DEFINES.values() for name in names]
    for name in both:
        assert len(re.findall(rf"^(?:def|class) {name}\b", text, re.MULTILINE)) == 1


def test_the_counts_are_of_these_mistakes():
    stored = json.loads(COUNTS.read_text(encoding="utf-8"))
    assert stored["fingerprint"] == counts.fingerprint()
    assert stored["sentences"] == counts.N_SENTENCES == 40
    labels = {name: [each.label for each in part.tries] for name, part in PARTS.items()}
    assert {name: [*found] for name, found in stored["changed"].items()} == labels
    assert stored["openings"] == {name: part.opening for name, part in PARTS.items()}
    assert {*stored["openings"].values()} <= {*counts.OPENINGS}


def test_counts_are_of_translations(monkeypatch):
    translator = load("multi30k-de-en")
    sentences = ["Im Schnee spielt ein Hund.", "Ein Mann liest."]
    for name in "positions", "masks", "decoder", "search":
        right = counts.translate_with(name, PARTS[name].solution, translator, sentences)
        found = [translator.tokenizer.decode(ids) for ids in right]
        assert found == translator.translate(sentences)
    wrong = PARTS["decoder"].tries[0].source
    wrong = counts.translate_with("decoder", wrong, translator, sentences[:1])
    assert wrong[0] != right[0]
    assert book_sources()["shift_right"]
