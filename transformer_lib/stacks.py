"""Stacks of layers, and how a configuration is turned into them."""

from collections.abc import Iterable

from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.cache import DecoderCache
from transformer_lib.config import TransformerConfig
from transformer_lib.embeddings import Embeddings, PositionalEncoding
from transformer_lib.layers import DecoderLayer, EncoderLayer, FeedForward
from transformer_lib.residual import LayerNorm


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
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Turn embedded target tokens into features for predicting the next ones.

        Args:
            x: (batch, tgt_len, d_model)
            memory: (batch, src_len, d_memory), the encoder's output.
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).
            cache: what has been kept of the memory and of the tokens before x, instead
                of memory and masks. It remembers the tokens of x as well.

        Returns:
            (batch, tgt_len, d_model)

        Raises:
            ValueError: the cache was made for another decoder.
        """
        if cache is None:
            caches = [None] * len(self.layers)
        elif len(cache.layers) == len(self.layers):
            cache.make_room(x.size(1))
            caches = cache.layers
        else:
            raise ValueError(
                f"the cache was made for a decoder of {len(cache.layers)} layers, but "
                f"this one has {len(self.layers)}"
            )
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x = layer(x, memory, src_mask, tgt_mask, layer_cache)
        return x if self.norm is None else self.norm(x)


def build_embeddings(config: TransformerConfig, vocab_size: int) -> Embeddings:
    """Make the embeddings that the config describes for one side's vocabulary."""
    norm = None
    if config.embedding_norm_eps is not None:
        norm = LayerNorm(config.d_model, config.embedding_norm_eps)
    positions = PositionalEncoding(
        config.max_len,
        config.d_model,
        config.learned_positions,
        config.sinusoids,
        start=config.pad_id + 1 if config.sinusoids == "fairseq" else 0,
    )
    return Embeddings(
        vocab_size, positions, config.scale_embeddings, norm, config.dropout
    )


def build_encoder(config: TransformerConfig) -> Encoder:
    """Make the encoder that the config describes."""
    layers = (
        EncoderLayer(
            build_attention(config),
            build_feed_forward(config),
            config.dropout,
            config.norm_first,
            config.norm_eps,
        )
        for _ in range(config.n_encoder_layers)
    )
    return Encoder(layers, _final_norm(config))


def build_decoder(config: TransformerConfig) -> Decoder:
    """Make the decoder that the config describes."""
    layers = (
        DecoderLayer(
            build_attention(config),
            build_attention(config),
            build_feed_forward(config),
            config.dropout,
            config.norm_first,
            config.norm_eps,
        )
        for _ in range(config.n_decoder_layers)
    )
    return Decoder(layers, _final_norm(config))


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


def _final_norm(config: TransformerConfig) -> LayerNorm | None:
    wanted = config.norm_first if config.final_norm is None else config.final_norm
    return LayerNorm(config.d_model, config.norm_eps) if wanted else None
