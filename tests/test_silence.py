"""Inputs that used to give wrong numbers without a word: each is refused, and named.

What PyTorch refuses by itself has no place here.

To add a row: `row("part: what is wrong", Error, "match", lambda: call())`. The first
argument names the row, the error is the type that is raised, the match is a regular
expression found in its message, and the function does it. Build what the call needs
inside the function, small, and assert nothing: the row fails if nothing is raised.
"""

import pytest
import torch

from transformer_lib import MultiHeadAttention, scaled_dot_product_attention

ROWS = []


def row(name, error, match, do):
    ROWS.append(pytest.param(do, error, match, id=name))


# --- masks ----------------------------------------------------------------------------


def attend(mask, batch=2, length=3):
    x = torch.randn(batch, length, 4)
    return MultiHeadAttention(4, 2)(x, x, x, mask)


row(
    "attention: a mask of numbers, which the fused kernel adds to the scores",
    TypeError,
    "must be boolean",
    lambda: attend(torch.ones(3, 3)),
)
row(
    "attention: a mask of bytes, whose ~ is 254 and 255",
    TypeError,
    "must be boolean",
    lambda: scaled_dot_product_attention(
        *torch.randn(3, 2, 3, 4), mask=torch.ones(3, 3, dtype=torch.uint8)
    ),
)
row(
    "attention: heads that do not divide the width",
    ValueError,
    "n_heads 3 does not divide d_model 4",
    lambda: MultiHeadAttention(4, 3),
)


@pytest.mark.parametrize(("do", "error", "match"), ROWS)
def test_what_would_be_wrong_in_silence_is_refused(do, error, match):
    torch.manual_seed(0)
    with pytest.raises(error, match=match):
        do()
