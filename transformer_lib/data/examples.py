"""Sentences the chapters work on, and the way from words to ids.

Words are split at spaces and punctuation here, which is enough to look at attention;
subword tokenization comes with the chapter on data.
"""

import re
from collections.abc import Iterable

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"

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


class Vocabulary:
    """Numbers for tokens: four special ones first, then words in order of appearance.

    Args:
        sentences: the texts whose words get a number.

    Attributes:
        tokens: the token of each id.
        pad_id, bos_id, eos_id, unk_id: 0, 1, 2, 3.
    """

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, sentences: Iterable[str]) -> None:
        words = (word for sentence in sentences for word in split_words(sentence))
        self.tokens = list(dict.fromkeys([PAD, BOS, EOS, UNK, *words]))
        self._ids = {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, sentence: str, bos: bool = False, eos: bool = True) -> list[int]:
        """Return the sentence's ids; an unknown word becomes unk_id.

        Args:
            sentence: text.
            bos: begin with bos_id.
            eos: end with eos_id.

        Raises:
            ValueError: the sentence holds no word.
        """
        words = split_words(sentence)
        if not words:
            raise ValueError(f"a sentence needs at least 1 word, but got {sentence!r}")
        ids = [self._ids.get(word, self.unk_id) for word in words]
        return [self.bos_id] * bos + ids + [self.eos_id] * eos

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of the ids.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        ids = [int(number) for number in ids]
        for number in ids:
            if not 0 <= number < len(self):
                raise ValueError(
                    f"id {number} is outside the vocabulary of {len(self)} tokens"
                )
        return [self.tokens[number] for number in ids]
