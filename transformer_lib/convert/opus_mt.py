"""Models of OPUS-MT from Hugging Face's hub, as translators of ours.

    translator = opus.load("Helsinki-NLP/opus-mt-de-en")
    translator.translate(["Guten Morgen!"], n_beams=4)

There is one for each of more than a thousand pairs of languages (Tiedemann and
Thottingal 2020). They are read with the packages transformers and sentencepiece, which
the library does without otherwise, and need a network the first time. Weights are read
in the safetensors format only: the older one is a pickle, which can run any code.
"""

from collections.abc import Iterable
from typing import Any

from transformer_lib.convert.models import from_marian
from transformer_lib.pretrained.translator import Translator

DEFAULT = "Helsinki-NLP/opus-mt-de-en"


class OpusTokenizer:
    """Marian's tokenizer of Hugging Face with the methods of our own.

    Source and target have one vocabulary but are cut by two models: `encode` cuts the
    source language, `decode` joins the target language.

    Args:
        theirs: a `transformers.MarianTokenizer`.
        n_tokens: rows of the model's embedding.

    Attributes:
        bos_id: the padding token, with which Marian starts targets.
        eos_id: the token that ends sources and targets.

    Raises:
        ValueError: the tokenizer has more tokens than the embedding has rows.
    """

    def __init__(self, theirs: Any, n_tokens: int) -> None:
        if len(theirs) > n_tokens:
            raise ValueError(
                f"the tokenizer has {len(theirs)} tokens, but the model {n_tokens}"
            )
        self.theirs, self.n_tokens = theirs, n_tokens
        self.bos_id: int = theirs.pad_token_id
        self.eos_id: int = theirs.eos_token_id

    def __len__(self) -> int:
        return self.n_tokens

    def encode(self, text: str, bos: bool = False, eos: bool = True) -> list[int]:
        """Turn a sentence of the source language into ids.

        Raises:
            ValueError: there is no word in it.
        """
        if not text.strip():
            raise ValueError("the text holds no word")
        ids = self.theirs(text)["input_ids"]  # ends with eos
        return [self.bos_id] * bos + ids[: len(ids) - (not eos)]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids of the target language into a sentence."""
        return self.theirs.decode(list(ids), skip_special_tokens=True)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each token, as labels of a picture."""
        return self.theirs.convert_ids_to_tokens(list(ids))


def load(name: str = DEFAULT) -> Translator:
    """Fetch a model, or read it where it was kept the last time.

    Args:
        name: of a repository on the hub, or the path of a folder with its files.

    Raises:
        ImportError: transformers or sentencepiece is not installed.
        ConnectionError: the model could not be fetched.
        ValueError: it holds something that our model has no place for.
    """
    try:
        import sentencepiece  # noqa: F401
        from transformers import MarianMTModel, MarianTokenizer
    except ImportError as error:
        raise ImportError(
            f"models of OPUS-MT need transformers and sentencepiece: {error}"
        ) from error
    try:
        theirs = MarianMTModel.from_pretrained(name, use_safetensors=True)
        tokenizer = MarianTokenizer.from_pretrained(name)
    except OSError as error:
        raise ConnectionError(
            f"{name} could not be fetched; is there a network, and does the repository "
            f"hold weights in the safetensors format? {error}"
        ) from error
    model = from_marian(theirs.state_dict(), theirs.config)
    return Translator(model, OpusTokenizer(tokenizer, model.config.src_vocab_size))
