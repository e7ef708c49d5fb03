"""The scripts of book/machine, as they are committed: bundled, and packed (gzip).

`npm run build` in book/machine writes them. Node packs them and Python unpacks them, so
that the book is built without Node.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from book._ext.toc import ROOT
from transformer_lib.files import write_bytes

FOLDER = ROOT / "book" / "machine" / "bundles"


def write_bundles(folder: Path) -> None:
    """Write all of them into a folder of the pages, as scripts that a browser reads."""
    for path in sorted(FOLDER.glob("*.js.gz")):
        write_bytes(folder / path.stem, gzip.decompress(path.read_bytes()))
