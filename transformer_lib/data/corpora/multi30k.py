"""Multi30k: 29,000 captions of pictures, English and German.

The corpus on which teaching code reports BLEU (Elliott et al. 2016). Its publishers
allow non-commercial research and education and give no open license, so none of its
text is part of this project: it is downloaded once, or read from a folder.
"""

from pathlib import Path

from transformer_lib.data.corpora.download import cache_folder, fetch
from transformer_lib.data.corpora.parallel import ParallelCorpus, read_pairs

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
SHA256 = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": (
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"
    ),
    "test_2016_flickr.en.gz": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
    ),
}


def load_multi30k(folder: str | Path | None = None) -> ParallelCorpus:
    """Return the corpus, English to German; its test is the one of 2016.

    Args:
        folder: where the published files are (`train.en.gz`, or unpacked `train.en`,
            and so on). If None: the cache, filled by a download of 1.3 MB the first
            time.

    Raises:
        FileNotFoundError: the folder lacks a file; which one.
        ConnectionError: a download fails; the message says where to put a copy.
        ValueError: a file is broken, has an empty line, or another number of lines
            than its translation.
    """
    if not folder:
        folder = cache_folder() / "multi30k"
        for name, sha256 in SHA256.items():
            fetch(f"{ADDRESS}/{name}", sha256, folder / name)
    parts = (
        read_pairs(*(_find(Path(folder), f"{part}.{side}") for side in ("en", "de")))
        for part in ("train", "val", "test_2016_flickr")
    )
    return ParallelCorpus("multi30k", *parts)


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"neither {name} nor {name}.gz is in {folder}")
