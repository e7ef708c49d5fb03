"""The chart of similarities holds the cosines of the given vectors, layer by layer."""

import re

import numpy as np
import pytest
import torch
import vl_convert

from transformer_lib.charts.similarity import similarity_explorer

TOKENS = ["the", "cat", "the"]  # a token twice, as in real sentences


def states() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(3, 5, generator=generator) for name in ("a", "b")}


def drawn(chart, layer: str) -> dict[tuple[int, int], float]:
    """Choose a layer and read the cells back: (position, other position) -> cosine."""
    spec = chart.to_dict()
    for param in spec["params"]:
        if param["name"] == "layer":
            param["value"] = layer
    svg = vl_convert.vegalite_to_svg(spec)
    found = re.findall(r'aria-label="(other position: [^"]*)"', svg)
    cells = {}
    for label in found:
        parts = dict(part.split(": ") for part in label.split("; ")[:2])
        value = label.rsplit("cosine: ", 1)[1].split(";")[0].replace("−", "-")
        place = int(parts["position"]), int(parts["other position"])
        cells[place] = float(value)
    return cells


@pytest.mark.parametrize("layer", ["a", "b"])
def test_the_chosen_layer_is_drawn(layer) -> None:
    vectors = states()[layer]
    expected = torch.nn.functional.cosine_similarity(
        vectors[:, None], vectors[None], dim=-1
    )
    cells = drawn(similarity_explorer(states(), TOKENS), layer)
    assert len(cells) == 9
    for place, cosine in cells.items():
        assert cosine == pytest.approx(float(expected[place]), abs=1e-3)


def test_every_layer_is_stored_for_the_page_without_a_kernel() -> None:
    rows = similarity_explorer(states(), TOKENS).to_dict()["data"]["values"]
    assert [(row["layer"], row["p"]) for row in rows] == [
        (name, p) for name in ("a", "b") for p in range(3)
    ]
    numbers = np.array([row["cosines"].split() for row in rows], dtype=float)
    assert np.allclose(numbers[:3], numbers[:3].T)  # cosine is symmetric
    assert not np.allclose(numbers[:3], numbers[3:])


@pytest.mark.parametrize(
    ("given", "tokens", "message"),
    [
        ({}, TOKENS, "at least 1 layer"),
        (states(), TOKENS[:2], "2 tokens, but states 'a' has 3"),
        ({"a": torch.ones(3)}, TOKENS, "states 'a'"),
        ({"a": torch.eye(3)[[0, 1, 1]] * torch.tensor([[1], [0], [1]])}, TOKENS,
         "position 1 is zero"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(given, tokens, message) -> None:
    with pytest.raises(ValueError, match=message):
        similarity_explorer(given, tokens)
