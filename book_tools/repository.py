"""The address of the repository: set in _config.yml, stamped wherever it is needed.

    python -m book_tools.repository https://github.com/owner/name
    python -m book_tools.repository file:///path/to/clone chapter.ipynb

The first form rewrites the settings, the bootstrap cells, the Colab links and
the pages that name the address; nothing is executed again. The second is for
trials: the bootstrap cells of the named notebooks fetch the library from a
clone on this computer, and nothing else changes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode

# Nothing else of the book: this runs in the image of Colab, too.
ROOT = Path(__file__).resolve().parent.parent
DEFAULT = "https://github.com/OWNER/REPO"
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff"]

GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")
LOCAL = re.compile(r"(?:git\+)?(file:///\S+)")
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
    %pip install -q "git+{{book}}\""""
BOOTSTRAP_START = "try:\n    import transformer_lib\n"
COLAB = "https://colab.research.google.com/github/{slug}/blob/main/book/{name}"


def address(root: Path = ROOT) -> str:
    """The address in _config.yml, such as https://github.com/owner/name."""
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return settings["repository"]["url"]


def clean(url: str) -> str:
    """Return the address without a closing slash or .git.

    Raises:
        ValueError: it is neither a GitHub repository nor a file:/// address.
    """
    url = url.strip().rstrip("/").removesuffix(".git")
    local = LOCAL.fullmatch(url)
    if local:
        return local.group(1)
    if not GITHUB.fullmatch(url):
        raise ValueError(f"not an address like {DEFAULT.lower()}: {url!r}")
    return url


def bootstrap(url: str) -> str:
    """The first code cell of every chapter, for the library at this address."""
    return BOOTSTRAP.format(address=clean(url))


def colab_link(url: str, notebook: str) -> str:
    """Where Colab opens the notebook of this file name."""
    slug = GITHUB.fullmatch(clean(url)).group(1)
    return COLAB.format(slug=slug, name=notebook)


def stamped_files(root: Path = ROOT) -> list[Path]:
    """Every file that may name the address; the settings come last."""
    book = root / "book"
    pages = [root / name for name in PAGES if (root / name).exists()]
    chapters = [*sorted(book.glob("*.md")), *sorted(book.glob("*.ipynb"))]
    return [*pages, *chapters, root / "_config.yml"]


def replace_address(text: str, old: str, new: str) -> str:
    """Put the new address, and its Colab form, in the place of the old one."""
    old_slug, new_slug = (GITHUB.fullmatch(url).group(1) for url in (old, new))
    for prefix in ("github.com/", "colab.research.google.com/github/"):
        pattern = re.escape(prefix + old_slug) + r"(?!\w|[.-]\w)"
        text = re.sub(pattern, prefix + new_slug, text)
    return text


def stamp(url: str, root: Path = ROOT) -> list[Path]:
    """Write the address everywhere and return the files that changed.

    Raises:
        ValueError: the address is not one of a GitHub repository.
    """
    new = clean(url)
    if not GITHUB.fullmatch(new):
        raise ValueError(f"name the notebooks whose bootstrap should use {new}")
    old = address(root)
    changed = []
    for path in stamped_files(root):
        text = path.read_text(encoding="utf-8")
        stamped = replace_address(text, old, new)
        if stamped != text:
            path.write_text(stamped, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


def stamp_bootstrap(notebook: NotebookNode, url: str) -> NotebookNode:
    """Let the bootstrap cell of a notebook fetch the library from this address."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.startswith(BOOTSTRAP_START):
            cell.source = bootstrap(url)
            return notebook
    raise ValueError("the notebook has no bootstrap cell")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m book_tools.repository",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url")
    parser.add_argument("notebooks", nargs="*", type=Path, help="stamp only these")
    options = parser.parse_args(arguments)
    try:
        if options.notebooks:
            for path in options.notebooks:
                notebook = nbformat.read(path, as_version=4)
                nbformat.write(stamp_bootstrap(notebook, options.url), path)
            changed = options.notebooks
        else:
            changed = stamp(options.url)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"stamped {len(changed)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
