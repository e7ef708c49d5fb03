"""The whole model: the Transformer, and a classifier from its encoder."""

from torch import Tensor, nn

from transformer_lib.cache import DecoderCache
from transformer_lib.config import TransformerConfig
from transformer_lib.linear import Linear
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.pooling import Pool, Pooling
from transformer_lib.stacks import build_decoder, build_embeddings, build_encoder


class Transformer(nn.Module):
    """The encoder-decoder Transformer of "Attention Is All You Need".

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config)
        self.decoder = build_decoder(config)
        self.lm_head = Linear(
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
        return self.lm_head(self.features(src, tgt_in))

    def features(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return what `lm_head` scores, (batch, tgt_len, d_model); see `forward`."""
        src_mask = padding_mask(src, self.config.pad_id)
        tgt_mask = padding_mask(tgt_in, self.config.pad_id)
        # The first token is what targets start with. It is read even where that is the
        # padding token, as in Marian.
        tgt_mask[..., 0] = True
        tgt_mask = tgt_mask & causal_mask(tgt_in.size(1), device=tgt_in.device)
        memory = self.encode(src, src_mask)
        return self.decode(tgt_in, memory, src_mask, tgt_mask)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read the source: (batch, src_len) -> memory (batch, src_len, d_model)."""
        return self.encoder(self.src_embeddings(src), src_mask)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Read the target so far and the memory; return features, before lm_head.

        Args:
            tgt_in: (batch, tgt_len), ids.
            memory: (batch, src_len, d_model)
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).

        Returns:
            (batch, tgt_len, d_model)
        """
        return self.decoder(self.tgt_embeddings(tgt_in), memory, src_mask, tgt_mask)

    def start_cache(self, src: Tensor, n_beams: int = 1) -> DecoderCache:
        """Read the source into a cache with which targets can be written.

        Args:
            src: (batch, src_len), source ids, padded with config.pad_id.
            n_beams: targets that are written for each sentence.
        """
        src_mask = padding_mask(src, self.config.pad_id)
        memory = self.encode(src, src_mask)
        return DecoderCache(self.decoder.layers, memory, src_mask, n_beams)

    def decode_next(self, tgt_new: Tensor, cache: DecoderCache) -> Tensor:
        """Read the next tokens of the target only; the cache remembers the others.

        Args:
            tgt_new: (n_rows, n_new), ids of the tokens that follow those in the cache.
            cache: of this model; afterwards it remembers the new tokens too.

        Returns:
            (n_rows, n_new, d_model): what `decode` gives for these positions.

        Raises:
            ValueError: the cache was made for another model or number of rows, or the
                learned positions are at their end.
        """
        x = self.tgt_embeddings(tgt_new, start=cache.length)
        return self.decoder(x, cache=cache)


class EncoderClassifier(nn.Module):
    """An encoder that judges a whole sequence: embed, encode, pool, classify.

    The source side of the config is used.

    Args:
        config: sizes and choices.
        n_classes: number of classes, at least 1.
        pooling: how the real positions become one vector (see `Pool`); "max", the
            maximum of every feature, as in the lecture's classifier.

    Raises:
        ValueError: n_classes is below 1, or there is no such pooling.
    """

    def __init__(
        self, config: TransformerConfig, n_classes: int, pooling: Pooling = "max"
    ) -> None:
        super().__init__()
        if n_classes < 1:
            raise ValueError(f"n_classes must be at least 1, not {n_classes}")
        self.config = config
        self.encoder = build_encoder(config)
        self.pool = Pool(pooling, config.d_model)
        self.head = nn.Linear(config.d_model, n_classes)
        initialize(self)
        self.embeddings = build_embeddings(config, config.src_vocab_size)

    def forward(self, src: Tensor) -> Tensor:
        """Judge each sequence.

        Args:
            src: (batch, src_len), ids, padded with config.pad_id.

        Returns:
            logits: (batch, n_classes). A sequence of padding only is pooled to zeros.
        """
        src_mask = padding_mask(src, self.config.pad_id)
        memory = self.encoder(self.embeddings(src), src_mask)
        return self.head(self.pool(memory, src_mask.flatten(1)))


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
