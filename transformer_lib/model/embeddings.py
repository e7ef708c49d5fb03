"""From token ids to vectors that know their position (sections 3.4 and 3.5)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.model.layers import LayerNorm


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Encode positions as sines and cosines of wavelengths from 2 pi to 10000 * 2 pi.

    Section 3.5 of the paper: entry (pos, 2i) is sin(pos / 10000^(2i / d_model)), entry
    (pos, 2i + 1) the cosine of the same angle.

    Args:
        positions: (...), integers from 0.
        d_model: number of features, even.

    Returns:
        (..., d_model), in the default floating-point type.

    Raises:
        ValueError: d_model is odd.
    """
    if d_model % 2 != 0:
        raise ValueError(f"sines and cosines come in pairs: d_model {d_model} is odd")
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)
    angle = positions[..., None] / 10_000 ** (even / d_model)  # (..., d_model / 2)
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)
    return waves.to(torch.get_default_dtype())


def sinusoid_table(n_positions: int, d_model: int) -> Tensor:
    """Return `sinusoids` of the positions 0 to n_positions - 1.

    Args:
        n_positions: number of rows.
        d_model: number of columns, even.

    Returns:
        (n_positions, d_model), in the default floating-point type.
    """
    return sinusoids(torch.arange(n_positions), d_model)


class PositionalEncoding(nn.Module):
    """One vector for each position: fixed sinusoids, or a learned table.

    Args:
        max_len: number of learned positions; sinusoids never end.
        d_model: width of a vector; even for sinusoids.
        learned: a trained table (as in BERT and GPT-2) instead of sinusoids.

    Attributes:
        table: (max_len, d_model), the learned vectors; sinusoids need none.
    """

    def __init__(self, max_len: int, d_model: int, learned: bool = False) -> None:
        super().__init__()
        self.d_model, self.learned = d_model, learned
        if learned:
            self.table = nn.Parameter(torch.randn(max_len, d_model) / d_model**0.5)

    def forward(self, positions: Tensor) -> Tensor:
        """Look the positions up.

        Args:
            positions: (..., length), integers from 0.

        Returns:
            (..., length, d_model)

        Raises:
            ValueError: there are more positions than were learned.
        """
        if self.learned:
            if positions.size(-1) > len(self.table):
                raise ValueError(
                    f"{positions.size(-1)} positions were requested, but only "
                    f"{len(self.table)} were learned"
                )
            return F.embedding(positions, self.table)
        return sinusoids(positions, self.d_model)


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
        norm: layer norm of the sum, None in the paper. BERT and BART have it.
        dropout: rate of dropout on the result while training.
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
        self.vocab_size = vocab_size
        self.tokens = nn.Embedding(vocab_size, positions.d_model)
        self.positions = positions
        self.scale = math.sqrt(positions.d_model) if scale else 1.0
        self.norm = norm
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.tokens.weight, std=1 / self.scale)

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """Turn ids into vectors.

        Args:
            ids: (batch, length), integers from 0 to vocab_size - 1.
            positions: (batch, length) or (length,), the position of each token;
                0, 1, 2, ... if None.

        Returns:
            (batch, length, d_model)

        Raises:
            ValueError: there are more or fewer positions than ids, or more than were
                learned.
        """
        if positions is None:
            positions = torch.arange(ids.size(1), device=ids.device)
        if positions.size(-1) != ids.size(1):
            raise ValueError(f"{positions.size(-1)} positions for {ids.size(1)} ids")
        x = self.scale * self.tokens(ids)
        x = x + self.positions(positions).to(x)
        return self.dropout(x if self.norm is None else self.norm(x))
