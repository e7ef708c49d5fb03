"""What two of the source documents' models have that no other test looks at.

The rest of a document is sizes and switches: whole models with the norm in either place
are compared with PyTorch's in test_model.py, and every statement has an executed cell.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters
from torch import Tensor

from transformer_book.documents import DOCUMENTS
from transformer_book.other_code.dialects import as_convolution
from transformer_lib import EncoderClassifier, Transformer, TransformerConfig

SMALL = {"d_model": 6, "n_heads": 3, "d_ff": 10, "n_encoder_layers": 2,
         "n_decoder_layers": 3, "dropout": 0.0, "attention_dropout": 0.0,
         "activation_dropout": 0.0, "src_vocab_size": 13, "tgt_vocab_size": 13,
         "max_len": 9}  # fmt: skip
SRC = torch.tensor([[3, 5, 12, 7, 2]])


def small(name: str) -> TransformerConfig:
    return replace(DOCUMENTS[name], **SMALL)


def normalize(norm, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], norm.gain, norm.bias, norm.eps)


def test_the_lectures_classifier() -> None:
    config = replace(small("lecture"), n_encoder_layers=1, n_decoder_layers=0)
    model = draw_parameters(EncoderClassifier(config, 2))
    table = model.embeddings.positions(torch.arange(5)).double()
    tokens = model.embeddings.tokens.weight[SRC]
    x = normalize(model.embeddings.norm, tokens + table)
    (layer,) = model.encoder.layers
    convolution = as_convolution(layer.feed_forward)
    attended = layer.self_attn(x, x, x)
    x = normalize(layer.self_attn_connection.norm, x + attended)
    convolved = convolution(x.transpose(1, 2)).transpose(1, 2)
    x = normalize(layer.feed_forward_connection.norm, x + convolved)
    expected = model.head(torch.max(x, dim=1).values)
    torch.testing.assert_close(model(SRC), expected, **EXACT)


def test_the_tied_outputs_of_the_text_for_dummies() -> None:
    dummies = Transformer(small("dummies"))
    assert dummies.lm_head.weight is dummies.tgt_embeddings.tokens.weight
    assert dummies.lm_head.weight is not dummies.src_embeddings.tokens.weight
