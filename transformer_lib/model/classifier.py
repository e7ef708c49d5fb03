"""Pooling: from one vector for every token to one vector for the whole text."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from transformer_lib.model.attention import scaled_dot_product_attention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import (
    build_embeddings,
    build_encoder,
    initialize,
)

Pooling = Literal["max", "mean", "first", "last", "attention"]
POOLINGS = get_args(Pooling)


class Pool(nn.Module):
    """Reduce the real positions of each sequence to one vector.

    "max"        every feature's largest value, as in the lecture
    "mean"       every feature's mean
    "first"      the vector of the first token
    "last"       the vector of the last real token
    "attention"  an average with the weights of a learned query, which starts at zero
                 and so as the mean

    Only "attention" has parameters.

    Args:
        pooling: one of the five.
        d_model: width of the vectors.

    Raises:
        ValueError: there is no such pooling.
    """

    def __init__(self, pooling: Pooling, d_model: int) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {POOLINGS}, not {pooling!r}")
        self.pooling = pooling
        if pooling == "attention":
            self.query = nn.Parameter(torch.zeros(1, d_model))

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, d_model).

        Args:
            hidden: (batch, length, d_model)
            real: (batch, length), boolean, False where a position is padding. A
                sequence of padding only is pooled to zeros.

        Raises:
            ValueError: real is not boolean, or of another batch or length.
        """
        if real.dtype != torch.bool or real.shape != hidden.shape[:2]:
            raise ValueError(
                f"real must be boolean, {tuple(hidden.shape[:2])}, not {real.dtype} of "
                f"shape {tuple(real.shape)}"
            )
        batch, length, _ = hidden.shape
        inside = real.unsqueeze(-1)  # (batch, length, 1)
        if self.pooling == "attention":
            query = self.query.expand(batch, 1, -1)
            mask = real.unsqueeze(1)  # (batch, 1, length)
            pooled, _ = scaled_dot_product_attention(query, hidden, hidden, mask)
            pooled = pooled.squeeze(1)
        elif self.pooling == "mean":
            total = hidden.masked_fill(~inside, 0.0).sum(dim=1)
            pooled = total / inside.sum(dim=1).clamp(min=1)
        elif self.pooling == "max":
            hidden = hidden.masked_fill(~inside, float("-inf"))
            pooled = hidden.amax(dim=1)
        else:
            position = real.int().argmax(dim=1)  # the first real one
            if self.pooling == "last":
                from_end = real.flip(1).int().argmax(dim=1)
                position = length - 1 - from_end
            rows = torch.arange(batch, device=real.device)
            pooled = hidden[rows, position]
        return pooled.masked_fill(~inside.any(dim=1), 0.0)


class EncoderClassifier(nn.Module):
    """An encoder that classifies a whole sequence: embed, encode, pool, score.

    The source side of the config is used.

    Args:
        config: sizes and choices.
        n_classes: number of classes.
        pooling: how the real positions become one vector (see `Pool`); "max", the
            maximum of every feature, as in the lecture's classifier.

    Raises:
        ValueError: there is no such pooling.
    """

    def __init__(
        self, config: TransformerConfig, n_classes: int, pooling: Pooling = "max"
    ) -> None:
        super().__init__()
        config.require_paper_parts()
        self.config = config
        self.encoder = build_encoder(config)
        self.pool = Pool(pooling, config.d_model)
        self.head = nn.Linear(config.d_model, n_classes)
        initialize(self)
        self.embeddings = build_embeddings(config, config.src_vocab_size)

    def forward(self, src: Tensor) -> Tensor:
        """Score every class for each sequence.

        Args:
            src: (batch, src_len), ids, padded with config.pad_id.

        Returns:
            logits: (batch, n_classes). A sequence of padding only is pooled to zeros.
        """
        src_mask = padding_mask(src, self.config.pad_id)
        memory = self.encoder(self.embeddings(src), src_mask)
        return self.head(self.pool(memory, src_mask.flatten(1)))
