"""The interface corpus: as extracted, split by component, with its license."""

import gzip
import hashlib
import json
import zipfile

import pytest

from book_tools import extract_home_assistant as extraction
from transformer_lib.data.corpora import home_assistant, load
from transformer_lib.data.corpora.home_assistant import (
    PAIRS_FILE,
    last_part,
    part_of,
    read_entries,
)
from transformer_lib.data.corpora.parallel import PARTS
from transformer_lib.evaluation.scores import word_overlap

BY_COMPONENT, AT_RANDOM = (
    load(name) for name in ("home-assistant", "home-assistant-random")
)


@pytest.mark.parametrize("corpus", [BY_COMPONENT, AT_RANDOM], ids=lambda c: c.name)
def test_the_parts_have_fixed_sizes_and_share_no_sentence(corpus) -> None:
    sizes = [len(getattr(corpus, part)) for part in PARTS]
    assert sizes == [10_844, 512, 1_098]
    english = {pair[0] for part in PARTS for pair in getattr(corpus, part)}
    assert len(english) == sum(sizes) == len(read_entries())


def test_no_component_is_learned_and_tested() -> None:
    part = {pair[0]: name for name in PARTS for pair in getattr(BY_COMPONENT, name)}
    parts: dict[str, set[str]] = {}
    for entry in read_entries():
        if len(entry.components) == 1:
            parts.setdefault(entry.components[0], set()).add(part[entry.english])
    assert all(len(found) == 1 for found in parts.values())
    assert set.union(*parts.values()) == set(PARTS)


def test_a_sentence_that_a_training_component_shows_is_for_training() -> None:
    assert last_part(["test", "train", "valid"]) == "train"
    assert last_part(["test", "valid"]) == "valid"
    assert last_part(["test"]) == "test"
    train = set(BY_COMPONENT.train)
    for entry in read_entries():
        for_training = any(part_of(name) == "train" for name in entry.components)
        assert for_training == ((entry.english, entry.german) in train)


def test_a_component_stays_where_it_is() -> None:
    digest = hashlib.sha256(b"zwave_js").hexdigest()
    assert int(digest, 16) / 16**64 > 0.12  # the rule, by hand
    assert part_of("zwave_js") == "train"
    parts = [part_of(f"component {number}") for number in range(5000)]
    assert parts.count("test") / 5000 == pytest.approx(0.08, abs=0.01)
    assert parts.count("valid") / 5000 == pytest.approx(0.04, abs=0.01)


def test_a_random_split_leaves_more_near_copies_in_training() -> None:
    known = []
    for corpus in (BY_COMPONENT, AT_RANDOM):
        test, train = ([src for src, _ in p] for p in (corpus.test, corpus.train))
        shares = word_overlap(test, train)
        known.append(sum(share >= 0.75 for share in shares) / len(shares))
    assert known[1] > 2 * known[0] > 0


def test_sentences_are_what_the_extraction_keeps() -> None:
    for entry in read_entries():
        assert extraction.is_wanted(entry.english, entry.german)
        assert entry.components


def test_license_and_notice_lie_beside_the_data() -> None:
    folder = PAIRS_FILE.parent
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")[:200]
    notice = (folder / "NOTICE.md").read_text(encoding="utf-8")
    assert f"{len(read_entries()):,} sentences" in notice
    assert extraction.RELEASE_SHA256 in notice


@pytest.fixture
def release(tmp_path):
    """A release with three components, packed as the real one is."""
    texts = {
        "lamp": (
            {"a": {"b": "Turn on the lamp", "c": "Lamp"}, "d": "The lamp {name} is on"},
            {"a": {"b": "Schalte die Lampe ein", "c": "Lampe"}, "d": "{name} ist an"},
        ),
        "door": (
            {"x": "Turn on the lamp", "y": "Open the door", "z": "Not in German yet"},
            {"x": "Lampe einschalten", "y": "Open the door"},
        ),
        "bulb": ({"x": " Turn on the lamp "}, {"x": "Lampe einschalten"}),
        "only": ({"x": "Turn it off now"}, None),
    }
    path = tmp_path / "release.whl"
    with zipfile.ZipFile(path, "w") as release:
        for name, sides in texts.items():
            for language, side in zip(("en", "de"), sides, strict=True):
                if side is not None:
                    folder = f"homeassistant/components/{name}/translations"
                    release.writestr(f"{folder}/{language}.json", json.dumps(side))
        release.writestr(extraction.LICENSE, "Apache License")
    return path


def test_extraction_takes_the_most_frequent_translation(release) -> None:
    with zipfile.ZipFile(release) as opened:
        text = extraction.table(extraction.collect(opened))
    assert text == "bulb door lamp\tTurn on the lamp\tLampe einschalten\n"


def test_extraction_writes_the_same_bytes_again(release, tmp_path, monkeypatch) -> None:
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    monkeypatch.setattr(extraction, "RELEASE_SHA256", digest)
    written = []
    for number in range(2):
        target = tmp_path / str(number) / "pairs.tsv.gz"
        monkeypatch.setattr(extraction, "PAIRS_FILE", target)
        extraction.main(str(release))
        written.append(target.read_bytes())
        assert (target.parent / "LICENSE").read_text() == "Apache License"
    assert written[0] == written[1]
    assert written[0][4:8] == bytes(4)  # no time in the head of the packed file
    monkeypatch.setattr(home_assistant, "PAIRS_FILE", target)
    [entry] = read_entries.__wrapped__()
    assert entry.components == ("bulb", "door", "lamp")


def test_another_release_is_refused(release, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(extraction, "PAIRS_FILE", tmp_path / "new" / "pairs.tsv.gz")
    with pytest.raises(SystemExit, match="sha256 is .*, not 8167820c"):
        extraction.main(str(release))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("english", "german", "wanted"),
    [
        ("Turn on the lamp", "Schalte die Lampe ein", True),
        ("Turn on", "Einschalten", False),  # fewer than 3 words
        ("a " * 15, "b " * 18, True),
        ("a " * 16, "b " * 18, False),
        ("a " * 15, "b " * 19, False),
        ("Home Assistant Cloud", "Home Assistant Cloud", False),
        ("See the page https://example.org", "Siehe die Seite", False),
        ("The name is {name}", "Der Name ist", False),
        ("Two lines\nof text", "Zwei Zeilen Text", False),
        ("A `word` in code", "Ein Wort im Code", False),
        ("A [link](to) a page", "Ein Link", False),
        ("Write to a@example.org", "Schreibe uns heute", False),
    ],
)
def test_only_sentences_are_wanted(english, german, wanted) -> None:
    assert extraction.is_wanted(english.strip(), german.strip()) == wanted


def test_stored_data_has_no_time_in_its_head() -> None:
    head = PAIRS_FILE.read_bytes()[:10]
    assert head[:2] == b"\x1f\x8b"
    assert head[4:8] == bytes(4)
    assert gzip.decompress(PAIRS_FILE.read_bytes()).endswith(b"\n")
