"""The page's torch against PyTorch: the same programs, in two processes.

Tables of expressions in short. What their names stand for is drawn: see `draw_case`.
"""

import importlib
import math
import random
import re

import pytest
import torch
from page_process import BROKEN, DTYPES, Page, answers
from page_programs import (
    ALL_OF_IT,
    ALONG_AN_AXIS,
    DRAWN,
    EACH_NUMBER,
    INDICES,
    MAKING,
    MESSAGES,
    NUMBERS,
    PRINTED,
    PRODUCTS,
    PROGRAMS,
    TWO_TENSORS,
    WRITES,
    program,
)
from quick_cases import some_now

import transformer_lib as tl
from transformer_book.exercises.grading import Grader
from transformer_book.yours.bundle import EXERCISES, sources
from transformer_lib.pretrained.translator import find

FLOATS = {"torch.float32": 1e-5, "torch.float64": 1e-12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the pages, in a folder that has nothing else."""
    folder = tmp_path_factory.mktemp("page")
    for path, text in sources().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def torch_of_pages(folder):
    page = Page(folder)
    yield page
    page.close()


@pytest.fixture(scope="module")
def compare(torch_of_pages):
    """A function that runs programs under both torches and compares the answers."""

    def compare(*programs, before="", messages=False):
        with torch.random.fork_rng():
            wanted = answers(programs, before)
        found = torch_of_pages(programs, before)
        differing = [before]
        for line, *pair in zip(programs, found, wanted, strict=True):
            if not agree(*pair, messages):
                differing += [line, f"  page:    {pair[0]}", f"  PyTorch: {pair[1]}"]
        assert len(differing) == 1, "\n".join(differing)

    return compare


NOT_FOR_TRUTH = re.compile("for 'Bool'|not support bool|Boolean inputs not supported")


def agree(found, wanted, messages=False):
    """Whether two answers are equal; what errors say is compared on demand.

    For truth values PyTorch lacks operations that the page may have.
    """
    errors = [x for x in (found, wanted) if isinstance(x, dict) and "error" in x]
    if messages or not errors:
        return is_same(found, wanted)
    return len(errors) == 2 or bool(NOT_FOR_TRUTH.search(errors[0]["message"]))


def test_files_of_the_pages_need_no_numpy_and_no_tokenizers(torch_of_pages):
    files = [path for path in sources() if path.endswith(".py")]
    names = [path.removesuffix(".py").replace("/", ".") for path in files]
    names = [name.removesuffix(".__init__") for name in names]
    imports = "".join(f"import {name}\n" for name in names)
    found = torch_of_pages(
        [f"import sys\n{imports}{{'numpy', 'tokenizers'}} & {{*sys.modules}}"]
    )
    assert found == [{"repr": "set()"}]


def is_same(found, wanted, rtol=1e-6, size=1.0):
    """Whether two answers are equal, floating-point numbers up to rounding.

    Args:
        found: the page's answer.
        wanted: PyTorch's.
        rtol: how much may be rounded, relative to a number or `size`.
        size: the largest number of the tensor.
    """
    if type(found) is not type(wanted):
        return False
    if isinstance(wanted, dict):
        rtol = FLOATS.get(wanted.get("dtype"), rtol)
        found, wanted = sorted(found.items()), sorted(wanted.items())
    if isinstance(wanted, list | tuple):
        floats = (abs(x) for x in wanted if isinstance(x, float) and math.isfinite(x))
        size = max(floats, default=1.0)
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(is_same(*p, rtol, size) for p in pairs)
    if isinstance(wanted, float):
        both_nan = math.isnan(found) and math.isnan(wanted)
        atol = rtol * max(size, 1.0)
        return both_nan or math.isclose(found, wanted, rel_tol=rtol, abs_tol=atol)
    return found == wanted


# Operations. In a table, x is any tensor and y one that mostly fits it; z is of
# numbers, NaN and infinity; m is a mask for x; s is a number; d and e are axes, most of
# which x has, and o all of them; n is a size.

SIZES = (1, 2, 2, 3, 3)
LAYOUTS = ("plain", "transposed", "sliced")
SEEDS = range(30)


def draw_shape(chance):
    return chance.choices(SIZES, k=chance.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4]))


def draw_tensor(chance, shape, dtypes=DTYPES, special=False):
    """The text that makes a tensor."""
    dtype, layout = chance.choice(dtypes), chance.choice(LAYOUTS)
    return f"make({tuple(shape)}, {dtype!r}, {layout!r}, {chance.random()}, {special})"


def draw_case(chance):
    """What the names of an expression stand for, as a program."""
    shape = draw_shape(chance)
    other = [size if chance.random() < 0.7 else 1 for size in shape]
    other = other[chance.choice([0, 0, 1, 2]) :]
    if chance.random() < 0.2:
        other = draw_shape(chance)  # which may not fit
    axis = range(-len(shape), len(shape)) if shape else (0, -1)
    names = {
        "x": draw_tensor(chance, shape),
        "y": draw_tensor(chance, other),
        "z": draw_tensor(chance, shape, ["float32", "float64"], special=True),
        "m": draw_tensor(chance, other, ["bool"]),
        "s": chance.choice([2, 0.5, -1, True, 0, -1.5, 3]),
        "d": chance.choice([*axis, *axis, -4, 3]),
        "e": chance.choice([*axis, *axis, -4, 3]),
        "o": chance.sample(range(len(shape)), len(shape)),
        "n": chance.choice([1, 1, 2, 2, 3, 0, -1]),
    }
    return "".join(f"{name} = {value}\n" for name, value in names.items())


def draw_factors(chance, kind):
    """Two tensors, of which the second mostly begins where the first ends."""
    n, m, k = chance.choices(SIZES, k=3)
    batch = {"batches": [chance.choice(SIZES)], "any": draw_shape(chance)[:2]}
    batch = batch.get(kind, [])
    p, q = ([m], [m]) if kind == "vectors" else ([*batch, n, m], [*batch, m, k])
    if kind == "any":
        p, q = chance.choice([p, p[-2:], [m], []]), chance.choice([q, q[-2:], [m]])
    if chance.random() < 0.2:
        q = [*q[:-1], 5]  # which doesn't fit, or has five columns
    dtypes = [["float32"], ["float64"], ["int64"], DTYPES]
    dtypes = chance.choice(dtypes if kind == "any" else dtypes[:3])
    p, q = (draw_tensor(chance, shape, dtypes) for shape in (p, q))
    return f"p = {p}\nq = {q}\n"


OPERATIONS = {
    "each number": EACH_NUMBER,
    "two tensors": TWO_TENSORS,
    "numbers": NUMBERS,
    "all of it": ALL_OF_IT,
    "along an axis": ALONG_AN_AXIS,
    "indices": INDICES,
}


@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=OPERATIONS)
def test_operations(operations, compare):
    for seed in SEEDS:
        compare(*operations, before=draw_case(random.Random(seed)))


WRITE = """
whole, view = x.detach(), x[..., :1]
def write(x):
    {}
error = attempt(lambda: write(x))
error and error.partition(":")[0], x, whole, view"""


def test_a_write_is_seen_by_every_view(compare):
    for seed in SEEDS:
        case = draw_case(random.Random(seed))
        compare(*(case + WRITE.format(line) for line in WRITES))


@pytest.mark.parametrize("kind", PRODUCTS)
def test_products(kind, compare):
    for seed in SEEDS:
        compare(*PRODUCTS[kind], before=draw_factors(random.Random(seed), kind))


# Programs with an answer each.


@pytest.mark.parametrize("line", MAKING)
def test_a_line(line, compare):
    compare(line)


@pytest.mark.parametrize("value", PRINTED)
def test_what_is_printed(value, compare):
    compare(f"repr({value})", f"str({value})")


@pytest.mark.parametrize("line", MESSAGES)
def test_a_message_begins_as_in_pytorch(line, compare):
    compare(line, messages=True)


# Random numbers.


AGAIN = """
torch.manual_seed({seed})
first = {line}
with torch.random.fork_rng(devices=[]):
    others = {line}, torch.randn(3), torch.rand(2), torch.randn(20)
first, others, {line}"""


@pytest.mark.parametrize("drawn", DRAWN)
def test_random_numbers_are_those_of_pytorch(drawn, compare):
    for seed, size in enumerate([1, 2, 7, 15, 16, 17, 100, 700]):
        compare(AGAIN.format(seed=seed, line=drawn.format(size)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name, compare):
    compare(program(PROGRAMS[name]))


# Graders: the same sentences.

GRADERS = {
    f"{module}.{name}": grader
    for module in EXERCISES
    for name, grader in vars(
        importlib.import_module(f"transformer_book.exercises.{module}")
    ).items()
    if isinstance(grader, Grader)
}
# It stays in the notebook.
NOT_IN_THE_PAGE = {"residual.check_identity_start": "asks for gradients"}


def questions(name):
    """What a grader is asked: its solution, its planted answers, broken ones."""
    grader = GRADERS[name]
    yield "solve"
    for number, mistake in enumerate(grader.mistakes):
        yield from ([number, i] for i in range(len(mistake.answers)))
    if callable(grader.solve):
        yield from BROKEN


def differing(name, page):
    """The answers that a grader meets with another sentence on the page."""
    module, _, check = name.partition(".")
    for which in questions(name):
        program = f"ask({module!r}, {check!r}, {which!r})"
        [wanted], [found] = answers([program]), page([program])
        if not is_same(numbered(found), numbered(wanted)):
            yield f"{program}\nPyTorch: {wanted}\npage:    {found}"


def numbered(feedback):
    """Feedback with its sentence cut at its numbers, which may be rounded otherwise."""
    if "error" in feedback:
        return feedback
    status, sentence = feedback["tuple"]
    parts = re.split(r"(-?\d+\.\d+(?:e[-+]\d+)?)", sentence)
    return [status, *parts[::2], *map(float, parts[1::2])]


@pytest.mark.parametrize(
    "name", [name for name in GRADERS if name not in NOT_IN_THE_PAGE]
)
def test_a_grader_says_the_same(name, torch_of_pages):
    assert [*differing(name, torch_of_pages)] == []


@pytest.mark.parametrize("name", NOT_IN_THE_PAGE)
def test_graders_that_stay_in_the_notebook_have_to(name, torch_of_pages):
    assert [*differing(name, torch_of_pages)]


# The shipped models, in the library's own classes.

WITH_PYTORCH = """
import transformer_lib as tl
model = tl.load({name!r}).model
"""
ON_THE_PAGE = """
import json, struct
import transformer_lib as tl
with open({folder!r} + "/config.json") as file:
    config = tl.TransformerConfig(**json.load(file))
with torch.device("meta"):
    model = tl.Transformer(config).eval()
with open({folder!r} + "/model.safetensors", "rb") as file:
    header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
    data = file.read()
for name, parameter in model.named_parameters():
    start, end = header[name]["data_offsets"]
    numbers = struct.unpack("<" + "e" * ((end - start) // 2), data[start:end])
    parameter.data = torch.tensor(numbers).view(header[name]["shape"])
"""
THEN = """
src, tgt_in = torch.tensor([{src}]), torch.tensor([{tgt_in}])
logits = model(src, tgt_in)
config = tl.GenerationConfig(bos_id={bos_id}, eos_id={eos_id}, max_len=3)
found = tl.greedy_decode(model, src, config)
found += tl.greedy_decode(model, src, config, tl.RecomputingDecoder(model))
found += tl.beam_search(model, src, config, n_beams=2)[0]
logits, [(each.ids, each.log_prob, each.score, each.finished) for each in found]
"""
SENTENCES = {
    "home-assistant": ("turn on the light", "home"),
    "multi30k-de-en": ("Ein Hund rennt.", "A dog runs."),
}


@pytest.mark.parametrize("name", some_now(SENTENCES, 0))
def test_a_shipped_model_gives_the_same_logits_and_tokens(name, torch_of_pages):
    translator = tl.load(name)
    src, tgt = map(translator.tokenizer.encode, SENTENCES[name])
    ends = {
        "bos_id": translator.tokenizer.bos_id,
        "eos_id": translator.tokenizer.eos_id,
    }
    then = THEN.format(src=src, tgt_in=[ends["bos_id"], *tgt[:-1]], **ends)
    [wanted] = answers([WITH_PYTORCH.format(name=name) + then])
    [found] = torch_of_pages([ON_THE_PAGE.format(folder=str(find(name))) + then])
    assert is_same(found, wanted, 1e-5), found
    numbers = [x["tuple"][0]["tensor"] for x in (found, wanted)]
    assert max(abs(x - y) for x, y in zip(*numbers, strict=True)) < 1e-5
