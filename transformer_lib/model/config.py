"""What a model is made of: one frozen record that refuses sizes that can't work."""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from transformer_lib.model import checks
from transformer_lib.model.layers import Activation

Tying = Literal["none", "decoder", "all"]
MOST_LAYERS = 1000  # of either stack


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
        """Refuse what can't work, naming the value and what was expected."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and type(value) is not int:
                raise TypeError(f"{field.name} must be an integer, not {value!r}")
            if field.type is bool and type(value) is not bool:
                raise TypeError(f"{field.name} must be True or False, not {value!r}")
        if not isinstance(self.final_norm, (bool, type(None))):
            raise TypeError(
                f"final_norm must be True, False or None, not {self.final_norm!r}"
            )
        self._check_sizes()
        self._check_rates()
        self._check_choices()
        self._check_total()

    def _check_sizes(self) -> None:
        may_be_zero = ("pad_id", "n_encoder_layers", "n_decoder_layers")
        for field in fields(self):
            if field.type is not int:
                continue
            least = 0 if field.name in may_be_zero else 1
            value = getattr(self, field.name)
            if value < least:
                raise ValueError(f"{field.name} must be at least {least}, not {value}")
        if self.d_model % self.n_heads != 0:
            raise ValueError(
                f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
            )
        if not self.learned_positions and self.d_model % 2 != 0:
            raise ValueError(
                f"sinusoids need an even d_model, not {self.d_model}; "
                "learned_positions=True takes any"
            )
        smaller = min(self.src_vocab_size, self.tgt_vocab_size)
        if self.pad_id >= smaller:
            raise ValueError(
                f"pad_id {self.pad_id} is outside the smaller vocabulary of {smaller}"
            )

    def _check_rates(self) -> None:
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            checks.check_numbers(**{name: getattr(self, name)})
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1, not {getattr(self, name)}"
                )
        for name in ("norm_eps", "embedding_norm_eps"):
            value = getattr(self, name)
            if value is None and name == "embedding_norm_eps":
                continue
            checks.check_numbers(**{name: value})
            if not 0 < value <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, not {value}")

    def _check_choices(self) -> None:
        for name, choices in (
            ("activation", get_args(Activation)),
            ("tie_embeddings", get_args(Tying)),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name} must be one of {choices}, not {value!r}")
        if self.tie_embeddings == "all" and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                "tie_embeddings='all' needs one vocabulary for both sides, but they "
                f"have {self.src_vocab_size} and {self.tgt_vocab_size} tokens"
            )

    def _check_total(self) -> None:
        """Refuse a model that no computer holds, before anything is allocated."""
        for name in ("n_encoder_layers", "n_decoder_layers"):
            if getattr(self, name) > MOST_LAYERS:
                raise ValueError(
                    f"{name} must be at most {MOST_LAYERS}, not {getattr(self, name)}"
                )
        sizes = ["src_vocab_size", "tgt_vocab_size", "d_model", "d_ff",
                 "n_encoder_layers", "n_decoder_layers"]  # fmt: skip
        rows = max(self.src_vocab_size, self.tgt_vocab_size)
        if self.learned_positions:
            sizes.append("max_len")
            rows += self.max_len
        n_layers = self.n_encoder_layers + self.n_decoder_layers
        # The large matrices, without biases and a second attention: not one too many.
        rows += n_layers * (4 * self.d_model + 2 * self.d_ff)
        if rows * self.d_model > checks.MOST_NUMBERS:
            named = ", ".join(f"{name} {getattr(self, name)}" for name in sizes)
            raise ValueError(
                f"{named} make a model of at least {rows * self.d_model:,} parameters, "
                f"but {checks.MOST_NUMBERS:,} is the most"
            )
