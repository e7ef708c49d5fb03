"""Measure the translator in the page: bytes, times, longest task, memory.

    make book && python -m benchmarks.browser

The engine runs on the main thread here, since a browser slows down that thread only.
Factors of 4 and 6 stand for a tablet and for a slow phone.
"""

import gzip
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from book_tools.browser import find_browser
from book_tools.sphinx_outputs import LATE
from transformer_lib.pretrained.translator import DEFAULT

SITE = Path(__file__).parents[1] / "_build" / "html"
SENTENCE = "Eine Frau mit einem roten Hut liest in der Sonne ein Buch."
MEASURE = """async (sentence) => {
  const app = translator_app, long_tasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach(
    (entry) => long_tasks.push(entry.duration))).observe({ type: "longtask" });
  const clock = async (act) => {
    const start = performance.now(), found = await act();
    return [performance.now() - start, found];
  };
  const [script] = await clock(() => app.load());
  long_tasks.length = 0;
  const { src } = await app.ask("tokens", { text: sentence });
  const times = [], start = performance.now();
  const written = await app.ask("write", { src, edits: {} },
    () => times.push(performance.now() - start));
  const [search, found] = await clock(
    () => app.ask("search", { src, edits: {}, n_beams: 4 }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  return { ready: script, n_src: src.length, n_tgt: written.ids.length, first: times[0],
    all: times.at(-1), step: search / found.steps.length,
    longest: Math.max(0, ...long_tasks),
    memory: performance.memory ? performance.memory.usedJSHeapSize / 2 ** 20 : NaN };
}"""


def compressed(paths: list[Path]) -> float:
    """Return kilobytes as a web server sends them."""
    return sum(len(gzip.compress(path.read_bytes())) for path in paths) / 1000


def measure(page: Page, factor: int) -> dict[str, float]:
    """Load the model and translate, on a processor slowed down by a factor."""
    page.add_init_script("window.translator_without_worker = true")
    page.goto((SITE / "book" / "translator.html").as_uri())
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": factor})
    return page.evaluate(MEASURE, SENTENCE)


def main() -> None:
    """Print a table."""
    folder = SITE / "_static" / "translator"
    late = [folder / f"{name}.js" for name in LATE]
    model = folder / f"{DEFAULT}.js"
    first = [path for path in folder.glob("*.js") if path not in (*late, model)]
    lines = [
        f"before the click: scripts {compressed(first):.1f} kB; after it: "
        f"{compressed(late):.1f} kB, model and tokenizer {compressed([model]):.0f} kB",
        "slower  loaded, in ms  first token  per token  4 beams, a step  longest task",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(),
            args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"],
        )
        for factor in 1, 4, 6:
            page = browser.new_page()
            found = measure(page, factor)
            page.close()
            per_token = (found["all"] - found["first"]) / (found["n_tgt"] - 1)
            lines.append(
                f"{factor:6}  {found['ready']:13.0f}  {found['first']:11.0f}  "
                f"{per_token:9.1f}  {found['step']:15.0f}  {found['longest']:12.0f}"
            )
        lines.append(f"memory of the page: {found['memory']:.0f} MiB")
        browser.close()
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
