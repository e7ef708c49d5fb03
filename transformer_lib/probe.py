"""Is this the same model? Two are compared by their numbers, on a few random batches.

Whatever claims to be a model, a folder that is written, an engine, proves it here
before it is used. Nothing is recognized: what gives equal numbers is equal, whatever it
is made of, and what does not is refused.

Numbers are compared in float64, where only rounding differs; in half precision an
epsilon that is ten times as large would pass for rounding. What no batch can show is
read: rates of dropout, and windows. Sentences have up to 24 tokens: what a part of
one's own does only later, or only to a token that the batches lack, isn't seen.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_lib.weights import load_weights

# Of each batch: sentences, source tokens, target tokens. Later rows are padded.
_SHAPES = ((1, 1, 1), (3, 9, 6), (2, 24, 16))
# Largest gap between equal models, as a share of their largest number.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.1}
_ROUNDED = 0.1  # what half precision may move logits by, in standard deviations
_SETTINGS = ("p", "dropout", "window")  # of modules: no batch in evaluation shows them


class Call(NamedTuple):
    """What a module was given, before any hook, and what it returned: the tensors."""

    inputs: list[Tensor]
    outputs: list[Tensor]


def draw_batches(config: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw the batches, always the same ones: ids (batch, src_len), (batch, tgt_len).

    Args:
        config: of a model; sources end with its padding.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(n_rows: int, length: int, vocab_size: int) -> Tensor:
        ids = torch.arange(vocab_size)
        ids = ids[ids != config.pad_id]
        return ids[torch.randint(len(ids), (n_rows, length), generator=generator)]

    for n_rows, src_len, tgt_len in _SHAPES:
        src_len, tgt_len = min(src_len, config.max_len), min(tgt_len, config.max_len)
        src = draw(n_rows, src_len, config.src_vocab_size)
        for row in range(1, n_rows):
            src[row, src_len // (row + 1) + 1 :] = config.pad_id
        yield src, draw(n_rows, tgt_len, config.tgt_vocab_size)


def is_close(
    found: Tensor, expected: Tensor, dtype: torch.dtype = torch.float64
) -> bool:
    """Say whether two tensors are equal up to a type's rounding; NaN equals NaN."""
    if found.shape != expected.shape:
        return False
    found, expected = found.detach().double(), expected.detach().double()
    size = expected[expected.isfinite()].abs()
    bound = _TOLERANCE[dtype] * max(1.0, float(size.max()) if len(size) else 0.0)
    return torch.allclose(found, expected, rtol=0, atol=bound, equal_nan=True)


@contextmanager
def at_rest() -> Iterator[None]:
    """Compute without gradients, on the CPU, uncompiled; leave chance as it was."""
    uncompiled = nullcontext()
    if "torch._dynamo" in sys.modules:  # which takes seconds to load, so not for this
        uncompiled = torch.compiler.set_stance("force_eager")
    with torch.no_grad(), torch.device("cpu"), torch.random.fork_rng(), uncompiled:
        yield


def exact_copy(model: nn.Module) -> nn.Module:
    """Copy a model to the CPU, in evaluation mode, in float64 if its parts allow it.

    A recording of the model goes on without the copy: see `interpret`.
    """
    return deepcopy(model).cpu().eval().double()


def plain_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters by the names that they have in a model that isn't compiled.

    A matrix used in several places is named once.
    """
    return {_plain(name): x.detach() for name, x in model.named_parameters()}


def _plain(name: str) -> str:
    """Return a name without what `torch.compile` puts in between."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def require_described(model: nn.Module, build: Callable[[], nn.Module]) -> nn.Module:
    """Refuse a model that computes something else than its configuration says.

    Args:
        model: with a config, in any state; it is left as it is.
        build: makes a new model of what the configuration says.

    Returns:
        The new model with the model's weights, in float64.

    Raises:
        ValueError: a weight is missing, too many, of another shape or not finite, or
            the numbers differ; names the parameter, or the first module that returned
            something else for the same inputs.
    """
    weights = plain_weights(model)
    with at_rest():
        twin = build().eval().double()
        own = dict(twin.named_parameters())
        for name in sorted(own.keys() ^ weights.keys()):
            what = "lacks" if name in own else "has"
            raise ValueError(
                f"the model {what} {name}, other than its configuration says"
            )
        load_weights(twin, weights, "the model")
        _require_settings(model, twin)
        try:
            copy = exact_copy(model)
            _require_same_numbers(copy, twin, torch.float64)
        except RuntimeError:  # a part that can't compute in float64
            copy = deepcopy(model).cpu().eval().float()
            _require_same_numbers(copy, twin.float(), torch.float32)
            twin.double()
    return twin


def require_same_stages(
    found: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    who: str,
    dtype: torch.dtype,
) -> None:
    """Refuse what does not compute a model's numbers.

    Args:
        found: by the name of a stage, in order: memory, logits.
        expected: the same of the model.
        who: what it is that claims to be the model.
        dtype: in which it computes.

    Raises:
        ValueError: naming the first stage that differs.
    """
    for stage, numbers in expected.items():
        if not is_close(found[stage], numbers, dtype):
            gap = (found[stage] - numbers).abs().max().item()
            raise ValueError(
                f"{who} computes other {stage} than the model, by up to {gap:.2g}: "
                "something changes what the model's parts compute"
            )


def require_room_in_half(twin: nn.Module) -> dict[str, Tensor]:
    """Round weights to half precision, if the model still computes about the same.

    Args:
        twin: what `require_described` returned; it gets the rounded weights.

    Returns:
        The weights, by name, in half precision.

    Raises:
        ValueError: a weight is too large, or rounding moves the logits by more than a
            tenth of their standard deviation.
    """
    with at_rest():
        before = _logits(twin)
        halves = {name: x.half() for name, x in plain_weights(twin).items()}
        for name, half in halves.items():
            if not half.isfinite().all():
                raise ValueError(
                    f"{name} does not fit into half precision, or holds NaN"
                )
        load_weights(twin, halves, "the model in half precision")
        moved, spread = (_logits(twin) - before).abs().max(), before.std()
    if moved > _ROUNDED * spread:
        raise ValueError(
            f"half precision would move the model's logits by {moved:.2g}, which have "
            f"a standard deviation of {spread:.2g}"
        )
    return halves


def _inputs(model: nn.Module) -> Iterator[tuple[Tensor, ...]]:
    """Yield what the model is called with: sources and targets, or sources only."""
    takes_targets = hasattr(model, "decoder")
    for src, tgt in draw_batches(model.config):
        yield (src, tgt) if takes_targets else (src,)


def _logits(model: nn.Module) -> Tensor:
    return torch.cat([model(*inputs).flatten() for inputs in _inputs(model)])


def _require_settings(model: nn.Module, twin: nn.Module) -> None:
    """Compare what no batch shows in evaluation mode, where both have the module."""
    described = dict(twin.named_modules())
    for name, module in model.named_modules():
        other = described.get(_plain(name))
        for setting in _SETTINGS:
            own, said = getattr(module, setting, None), getattr(other, setting, None)
            if isinstance(own, nn.Module) or isinstance(said, nn.Module):
                continue  # a connection's dropout is a module with a rate of its own
            if own != said and other is not None:
                raise ValueError(
                    f"{setting} of {name} is {own}, but the model's configuration says "
                    f"{said}"
                )


def _require_same_numbers(
    model: nn.Module, twin: nn.Module, dtype: torch.dtype
) -> None:
    for inputs in _inputs(twin):
        found, expected = _calls(model, inputs), _calls(twin, inputs)
        if _same(found[""], expected[""], dtype):
            continue
        name = next(
            (
                name
                for name, call in found.items()
                if name in expected
                and _same_inputs(call, expected[name], dtype)
                and not _same(call, expected[name], dtype)
            ),
            "",
        )
        by_chance = not _same(_calls(model, inputs)[""], found[""], dtype)
        why = (
            "draws random numbers in evaluation mode, too, so that no two passes are "
            "equal"
            if by_chance
            else "computes something else than the model's configuration says"
        )
        raise ValueError(f"{name or 'the model as a whole'} {why}")


def _calls(model: nn.Module, inputs: Sequence[Tensor]) -> dict[str, Call]:
    """Run a model; return each module's last call by name, those within first."""
    given: dict[str, list[Tensor]] = {}
    calls: dict[str, Call] = {}

    def before(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
        given[name] = list(_tensors([*args, *kwargs.values()]))

    def after(name: str, output: Any) -> None:
        calls.pop(name, None)
        calls[name] = Call(given[name], list(_tensors([output])))

    with ExitStack() as hooks:
        for full_name, module in model.named_modules():
            name = _plain(full_name)
            hooks.enter_context(
                module.register_forward_pre_hook(
                    lambda _, args, kwargs, name=name: before(name, args, kwargs),
                    prepend=True,
                    with_kwargs=True,
                )
            )
            hooks.enter_context(
                module.register_forward_hook(
                    lambda _, __, output, name=name: after(name, output)
                )
            )
        model(*inputs)
    return calls


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value.clone()
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


def _same_inputs(call: Call, other: Call, dtype: torch.dtype) -> bool:
    return _all_close(call.inputs, other.inputs, dtype)


def _same(call: Call, other: Call, dtype: torch.dtype) -> bool:
    return _all_close(call.outputs, other.outputs, dtype)


def _all_close(
    found: Sequence[Tensor], expected: Sequence[Tensor], dtype: torch.dtype
) -> bool:
    return len(found) == len(expected) and all(
        is_close(one, other, dtype) for one, other in zip(found, expected, strict=True)
    )
