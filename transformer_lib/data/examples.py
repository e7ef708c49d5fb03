"""Sentences the chapters work on, and how they are split into words."""

import re
from collections.abc import Iterable

# English and German, written for this book. The word order differs in most of them.
SENTENCE_PAIRS: tuple[tuple[str, str], ...] = (
    ("the cat sleeps", "die Katze schläft"),
    ("the dog sees the cat", "der Hund sieht die Katze"),
    ("today the cat drinks milk", "heute trinkt die Katze Milch"),
    ("she has read the book", "sie hat das Buch gelesen"),
    ("he gets up early", "er steht früh auf"),
    ("I know that the dog sleeps", "ich weiß, dass der Hund schläft"),
    ("the cat sleeps because it is tired", "die Katze schläft, weil sie müde ist"),
    ("the child wants to read a book", "das Kind will ein Buch lesen"),
    ("we walk home in the rain", "wir gehen im Regen nach Hause"),
    ("the old man gives the child a book", "der alte Mann gibt dem Kind ein Buch"),
)


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words and punctuation marks.

    An apostrophe stays inside its word: "didn't" is one token.
    """
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", sentence)


def require_texts(name: str, texts: Iterable[str]) -> None:
    """Refuse one text where a list of texts is read: its letters would be the texts.

    Raises:
        TypeError: texts is a single string.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} must be a list of texts, not one text: {texts!r:.80}")
