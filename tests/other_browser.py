"""Run scripts in a browser that has no driver: the page sends back what it found."""

import json
import os
import queue
import shutil
import subprocess
from pathlib import Path
from typing import Any

from file_server import serving_folder

PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.normandy.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "extensions.getAddons.cache.enabled": False,
}
PAGE = """<!doctype html><meta charset="utf-8"><title>test</title>
<script>window.transformer_model = (data) => { window.data = data; };</script>
%s<script>
(async () => {
  let answer;
  try { answer = { found: await (async (x) => { %s })(%s) }; }
  catch (error) { answer = { error: String(error.stack || error) }; }
  fetch("%s/answer", {
    method: "POST", mode: "no-cors", body: JSON.stringify(answer) });
})();
</script>"""


def find_firefox() -> str | None:
    """Return the path of an installed Firefox."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


def run_in_firefox(
    scripts: list[Path], body: str, x: Any, folder: Path, as_file: bool
) -> Any:
    """Load scripts into a page, run a body with an argument x, and return its answer.

    Args:
        scripts: classic scripts, loaded in this order.
        body: of an asynchronous function (x).
        x: plain data.
        folder: an empty one, for the page and the browser's profile.
        as_file: open the page from its file, not from a web server.
    """
    answers: queue.Queue[bytes] = queue.Queue()
    site = folder / "site"
    site.mkdir()

    for path in scripts:
        shutil.copy(path, site)
    tags = "".join(f'<script src="{path.name}"></script>\n' for path in scripts)
    profile = folder / "profile"
    profile.mkdir()
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
        for name, value in PREFERENCES.items()
    )
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    page = site / "page.html"
    with serving_folder(site, answers.put) as address:
        ask = json.dumps(x).replace("<", "\\u003c")
        page.write_text(PAGE % (tags, body, ask, address), encoding="utf-8")
        url = page.as_uri() if as_file else f"{address}/page.html"
        browser = subprocess.Popen(
            [find_firefox(), "--headless", "--no-remote", "--profile", profile, url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder), "MOZ_HEADLESS": "1"},
        )
        try:
            answer = json.loads(answers.get(timeout=300))
        finally:
            browser.terminate()
            browser.wait(30)
    assert "error" not in answer, answer["error"]
    return answer["found"]
