"""A model so small that every number of it can be followed with a pencil.

`d_model` 4, two heads, one encoder layer and one decoder layer in the paper's order
(post-norm), every weight rounded to one decimal. It knows eight sentences, all about a
dog or a child that plays in the snow or in the park:

    im schnee spielt ein hund      a dog plays in the snow

It was trained on these eight, with weights rounded at every step, and with a small term
in the loss that asks the two heads of the cross-attention to look at the words that are
being translated: so its maps can be read, which training alone does not promise.
CONTRIBUTING.md tells how. All weights are in `pencil.toml`.
"""

import tomllib
from importlib.resources import files

import torch
from torch import Tensor

from transformer_book.charts.model_flow import record_flow
from transformer_lib import Transformer, TransformerConfig

SOURCE = "im schnee spielt ein hund"
TARGET = "a dog plays in the snow"

_STORED = tomllib.loads(files(__package__).joinpath("pencil.toml").read_text("utf-8"))
EMBEDDINGS, WEIGHTS = _STORED["embeddings"], _STORED["weights"]
WORDS = list(EMBEDDINGS)
PAD, BOS, EOS = (WORDS.index(word) for word in ("<pad>", "<bos>", "<eos>"))


def ids(text: str) -> Tensor:
    """Return the ids of a text's words as a batch of one sentence.

    Args:
        text: words of WORDS, with spaces between them.

    Returns:
        (1, length), integers.

    Raises:
        ValueError: the model doesn't know a word.
    """
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


def new_model() -> Transformer:
    """Return a model of this shape with random weights, before any training."""
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), len(WORDS))
    sizes |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), 1)
    sizes |= {"d_model": 4, "n_heads": 2, "d_ff": 6}
    options = {"pad_id": PAD, "dropout": 0.0, "attention_bias": False}
    return Transformer(TransformerConfig(**sizes, **options))


def model() -> Transformer:
    """Return the trained model, in evaluation mode."""
    built = new_model()
    state = built.state_dict()
    for name, weight in WEIGHTS.items():
        state[name] = torch.tensor(weight)
    for name in state:
        if name.endswith(("tokens.weight", "lm_head.weight")):
            state[name] = torch.tensor(list(EMBEDDINGS.values()))
    built.load_state_dict(state)
    return built.eval()


def record(source: str = SOURCE, target: str = TARGET) -> dict[str, Tensor]:
    """Return every intermediate result of one pass, by the name of its box.

    Args:
        source: words of the source.
        target: words of the target, without <bos>, which is put before them.

    Returns:
        name -> (length, width), in the order of computation: "source ids", "source
        embeddings", "encoder 0: self-attention", "encoder 0: add & norm after
        self-attention", ..., "lm_head", "softmax". An attention's weights have ",
        weights" after its name: (n_heads, q_len, k_len).
    """
    flow = record_flow(model(), ids(source), ids(f"<bos> {target}"))
    return {name: value[0] for name, value in flow.items()}
