"""Look the names of the cross-walk up in real objects."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from torch import nn

from transformer_lib.convert.crosswalk import WEIGHTS, read_rows
from transformer_lib.interpret import recording
from transformer_lib.model import attention, config, masks
from transformer_lib.model.transformer import Transformer


def look_up(
    known: Mapping[str, Mapping[str, Any]],
) -> dict[str, tuple[list[str], list[str]]]:
    """Look every name of these dialects up, weights apart.

    Args:
        known: dialect -> the objects that its names may begin with.

    Returns:
        dialect -> the names that were found, and those that name no object (formulas
        and variables).

    Raises:
        LookupError: a name is wrong, see `check_name`.
    """
    result = {}
    for dialect, things in known.items():
        names = [
            name.text
            for row in read_rows()
            if row.topic != WEIGHTS
            for name in row.names.get(dialect, ())
        ]
        found = [name for name in names if check_name(name, things)]
        result[dialect] = (found, [name for name in names if name not in found])
    return result


def check_name(name: str, things: Mapping[str, Any]) -> bool:
    """Look a name up in real objects.

    Args:
        name: `Thing.attribute`, or `Thing(first, second=default)`.
        things: the objects that a name may begin with.

    Returns:
        True if it was found; False if it names none of the things (a formula, say).

    Raises:
        LookupError: the thing has no such attribute or parameter, its parameters come
            in another order, or the default is another.
    """
    match = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", name)
    heads = [h for h in things if match and f"{match[1]}.".startswith(f"{h}.")]
    if not heads:
        return False
    head = max(heads, key=len)
    thing = things[head]
    for attribute in match[1][len(head) :].split(".")[1:]:
        if not hasattr(thing, attribute):
            raise LookupError(f"{name}: {type(thing).__name__} has no {attribute!r}")
        thing = getattr(thing, attribute)
    if match[2] is not None:
        _check_parameters(name, thing, match[2].split(", "))
    return True


def find_parts(*things: Any, prefix: str = "") -> dict[str, Any]:
    """Name things as the cross-walk does.

    Args:
        things: modules, which stand for all their parts, one of each class; functions
            and classes.
        prefix: what to leave out where a name begins with it.

    Returns:
        name of the class or function -> the thing.
    """
    found = {}
    for thing in things:
        if isinstance(thing, nn.Module):
            found |= {type(part).__name__: part for part in thing.modules()}
        else:
            found[thing.__name__] = thing
    return {name.removeprefix(prefix): thing for name, thing in found.items()}


def own_things() -> dict[str, Any]:
    """Return what names of this library may begin with."""
    sizes = {"d_model": 4, "n_heads": 2, "d_ff": 4, "norm_first": True}
    small = config.TransformerConfig(src_vocab_size=5, tgt_vocab_size=5, **sizes)
    return find_parts(
        Transformer(small),
        attention.scaled_dot_product_attention,
        config.TransformerConfig,
        masks.causal_mask,
        masks.padding_mask,
        recording.record_attention,
        recording.record_hidden_states,
    )


def _check_parameters(name: str, thing: object, wanted: list[str]) -> None:
    parameters = _parameters(thing)
    order = list(parameters)
    places = []
    for parameter, _, default in (part.partition("=") for part in wanted):
        if parameter not in order:
            raise LookupError(f"{name}: no parameter {parameter!r} among {order}")
        places.append(order.index(parameter))
        if default and parameters[parameter] != default:
            raise LookupError(
                f"{name}: the default of {parameter} is {parameters[parameter]}"
            )
    if places != sorted(places):
        raise LookupError(f"{name}: the order is {order}")


def _parameters(thing: Any) -> dict[str, str]:
    """Return the parameters of a function or class in order, and their defaults."""
    function = thing if inspect.isroutine(thing) or inspect.isclass(thing) else None
    try:
        signature = inspect.signature(function or type(thing))
    except ValueError:  # built in: its help text begins with the call
        call = re.match(r"\s*\w+\((.*?)\)", thing.__doc__, re.DOTALL)[1]
        pairs = (part.strip().partition("=") for part in call.split(","))
        return {name: default for name, _, default in pairs}
    empty = inspect.Parameter.empty
    return {
        name: "" if parameter.default is empty else repr(parameter.default)
        for name, parameter in signature.parameters.items()
    }
