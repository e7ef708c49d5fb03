"""Weights of models: loading them, averaging them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


def average_tensors(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Average the weights of several models, name by name, in float64.

    Section 6.1 of the paper: the last checkpoints of a run, averaged, translate a
    little better than any of them.

    Args:
        states: what `model.state_dict()` returned, at different times.

    Returns:
        The means, in the types of the first.
    """
    return {
        name: sum(state[name].double() for state in states).div(len(states)).to(tensor)
        for name, tensor in states[0].items()
    }


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Copy weights into a model, or say what does not fit.

    Args:
        model: changed in place.
        weights: a tensor for each of `model.named_parameters()`, in which a matrix
            used in several places is named once.
        source: what messages call the weights, their file, say.

    Raises:
        ValueError: a tensor is missing, too many, or of another shape, or holds a
            number that is not finite, or integers.
    """
    own = dict(model.named_parameters())
    for name in own.keys() - weights.keys():
        raise ValueError(f"{source} has no {name}, but the model does")
    for name, tensor in weights.items():
        if name not in own:
            raise ValueError(f"{source} has {name}, but the model does not")
        if tensor.shape != own[name].shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)} in {source}, but "
                f"{tuple(own[name].shape)} in the model"
            )
        if not tensor.is_floating_point():  # eight bits without their scale, say
            raise ValueError(f"{source}: {name} holds {tensor.dtype}, no weights")
        if not tensor.isfinite().all():
            raise ValueError(f"{source}: {name} holds NaN or infinity: it is broken")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])
