"""A low-rank adapter (LoRA): what fine-tuning adds to a matrix, as two thin ones."""

import copy

from torch import Tensor, nn


class LowRank(nn.Module):
    """A linear map that stays as it is, plus a product of two thin ones that learns.

    Computes linear(x) + alpha / rank * up(down(x)). `up` starts at zero, so that a new
    adapter changes nothing.

    Args:
        linear: the map to adapt; it gets no gradient from now on.
        rank: outputs of `down`, and inputs of `up`.
        alpha: the size of the change, independent of the rank.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return self.linear(x) + self.scale * self.up(self.down(x))

    def merged(self) -> nn.Linear:
        """Return one linear map that computes the same."""
        whole = copy.deepcopy(self.linear)
        whole.weight.data += self.scale * self.up.weight @ self.down.weight
        return whole
