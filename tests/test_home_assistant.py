"""The interface corpus: sentences of a release, split by component, with license."""

import gzip
import hashlib
import re

import pytest

from transformer_lib.data.corpora import load
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


def is_kept(english: str, german: str) -> bool:
    """Whether a pair is one of those that NOTICE.md says are in the file."""
    no_sentence = re.compile(r"[{}`\n\t<>@]|https?:|www\.|\]\(|\*\*|\[%")
    return (
        english != german
        and 3 <= len(english.split()) <= 15
        and 1 <= len(german.split()) <= 18
        and not no_sentence.search(english + german)
    )


def test_sentences_are_what_the_notice_says() -> None:
    for entry in read_entries():
        assert is_kept(entry.english, entry.german), entry
        assert entry.components
    assert not is_kept("Turn {name} on now", "Schalte {name} ein")


def test_license_and_notice_lie_beside_the_data() -> None:
    folder = PAIRS_FILE.parent
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")[:200]
    notice = (folder / "NOTICE.md").read_text(encoding="utf-8")
    assert f"{len(read_entries()):,} sentences" in notice
    assert re.search(r"sha256 of the release: [0-9a-f]{64}\)", notice)


def test_stored_data_has_no_time_in_its_head() -> None:
    head = PAIRS_FILE.read_bytes()[:10]
    assert head[:2] == b"\x1f\x8b"
    assert head[4:8] == bytes(4)
    assert gzip.decompress(PAIRS_FILE.read_bytes()).endswith(b"\n")
