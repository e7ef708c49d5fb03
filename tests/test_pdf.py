"""The whole book in one document: every page, every link, and Chromium prints it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import lxml.html
import pytest
from built_site import SITE, stale

from book_tools.pdf import anchor, dead_ends, whole_book
from book_tools.toc import ROOT, pages

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)


@pytest.fixture(scope="module")
def book():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)
    return whole_book(SITE, pages(), "The book")


def test_every_page_follows_in_order(book) -> None:
    chapters = [each.get("id") for each in book.xpath("//section[@class='chapter']")]
    assert chapters == [anchor(name) for name in pages()]
    titles = [each.xpath("string(.//h1)") for each in book.find_class("chapter")]
    assert all(titles)
    assert all("open" in details.attrib for details in book.iter("details"))


def test_links_lead_to_one_place(book) -> None:
    ids = Counter(each.get("id") for each in book.xpath("//*[@id]"))
    assert [name for name, n in ids.items() if n > 1] == []
    assert list(dead_ends(book)) == []
    inside = [link for link in book.iter("a") if link.get("href", "").startswith("#")]
    assert len(inside) > 2000
    assert not [link for link in book.iter("a") if ".html" in link.get("href", "")[:40]
                and "://" not in link.get("href")]  # fmt: skip


def test_a_dead_end_is_seen(book) -> None:
    broken = lxml.html.fromstring("<main><a href='#x'>1</a><p id='y'></p></main>")
    assert list(dead_ends(broken)) == ["#x"]


def test_pictures_and_styles_are_there(book) -> None:
    named = [each.get("src") for each in book.iter("img")]
    named += [each.get("href") for each in book.head.iter("link")]
    files = [name.split("?")[0] for name in named if not name.startswith("data:")]
    assert len(files) > 60
    assert [name for name in files if not (SITE / name).is_file()] == []


PRINT = """
import sys
from pathlib import Path
from book_tools.pdf import print_book, whole_book
site, path = map(Path, sys.argv[1:3])
print_book(whole_book(site, sys.argv[3:], "Two pages"), site, path)
"""


@pytest.mark.slow
def test_chromium_prints_it_with_outline_and_links(tmp_path) -> None:
    """In a process of its own, as `make pdf` does: here another driver is at work."""
    path = tmp_path / "two.pdf"
    names = ["book/notation", "book/glossary"]
    command = [sys.executable, "-c", PRINT, str(SITE.resolve()), str(path), *names]
    subprocess.run(command, check=True, cwd=ROOT)
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/Outlines" in content and b"/Dest" in content
    assert max(map(int, re.findall(rb"/Count (\d+)", content))) > 4
    assert not list(SITE.glob("tmp*.html")), "the document between is removed"
