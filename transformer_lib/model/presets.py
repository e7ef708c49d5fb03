"""Ready-made configurations: the paper's two models and each source document's.

`replace(PRESETS["paper-base"], src_vocab_size=8_000, tgt_vocab_size=8_000)`, with
`dataclasses.replace`, gives the same model for another vocabulary.
"""

from dataclasses import replace

from transformer_lib.model.config import TransformerConfig

# Section 5.1: about 37,000 byte pairs, shared by English and German.
_PAPER_BASE = TransformerConfig(
    src_vocab_size=37_000, tgt_vocab_size=37_000, attention_bias=False
)

PRESETS: dict[str, TransformerConfig] = {
    # Table 3, rows "base" and "big". The equations show no biases in the projections;
    # here W^O keeps one, as in every model of the library.
    "paper-base": _PAPER_BASE,
    "paper-big": replace(_PAPER_BASE, d_model=1024, n_heads=16, d_ff=4096, dropout=0.3),
    # Fairseq edition: the base architecture of fairseq, which pads with id 1.
    "fairseq": TransformerConfig(
        src_vocab_size=37_000,
        tgt_vocab_size=37_000,
        pad_id=1,
        max_len=1024,
        tie_embeddings="none",
    ),
    # Lecture notes: an encoder for classification with 50,000 words, <unk> and <pad>.
    "lecture": TransformerConfig(
        src_vocab_size=50_002,
        tgt_vocab_size=50_002,
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
        tie_embeddings="none",
    ),
    # From-scratch post: learned positions, and tied to nothing.
    "post": TransformerConfig(
        src_vocab_size=10,
        tgt_vocab_size=10,
        max_len=100,
        dropout=0.5,
        activation_dropout=0.5,
        attention_bias=False,
        learned_positions=True,
        scale_embeddings=False,
        tie_embeddings="none",
        head_bias=True,
    ),
    # Transformer for dummies: one small layer a side; output tied to the decoder.
    "dummies": TransformerConfig(
        src_vocab_size=10_000,
        tgt_vocab_size=10_000,
        d_model=64,
        n_heads=4,
        d_ff=256,
        n_encoder_layers=1,
        n_decoder_layers=1,
        attention_dropout=0.1,
        tie_embeddings="decoder",
    ),
    # Annotated Transformer revisited: pre-norm, epsilon 1e-6, output with bias.
    "revisited": TransformerConfig(
        src_vocab_size=37_000,
        tgt_vocab_size=37_000,
        norm_first=True,
        norm_eps=1e-6,
        tie_embeddings="none",
        head_bias=True,
    ),
}
