"""Small random models that write targets of different length, for tests of decoding."""

import re
from dataclasses import replace

import torch
from reference import draw_parameters
from torch import Tensor

from transformer_lib import GenerationConfig, Transformer, TransformerConfig

PAD, BOS, EOS = 0, 1, 2
VOCAB = 7
SRC = torch.tensor([[3, 5, 6, 4, 2], [4, 4, 2, 0, 0], [6, 3, 5, 2, 0], [5, 2, 0, 0, 0]])
CONFIG = TransformerConfig(
    src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, d_model=6, n_heads=3, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=2, tie_embeddings="none",
)  # fmt: skip


def make_model(seed: int = 0, **choices) -> Transformer:
    """A model in float64, every number of it drawn; it ends about half its targets."""
    torch.manual_seed(seed)
    return draw_parameters(Transformer(replace(CONFIG, **choices))).eval()


def make_config(max_len: int = 9, **choices) -> GenerationConfig:
    return GenerationConfig(bos_id=BOS, eos_id=EOS, max_len=max_len, **choices)


def rounded(found: list) -> str:
    """Hypotheses as text, numbers to 9 decimals."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.9f}", str(found))


def constant_model(logits: Tensor) -> Transformer:
    """A model that gives the same logits (vocab_size,) whatever it reads."""
    model = make_model(d_model=len(logits) + len(logits) % 2, n_heads=1)
    features = model.decoder.layers[-1].feed_forward_connection.norm
    with torch.no_grad():
        features.gain.zero_()
        features.bias.zero_()
        features.bias[0] = 1.0
        model.lm_head.weight.zero_()
        model.lm_head.weight[:, 0] = logits
    return model
