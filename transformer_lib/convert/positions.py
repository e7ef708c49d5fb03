"""Sinusoids as other libraries lay them out, put into our model as fixed tables."""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from transformer_lib.model.embeddings import PositionalEncoding
from transformer_lib.model.transformer import Transformer


def sinusoid_halves(
    n_positions: int, d_model: int, layout: Literal["marian", "fairseq"]
) -> Tensor:
    """Return sinusoids with all sines before all cosines.

    "marian": the paper's columns in that order. "fairseq", which has it from
    tensor2tensor: in that order too, and wavelengths are spread so that the longest is
    10000 * 2 pi exactly: the exponent is 2i / (d_model - 2).

    Args:
        n_positions: number of rows.
        d_model: number of columns, even.
        layout: "marian" or "fairseq".

    Returns:
        (n_positions, d_model), in the default floating-point type.
    """
    divisor = {"marian": d_model, "fairseq": d_model - 2}[layout]
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # the numbers 2i
    angle = position / 10_000 ** (even / divisor)
    table = torch.cat([angle.sin(), angle.cos()], dim=-1)
    return table.to(torch.get_default_dtype())


def fix_positions(model: Transformer, table: Tensor) -> None:
    """Give both sides of a model a fixed table of positions, in place.

    The model's config then says that positions are learned: they are looked up in a
    table of max_len rows. Training leaves it as it is; a copy of the model that was
    saved and loaded trains it.

    Args:
        model: whose positional encodings are replaced.
        table: (max_len, d_model)
    """
    max_len, d_model = table.shape
    for side in (model.src_embeddings, model.tgt_embeddings):
        positions = PositionalEncoding(max_len, d_model, learned=True)
        positions.table.data = table.to(side.tokens.weight, copy=True)
        positions.table.requires_grad_(False)
        side.positions = positions
    model.config = replace(model.config, learned_positions=True, max_len=max_len)
