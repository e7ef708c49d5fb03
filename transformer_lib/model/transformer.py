"""Encoder, decoder, and the whole Transformer."""

from collections.abc import Iterable

from torch import Tensor, nn

from transformer_lib.model.attention import Cache, MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import Embeddings, PositionalEncoding
from transformer_lib.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
)
from transformer_lib.model.masks import causal_mask, padding_mask


class Encoder(nn.Module):
    """A stack of encoder layers.

    Args:
        layers: the layers, each with weights of its own.
        norm: a layer norm after the last layer. Pre-norm stacks need one, since
            nothing else normalizes their output; post-norm stacks have None.
    """

    def __init__(
        self, layers: Iterable[EncoderLayer], norm: LayerNorm | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, x: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Turn embedded source tokens into the memory.

        Args:
            x: (batch, src_len, d_model)
            src_mask: boolean, broadcastable to (batch, n_heads, src_len, src_len).

        Returns:
            memory: (batch, src_len, d_model)
        """
        for layer in self.layers:
            x = layer(x, src_mask)
        return x if self.norm is None else self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, each of which attends to the same memory.

    Args:
        layers: the layers, each with weights of its own.
        norm: a layer norm after the last layer, as for the encoder.
    """

    def __init__(
        self, layers: Iterable[DecoderLayer], norm: LayerNorm | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Turn embedded target tokens into features for predicting the next ones.

        Args:
            x: (batch, tgt_len, d_model)
            memory: (batch, src_len, d_memory), the encoder's output.
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).
            cache: see `DecoderLayer`.

        Returns:
            (batch, tgt_len, d_model)
        """
        for layer in self.layers:
            x = layer(x, memory, src_mask, tgt_mask, cache=cache)
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """The encoder-decoder Transformer of "Attention Is All You Need".

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        config.require_paper_parts()
        self.config = config
        self.encoder = build_encoder(config)
        self.decoder = build_decoder(config)
        self.lm_head = nn.Linear(
            config.d_model, config.tgt_vocab_size, bias=config.head_bias
        )
        initialize(self)
        self.src_embeddings = build_embeddings(config, config.src_vocab_size)
        self.tgt_embeddings = build_embeddings(config, config.tgt_vocab_size)
        if config.tie_embeddings != "none":
            self.lm_head.weight = self.tgt_embeddings.tokens.weight
        if config.tie_embeddings == "all":
            self.src_embeddings.tokens.weight = self.tgt_embeddings.tokens.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Score every possible next token at every target position.

        Args:
            src: (batch, src_len), source ids, padded with config.pad_id.
            tgt_in: (batch, tgt_len), target ids shifted right: position i holds the
                token before the one to be predicted there.

        Returns:
            logits: (batch, tgt_len, tgt_vocab_size). Position i depends on tgt_in up
                to and including i, and on all of src but its padding.
        """
        src_mask = padding_mask(src, self.config.pad_id)
        tgt_mask = padding_mask(tgt_in, self.config.pad_id)
        # The first token is what targets start with. It is read even where that is the
        # padding token, as in Marian.
        tgt_mask[..., 0] = True
        tgt_mask = tgt_mask & causal_mask(tgt_in.size(1), tgt_in.device)
        memory = self.encode(src, src_mask)
        return self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read the source: (batch, src_len) -> memory (batch, src_len, d_model)."""
        return self.encoder(self.src_embeddings(src), src_mask)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Read the target so far and the memory; return features, before lm_head.

        Args:
            tgt_in: (batch, tgt_len), ids.
            memory: (batch, src_len, d_model)
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).
            cache: see `DecoderLayer`; tgt_in then holds the tokens after those in it.

        Returns:
            (batch, tgt_len, d_model)
        """
        x = self.tgt_embeddings(
            tgt_in, positions=None if cache is None else cache.positions(tgt_in)
        )
        return self.decoder(x, memory, src_mask, tgt_mask, cache=cache)


def build_embeddings(config: TransformerConfig, vocab_size: int) -> Embeddings:
    """Make the embeddings that the config describes for one side's vocabulary."""
    norm = None
    if config.embedding_norm_eps is not None:
        norm = LayerNorm(config.d_model, config.embedding_norm_eps)
    positions = PositionalEncoding(
        config.max_len, config.d_model, config.learned_positions
    )
    return Embeddings(
        vocab_size, positions, config.scale_embeddings, norm, config.dropout
    )


def build_encoder(config: TransformerConfig) -> Encoder:
    """Make the encoder that the config describes."""
    options = (config.dropout, config.norm_first, config.norm_eps)
    layers = [
        EncoderLayer(build_attention(config), build_feed_forward(config), *options)
        for _ in range(config.n_encoder_layers)
    ]
    return Encoder(layers, build_final_norm(config))


def build_decoder(config: TransformerConfig) -> Decoder:
    """Make the decoder that the config describes."""
    options = (config.dropout, config.norm_first, config.norm_eps)
    layers = [
        DecoderLayer(
            build_attention(config),
            build_attention(config),
            build_feed_forward(config),
            *options,
        )
        for _ in range(config.n_decoder_layers)
    ]
    return Decoder(layers, build_final_norm(config))


def build_attention(config: TransformerConfig) -> MultiHeadAttention:
    """Make one attention block that the config describes."""
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        bias=config.attention_bias,
        dropout=config.attention_dropout,
    )


def build_feed_forward(config: TransformerConfig) -> FeedForward:
    """Make one feed-forward network that the config describes."""
    return FeedForward(
        config.d_model, config.d_ff, config.activation, config.activation_dropout
    )


def build_final_norm(config: TransformerConfig) -> LayerNorm | None:
    """Make the norm at the end of a stack, or None where the config has none."""
    wanted = config.norm_first if config.final_norm is None else config.final_norm
    return LayerNorm(config.d_model, config.norm_eps) if wanted else None


def initialize(module: nn.Module) -> None:
    """Start every matrix Xavier-uniform and every bias at 0, in place.

    Matrices of standard deviation sqrt(2 / (rows + columns)) keep the variance of what
    passes through them, forward and backward (Glorot and Bengio 2010). Embeddings and
    layer norms choose their own start and are left alone.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def count_parameters(module: nn.Module) -> int:
    """Count the trainable numbers; a matrix used in several places counts once."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
