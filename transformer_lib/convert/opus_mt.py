"""Models of OPUS-MT from Hugging Face's hub, as translators of ours: `load_opus`."""

from collections.abc import Iterable
from typing import Any

from transformer_lib.convert.models import from_marian
from transformer_lib.pretrained.translator import Translator


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
    """

    def __init__(self, theirs: Any, n_tokens: int) -> None:
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


def load_opus(name: str = "Helsinki-NLP/opus-mt-de-en") -> Translator:
    """Fetch a model of OPUS-MT, or read it where it was kept the last time.

    There is one for each of more than a thousand pairs of languages (Tiedemann and
    Thottingal 2020). They are read with the packages transformers and sentencepiece,
    and need a network the first time. Weights are read in the safetensors format only:
    the older one is a pickle, which can run any code.

    Args:
        name: of a repository on the hub, or the path of a folder with its files.

    Raises:
        ImportError: transformers or sentencepiece is not installed.
        OSError: the model could not be fetched, or has no weights of that format.
        ValueError: it holds something that our model has no place for.
    """
    from transformers import MarianMTModel, MarianTokenizer

    theirs = MarianMTModel.from_pretrained(name, use_safetensors=True)
    model = from_marian(theirs.state_dict(), theirs.config)
    tokenizer = MarianTokenizer.from_pretrained(name)
    return Translator(model, OpusTokenizer(tokenizer, model.config.src_vocab_size))
