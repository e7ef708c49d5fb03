"""A model so small that every number of it can be followed with a pencil.

`d_model` 4, two heads, one encoder layer and one decoder layer in the paper's order
(post-norm), every weight rounded to one decimal. It knows eight sentences, all about a
dog or a child that plays in the snow or in the park:

    im schnee spielt ein hund      a dog plays in the snow

It was trained on these eight, with weights rounded at every step, and with a small term
in the loss that asks the two heads of the cross-attention to look at the words that are
being translated: so its maps can be read, which training alone does not promise.
CONTRIBUTING.md tells how.
"""

import torch
from torch import Tensor

from transformer_book.charts.model_flow import record_flow
from transformer_lib import Transformer, TransformerConfig

SOURCE = "im schnee spielt ein hund"
GLOSS = "in-the snow plays a dog"
TARGET = "a dog plays in the snow"

EMBEDDINGS = {
    "<pad>": (-0.2, 0.0, 0.0, 0.1),
    "<bos>": (0.3, -0.1, 0.5, 0.2),
    "<eos>": (-1.4, -1.7, 0.8, 2.3),
    "im": (-0.3, 0.4, 0.3, 0.7),
    "schnee": (-0.3, 0.3, 0.3, -0.1),
    "spielt": (-0.4, 0.3, -0.4, 0.0),
    "ein": (-0.5, -0.7, -0.4, -0.7),
    "hund": (0.1, -0.3, -0.1, 0.1),
    "a": (0.5, -1.8, -1.9, 1.5),
    "dog": (1.4, -2.3, 1.0, -0.1),
    "plays": (0.3, -0.2, 0.6, -2.9),
    "in": (0.7, 1.0, -2.5, -1.1),
    "the": (-0.5, 2.3, -1.2, 2.4),
    "snow": (-2.7, 1.0, 1.2, 0.3),
    "kind": (-0.2, -0.4, 0.4, 0.3),
    "child": (-1.2, -1.4, 2.4, -0.8),
    "park": (-1.2, 2.5, -0.3, -1.2),
}
# One row for each output of a linear layer, one column for each input.
WEIGHTS = {
    "encoder.layers.0.self_attn.q_proj.weight": """
     0.0 -0.2 -0.2 -0.3
     0.0 -0.2 -0.2 -0.2
     0.3  0.7  0.2 -0.1
    -0.1 -0.1  0.0 -0.1""",
    "encoder.layers.0.self_attn.k_proj.weight": """
     0.0  0.3  0.1  0.2
     0.0  0.3  0.1  0.2
     0.2  0.5  0.2  0.5
    -0.1 -0.1  0.0 -0.1""",
    "encoder.layers.0.self_attn.v_proj.weight": """
     0.2  0.1  0.0 -0.1
     0.2 -0.4 -0.2 -0.6
    -0.4 -0.6 -0.2 -0.3
    -0.6 -0.2 -0.3  0.4""",
    "encoder.layers.0.self_attn.out_proj.weight": """
    -0.2 -0.2  0.4  0.4
     0.1 -0.4  0.3 -0.1
     0.0  0.0 -0.4  0.2
     0.1  0.7 -0.3 -0.6""",
    "encoder.layers.0.feed_forward.expand.weight": """
     0.1  0.0  0.0  0.0
     0.0  0.0  0.0  0.0
     0.0  0.0  0.0  0.0
    -0.2  0.1 -0.1  0.2
     0.0  0.0  0.0  0.0
     0.0  0.0  0.0  0.0""",
    "encoder.layers.0.feed_forward.expand.bias": """
     0.1  0.0  0.0  0.0  0.0  0.0""",
    "encoder.layers.0.feed_forward.contract.weight": """
    -0.1  0.0  0.0  0.0  0.0  0.0
     0.1  0.0  0.0 -0.2  0.0  0.0
     0.0  0.0  0.0  0.0  0.0  0.0
     0.0  0.0  0.0  0.2  0.0  0.0""",
    "encoder.layers.0.feed_forward.contract.bias": """
     0.1  0.0  0.0 -0.1""",
    "decoder.layers.0.self_attn.q_proj.weight": """
    -0.7 -0.7 -0.5 -0.7
    -0.1 -0.4 -0.2  0.7
    -0.3  0.2 -0.1 -0.5
     0.1  0.1 -0.3 -0.2""",
    "decoder.layers.0.self_attn.k_proj.weight": """
    -0.4 -0.3  0.0 -1.2
     0.6 -0.6  0.6 -0.7
    -0.2  0.2 -0.6  0.3
     0.1  0.2 -0.2 -0.1""",
    "decoder.layers.0.self_attn.v_proj.weight": """
     0.1  0.0 -0.1  0.6
     0.2 -1.4  0.1  0.7
     0.2  0.3  0.6  0.2
    -0.3 -1.0 -0.1  0.1""",
    "decoder.layers.0.self_attn.out_proj.weight": """
     0.0  0.0  0.2  0.6
    -0.2  1.0 -0.4  0.3
     0.4  0.4  0.5 -0.8
    -0.4 -0.9 -0.1  0.0""",
    "decoder.layers.0.cross_attn.q_proj.weight": """
     0.3  0.0  0.6 -0.9
     0.6 -1.0  0.1  0.3
    -0.2 -0.8  0.2  0.7
    -0.5  0.0  0.7 -0.2""",
    "decoder.layers.0.cross_attn.k_proj.weight": """
     0.1  0.8 -0.5 -0.5
     1.0 -0.7 -0.4  0.1
    -0.1 -0.2  0.8 -0.6
     0.5  0.3 -0.2 -0.6""",
    "decoder.layers.0.cross_attn.v_proj.weight": """
     0.3  0.4 -0.4  0.0
     0.4  0.2 -0.3  0.0
    -0.3 -0.2  0.0 -0.1
     0.0  0.0  0.1 -0.1""",
    "decoder.layers.0.cross_attn.out_proj.weight": """
     0.7  0.4 -0.2  0.0
    -0.1  0.0  0.1  0.0
    -0.3  0.0 -0.1  0.1
    -0.3 -0.4 -0.2 -0.1""",
    "decoder.layers.0.feed_forward.expand.weight": """
    -1.0  0.2  0.4  0.3
     0.1  0.0  0.1 -0.2
    -0.3 -0.9 -0.1  0.9
    -0.5 -0.6  1.0 -0.2
     0.2  0.1 -0.1 -0.2
    -0.2  0.4  0.3 -0.5""",
    "decoder.layers.0.feed_forward.expand.bias": """
    -0.3 -0.1 -0.3  0.0  0.0 -0.1""",
    "decoder.layers.0.feed_forward.contract.weight": """
     0.1 -0.2  0.0  0.5  0.1  0.1
    -0.9  0.0  0.3  0.2  0.0 -0.3
     0.4  0.1  0.7 -1.1  0.1  0.5
     0.3  0.0 -1.1  0.5 -0.2 -0.4""",
    "decoder.layers.0.feed_forward.contract.bias": """
    -0.4  0.1  0.0  0.4""",
}
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
    config = TransformerConfig(
        src_vocab_size=len(WORDS),
        tgt_vocab_size=len(WORDS),
        pad_id=PAD,
        d_model=4,
        n_heads=2,
        d_ff=6,
        n_encoder_layers=1,
        n_decoder_layers=1,
        dropout=0.0,
        attention_bias=False,
    )
    return Transformer(config)


def model() -> Transformer:
    """Return the trained model, in evaluation mode."""
    built = new_model()
    state = built.state_dict()
    for name, text in WEIGHTS.items():
        numbers = [float(number) for number in text.split()]
        state[name] = torch.tensor(numbers).view(state[name].shape)
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
