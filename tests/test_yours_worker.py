"""Python in the pages, in Chromium: it starts from a file and from a server, answers,
and is stopped; nothing leads out of its worker."""

from __future__ import annotations

import json
import random
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import page_process
import pytest
from file_server import serving_folder
from playwright.sync_api import Error, Page
from test_page_torch import OPERATIONS, agree, draw_case

from book._ext import pyodide, sphinx_python
from book._ext.browser_model import model_data
from book._ext.bundles import write_bundles
from book._ext.page_rules import wait_until
from book._ext.toc import ROOT
from transformer_book.yours.page_torch import Kernels
from transformer_book.yours.parts import PARTS
from transformer_lib.pretrained.translator import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("browser_wanted"),
    pytest.mark.skipif(not sphinx_python.available(), reason="no Pyodide here"),
]

SOLUTION = PARTS["attention"].solution
LOOP = "while True: pass\n"
WITHOUT_ROOT = next(
    each.source for each in PARTS["attention"].tries if "√" in each.label
)
ONLINE = pytest.mark.browser_context_args(offline=False)  # else there is no localhost
ASK = """async ([task, question, seconds]) => {
  const shares = [], on_progress = (share) => { shares.push(share); };
  try {
    const answer = await python.ask(task, question, { seconds, on_progress });
    return { answer, shares };
  } catch (error) {
    return { name: error.name, message: error.message };
  }
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with one page that has the policy of all, and may run Python."""
    folder = tmp_path_factory.mktemp("site")
    write_bundles(folder / "_static/machine")
    assert sphinx_python.write_scripts(folder / "_static/yours")
    head = (ROOT / "book/_ext/theme/head.html").read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy".*?>', head)[0]
    script = '<script src="_static/machine/yours.js"></script>'
    (folder / "page.html").write_text(
        f'<!doctype html><meta charset="utf-8">{policy}<title>Python</title>'
        f'<link rel="icon" href="data:,">{script}',
        encoding="utf-8",
    )
    return folder


def open_python(page: Page, address: str) -> list[dict]:
    """Start Python on the page; give how much of it had come, again and again."""
    page.goto(f"{address}/page.html")
    return page.evaluate(
        """async () => {
          const seen = [];
          window.python = machine_yours.python();
          await python.start((at) => { seen.push(at); });
          return seen;
        }"""
    )


@pytest.fixture(scope="module")
def ready(browser, site):
    """A page on which Python has started."""
    page = browser.new_page()
    open_python(page, site.as_uri())
    yield page
    page.close()


def ask(page: Page, task: str, question: dict, seconds: int = 60) -> dict:
    """What comes of a question: an answer, or an error's name and message."""
    return page.evaluate(ASK, [task, question, seconds])


def check(page: Page, source: str, seconds: int = 60) -> dict:
    """Let a source be graded."""
    question = {"part": "attention", "source": source}
    return ask(page, "check", question, seconds)


@pytest.fixture(scope="module")
def inside(browser, site):
    """Run Python in a worker, past what the desk allows; gives what it prints.

    It runs later than the call: what is evaluated at once may do more than a page.
    """
    page = browser.new_page()
    open_python(page, site.as_uri())
    [worker] = page.workers

    def run(code: str) -> str:
        indented = "\n".join(f"    {line}" for line in code.splitlines())
        lines = (
            "import contextlib, io",
            "with contextlib.redirect_stdout(io.StringIO()) as out:",
        )
        code = "\n".join([*lines, indented, "out.getvalue()"])
        return worker.evaluate(
            """(code) => new Promise((then) => setTimeout(() => {
              try { then(python.runPython(code)); } catch (error) { then(`${error}`); }
            }))""",
            code,
        )

    yield run
    page.close()


# --- it starts, and answers -------------------------------------------------------


@pytest.mark.parametrize("place", ["file", pytest.param("http", marks=ONLINE)])
def test_it_starts_and_grades(place, site, page: Page, trouble) -> None:
    with serving_folder(site) as address:
        if place == "file":
            address = site.as_uri()
        seen = open_python(page, address)
        found = check(page, SOLUTION)["answer"]
    assert found["status"] == "right" and found["message"]
    assert found["line"] is None
    loaded = [each["loaded"] for each in seen]
    assert loaded == sorted(loaded) and loaded[0] == 0
    assert loaded[-1] == seen[0]["total"] > 4e6
    asks = f"asks the network for {address}/"
    trouble[:] = [line for line in trouble if not line.startswith(asks)]


def test_what_did_not_come_can_be_asked_for_again(site, browser) -> None:
    page = browser.new_page()
    [script, *_] = sorted((site / "_static/yours").glob("python-03*"))
    away = script.rename(script.with_suffix(".away"))
    with pytest.raises(Error, match="Lost: .*didn’t come"):
        open_python(page, site.as_uri())
    away.rename(script)
    page.evaluate("python.start()")
    assert check(page, SOLUTION)["answer"]["status"] == "right"
    page.close()


def test_two_tabs_run_it_at_once(ready, browser, site) -> None:
    other = browser.new_page()
    open_python(other, site.as_uri())
    other.evaluate(f"void python.ask('check', {{part: 'attention', source: `{LOOP}`}})")
    assert check(ready, SOLUTION)["answer"]["status"] == "right"
    other.close()


def test_a_mistake_has_its_sentence_and_an_error_its_line(ready) -> None:
    wrong = check(ready, WITHOUT_ROOT)["answer"]
    assert wrong["status"] == "wrong" and "square root" in wrong["message"]
    assert check(ready, PARTS["attention"].stub)["answer"]["status"] == "open"
    error = check(ready, "\n\nthis is no Python\n")["answer"]
    assert error["status"] == "error" and error["line"] == 3


def test_the_kernels_are_what_python_does(inside) -> None:
    """Each on random numbers, beside the plain loops of page_torch.py."""
    worst = json.loads(inside(COMPARE))
    assert sorted(worst) == sorted(vars(Kernels()))
    assert max(worst.values()) < 1e-6


COMPARE = """
import json
from array import array
from random import Random

from transformer_book.yours.page_torch import KERNELS, Kernels

draw, plain = Random(0), Kernels()
numbers = lambda n: array("f", [draw.gauss(0, 1) for _ in range(n)])
x, y, z = numbers(400), numbers(400), numbers(40)
starts = array("i", [0, 7]), array("i", [3, 1])
cases = {  # arguments before and after the result, and its size
    "multiply": ([x, starts[0], 11, 1, y, starts[1], 1, 11], [5, 11, 7], 70),
    "linear": ([x, 3, y, 5, z, 2], [5, 11, 7], 35),
    "add": ([x, 1, y, 2, 7], [70], 70),
    "softmax": ([x, 1], [5, 11], 55),
    "layer_norm": ([x, 1, y, 2, z, 3], [5, 11, 1e-5], 55),
    "relu": ([x, 2], [70], 70),
}
worst = {}
for name, (before, after, size) in cases.items():
    found = array("f", bytes(4 * size)), array("f", bytes(4 * size))
    getattr(KERNELS, name)(*before, found[0], *after)
    getattr(plain, name)(*before, found[1], *after)
    assert any(found[1])
    worst[name] = max(abs(a - b) for a, b in zip(*found))
print(json.dumps(worst))
"""


def test_every_module_that_is_left_can_be_imported(inside) -> None:
    failed = inside(
        """
import importlib, sys, zipfile
from transformer_book.yours.worker import HIDDEN

[library] = [path for path in sys.path if path.endswith(".zip")]
failed = []
for path in zipfile.ZipFile(library).namelist():
    name = path.removesuffix(".pyc").replace("/", ".").removesuffix(".__init__")
    if name.partition(".")[0] not in HIDDEN:
        try:
            importlib.import_module(name)
        except Exception as error:
            failed.append(f"{name}: {error}")
print(*failed, sep="\\n", end="")
""",
    )
    assert failed == ""


def answers_inside(inside, programs: list[str], before: str) -> list[Any]:
    """What the page's torch answers in the browser."""
    helper = Path(page_process.__file__).read_text(encoding="utf-8")
    helper = helper.replace("import subprocess\n", "")  # which the page has not
    code = f"""
        space = {{"__name__": "helper"}}
        exec({helper!r}, space)
        print(space["json"].dumps(space["answers"]({programs!r}, {before!r})))
    """
    return json.loads(inside(textwrap.dedent(code)))


@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_is_pytorchs_in_the_browser_too(operations, inside) -> None:
    before = draw_case(random.Random(7))
    found = answers_inside(inside, operations, before)
    wanted = page_process.answers(operations, before)
    differing = [
        (line, *pair)
        for line, *pair in zip(operations, found, wanted, strict=True)
        if not agree(*pair)
    ]
    assert differing == [], before


# --- it is stopped ----------------------------------------------------------------


def wait_for_spare(page: Page) -> None:
    """Wait until another worker stands by, and note it."""
    wait_until(
        page, "() => Boolean(python.at_work?.is_ended === false && python.spare)"
    )
    page.evaluate("async () => { await (window.spare = python.spare).ready; }")


def spare_is_at_work(page: Page) -> bool:
    return page.evaluate("() => python.at_work === window.spare")


def test_an_endless_loop_ends_by_itself(ready) -> None:
    check(ready, SOLUTION)
    wait_for_spare(ready)
    found = check(ready, LOOP, seconds=2)
    assert found["name"] == "TooLong" and "loop" in found["message"]
    assert check(ready, SOLUTION)["answer"]["status"] == "right"
    assert spare_is_at_work(ready)


def test_stop_ends_what_runs_and_what_waits(ready) -> None:
    check(ready, SOLUTION)
    wait_for_spare(ready)
    found = ready.evaluate(
        """async ([loop, source]) => {
          const asks = [loop, source].map((source) =>
            python.ask("check", { part: "attention", source }));
          setTimeout(() => python.stop(), 300);
          return (await Promise.allSettled(asks)).map(({ reason }) => reason?.name);
        }""",
        [LOOP, SOLUTION],
    )
    assert found == ["Stopped", "Stopped"]
    assert check(ready, SOLUTION)["answer"]["status"] == "right"
    assert spare_is_at_work(ready)


def test_what_breaks_python_breaks_no_page(ready) -> None:
    """A list in a list in a list, ...: its text takes more stack than there is."""
    deep = "x = []\nfor _ in range(10**5): x = [x]\nstr(x)\n"
    assert check(ready, deep)["name"] == "Broken"
    assert check(ready, SOLUTION)["answer"]["status"] == "right"


def test_a_million_lines_are_cut(ready) -> None:
    many = f"for i in range(10**6): print(i)\n{SOLUTION}"
    printed = check(ready, many)["answer"]["printed"]
    assert printed.startswith("0\n1\n2\n") and len(printed) < 21_000


def test_the_spare_gets_the_model_and_the_parts(ready) -> None:
    """After *Stop*, the machine translates as before, and nobody loads it again."""
    packed = model_data(load("multi30k-de-en"))
    ready.evaluate("(packed) => { window.packed = packed; }", packed)
    ready.evaluate(
        """() => {
          const text = atob(packed.data);
          packed.data = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
          return python.ask("load", { packed }, { seconds: 60 });
        }"""
    )
    source = load("multi30k-de-en").tokenizer.encode(
        "Zwei Männer in blauen Hemden sitzen auf einer Bank und essen."
    )
    write = {"src": source, "edits": {}}
    own = ask(ready, "write", write)["answer"]["text"]
    assert own == "Two men in blue shirts sitting on a bench eating."
    ask(ready, "use", {"parts": {"attention": WITHOUT_ROOT}})
    changed = ask(ready, "write", write)
    assert changed["answer"]["text"] != own
    assert len(changed["shares"]) > 3
    look = {"src": source, "tgt": changed["answer"]["ids"], "edits": {}}
    kind = """async (look) => {
      const { maps } = await python.ask("look", look);
      return Object.values(maps)[0][0].constructor.name;
    }"""
    assert ready.evaluate(kind, look) == "Float32Array"
    wait_for_spare(ready)
    assert check(ready, LOOP, seconds=2)["name"] == "TooLong"
    assert ask(ready, "write", write)["answer"] == changed["answer"]
    assert spare_is_at_work(ready)
    assert ready.evaluate("python.worker") == 1


# --- nothing leads out ------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import js",
        "import pyodide_js",
        "import pyodide.code",
        "from pyodide.code import run_js",
        "import _pyodide_core",
        "import urllib.request",
        "import subprocess; subprocess.run(['ls'])",
        "import socket; socket.create_connection(('example.org', 80), 1)",
        "import asyncio; asyncio.run(asyncio.open_connection('example.org', 80))",
        # A kernel is a function of JavaScript, and so is what made it.
        "KERNELS.relu.__closure__[0].cell_contents.constructor('return 1')()",
    ],
)
def test_python_stays_in_its_worker(inside, code) -> None:
    name = inside(
        f"""
from transformer_book.yours.page_torch import KERNELS
try:
    {code}
    print("it worked")
except BaseException as error:
    print(type(error).__name__)
""",
    )
    assert name.strip() in {
        "ModuleNotFoundError",
        "OSError",
        "JsException",
        "RuntimeError",
    }


@pytest.mark.parametrize("place", ["file", pytest.param("http", marks=ONLINE)])
def test_the_policy_holds_in_workers(place, site, browser) -> None:
    """Python's worker has no doors; a worker with doors meets the page's policy."""
    page = browser.new_page()
    with serving_folder(site) as address:
        page.goto(f"{site.as_uri() if place == 'file' else address}/page.html")
        refused = page.evaluate(
            """async () => {
              const text = `
                const seen = [], done = () => postMessage(seen.sort());
                self.addEventListener("securitypolicyviolation", (event) => {
                  if (seen.push(event.effectiveDirective) === 4) done();
                });
                setTimeout(done, 5000);
                fetch("https://example.org/").catch(() => {});
                try { new WebSocket("wss://example.org/"); } catch {}
                try { importScripts("https://example.org/x.js"); } catch {}
                try { new Function("return 1")(); } catch {}`;
              const worker = new Worker(URL.createObjectURL(new Blob([text])));
              return (await new Promise((then) => { worker.onmessage = then; })).data;
            }"""
        )
    page.close()
    assert refused == ["connect-src", "connect-src", "script-src", "script-src-elem"]


def test_the_doors_of_the_worker_are_closed(ready) -> None:
    doors = ["fetch", "XMLHttpRequest", "WebSocket", "importScripts", "indexedDB"]
    kinds = ready.workers[-1].evaluate(
        "(names) => names.map((n) => typeof self[n])", doors
    )
    assert kinds == ["undefined"] * len(doors)


# --- its files --------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node")
def test_the_files_are_those_of_the_package() -> None:
    if not (ROOT / "book/machine/node_modules/pyodide").exists():
        pytest.skip("npm ci in book/machine has not run")
    committed, packaged = pyodide.committed(), pyodide.packaged()
    for name in pyodide.FILES:
        assert committed[name] == packaged[name], f"{name}: python -m book._ext.pyodide"


def test_without_them_no_script_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pyodide, "FOLDER", tmp_path)
    assert not sphinx_python.available()
    assert sphinx_python.write_scripts(tmp_path / "yours") == []
    assert not (tmp_path / "yours").exists()
