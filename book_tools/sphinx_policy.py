"""Sphinx extension: a page runs and loads what belongs to the book, and nothing else.

A content security policy in every page makes the browser refuse the rest, over http and
where the page is opened from its folder. Scripts are files of the book, or stood in the
page when it was built: these are named by their hashes. No script may turn text into
code: Vega interprets its expressions instead (`vega_charts.js`). None may stand in an
attribute: the theme's buttons keep their words, and `book.js` acts on them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from sphinx.application import Sphinx

# 'self' is the site, and every file where the page is one, in Chromium and in Firefox.
RULES = {
    "default-src": "'self'",  # fonts, the search, the next page, which Firefox fetches
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # formulas, charts and drawings have styles
    "img-src": "'self' data:",  # the theme's signs
    "worker-src": "blob:",  # the translator's engine
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self' file:",  # the search; for Firefox, a file is no 'self' here
}

CHARSET = '<meta charset="utf-8" />'
META = '\n    <meta http-equiv="Content-Security-Policy" content="{}" />'
OLD = re.compile(re.escape(META).replace(r"\{\}", '[^"]*'))
SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
DATA = re.compile(r'\ssrc=|type="application/json"')  # attributes of what runs no text
HANDLER = re.compile(r'(<button) onclick="')


def policy(html: str) -> str:
    """Return the policy of a page, with the hashes of the scripts that stand in it."""
    scripts = [text for marks, text in SCRIPT.findall(html) if not DATA.search(marks)]
    digests = (b64encode(sha256(text.encode()).digest()) for text in scripts)
    hashes = dict.fromkeys(f"'sha256-{digest.decode()}'" for digest in digests)
    rules = {**RULES, "script-src": " ".join([RULES["script-src"], *hashes])}
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


def protected(html: str) -> str:
    """Return a page with its policy; a page that has one gets it anew."""
    html = HANDLER.sub(r'\1 data-onclick="', OLD.sub("", html))
    return html.replace(CHARSET, CHARSET + META.format(policy(html)), 1)


def protect_pages(app: Sphinx, error: Exception | None) -> None:
    """Write the policies into the built pages."""
    if error or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        if (better := protected(html)) != html:
            path.write_text(better, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("build-finished", protect_pages, priority=800)  # before the stamp
    return {"parallel_read_safe": True, "parallel_write_safe": True}
