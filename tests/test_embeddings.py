"""Embeddings and positions against formulas written out, and what they refuse."""

import math

import pytest
import torch
from reference import EXACT

from transformer_lib.model.embeddings import (
    Embeddings,
    PositionalEncoding,
    sinusoid_table,
)
from transformer_lib.model.layers import LayerNorm

VOCAB_SIZE, MAX_LEN, D_MODEL = 11, 7, 6
IDS = torch.tensor([[3, 5, 10], [0, 3, 3]])


def make_embeddings(**options) -> Embeddings:
    torch.manual_seed(0)
    learned = options.pop("learned", False)
    positions = PositionalEncoding(MAX_LEN, D_MODEL, learned)
    return Embeddings(VOCAB_SIZE, positions, **options).double()


def test_sinusoids_follow_the_papers_formula() -> None:
    table = sinusoid_table(200, D_MODEL)
    for pos in (0, 1, 2, 50, 199):
        for i in range(D_MODEL // 2):
            angle = pos / 10_000 ** (2 * i / D_MODEL)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            cosine = table[pos, 2 * i + 1].item()
            assert cosine == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_of_position_is_a_rotation() -> None:
    table = sinusoid_table(100, D_MODEL)
    dots = [(table[i] @ table[i + 5]).item() for i in range(90)]
    assert max(dots) - min(dots) < 1e-5  # depends on the distance only
    assert abs(dots[0] - (table[0] @ table[6]).item()) > 0.1


def test_sinusoids_go_on_beyond_max_len() -> None:
    positions = PositionalEncoding(3, D_MODEL)
    torch.testing.assert_close(positions(torch.arange(9)), sinusoid_table(9, D_MODEL))
    far = positions(torch.tensor([[40, 2]]))
    torch.testing.assert_close(far[0, 0], sinusoid_table(41, D_MODEL)[40])


def test_sinusoids_are_not_trained_and_not_saved() -> None:
    fixed, learned = (PositionalEncoding(4, D_MODEL, learned) for learned in (0, 1))
    assert not list(fixed.parameters()) and not fixed.state_dict()
    assert learned.table.shape == (4, D_MODEL) and learned.table.requires_grad


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_embeddings_add_token_and_position(learned, scale) -> None:
    embeddings = make_embeddings(learned=learned, scale=scale).eval()
    factor = math.sqrt(D_MODEL) if scale else 1.0
    vectors = embeddings.positions(torch.arange(3)).double()
    expected = torch.stack([
        torch.stack([
            factor * embeddings.tokens.weight[token] + vectors[pos]
            for pos, token in enumerate(row)
        ])
        for row in IDS.tolist()
    ])  # fmt: skip
    torch.testing.assert_close(embeddings(IDS), expected, **EXACT)


def test_positions_may_be_given() -> None:
    embeddings = make_embeddings()
    counted = embeddings(IDS, torch.tensor([[2, 1, 0], [0, 0, 1]]))
    for row, column, pos in ((0, 0, 2), (1, 1, 0), (1, 2, 1)):
        shifted = embeddings(IDS[row, column].view(1, 1), torch.tensor([pos]))
        torch.testing.assert_close(counted[row, column], shifted[0, 0], **EXACT)


@pytest.mark.parametrize("scale", [False, True])
def test_token_vectors_start_with_unit_variance(scale) -> None:
    torch.manual_seed(0)
    embeddings = Embeddings(5_000, PositionalEncoding(4, 64), scale=scale)
    scaled = embeddings.scale * embeddings.tokens.weight
    assert scaled.std().item() == pytest.approx(1.0, abs=0.01)
    assert embeddings.tokens.weight.std().item() == pytest.approx(
        1 / 8 if scale else 1.0, rel=0.01
    )


def test_learned_positions_start_with_vectors_of_length_one() -> None:
    torch.manual_seed(0)
    table = PositionalEncoding(500, 64, learned=True).table
    assert table.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_embeddings_that_are_not_told_otherwise_are_the_papers() -> None:
    embeddings = Embeddings(11, PositionalEncoding(9, 4))
    assert embeddings.scale == 2.0  # the root of d_model
    assert embeddings.norm is None
    assert embeddings.dropout.p == 0.0
    assert not embeddings.positions.learned


def test_norm_and_dropout_come_after_the_sum() -> None:
    embeddings = make_embeddings(norm=LayerNorm(D_MODEL, 1e-12), dropout=0.5)
    normed = embeddings.eval()(IDS)
    torch.testing.assert_close(normed.mean(-1), torch.zeros(2, 3).double(), **EXACT)
    dropped = embeddings.train()(IDS)
    kept = dropped != 0
    assert 0 < kept.double().mean() < 1
    torch.testing.assert_close(dropped[kept], 2 * normed[kept], **EXACT)
