"""The models of the source documents, as configurations of ours.

`replace(DOCUMENTS["fairseq"], src_vocab_size=8_000, tgt_vocab_size=8_000)`, with
`dataclasses.replace`, gives the same model for another vocabulary.
"""

from typing import Any

from transformer_lib import TransformerConfig


def _config(vocab_size: int, **options: Any) -> TransformerConfig:
    sizes = {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size}
    return TransformerConfig(**sizes, **{"tie_embeddings": "none", **options})


DOCUMENTS: dict[str, TransformerConfig] = {
    # Fairseq edition: the base architecture of fairseq, which pads with id 1.
    "fairseq": _config(37_000, pad_id=1, max_len=1024),
    # Lecture notes: an encoder for classification with 50,000 words, <unk> and <pad>.
    "lecture": _config(
        50_002,
        pad_id=1,
        d_model=32,
        n_heads=2,
        d_ff=128,
        n_encoder_layers=1,
        n_decoder_layers=0,
        max_len=10_000,
        dropout=0.0,
        norm_eps=1e-6,
        attention_bias=False,
        scale_embeddings=False,
        embedding_norm_eps=1e-12,
    ),
    # From-scratch post: learned positions, and tied to nothing. It divides scores by
    # half the width; no configuration does, so chapters 6 and 8 change the queries.
    "post": _config(
        10,
        max_len=100,
        dropout=0.5,
        activation_dropout=0.5,
        attention_bias=False,
        learned_positions=True,
        scale_embeddings=False,
        head_bias=True,
    ),
    # Transformer for dummies: one small layer a side; output tied to the decoder.
    "dummies": _config(
        10_000,
        d_model=64,
        n_heads=4,
        d_ff=256,
        n_encoder_layers=1,
        n_decoder_layers=1,
        attention_dropout=0.1,
        tie_embeddings="decoder",
    ),
    # Annotated Transformer revisited: pre-norm, epsilon 1e-6, output with bias.
    "revisited": _config(37_000, norm_first=True, norm_eps=1e-6, head_bias=True),
}
