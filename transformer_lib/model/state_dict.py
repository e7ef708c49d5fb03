"""Weights of models: whether they fit, loading them, averaging them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from transformer_lib.model.checks import check_kind, check_tensors

_KINDS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

Shape = tuple[int, ...]


def average_tensors(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Average the weights of several models, name by name, in float64.

    Section 6.1 of the paper: the last checkpoints of a run, averaged, translate a
    little better than any of them.

    Args:
        states: what `model.state_dict()` returned, at different times.

    Returns:
        The means, in the types of the first.

    Raises:
        ValueError: there is nothing to average, names or shapes differ, or a number is
            not finite.
    """
    check_kind(Sequence, states=states)
    check_kind(Mapping, **{f"model {n}": state for n, state in enumerate(states)})
    if not states:
        raise ValueError("an average needs at least 1 model, but got 0")
    first = states[0]
    for number, state in enumerate(states[1:], start=1):
        check_fit(state, first, f"model {number}", "model 0")
    for number, state in enumerate(states):
        check_numbers_of(state, f"model {number}")
    return {
        name: sum(state[name].double() for state in states).div(len(states)).to(tensor)
        for name, tensor in first.items()
    }


def load_weights(model: nn.Module, weights: dict[str, Tensor], source: str) -> None:
    """Copy weights into a model, or say what does not fit.

    Args:
        model: changed in place.
        weights: a tensor for each of `model.named_parameters()`, in which a matrix
            used in several places is named once.
        source: what messages call the weights, their file, say.

    Raises:
        ValueError: a tensor is missing, too many, or of another shape, or holds a
            number that is not finite, or none with a fraction.
        TypeError: weights are no tensors by their names.
    """
    own = dict(model.named_parameters())
    check_kind(Mapping, weights=weights)
    check_fit(weights, own, source, "the model")
    for name, tensor in weights.items():
        if tensor.dtype not in _KINDS:
            raise ValueError(f"{source}: {name} holds {tensor.dtype}, no weights")
    check_numbers_of(weights, source)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def check_numbers_of(weights: Mapping[str, Tensor], source: str) -> None:
    """Refuse weights that are broken.

    Raises:
        ValueError: one is NaN or infinite; its name and where it is from.
    """
    for name, tensor in weights.items():
        if tensor.device.type != "meta" and not torch.isfinite(tensor).all():
            raise ValueError(f"{source}: {name} holds NaN or infinity: it is broken")


def check_fit(
    given: dict[str, Tensor], wanted: dict[str, Tensor], source: str, target: str
) -> None:
    """Refuse weights that differ in names or shapes from those of a model.

    Raises:
        ValueError: naming the first difference and both sizes.
    """
    check_shapes(*map(shapes_of, (given, wanted)), source, target)


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    """Return the shape of each tensor by its name."""
    check_tensors(**tensors)
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_shapes(
    given: Mapping[str, Shape], wanted: Mapping[str, Shape], source: str, target: str
) -> None:
    """Refuse shapes that differ from those of a model; see `check_fit`."""
    for name, shape in wanted.items():
        if name not in given:
            raise ValueError(f"{source} has no {name}, but {target} does")
        if given[name] != shape:
            raise ValueError(
                f"{name} has shape {given[name]} in {source}, but {shape} in {target}"
            )
    for name in given:
        if name not in wanted:
            raise ValueError(f"{source} has {name}, but {target} does not")
