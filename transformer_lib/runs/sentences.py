"""Which sentences a run was trained with: a checksum of each part, in its folder.

Files of one's own change. With one more line, they are split otherwise, and what a
model is tested on may be what it has learned.
"""

import json
from pathlib import Path

from transformer_lib.data.corpora import LabelledCorpus, ParallelCorpus
from transformer_lib.data.corpora.parallel import PARTS, HeldOut, RowsChecksum
from transformer_lib.files import write_text

SENTENCES = "sentences.json"


def checksums(corpus: ParallelCorpus | LabelledCorpus | HeldOut) -> dict[str, str]:
    """Return a checksum of each part of a corpus."""
    if isinstance(corpus, HeldOut):
        return corpus.checksums
    sums = {part: RowsChecksum() for part in PARTS}
    for part, rows in sums.items():
        for row in getattr(corpus, part):
            rows.add(row)
    return {part: rows.hexdigest() for part, rows in sums.items()}


def note_sentences(folder: Path, sums: dict[str, str]) -> None:
    """Write down the checksums of a run's sentences."""
    write_text(folder / SENTENCES, json.dumps(sums, indent=1) + "\n")


def require_sentences(folder: Path, sums: dict[str, str]) -> None:
    """Refuse other sentences than those that a run was started with.

    Without checksums, nothing is known: of a shipped model, whose corpus doesn't
    change, or of a run of an earlier version.

    Raises:
        ValueError: a part has changed, which one; or the file is damaged.
    """
    path = folder / SENTENCES
    if not path.is_file():
        return
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        changed = [part for part in PARTS if noted[part] != sums[part]]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} holds no checksums: {error!r}") from None
    if changed:
        raise ValueError(
            f"the run in {folder} was started with other sentences: "
            f"{', '.join(changed)} changed, and what is tested now may have been "
            "learned. Put the files back as they were, or name copies of them: score "
            "--source FILE --target FILE"
        )
