r"""Makes the interface corpus of the package from a release of Home Assistant.

    python -m pip download --no-deps --only-binary :all: --python-version 3.14 \
        homeassistant==2026.2.3
    python -m book_tools.extract_home_assistant homeassistant-2026.2.3-py3-none-any.whl

The release is no dependency of the book: this runs once, and its result is stored in
`transformer_lib/corpora/data/home_assistant/`. The same release gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transformer_lib.data.corpora.home_assistant import PAIRS_FILE
from transformer_lib.files import write_bytes

RELEASE_SHA256 = "8167820cac4b8defe895fd2c36ac23402a445d1fe6028e8cde24caabb935282c"
LICENSE = "homeassistant-2026.2.3.dist-info/licenses/LICENSE.md"
ENGLISH_FILE = re.compile(r"homeassistant/components/(\w+)/translations/en\.json")
# Templates, code, addresses, markup: no sentences.
UNWANTED = re.compile(r"[{}`\n\t<>@]|https?:|www\.|\]\(|\*\*|\[%")
ENGLISH_WORDS, GERMAN_WORDS = range(3, 16), range(1, 19)


@dataclass
class Entry:
    """What the release says about one English sentence."""

    german: Counter[str] = field(default_factory=Counter)
    components: set[str] = field(default_factory=set)


def flatten(texts: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a nested translation file with its path of keys."""
    for key, value in texts.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value).strip()


def is_wanted(english: str, german: str) -> bool:
    """Keep sentences of moderate length that were translated and are only words."""
    return (
        english != german
        and not UNWANTED.search(english + german)
        and len(english.split()) in ENGLISH_WORDS
        and len(german.split()) in GERMAN_WORDS
    )


def collect(release: zipfile.ZipFile) -> dict[str, Entry]:
    """Gather all wanted English sentences with their translations and components."""
    entries: dict[str, Entry] = defaultdict(Entry)
    names = set(release.namelist())
    for name in sorted(names):
        match = ENGLISH_FILE.fullmatch(name)
        other = name.removesuffix("en.json") + "de.json"
        if not match or other not in names:
            continue
        english, german = (
            dict(flatten(json.loads(release.read(n)))) for n in (name, other)
        )
        for key in english.keys() & german.keys():
            if is_wanted(english[key], german[key]):
                entry = entries[english[key]]
                entry.german[german[key]] += 1
                entry.components.add(match[1])
    return dict(entries)


def table(entries: Mapping[str, Entry]) -> str:
    """Return a line for each English sentence: components, English, German.

    Where a sentence has several translations, the most frequent one is taken, and of
    equally frequent ones the first in the order of the alphabet.
    """
    lines = []
    for english, entry in sorted(entries.items()):
        german = min(entry.german, key=lambda text: (-entry.german[text], text))
        lines.append("\t".join([" ".join(sorted(entry.components)), english, german]))
    return "\n".join(lines) + "\n"


def main(path: str) -> None:
    """Extract the corpus from the release at `path`."""
    found = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if found != RELEASE_SHA256:
        sys.exit(f"{path}: sha256 is {found}, not {RELEASE_SHA256}: another release")
    with zipfile.ZipFile(path) as release:
        text = table(collect(release))
        license_text = release.read(LICENSE)
    # Without time and name in its head, the packed file depends on the text alone.
    write_bytes(PAIRS_FILE, gzip.compress(text.encode("utf-8"), 9, mtime=0))
    write_bytes(PAIRS_FILE.parent / "LICENSE", license_text)
    print(f"{text.count(chr(10)):,} pairs in {PAIRS_FILE}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
