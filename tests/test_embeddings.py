"""Embeddings and positions against formulas written out."""

import math

import pytest
import torch
from reference import EXACT

from transformer_lib import Embeddings, LayerNorm, PositionalEncoding, sinusoid_table

VOCAB_SIZE, MAX_LEN, D_MODEL = 11, 7, 6
IDS = torch.tensor([[3, 5, 10], [0, 3, 3]])


def make_embeddings(learned: bool = False, **options) -> Embeddings:
    torch.manual_seed(0)
    positions = PositionalEncoding(MAX_LEN, D_MODEL, learned)
    return Embeddings(VOCAB_SIZE, positions, **options).double()


def test_sinusoids_follow_the_papers_formula_beyond_max_len_too() -> None:
    table = sinusoid_table(200, D_MODEL)
    for pos in (0, 1, 2, 50, 199):
        for i in range(D_MODEL // 2):
            angle = pos / 10_000 ** (2 * i / D_MODEL)
            pair = table[pos, 2 * i : 2 * i + 2].tolist()
            assert pair == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)
    positions = PositionalEncoding(3, D_MODEL)(torch.tensor([[199, 2]]))
    torch.testing.assert_close(positions[0], table[[199, 2]])


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("counted", [None, [[0, 1, 2], [3, 0, 1]]])
def test_embeddings_add_token_and_position(learned, scale, counted) -> None:
    embeddings = make_embeddings(learned, scale=scale).eval()
    factor = math.sqrt(D_MODEL) if scale else 1.0
    vectors = embeddings.positions(torch.arange(MAX_LEN)).double()
    given = counted and torch.tensor(counted)
    found = embeddings(IDS, given)
    for row, column in ((0, 0), (0, 2), (1, 0), (1, 2)):
        position = counted[row][column] if counted else column
        token = embeddings.tokens.weight[IDS[row, column]]
        expected = factor * token + vectors[position]
        torch.testing.assert_close(found[row, column], expected, **EXACT)


@pytest.mark.parametrize("scale", [False, True])
def test_token_vectors_start_with_unit_variance(scale) -> None:
    torch.manual_seed(0)
    embeddings = Embeddings(5_000, PositionalEncoding(4, 64), scale=scale)
    scaled = embeddings.scale * embeddings.tokens.weight
    assert scaled.std().item() == pytest.approx(1.0, abs=0.01)


def test_learned_positions_start_with_vectors_of_length_one() -> None:
    torch.manual_seed(0)
    table = PositionalEncoding(500, 64, learned=True).table
    assert table.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_norm_and_dropout_come_after_the_sum() -> None:
    embeddings = make_embeddings(norm=LayerNorm(D_MODEL, 1e-12), dropout=0.5)
    normed = embeddings.eval()(IDS)
    torch.testing.assert_close(normed.mean(-1), torch.zeros(2, 3).double(), **EXACT)
    dropped = embeddings.train()(IDS)
    kept = dropped != 0
    assert 0 < kept.double().mean() < 1
    torch.testing.assert_close(dropped[kept], 2 * normed[kept], **EXACT)
