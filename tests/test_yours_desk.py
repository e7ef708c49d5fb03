"""What the desk of a page answers to whatever a reader writes."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transformer_book.yours import bundle, desk
from transformer_book.yours.parts import PARTS
from transformer_book.yours.reader import Problem

GOOD = PARTS["attention"].solution
FIRST = "    scores = query"
LINE = GOOD[: GOOD.index(FIRST)].count("\n") + 1  # of FIRST


def before(code: str) -> str:
    """The solution with code before its first statement."""
    return GOOD.replace(FIRST, f"    {code}\n{FIRST}")


ATTENTION = "def scaled_dot_product_attention(query, key, value, mask=None):\n"
HERE = "your code finds torch, math, and the modules of Python that only compute"
RIGHT = ("right", None, "Every query has weights that sum to 1", True)

# name: source, then status, line, a piece of the message, whether the machine runs
BAD = {
    "syntax": (
        GOOD.replace("return weights", "return return weights"),
        "error",
        GOOD[: GOOD.index("return weights")].count("\n") + 1,
        "return return weights @ value, weights\nSyntaxError: invalid syntax",
        False,
    ),
    "no body": (ATTENTION, "error", 1, "IndentationError: expected an indented", False),
    "nested": (f"x = {'(' * 999}", "error", 1, "too many nested parentheses", False),
    "a name": (
        before("x = undefined + 1"),
        "error",
        LINE,
        f"Line {LINE}, in scaled_dot_product_attention:\n    x = undefined + 1\n"
        "NameError: name 'undefined' is not defined",
        False,
    ),
    "a name of torch": (
        before("torch.no_such_name(query)"),
        "error",
        LINE,
        "no_such_name",
        False,
    ),
    "deep": (
        "def inner(x):\n    return x.nothing\n\n" + before("inner(query)"),
        "error",
        2,
        f"Line {LINE + 3}, in scaled_dot_product_attention:\n    inner(query)\n"
        "Line 2, in inner:\n    return x.nothing\nAttributeError: ",
        False,
    ),
    "recursion": (
        ATTENTION + "    return scaled_dot_product_attention(query, key, value)\n",
        "error",
        2,
        "    return scaled_dot_product_attention(query, key, value)\n"
        "RecursionError: a function calls itself again and again, and never stops",
        False,
    ),
    "exit": ("exit()\n" + GOOD, "error", 1, "SystemExit: your code ends the", False),
    "exit inside": (before("raise SystemExit(1)"), "error", LINE, "SystemExit", False),
    "interrupt": (before("raise KeyboardInterrupt"), "error", LINE, "Keyboard", False),
    "os": (
        "import os\n" + GOOD,
        "error",
        1,
        f"ImportError: os isn't here: {HERE}",
        False,
    ),
    "js": ("from js import fetch\n" + GOOD, "error", 1, "js isn't here", False),
    "micropip": (before("import micropip"), "error", LINE, "micropip isn't", False),
    "numpy": ("import numpy as np\n" + GOOD, "error", 1, "numpy isn't here", False),
    "pyodide": ("import pyodide.http\n" + GOOD, "error", 1, "pyodide isn't", False),
    "input": (before("input()"), "error", LINE, "input() waits for nobody", False),
    "another torch": (
        "torch = None\n" + GOOD,
        "error",
        None,
        "Your text gives the name torch to something else: choose another.",
        False,
    ),
    "torch changed": (
        "torch.softmax = lambda *a, **k: 1\n" + GOOD,
        "error",
        None,
        "Your code changes torch.softmax, which everything here needs. It was put back",
        False,
    ),
    "tensors changed": (
        before("setattr(Tensor, 'softmax', None)"),
        "error",
        LINE + 1 + GOOD[GOOD.index(FIRST) : GOOD.index(".softmax(")].count("\n"),
        "Your code changes Tensor.softmax",
        False,
    ),
    "default type": ("torch.set_default_dtype(torch.float64)\n" + GOOD, *RIGHT),
    "memory": (before("torch.zeros(10**13)"), "error", LINE, "Error", False),
    "no text of its own": (
        before(
            "class E(Exception):\n        def __str__(self): return 1 / 0\n    raise E"
        ),
        "error",
        LINE + 1,
        "",
        False,
    ),
    "empty": ("", "error", None, "Your text defines no function scaled_dot_", False),
    "another name": (
        "def attention(query, key, value): ...",
        "error",
        None,
        "Your text defines no function scaled_dot_product_attention.",
        False,
    ),
    "a class": (
        "class scaled_dot_product_attention: ...",
        "error",
        None,
        "scaled_dot_product_attention must be a function, but is a value of type type.",
        False,
    ),
    "shapes": (
        GOOD.replace("query @ key.transpose(-2, -1)", "key @ query").replace(
            "math.sqrt(query.size(-1))", "8.0"
        ),
        "error",
        LINE,
        "Here, query has the shape (5, 9) and key has the shape (7, 9).",
        False,
    ),
    "shapes of what is in the line": (
        before("other = torch.zeros(3)\n    query + other"),
        "error",
        LINE + 1,
        "Here, query has the shape (5, 9) and other has the shape (3,).",
        False,
    ),
    "what is None in the line": (
        before("~mask"),
        "error",
        LINE,
        "Here, mask is None: ask if mask is not None.",
        False,
    ),
    "a size that has no name": (
        GOOD.replace("query.size(-1)", "d_head"),
        "error",
        LINE,
        "Here, d_head is query.size(-1).",
        False,
    ),
    "a size of another axis": (
        GOOD.replace("query.size(-1)", "k_len"),
        "error",
        LINE,
        "Here, k_len is key.size(-2).",
        False,
    ),
    "no tensors in the line": (
        before("raise RuntimeError('no')"),
        "error",
        LINE,
        "RuntimeError: no",
        False,
    ),
    "nothing": (ATTENTION + "    pass", "open", None, "Not attempted yet.", False),
    "a list": (
        ATTENTION + "    return [1, 2]",
        "wrong",
        None,
        "Expected (a tensor of shape (5, 9), a tensor of shape (5, 7)), but got a list",
        False,
    ),
    "one thing": (ATTENTION + "    return query", "wrong", None, "Return two", False),
    "another shape": (
        GOOD.replace("weights @ value, w", "(weights @ value)[..., :1], w"),
        "wrong",
        None,
        "",
        False,
    ),
    "NaN": (
        GOOD.replace("weights @ value", "weights @ value * float('nan')"),
        "wrong",
        None,
        "The output holds NaN, first at (0, 0).",
        True,
    ),
    "in place": (before("query.add_(0)"), *RIGHT),
    "changed in place": (
        GOOD.replace(
            "return weights @ value", "query *= 2\n    return weights @ value"
        ),
        "wrong",
        None,
        "The result is right, but query was changed in place; copy it.",
        False,
    ),
    "no root": (
        GOOD.replace(" / math.sqrt(query.size(-1))", ""),
        "wrong",
        None,
        "Divide the scores by the square root of `d_head`.",
        True,
    ),
    # pasted from a PDF, or saved by another editor
    "CRLF": (GOOD.replace("\n", "\r\n"), *RIGHT),
    "CR": (GOOD.replace("\n", "\r"), *RIGHT),
    "byte-order mark": ("\ufeff" + GOOD, *RIGHT),
    "no-break spaces": (GOOD.replace("    ", "\u00a0" * 4), *RIGHT),
    "curly quotes": (GOOD.replace('"-inf"', "“-inf”").replace('"""', "”””"), *RIGHT),
    "a minus sign": (GOOD.replace("-2", "−2").replace("=-1", "=–1"), *RIGHT),
    "zero-width spaces": (GOOD.replace("scores", "sco\u200bres"), *RIGHT),
    "tabs": (GOOD.replace("    ", "\t"), *RIGHT),
    "a tab": (GOOD.replace(FIRST, FIRST.replace("    ", "\t")), *RIGHT),
    "tabs that may be 4 or 8": (
        "if True:\n    if True:\n        x = 1\n\ty = 2\n" + GOOD,
        "error",
        4,
        "TabError",
        False,
    ),
    "a zero": ("\0" + GOOD, *RIGHT),
    "half a character": ("x = '\ud800'\n" + GOOD, "error", None, "surrogates", False),
    "a number": ("x = 1" + "0" * 5000 + "\n" + GOOD, "error", 1, "limit", False),
}


def fits(found: dict, status: str, line: int | None, message: str, runs: bool) -> bool:
    same = (found["status"], found["line"], found["runs"]) == (status, line, runs)
    return same and message in found["message"] and "Traceback" not in found["message"]


@pytest.mark.parametrize("name", BAD)
def test_whatever_is_written_gets_an_answer(name) -> None:
    source, *expected = BAD[name]
    found = desk.check("attention", source)
    assert fits(found, *expected), found
    assert set(found) == {"status", "message", "printed", "line", "runs", "ms"}
    for place in "site-packages", "transformer_book", "grading":  # no lines of ours
        assert place not in found["message"]
    again = desk.check("attention", GOOD)  # nothing is spoiled
    assert fits(again, *RIGHT) and again["printed"] == ""


@pytest.mark.parametrize("part", PARTS)
def test_stubs_are_open_and_solutions_right(part) -> None:
    stub = desk.check(part, PARTS[part].stub)
    right = desk.check(part, PARTS[part].solution)
    assert (stub["status"], stub["runs"]) == ("open", False)
    assert (right["status"], right["runs"]) == ("right", True)
    for tried in PARTS[part].tries:
        wrong = desk.check(part, tried.source)
        assert (wrong["status"], wrong["runs"]) == ("wrong", True), tried.label


MARKED = {
    "divide the scores by the root of d_head.": "Divide the scores by the root of "
    "`d_head`.",
    "padding_mask: padding is not hidden.": "`padding_mask`: padding is not hidden.",
    "d_head ** 1 / 2 is d_head / 2. Write d_head ** 0.5.": "`d_head ** 1` / 2 is "
    "`d_head` / 2. Write `d_head ** 0.5`.",
    "over the keys, dim=-1: every row sums to 1.": "Over the keys, `dim=-1`: every row "
    "sums to 1.",
    "use `if mask is not None`.": "Use `if mask is not None`.",
    'scores.masked_fill(~mask, float("-inf")) hides.': "`scores.masked_fill(~mask, "
    'float("-inf"))` hides.',
    "wrap it, lambda x: self.self_attn(x, x, x, src_mask).": "Wrap it, `lambda x: "
    "self.self_attn(x, x, x, src_mask)`.",
    "begin with super().__init__().": "Begin with `super().__init__()`.",
    ".T turns all axes: query is (2, 3, 5, 9).": "`.T` turns all axes: query is "
    "(2, 3, 5, 9).",
    "ids != pad_id is (batch, 1, 1, k_len) already.": "`ids != pad_id` is (batch, 1, "
    "1, `k_len`) already.",
    "self-attention takes x.": "Self-attention takes x.",
    "x must be added.": "x must be added.",
    "triu keeps what comes after: write .bool().": "`triu` keeps what comes after: "
    "write `.bool()`.",
    "what returns must go on: x = self.…_connection(x, …).": "What returns must go on: "
    "x = `self.…_connection(x, …)`.",
    "compare logits[0, -1]: numbers.": "Compare `logits[0, -1]`: numbers.",
    "10000, with four zeros.": "10000, with four zeros.",
}


@pytest.mark.parametrize(("message", "told"), MARKED.items())
def test_code_in_a_sentence_is_marked(message, told) -> None:
    assert desk.marked(message) == told


def test_a_part_of_two_that_is_missing_is_named() -> None:
    source = PARTS["masks"].solution.split("\n\n\n")[0]
    found = desk.check("masks", source)
    assert found["message"] == "Your text defines no function causal_mask."


def test_what_is_printed_is_shown_and_cut(monkeypatch) -> None:
    short = desk.check("attention", before("print('a', 1)"))["printed"]
    assert set(short.split("\n")) == {"a 1", ""} and short.count("\n") < 20
    long = desk.check("attention", before("print('x' * 50_000)"))["printed"]
    assert long.startswith("x" * 20_000 + "\n… more than 20,000 letters")
    calls, write = [], desk.Printed.write
    monkeypatch.setattr(
        desk.Printed, "write", lambda *args: calls.append(1) or write(*args)
    )
    loop = "for i in range(300_000): print('line', i)"
    found = desk.check("attention", before(loop))
    assert found["status"] == "right" and len(found["printed"]) < 21_000
    assert len(calls) < 100_000  # what nobody sees isn't even written


def test_a_line_that_calls_itself_is_told_once() -> None:
    message = desk.check("attention", BAD["recursion"][0])["message"]
    assert message.count("Line 2") == 1


def test_errors_are_no_output_of_ours(capfd) -> None:
    desk.check("attention", before("print('seen by nobody')\n    1 / 0"))
    assert capfd.readouterr() == ("", "")


def test_an_unknown_question_is_a_problem() -> None:
    with pytest.raises(Problem, match="Python has no task dance"):
        desk.answer("dance", {})
    assert desk.reply("dance", {}) == {"error": "Python has no task dance."}


def test_the_machine_is_asked_through_the_desk(monkeypatch) -> None:
    from test_yours_machine import SRC, small_packed

    monkeypatch.setattr(desk, "_machine", None)
    question = {"src": SRC, "edits": {}}
    assert desk.reply("write", question) == {"error": "The model isn't loaded yet."}
    assert desk.answer("load", {"packed": small_packed()}) == {}
    ids = desk.answer("write", question)["ids"]
    parts = {"attention": before("print('nowhere')")}
    assert desk.answer("use", {"parts": parts}) == {}
    shares = []
    edits = {"yours": ["attention"]}
    found = desk.answer("write", {"src": SRC, "edits": edits}, shares.append)
    assert found["ids"] == ids and shares
    wrong = {"parts": {"attention": before("torch.relu = None")}}
    assert "Your code changes torch.relu" in desk.reply("use", wrong)["error"]
    assert callable(torch.relu)
    assert desk.answer("write", {"src": SRC, "edits": edits})["ids"] == ids
    assert desk.answer("say", {"parts": parts})["words"].startswith("Your attention;")
    text = desk.answer("program", {"parts": parts, "sentence": "Ein Hund."})["text"]
    assert "'Ein Hund.'" in text and "nowhere" in text


CHILD = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from transformer_book.yours import page_torch
page_torch.install()
from transformer_book.yours import desk
sources = pickle.load(open(sys.argv[2], "rb"))
answers = [desk.check("attention", source) for source in sources]
pickle.dump(answers, open(sys.argv[3], "wb"))
"""


def test_the_torch_of_pages_answers_alike(tmp_path) -> None:
    folder = tmp_path / "book"
    for path, text in bundle.sources().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    given, back = tmp_path / "given", tmp_path / "back"
    given.write_bytes(pickle.dumps([source for source, *_ in BAD.values()]))
    command = [sys.executable, "-c", CHILD, folder, given, back]
    subprocess.run(command, check=True, cwd=folder)
    answers = pickle.loads(Path(back).read_bytes())
    for (name, (_, *expected)), found in zip(BAD.items(), answers, strict=True):
        if name == "default type":  # float32 is the only one there
            expected = "error", 1, "no `torch.set_default_dtype`", False
        assert fits(found, *expected), (name, found)
