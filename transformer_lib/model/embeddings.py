"""From token ids to vectors that know their position (sections 3.4 and 3.5)."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from transformer_lib.fast.dropout import Dropout
from transformer_lib.model.layers import LayerNorm

Sinusoids = Literal["paper", "marian", "fairseq"]


def sinusoid_table(
    n_positions: int, d_model: int, layout: Sinusoids = "paper"
) -> Tensor:
    """Encode positions as sines and cosines of wavelengths from 2 pi to 10000 * 2 pi.

    Section 3.5 of the paper: entry (pos, 2i) is sin(pos / 10000^(2i / d_model)), entry
    (pos, 2i + 1) the cosine of the same angle.

    Models from elsewhere have other tables. "marian": the same columns, but all sines
    before all cosines. "fairseq", which has it from tensor2tensor: in that order too,
    and wavelengths are spread so that the longest is 10000 * 2 pi exactly: the exponent
    is 2i / (d_model - 2).

    Args:
        n_positions: number of rows, at least 1.
        d_model: number of columns, even; for "fairseq" at least 4.
        layout: "paper", "marian" or "fairseq".

    Returns:
        (n_positions, d_model), in the default floating-point type.

    Raises:
        ValueError: d_model is odd or too small, or n_positions is below 1.
    """
    least = 4 if layout == "fairseq" else 2
    if d_model < least or d_model % 2 != 0:
        raise ValueError(
            f"sinusoids come in pairs of sine and cosine: d_model must be even and "
            f"at least {least}, not {d_model}"
        )
    if n_positions < 1:
        raise ValueError(f"n_positions must be at least 1, not {n_positions}")
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # the numbers 2i
    exponent = even / (d_model - 2 if layout == "fairseq" else d_model)
    angle = position / 10_000**exponent  # (n_positions, d_model / 2)
    if layout == "paper":
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    else:
        table = torch.cat([angle.sin(), angle.cos()], dim=-1)
    return table.to(torch.get_default_dtype())


class PositionalEncoding(nn.Module):
    """One vector for each position: fixed sinusoids, or a learned table.

    Args:
        max_len: number of positions. Learned ones end there; sinusoids are computed
            further when a longer sequence comes.
        d_model: width of a vector; even for sinusoids.
        learned: a trained table (as in BERT and GPT-2) instead of sinusoids.
        layout: of the sinusoids, see `sinusoid_table`.
        start: the row of that table that the first position gets.

    Raises:
        ValueError: d_model is odd for sinusoids, or a size is too small.
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        learned: bool = False,
        layout: Sinusoids = "paper",
        start: int = 0,
    ) -> None:
        super().__init__()
        if max_len < 1:
            raise ValueError(f"max_len must be at least 1, not {max_len}")
        self.learned, self.layout, self.start = learned, layout, start
        if learned:
            self.table = nn.Parameter(torch.randn(max_len, d_model) / d_model**0.5)
        else:
            table = self._sinusoids(max_len, d_model)
            self.register_buffer("table", table, persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Look the positions up.

        Args:
            positions: (...), integers from 0.

        Returns:
            (..., d_model)

        Raises:
            ValueError: a position is negative, or not below max_len if learned.
        """
        lowest, highest = (bound.item() for bound in positions.aminmax())
        if lowest < 0:
            raise ValueError(f"positions start at 0, but one of them is {lowest}")
        self._reach(highest + 1)
        return self.table[positions]

    def first(self, length: int) -> Tensor:
        """Return the first positions, 0 to length - 1: (length, d_model).

        Raises:
            ValueError: length is above max_len if learned.
        """
        self._reach(length)
        return self.table[:length]

    def _reach(self, length: int) -> None:
        """See to it that the table has this many rows, or say why it can't."""
        if length <= len(self.table):
            return
        if self.learned:
            raise ValueError(
                f"{length} positions are asked for, but only {len(self.table)} were "
                f"learned (max_len {len(self.table)})"
            )
        # Twice the length, so that a growing sequence seldom comes here.
        self.table = self._sinusoids(2 * length, self.table.size(1)).to(self.table)

    def _sinusoids(self, length: int, d_model: int) -> Tensor:
        return sinusoid_table(self.start + length, d_model, self.layout)[self.start :]


class Embeddings(nn.Module):
    """Add a vector for the token and a vector for its position.

    dropout(norm(scale * token_vector + position_vector)), where the scale
    sqrt(d_model) of section 3.4 and the norm are optional.

    The tokens' matrix starts with the standard deviation that gives the scaled vectors
    unit variance: 1 / sqrt(d_model) if they are scaled, 1 if not.

    Args:
        vocab_size: number of token ids.
        positions: the positional encoding; its width is d_model.
        scale: multiply token vectors by sqrt(d_model).
        norm: layer norm of the sum, None in the paper. BERT, BART and one of the
            documents have it.
        dropout: rate of dropout on the result while training.

    Raises:
        ValueError: vocab_size is below 1.
    """

    def __init__(
        self,
        vocab_size: int,
        positions: PositionalEncoding,
        scale: bool = True,
        norm: LayerNorm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if vocab_size < 1:
            raise ValueError(f"vocab_size must be at least 1, not {vocab_size}")
        d_model = positions.table.size(1)
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.norm = norm
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.tokens.weight, std=1 / self.scale)

    def forward(
        self, ids: Tensor, positions: Tensor | None = None, start: int = 0
    ) -> Tensor:
        """Turn ids into vectors.

        Args:
            ids: (batch, length), integers from 0 to vocab_size - 1.
            positions: (batch, length) or (length,), the position of each token;
                start, start + 1, start + 2, ... if None.
            start: position of the first token, if positions are not given.

        Returns:
            (batch, length, d_model)

        Raises:
            ValueError: an id outside the vocabulary, an empty sequence, a position
                beyond the learned ones.
            TypeError: ids are not integers.
        """
        check_ids(ids)
        if positions is None:
            position_vectors = self.positions.first(start + ids.size(1))[start:]
        else:
            position_vectors = self.positions(positions)
        x = self.scale * self._look_up(ids) + position_vectors
        return self.dropout(x if self.norm is None else self.norm(x))

    def _look_up(self, ids: Tensor) -> Tensor:
        try:
            return self.tokens(ids)
        except IndexError as error:
            lowest, highest = (bound.item() for bound in ids.aminmax())
            size = self.tokens.num_embeddings
            raise ValueError(
                f"id {lowest if lowest < 0 else highest} is outside the vocabulary of "
                f"{size} tokens (0 to {size - 1})"
            ) from error


def check_ids(ids: Tensor) -> None:
    """Refuse what cannot be token ids, whatever the vocabulary.

    Args:
        ids: (batch, length)

    Raises:
        ValueError: ids are not (batch, length), or are empty.
        TypeError: ids are not integers.
    """
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise TypeError(f"token ids must be integers, not {ids.dtype}")
    if ids.dim() != 2:
        raise ValueError(
            f"ids must have 2 dimensions (batch, length), not {ids.dim()}: "
            f"shape {tuple(ids.shape)}"
        )
    if ids.numel() == 0:
        raise ValueError(
            f"ids of shape {tuple(ids.shape)} are empty, but at least 1 sequence of "
            "at least 1 token is needed"
        )
