"""What a model is made of: one frozen record that refuses sizes that can't work."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from transformer_lib.model.layers import Activation

Tying = Literal["none", "decoder", "all"]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes and choices of an encoder-decoder Transformer; defaults: the base model.

    Attributes:
        src_vocab_size: number of source tokens.
        tgt_vocab_size: number of target tokens.
        pad_id: the padding token, the same in both vocabularies.
        d_model: width of every position's vector.
        n_heads: attention heads; must divide d_model.
        d_ff: hidden width of the feed-forward networks.
        n_encoder_layers: encoder layers.
        n_decoder_layers: decoder layers.
        max_len: positions; learned ones end there, sinusoids go on.
        dropout: rate on embeddings and on every sub-layer's output.
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward networks.
        activation: "relu" as in the paper, "gelu" or "swish".
        norm_first: pre-norm layers.
        final_norm: one more norm at the end of each stack; None: if norm_first, where
            nothing else normalizes its output.
        norm_eps: epsilon of the layer norms.
        attention_bias: bias of the query, key and value projections.
        learned_positions: a trained table instead of sinusoids.
        scale_embeddings: multiply token vectors by sqrt(d_model).
        embedding_norm_eps: epsilon of a layer norm on the embeddings; None for no norm.
        tie_embeddings: "none"; "decoder": the target embedding is also the output
            matrix; "all": the source embedding too (one vocabulary for both).
        head_bias: bias of the output layer.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    pad_id: int = 0
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    max_len: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: Activation = "relu"
    norm_first: bool = False
    final_norm: bool | None = None
    norm_eps: float = 1e-5
    attention_bias: bool = True
    learned_positions: bool = False
    scale_embeddings: bool = True
    embedding_norm_eps: float | None = None
    tie_embeddings: Tying = "all"
    head_bias: bool = False

    def __post_init__(self) -> None:
        """Refuse what would go wrong in silence, or far from here.

        Raises:
            ValueError: naming the values.
        """
        if self.n_heads < 1 or self.d_model % self.n_heads != 0:
            raise ValueError(
                f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
            )
        fewest = min(self.n_encoder_layers, self.n_decoder_layers)
        if fewest < 0:  # it would be an empty stack
            raise ValueError(f"a stack cannot have {fewest} layers")
        smaller = min(self.src_vocab_size, self.tgt_vocab_size)
        if not 0 <= self.pad_id < smaller:
            raise ValueError(
                f"pad_id {self.pad_id} is outside the smaller vocabulary of {smaller}"
            )
        for name, choices in (
            ("activation", get_args(Activation)),
            ("tie_embeddings", get_args(Tying)),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {choices}, not {getattr(self, name)!r}"
                )
        if self.tie_embeddings == "all" and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                "tie_embeddings='all' needs one vocabulary for both sides, but they "
                f"have {self.src_vocab_size} and {self.tgt_vocab_size} tokens"
            )

    def require_paper_parts(self) -> None:
        """Refuse parts that came after the paper; here there are none.

        `model.modern.ModernConfig` has them, and `model.modern.build_model` makes them.
        """


# The paper's two models: section 5.1 says about 37,000 byte pairs, shared by English
# and German; table 3 has the rows "base" and "big". The equations show no biases in the
# projections; here W^O keeps one, as in every model of the library.
_BASE = TransformerConfig(
    src_vocab_size=37_000, tgt_vocab_size=37_000, attention_bias=False
)
PRESETS = {
    "paper-base": _BASE,
    "paper-big": replace(_BASE, d_model=1024, n_heads=16, d_ff=4096, dropout=0.3),
}
