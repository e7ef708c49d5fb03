"""Text to ids and back: by whole words, or by subwords without losing a letter.

Subwords are learned by byte-pair encoding, as in the paper (section 5.1): start from
single bytes, join the most frequent neighboring pair, and again, until the vocabulary
is full. Bytes rather than letters, so that no text is unknown: a letter never seen in
training is two to four byte tokens, and decoding returns it. The text that comes back
is as `normalize` writes it: of a doubled space, say, one is left.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_lib.data.examples import require_texts, split_words
from transformer_lib.data.normalize import INVISIBLE, WHITE_SPACE, normalize
from transformer_lib.files import write_text

if TYPE_CHECKING:
    import tokenizers

SPECIAL = PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
# The byte that each letter of a byte-level vocabulary stands for (the convention of
# GPT-2): bytes that print as a Latin-1 character stand for themselves; the others, in
# order, are the characters from U+0100 on.
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTED]
_LETTERS = [*_PRINTED, *range(0x100, 0x100 + len(_OTHERS))]
_BYTE_OF = dict(zip(map(chr, _LETTERS), [*_PRINTED, *_OTHERS], strict=True))


class Tokenizer:
    """Text to ids and back; made by `train`, `from_words`, `from_json` or `load`.

    A token is a piece of a word together with the space before it, and a space is put
    before the text, so that a word has the same token everywhere in a sentence.

    Attributes:
        pad_id, bos_id, eos_id, unk_id: 0, 1, 2, 3.
    """

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        found = [engine.id_to_token(number) for number in range(4)]
        if found != list(SPECIAL):
            raise ValueError(f"ids 0 to 3 must be {list(SPECIAL)}, but are {found}")
        _require_own_steps(engine)
        # The text "<eos>" in a sentence is five characters, not the end of it.
        engine.encode_special_tokens = True
        self._engine = engine

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Tokenizer:
        """Learn a byte-pair encoding.

        Args:
            texts: sentences of all languages that share the vocabulary.
            vocab_size: number of tokens; 4 special ones and 256 bytes among them.
                Fewer come out if the texts have no pair left to join.

        Raises:
            ValueError: vocab_size is below 260, or there is no text.
        """
        from tokenizers import models, trainers

        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(_BYTE_OF),
            show_progress=False,
        )
        return cls(_trained(models.BPE(), trainer, texts))

    @classmethod
    def from_words(
        cls,
        texts: Iterable[str],
        vocab_size: int = 1_000_000,
        lowercase: bool = False,
    ) -> Tokenizer:
        """Give every word and punctuation mark of the texts one token, no pieces.

        Any other word is unk_id and lost: for texts with a closed vocabulary, or texts
        that are only read.

        Args:
            texts: where the words come from.
            vocab_size: most tokens, 4 special ones among them; the most frequent words
                are taken.
            lowercase: read "The" as "the".

        Raises:
            ValueError: there is no text, or vocab_size is below 4.
        """
        from tokenizers import models, trainers

        trainer = trainers.WordLevelTrainer(
            vocab_size=vocab_size, special_tokens=list(SPECIAL), show_progress=False
        )
        model = models.WordLevel(unk_token=UNK)
        return cls(_trained(model, trainer, texts, lowercase))

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """Read what `to_json` wrote.

        Raises:
            Exception: the text is no tokenizer; `tokenizers` knows no narrower type.
            ValueError: its special tokens are others, or it does to a text what this
                library's tokenizers don't.
        """
        import tokenizers

        return cls(tokenizers.Tokenizer.from_str(text))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a file that `save` wrote.

        Raises:
            ValueError: the file is no tokenizer; its name is in the message.
        """
        content = Path(path).read_bytes()
        try:
            return cls.from_json(content.decode("utf-8-sig"))
        except Exception as error:
            raise ValueError(f"{path}: {error}") from None

    def to_json(self) -> str:
        """Return everything as text, the format of the `tokenizers` package."""
        return self._engine.to_str()

    def save(self, path: str | Path) -> None:
        """Write to a file, whole or not at all."""
        write_text(Path(path), self.to_json())

    def __reduce__(self) -> tuple:
        """Copy and pickle through JSON and `__init__`: the engine forgets settings."""
        return type(self).from_json, (self.to_json(),)

    def __len__(self) -> int:
        return self._engine.get_vocab_size()

    def encode(self, text: str, bos: bool = False, eos: bool = True) -> list[int]:
        """Return the text's ids.

        Args:
            text: one sentence.
            bos: begin with bos_id.
            eos: end with eos_id.

        Raises:
            ValueError: nothing of the text is seen, or it is no valid Unicode.
        """
        if not normalize(text):
            raise ValueError(f"a sentence needs at least 1 word, but got {text!r}")
        text.encode("utf-8")  # refuses half of a surrogate pair and says where
        ids = self._engine.encode(text).ids
        return [self.bos_id] * bos + ids + [self.eos_id] * eos

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `encode` returns for each text, computed by all cores together.

        Raises:
            ValueError: nothing of a text is seen, or it is no valid Unicode.
        """
        require_texts("texts", texts)
        for text in texts:
            text.encode("utf-8")  # refuses half of a surrogate pair
        rows = [found.ids for found in self._engine.encode_batch_fast(texts)]
        for row, text in zip(rows, texts, strict=True):
            if not row:
                self.encode(text)  # says what is wrong
            row.append(self.eos_id)
        return rows

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids, without special tokens.

        Bytes that are no character, which a model may write, become U+FFFD.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        return self._engine.decode(_checked(ids, len(self)), skip_special_tokens=True)

    def tokens(self, ids: Iterable[int], space: str = "▁") -> list[str]:
        """Return one readable label for each id, for the axes of a picture.

        Args:
            ids: of this vocabulary; special ones are shown too.
            space: what stands for the space before a word; "" leaves plain words.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        return [self._label(number, space) for number in _checked(ids, len(self))]

    def _label(self, number: int, space: str) -> str:
        token = self._engine.id_to_token(number)
        if number < len(SPECIAL):
            return token
        raw = bytes(_BYTE_OF[letter] for letter in token)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:  # a part of a character: show its bytes
            return "".join(f"<{byte:02X}>" for byte in raw)
        return space + text[1:] if text.startswith(" ") else text


class Vocabulary:
    """Whole words to ids and back: the tokenizer of the first chapters.

    Words and punctuation marks get their ids in the order in which they appear, after
    the four special tokens. Spaces are dropped, so ids come back as a list of tokens.

    Args:
        sentences: the texts whose words get an id.

    Attributes:
        tokens: the token of each id.
        pad_id, bos_id, eos_id, unk_id: 0, 1, 2, 3, as in `Tokenizer`.
    """

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, sentences: Iterable[str]) -> None:
        require_texts("sentences", sentences)
        words = (word for sentence in sentences for word in split_words(sentence))
        self.tokens = list(dict.fromkeys([*SPECIAL, *words]))
        self._ids = {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, sentence: str, bos: bool = False, eos: bool = True) -> list[int]:
        """Return the sentence's ids; an unknown word becomes unk_id.

        Args:
            sentence: one sentence.
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
        """Return the tokens of the ids, special ones too.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        return [self.tokens[number] for number in _checked(ids, len(self))]


def _checked(ids: Iterable[int], vocab_size: int) -> list[int]:
    """Return the ids as Python's integers; -1 would be the last one without a word."""
    ids = [operator.index(number) for number in ids]
    for number in ids:
        if not 0 <= number < vocab_size:
            raise ValueError(
                f"id {number} is outside the vocabulary of {vocab_size} tokens"
            )
    return ids


def _trained(
    model: tokenizers.models.Model,
    trainer: tokenizers.trainers.Trainer,
    texts: Iterable[str],
    lowercase: bool = False,
) -> tokenizers.Tokenizer:
    """Learn a vocabulary."""
    require_texts("texts", texts)
    n_texts, found = 0, False

    def looked_at() -> Iterator[str]:  # as they pass by: there may be millions
        nonlocal n_texts, found
        for text in texts:
            n_texts += 1
            found = found or bool(normalize(text))
            yield text

    engine = _with_steps(model, lowercase)
    engine.train_from_iterator(looked_at(), trainer)
    if not found:
        raise ValueError(f"training needs text, but got {n_texts} empty sentences")
    if (fewest := engine.get_vocab_size()) > trainer.vocab_size:
        raise ValueError(
            f"vocab_size must be at least {fewest}, not {trainer.vocab_size}"
        )
    return engine


def _with_steps(
    model: tokenizers.models.Model, lowercase: bool, normalized: bool = True
) -> tokenizers.Tokenizer:
    """Split before spaces and punctuation; put a space before the text and drop it.

    Args:
        model: how a word is cut.
        lowercase: read "The" as "the".
        normalized: normalize texts; tokenizers of earlier versions did not.
    """
    import tokenizers
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    steps = []
    if normalized:  # what `normalize` does
        steps = [
            normalizers.NFC(),
            normalizers.Replace(Regex(INVISIBLE), ""),
            normalizers.Replace(Regex(WHITE_SPACE), " "),
            normalizers.Strip(),
        ]
    if lowercase:
        steps.append(normalizers.Lowercase())
    steps.append(normalizers.Prepend(" "))
    engine = tokenizers.Tokenizer(model)
    engine.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.Sequence(
        [decoders.ByteLevel(), decoders.Strip(content=" ", left=1, right=0)]
    )
    return engine


def _require_own_steps(engine: tokenizers.Tokenizer) -> None:
    """Refuse a tokenizer that does to texts what ours don't: ids would differ.

    A file may ask for more tokens around a text, for other cuts at each call, for texts
    that are shortened. Vocabularies may be any.
    """
    from tokenizers import models

    known: dict[str, list[Any]] = {}
    for model in models.BPE(), models.WordLevel(unk_token=UNK):
        for lowercase, normalized in product((False, True), repeat=2):
            own = _with_steps(model, lowercase, normalized)
            own.add_special_tokens(list(SPECIAL))
            for name, step in _steps_of(own).items():
                known.setdefault(name, []).append(step)
    for name, step in _steps_of(engine).items():
        if step not in known.get(name, []):
            raise ValueError(
                f"its {name} is {json.dumps(step):.80}, which no tokenizer of this "
                "library has: ids would differ without a word"
            )


def _steps_of(engine: tokenizers.Tokenizer) -> dict[str, Any]:
    """Return everything that a tokenizer's file says but the vocabulary."""
    content = json.loads(engine.to_str())
    model = content.pop("model")
    settings = {name: model[name] for name in model.keys() - {"vocab", "merges"}}
    return {**content, **settings}
