"""Texts that look the same are made the same before they are read or compared.

A letter with an accent is one character or two, a space has seventeen forms, and some
characters aren't seen at all. A model that has learned from one form translates another
otherwise, and a test sentence that differs in such a form alone has been trained on.
"""

import re
import unicodedata

# Patterns that Python, the package `tokenizers` and JavaScript read alike: the file of
# a tokenizer has them, too. `\s` is not the same in all three.
INVISIBLE = r"[\u00AD\u200B\u200E\u200F\u2060\uFEFF]"
WHITE_SPACE = (
    r"[\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F"
    r"\u3000]+"
)


def normalize(text: str) -> str:
    """Return a text in the form in which tokenizers read it.

    Letters and their accents are composed (Unicode's form NFC). Then what nobody sees
    is taken away: soft hyphens, zero-width spaces, marks of direction and of byte
    order, word joiners. Each run of white space becomes one space, and none is left at
    the ends.
    """
    text = re.sub(INVISIBLE, "", unicodedata.normalize("NFC", text))
    return re.sub(WHITE_SPACE, " ", text).strip(" ")
