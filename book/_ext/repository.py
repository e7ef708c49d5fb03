"""The address of the repository: set in _config.yml, stamped wherever it is needed.

    python -m book._ext.repository https://github.com/owner/name

rewrites the settings, the bootstrap cells, the links to Colab and the pages that name
the address. Nothing is executed again.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlencode

import yaml

from book._ext.toc import ROOT

UNKNOWN = "https://github.com/OWNER/REPO"  # until somebody stamps an address
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
NAMED_IN = ("*.md", "CITATION.cff", "book/*.md", "book/*.ipynb", "_config.yml")
BOOTSTRAP = """\
try:
    import transformer_lib
except ModuleNotFoundError:  # in Colab: fetch the library once
    book = "{address}"
    if book.endswith("/OWNER" + "/REPO"):
        raise RuntimeError(
            f"{{book}} is no address: whoever gave you this copy "
            "has not run make repository URL=... yet"
        ) from None
    %pip install -q "transformer-lib[book] @ git+{{book}}\""""
EDITION = version("transformer-lib")
COLAB = "https://colab.research.google.com/github/{slug}/blob/main/book/{name}"


def address(root: Path = ROOT) -> str:
    """The address in _config.yml, such as https://github.com/owner/name."""
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return settings["repository"]["url"]


def site(url: str) -> str:
    """Where GitHub serves the pages of a repository, with a slash at the end."""
    owner, name = GITHUB.fullmatch(url)[1].split("/")
    domain = f"{owner.lower()}.github.io"
    return f"https://{domain}/" + (f"{name}/" if name.lower() != domain else "")


def bootstrap(url: str) -> str:
    """The first code cell of every chapter, for the library at this address."""
    return BOOTSTRAP.format(address=url)


def colab_link(url: str, notebook: str) -> str:
    """Where Colab opens the notebook of this file name."""
    return COLAB.format(slug=GITHUB.fullmatch(url)[1], name=notebook)


def question_link(url: str, page: str, section: str, anchor: str) -> str:
    """Where a reader asks about a section: a new issue with the place filled in."""
    place = f"Page: {page}\nSection: {section} (#{anchor})\nEdition: {EDITION}"
    words = {"title": f"Unclear: {section}", "body": f"{place}\n\nWhat is unclear: "}
    return f"{url}/issues/new?{urlencode(words)}"


def stamp(url: str, root: Path = ROOT) -> None:
    """Write the address everywhere.

    Raises:
        ValueError: it is not the address of a GitHub repository.
    """
    new = GITHUB.fullmatch(url.strip().rstrip("/").removesuffix(".git"))
    if not new:
        raise ValueError(f"not an address like https://github.com/owner/repo: {url!r}")
    old = re.escape(GITHUB.fullmatch(address(root))[1])
    named = re.compile(rf"(github\.com/|google\.com/github/){old}(?![\w-])")
    for path in (path for pattern in NAMED_IN for path in root.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        path.write_text(named.sub(rf"\g<1>{new[1]}", text), "utf-8", newline="\n")


if __name__ == "__main__":
    stamp(sys.argv[1])
