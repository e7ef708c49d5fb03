"""Measure how long Python takes in a page: to start, to check, to translate.

    python -m benchmarks.page_python [--rounds 5] [--slow] [--page FILE]

The pages have to be built. `--slow` lets the page run a quarter of the time: throttling
in a browser reaches no worker, so the processes of the browser are stopped
and continued in turns. Beside the milliseconds that passed stand those that the page's
process has computed, in all its threads: other work on the machine changes these less.
"""

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

from book._ext.browser import find_browser
from book._ext.browser_model import model_data
from book._ext.page_rules import wait_until
from book._ext.toc import ROOT
from transformer_book.yours.parts import PARTS
from transformer_lib.pretrained.translator import load

PAGE = ROOT / "_build/html/book/02_scaled_dot_product_attention.html"
SENTENCE = "Ein Mann sitzt auf einer Bank und liest ein Buch."  # twelve tokens
RUN, REST = 0.005, 0.015  # seconds: a quarter of the time
PREPARE = """async (packed) => {
  const src = document.querySelector("script[src*='desks.js']").src;
  const script = document.createElement("script");
  script.src = src.replace("desks.js", "yours.js"); // as the first touch of a desk does
  await new Promise((done) => { script.onload = done; document.head.append(script); });
  window.python = machine_yours.python();
  packed.data = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  window.packed = packed;
}"""
ASK = """async ([task, question]) => {
  const start = performance.now();
  const answer = task === "start" ? await python.start((at) => { window.at = at; })
    : await python.ask(task, task === "load" ? { packed } : question, { seconds: 99 });
  return [performance.now() - start, answer];
}"""
SPARE = "() => python.spare?.ready.then(() => true)"


def renderers() -> list[int]:
    """The processes of this script's browser that run pages."""
    above = {}
    for path in Path("/proc").glob("[0-9]*"):
        if (path / "stat").exists():
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            above[int(path.name)] = int(fields[1])
    own = {os.getpid()}
    while more := {pid for pid, parent in above.items() if parent in own} - own:
        own |= more
    return [
        pid
        for pid in own
        if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def computed() -> float:
    """Milliseconds of all threads of these processes."""
    ticks = 0
    for pid in renderers():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def slowed() -> Iterator[None]:
    """Let the browser's pages run a quarter of the time."""
    ended, pids = threading.Event(), renderers()

    def slow() -> None:
        while not ended.is_set():
            for number, pause in (signal.SIGSTOP, REST), (signal.SIGCONT, RUN):
                for pid in pids:
                    os.kill(pid, number)
                time.sleep(pause)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure(page: Page, packed: dict, src: list[int]) -> dict[str, tuple[float, ...]]:
    """For each step, the milliseconds that passed and those that were computed."""
    found = {}
    sources = {name: part.solution for name, part in PARTS.items()}
    attention = {"part": "attention", "source": sources["attention"]}
    page.evaluate(PREPARE, packed)

    def ask(name: str, task: str, question: dict | None = None) -> dict:
        before = computed()
        ms, answer = page.evaluate(ASK, [task, question])
        found[name] = ms, computed() - before
        return answer

    ask("start", "start")
    ask("first check", "check", attention)
    wait_until(page, SPARE)
    ask("second check", "check", attention)
    ask("load", "load")
    for name, parts in ("one", {"attention": sources["attention"]}), ("all", sources):
        ask(f"use, {name}", "use", {"parts": parts})
        ids = ask(f"write, {name}", "write", {"src": src, "edits": {}})["ids"]
        asked = {"src": src, "tgt": ids, "edits": {}}
        ask(f"look, {name}", "look", asked)
    for _ in range(50):
        ask("fiftieth check", "check", attention)
    loop = {"part": "attention", "source": "while True: pass"}
    page.evaluate("(loop) => { python.ask('check', loop).catch(() => {}); }", loop)
    page.wait_for_timeout(500)
    page.evaluate("python.stop()")
    ask("check after Stop", "check", attention)
    return found


def one_round(browser: Browser, address: str, slow: bool) -> dict[str, tuple]:
    """Open a page and measure; sizes are in MB."""
    translator = load("multi30k-de-en")
    src = translator.tokenizer.encode(SENTENCE)
    page = browser.new_page()
    page.set_default_timeout(300_000)
    page.goto(address)
    with slowed() if slow else nullcontext():
        found = measure(page, model_data(translator), src)
    found["MB loaded"] = (page.evaluate("at.total / 1e6"),)
    wait_until(page, SPARE)
    heap = "self.python._module.HEAPU8.length / 1e6"
    memory = []
    for worker in page.workers:
        with suppress(Error):  # one that was stopped a moment ago
            memory.append(worker.evaluate(heap))
    found["MB of memory"] = (max(memory),)
    page.close()
    return found


def main() -> None:
    """Print the median of each number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    numbers = defaultdict(list)
    with sync_playwright() as playwright:
        for _ in range(options.rounds):  # each in a browser that has kept nothing
            browser = playwright.chromium.launch(
                executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
            )
            found = one_round(browser, options.page.as_uri(), options.slow)
            for name, values in found.items():
                numbers[name].append(values)
            browser.close()
    for name, rounds in numbers.items():
        medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
        sys.stdout.write(f"{name:18}" + "".join(f"{x:9.1f}" for x in medians) + "\n")


if __name__ == "__main__":
    main()
