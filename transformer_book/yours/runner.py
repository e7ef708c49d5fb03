"""The book's model with a reader's parts in it, and a record of what happens inside.

Modules are wrapped by their names; no class is changed. What is recorded of a pass is
what the machine draws: the weights of every head, queries, keys and values, and the
residual stream before and after each layer.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.exercises.grading import replacing
from transformer_book.yours import parts as book
from transformer_book.yours import reader
from transformer_book.yours.parts import PARTS
from transformer_book.yours.reader import Problem
from transformer_lib.model.attention import scaled_dot_product_attention
from transformer_lib.model.config import TransformerConfig

Edits = Mapping[str, Any]
STACKS = "encoder", "decoder"


class Runner:
    """A model that runs on a reader's parts with given weights.

    Args:
        config: sizes of the model.
        weights: each parameter by its name in the book's model; several names may have
            the same one.
        sources: the text of each part that is the reader's; the rest is the book's.

    Attributes:
        edits: what a page has changed in the model, see `Edits` in types.d.ts.
        progress: is called as often as a layer has been passed.
        weights: of the heads of each attention in its last pass.
        vectors: for each attention, what its projections "q", "k", "v" gave then.
        streams: for each stack, what came into its first layer, and out of each.
        n_asked: how often the decoder has been asked.

    Raises:
        Problem: the sources don't give a model with these weights, or it doesn't run.
    """

    def __init__(
        self,
        config: TransformerConfig,
        weights: Mapping[str, nn.Parameter],
        sources: Mapping[str, str],
    ) -> None:
        self.config, self.sources = config, dict(sources)
        self.edits: Edits = {}
        self.progress: Callable[[], None] = lambda: None
        self.vectors: dict[str, dict[str, Tensor]] = {}
        self.streams: dict[str, list[Tensor]] = {}
        self.n_asked, self.most_asked = 0, 0
        self.listener: Callable[[Tensor, Tensor, Tensor], None] | None = None
        self.sides: set[str] = set()  # whose positions can be switched off
        self._recorded: dict[str, Recorded] = {}
        self._current: str | None = None  # the attention that is being passed
        self._memory: tuple | None = None  # arguments and result of the encoder
        self._tries = False  # whether arguments are compared before and after
        self._last_only = False  # whether only the last position is scored
        with self.telling():
            self.model = self._build(weights)
        self._wrap()
        self._try()

    # --- building ---------------------------------------------------------------------

    def _build(self, weights: Mapping[str, nn.Parameter]) -> nn.Module:
        """Make the model of the reader's parts and the book's, with these weights."""
        spaces = reader.execute(self.sources)
        own = {
            name: self._guard(part, name, space[name])
            for part, space in spaces.items()
            for name in PARTS[part].defines
        }
        if "scaled_dot_product_attention" not in own:  # it is recorded, too
            own["scaled_dot_product_attention"] = self._attend(
                scaled_dot_product_attention, "the book's attention"
            )
        for space in spaces.values():
            space.update(own)
        self.search, self._shift = own.get("greedy_decode"), own.get("shift_right")
        self._classes = {
            value: PARTS[part].owned
            for part, space in spaces.items()
            for name in PARTS[part].defines
            if isinstance(value := space[name], type)
        }
        with torch.device("meta"):  # no numbers to start with: they are given
            model = book.build(self.config, own)
        if any(x.is_meta for part in model.modules() for x in _tensors(part)):
            model = book.build(self.config, own)  # it computes what it starts with
        self._require_weights(model, weights)
        for name, part in model.named_modules():
            for own_name, _ in [*part.named_parameters(recurse=False)]:
                full = f"{name}.{own_name}" if name else own_name
                setattr(part, own_name, weights[full])
        return model.eval()

    def _require_weights(
        self, model: nn.Module, weights: Mapping[str, nn.Parameter]
    ) -> None:
        """Refuse a model that the weights don't fit."""
        found = {
            name: tuple(x.shape)
            for name, x in model.named_parameters(remove_duplicate=False)
        }
        for name, weight in weights.items():
            shape = tuple(weight.shape)
            if name not in found:
                raise Problem(
                    f"{self._owner(model, name)} has no parameter {_ending(name)} of "
                    f"shape {shape}, but the trained model has one, {name}."
                )
            if found[name] != shape:
                raise Problem(
                    f"{self._owner(model, name)} has a parameter {_ending(name)} of "
                    f"shape {found[name]}, but the trained model's has {shape}."
                )
        for name in found:
            if name not in weights:
                raise Problem(
                    f"{self._owner(model, name)} has a parameter {_ending(name)}, but "
                    "the trained model has no weights for it."
                )

    def _owner(self, model: nn.Module, name: str) -> str:
        """Name the reader's class in which a parameter is, or should be."""
        path = name.split(".")[:-1]
        for end in range(len(path), -1, -1):
            try:
                part = model.get_submodule(".".join(path[:end]))
            except AttributeError:
                continue
            if type(part) in self._classes:
                return f"Your {type(part).__name__}"
        return "Your model"

    def _wrap(self) -> None:
        """Put what records, checks and edits around the modules of the model."""
        model = self.model
        for part in model.modules():
            if type(part) in self._classes and part is not model:
                self._check_module(part, self._classes[type(part)])
        for stack in STACKS:
            for number, layer in enumerate(model.get_submodule(f"{stack}.layers")):
                for kind in ("self_attn", "cross_attn"):
                    if hasattr(layer, kind):
                        name = f"{stack}.layers.{number}.{kind}"
                        self._wrap_attention(getattr(layer, kind), name)
                self._wrap_layer(layer, stack, number)
        self._wrap_encoder(model.encoder)
        self._wrap_head(model.lm_head)
        for side in ("src", "tgt"):
            positions = getattr(getattr(model, f"{side}_embeddings"), "positions", None)
            if isinstance(positions, nn.Module):
                self._wrap_positions(positions, f"{side}_positions")
                self.sides.add(side)
        self._wrap_model()

    def _try(self) -> None:
        """Run the model once on a few tokens, with everything compared."""
        if not self.sources:
            return
        src = torch.tensor([[self.config.tgt_vocab_size - 1, 4, 2]])
        self._tries = True
        try:
            self.logits(src, self.shift([self.config.tgt_vocab_size - 2, 2], 1))
        finally:
            self._tries = False
            self.forget()

    # --- a pass -----------------------------------------------------------------------

    def logits(self, src: Tensor, tgt_in: Tensor, last_only: bool = False) -> Tensor:
        """Pass the model.

        Args:
            src: (1, src_len), ids.
            tgt_in: (1, tgt_len), ids.
            last_only: score what follows the last position, and no other.

        Returns:
            (1, tgt_len, vocab_size), or (1, 1, vocab_size).

        Raises:
            Problem: the reader's code raises an error, or returns what doesn't fit.
        """
        with self.telling(), self._softmax_seen():
            self._last_only = last_only
            try:
                found = self.model(src, tgt_in)
            finally:
                self._last_only = False
        return found

    def decode(self, src: Tensor, bos_id: int, eos_id: int, max_len: int) -> list[int]:
        """Let the reader's search write a translation.

        Args:
            src: (1, src_len), ids.
            bos_id: the token that targets start with.
            eos_id: the token that ends them.
            max_len: tokens after which a target is to be cut.

        Returns:
            At least one id, without bos.

        Raises:
            Problem: it raises an error, goes on for ever, or returns no ids.
        """
        name, self.most_asked = "Your greedy_decode", self.n_asked + max_len + 2
        try:
            with self.telling(), self._softmax_seen():
                found = self.search(self.model, src, bos_id, eos_id, max_len)
        finally:
            self.most_asked = 0
        if isinstance(found, Tensor):
            found = found.tolist()
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):
            [found] = found  # of a batch of one
        if not isinstance(found, list | tuple) or not all(
            isinstance(token, int) or (isinstance(token, Tensor) and token.dim() == 0)
            for token in found
        ):
            raise Problem(f"{name} must return a list of ids, but returned "
                          f"{reader.kind_of(found)}.")  # fmt: skip
        ids = [int(token) for token in found]
        ids = ids[1:] if ids[:1] == [bos_id] else ids
        if not ids:
            raise Problem(f"{name} wrote nothing: it must return {eos_id}, the end "
                          "token, at least.")  # fmt: skip
        if not all(0 <= token < self.config.tgt_vocab_size for token in ids):
            raise Problem(f"{name} returned an id that is no token: "
                          f"{max(ids, key=abs)}.")  # fmt: skip
        return ids[:max_len]

    def shift(self, target: Sequence[int], bos_id: int) -> Tensor:
        """Return what the decoder reads for a target, by the reader's function if any.

        Args:
            target: ids that are to be predicted.
            bos_id: the token that targets start with.

        Returns:
            (1, tgt_len), ids.

        Raises:
            Problem: the function raises an error, or returns what doesn't fit.
        """
        if self._shift is None:
            return torch.tensor([[bos_id, *target[:-1]]])
        given = torch.tensor([[*target]])
        with self.telling(), self._unchanged("your shift_right", {"target": given}):
            found = self._shift(given, bos_id)
        _require_shape("your shift_right", "a tensor", found, tuple(given.shape))
        return found

    def forget(self) -> None:
        """Forget what was recorded and kept."""
        self._recorded, self.vectors, self.streams = {}, {}, {}
        self._memory, self.n_asked = None, 0

    def names(self) -> list[str]:
        """Name all attentions, those of the encoder first."""
        kinds = {"encoder": ("self_attn",), "decoder": ("self_attn", "cross_attn")}
        n_layers = {
            "encoder": self.config.n_encoder_layers,
            "decoder": self.config.n_decoder_layers,
        }
        return [
            f"{stack}.layers.{number}.{kind}"
            for stack in STACKS
            for number in range(n_layers[stack])
            for kind in kinds[stack]
        ]

    def heads(self, name: str) -> list[list[list[float]]] | None:
        """Return the weights of each head of an attention in its last pass.

        Returns:
            q_len rows of k_len weights for each head; None if no weights were seen.
        """
        recorded = self._recorded.get(name)
        heads = recorded.heads(self.config.n_heads) if recorded else None
        if heads is None:
            return None
        gone = (self.edits.get("without") or {}).get(name, ())
        cut = [[0.0] * recorded.k_len] * recorded.q_len
        return [cut if head in gone else rows for head, rows in enumerate(heads)]

    def find_nan(self, src: Tensor, tgt_in: Tensor) -> str:
        """Say where the first number that is none comes from, in one sentence."""
        self.forget()
        try:
            self._looks_for_nan = True
            self.logits(src, tgt_in)
        except _FoundNaN as found:
            return str(found)
        finally:
            self._looks_for_nan = False
        return f"{self._sure('model')} gives NaN, which is no number."

    _looks_for_nan = False

    # --- guards around a reader's functions and classes -------------------------------

    def _guard(self, part: str, name: str, value: Any) -> Any:
        """Put a check of its results around a reader's function; a class stays."""
        if isinstance(value, type) or part == "search":
            return value
        if name == "scaled_dot_product_attention":
            return self._attend(value, PARTS[part].owned)
        if name in ("padding_mask", "causal_mask"):
            return self._mask(value, name)
        if name == "sinusoid_table":
            return self._table(value, name)
        return value

    def _attend(self, function: Callable, owned: str) -> Callable:
        def attend(
            query: Tensor,
            key: Tensor,
            value: Tensor,
            mask: Tensor | None = None,
            dropout: float = 0.0,
        ) -> tuple[Tensor, Tensor]:
            arguments = {"query": query, "key": key, "value": value, "mask": mask}
            rate = (dropout,) if dropout else ()
            with self._unchanged(owned, arguments):
                found = function(*arguments.values(), *rate)
            pair = isinstance(found, tuple | list) and len(found) == 2
            if not pair or not all(isinstance(part, Tensor) for part in found):
                raise Problem(
                    f"{_upper(owned)} must return two tensors, output and weights, but "
                    f"returned {reader.kind_of(found)}."
                )
            output, weights = found
            shapes = {
                "output": (output, (*query.shape[:-1], value.size(-1))),
                "weights": (weights, (*query.shape[:-1], key.size(-2))),
            }
            for name, (tensor, shape) in shapes.items():
                _require_shape(owned, name, tensor, shape)
            self._look_for_nan(owned, output, (query, key, value))
            if self._current:
                self._recorded[self._current].told.append(weights)
            return output, weights

        return attend

    def _mask(self, function: Callable, name: str) -> Callable:
        def make(given: Any, *others: Any, **options: Any) -> Tensor:
            if name == "causal_mask":  # a chapter's has no device
                others, options = (), {}
            with self._unchanged(f"your {name}", {"ids": given}):
                mask = function(given, *others, **options)
            if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
                found = reader.kind_of(mask)
                found += f" of {mask.dtype}" if isinstance(mask, Tensor) else ""
                raise Problem(
                    f"Your {name} must return a tensor of torch.bool, but returned "
                    f"{found}."
                )
            return mask

        return make

    def _table(self, function: Callable, name: str) -> Callable:
        @functools.cache  # each pass asks for the same ones again
        def make(n_positions: int, d_model: int) -> Tensor:
            table = function(n_positions, d_model)
            _require_shape(f"your {name}", "a tensor", table, (n_positions, d_model))
            return table

        return make

    def _check_module(self, module: nn.Module, owned: str) -> None:
        """Let a reader's module return a tensor as its first argument, or a Problem."""
        forward, name = module.forward, type(module).__name__

        def checked(*args: Any, **options: Any) -> Tensor:
            given = {f"argument {i}": x for i, x in enumerate(args, start=1)} | options
            with self._unchanged(f"your {name}", given):
                found = forward(*args, **options)
            first = next((x for x in given.values() if isinstance(x, Tensor)), None)
            if not isinstance(found, Tensor) or (
                first is not None and found.shape != first.shape
            ):
                wanted = f" of shape {tuple(first.shape)}" if first is not None else ""
                raise Problem(
                    f"Your {name} must return a tensor{wanted}, but returned "
                    f"{reader.kind_of(found)}."
                )
            self._look_for_nan(owned, found, given.values())
            return found

        module.forward = checked

    @contextmanager
    def _unchanged(self, owned: str, arguments: Mapping[str, Any]) -> Iterator[None]:
        """While the model is tried: refuse a function that changes its arguments."""
        if not self._tries:
            yield
            return
        tensors = {k: x for k, x in arguments.items() if isinstance(x, Tensor)}
        before = {name: x.clone() for name, x in tensors.items()}
        yield
        for name, x in tensors.items():
            if not _same(x, before[name]):
                raise Problem(
                    f"{_upper(owned)} changes its {name} in place, but others still "
                    "need it: make a new tensor."
                )

    def _look_for_nan(
        self, owned: str, found: Tensor, given: Iterator[Any] | Sequence[Any]
    ) -> None:
        if self._looks_for_nan and _has_nan(found):
            if any(isinstance(x, Tensor) and _has_nan(x) for x in given):
                return
            place = f" (in {self._current})" if self._current else ""
            raise _FoundNaN(
                f"{_upper(owned)} gives NaN{place}: a division of 0 by 0, say, or a "
                "softmax over nothing but -inf."
            )

    # --- wrappers around the model's modules ------------------------------------------

    def _wrap_model(self) -> None:
        """Let the model return logits, and tell the listener of each pass."""
        forward = self.model.forward

        def read(src: Tensor, tgt_in: Tensor, *args: Any, **options: Any) -> Tensor:
            given = {"src": src, "tgt_in": tgt_in}
            owned = "your Transformer" if "model" in self.sources else "your code"
            with self._unchanged(owned, given):
                found = forward(src, tgt_in, *args, **options)
            n_batch, length = tgt_in.shape
            shapes = [(n_batch, length, self.config.tgt_vocab_size)]
            if self._last_only:  # they are cut in lm_head, which it may leave out
                shapes.append((n_batch, 1, self.config.tgt_vocab_size))
            _require_shape(self._sure("model"), "logits", found, *shapes)
            if self._last_only:
                found = found[:, -1:]
            if self.listener:
                self.listener(src, tgt_in, found)
            return found

        self.model.forward = read

    def _wrap_attention(self, attention: nn.Module, name: str) -> None:
        forward, stack = attention.forward, name.split(".")[0]
        is_source = stack == "encoder" or name.endswith("cross_attn")

        def attend(
            query: Tensor,
            key: Tensor,
            value: Tensor,
            mask: Tensor | None = None,
            *others: Any,
            **options: Any,
        ) -> Tensor:
            if is_source:
                mask = _hide(mask, self.edits.get("hide") or (), key.size(-2))
            elif self.edits.get("causal") is False:
                mask = None
            outside, self._current = self._current, name
            self._recorded[name] = Recorded(query.size(-2), key.size(-2))
            self.vectors[name] = {}
            try:
                return forward(query, key, value, mask, *others, **_plain(options))
            finally:
                self._current = outside

        attention.forward = attend
        for role in "qkv":
            projection = getattr(attention, f"{role}_proj", None)
            if isinstance(projection, nn.Module):
                self._wrap_projection(projection, name, role)
        if isinstance(getattr(attention, "out_proj", None), nn.Module):
            self._wrap_output(attention.out_proj, name)

    def _wrap_projection(self, projection: nn.Module, name: str, role: str) -> None:
        forward = projection.forward

        def project(x: Tensor) -> Tensor:
            found = self.vectors[name][role] = forward(x)
            return found

        projection.forward = project

    def _wrap_output(self, projection: nn.Module, name: str) -> None:
        """Cut heads where their outputs are joined: (batch, length, d_model)."""
        forward = projection.forward
        width = self.config.d_model // self.config.n_heads

        def project(x: Tensor) -> Tensor:
            gone = (self.edits.get("without") or {}).get(name)
            if gone:
                cut = [i // width in gone for i in range(self.config.d_model)]
                x = x.masked_fill(torch.tensor(cut), 0.0)
            return forward(x)

        projection.forward = project

    def _wrap_layer(self, layer: nn.Module, stack: str, number: int) -> None:
        forward = layer.forward

        def read(x: Tensor, *others: Any, **options: Any) -> Tensor:
            if number == 0:
                self.streams[stack] = [x]
                self._count(stack)
            self.progress()
            found = forward(x, *others, **_plain(options))
            self.streams[stack].append(found)
            return found

        layer.forward = read

    def _count(self, stack: str) -> None:
        self.n_asked += stack == "decoder"
        if self.most_asked and self.n_asked > self.most_asked:
            raise Problem(
                f"{self._sure('search')} has asked the model {self.most_asked} times "
                "and goes on: it must stop at the end token, or at max_len tokens."
            )

    def _wrap_encoder(self, encoder: nn.Module) -> None:
        """Let the encoder read the same source once: what it gave is kept."""
        forward = encoder.forward

        def encode(*args: Any, **options: Any) -> Tensor:
            given = (*args, *options.values())
            if self._memory and not self._tries and not self._looks_for_nan:
                before, memory = self._memory
                if len(before) == len(given) and all(map(_same, before, given)):
                    return memory
            memory = forward(*args, **options)
            self._memory = given, memory
            return memory

        encoder.forward = encode

    def _wrap_head(self, head: nn.Module) -> None:
        forward = head.forward
        head.forward = lambda x: forward(x[:, -1:] if self._last_only else x)

    def _wrap_positions(self, positions: nn.Module, edit: str) -> None:
        forward = positions.forward

        def encode(*args: Any, **options: Any) -> Tensor:
            found = forward(*args, **options)
            return found * 0 if self.edits.get(edit) is False else found

        positions.forward = encode

    @contextmanager
    def _softmax_seen(self) -> Iterator[None]:
        """Record what softmax gives inside an attention that is the reader's."""

        def recorder(softmax: Callable) -> Callable:
            def record(*args: Any, **options: Any) -> Tensor:
                found = softmax(*args, **options)
                if self._current and isinstance(found, Tensor):
                    self._recorded[self._current].softmax.append(found)
                return found

            return record

        with replacing(["softmax"] if "heads" in self.sources else [], recorder):
            yield

    # --- telling ----------------------------------------------------------------------

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn whatever the reader's code raises into a Problem."""
        try:
            yield
        except (Problem, _FoundNaN):
            raise
        except (SystemExit, KeyboardInterrupt) as error:
            if not reader.reader_frames(error):
                raise  # somebody else's
            raise Problem(reader.sentence(error)) from error
        except Exception as error:
            if not self.sources:
                raise
            raise Problem(reader.sentence(error)) from error

    def _sure(self, part: str) -> str:
        """Name a part if it is the reader's, at the beginning of a sentence."""
        return (
            reader.named(part) if part in self.sources else "The model with your code"
        )


@dataclass
class Recorded:
    """What was seen of weights in one pass of an attention.

    Attributes:
        q_len: number of queries.
        k_len: number of keys.
        told: what `scaled_dot_product_attention` returned as weights.
        softmax: what came out of any softmax.
    """

    q_len: int
    k_len: int
    told: list[Tensor] = field(default_factory=list)
    softmax: list[Tensor] = field(default_factory=list)

    def heads(self, n_heads: int) -> list[list[list[float]]] | None:
        """Return the rows of each head, the last that were seen; or None."""
        for kept in self.told, self.softmax:
            found = [
                head
                for weights in kept
                if tuple(weights.shape[-2:]) == (self.q_len, self.k_len)
                for head in weights.reshape(-1, self.q_len, self.k_len).tolist()
            ]
            if len(found) >= n_heads:
                return found[-n_heads:]
        return None


class _FoundNaN(Exception):  # noqa: N818
    """Where the first NaN comes from."""


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Leave a cache out that isn't there: a chapter's classes don't know it."""
    return {k: x for k, x in options.items() if k != "cache" or x is not None}


def _hide(mask: Tensor | None, hidden: Sequence[int], length: int) -> Tensor | None:
    """Hide keys, whatever a mask says of them."""
    if not hidden:
        return mask
    shown = torch.tensor([i not in hidden for i in range(length)])[None, None, None]
    return shown if mask is None else mask & shown


def _tensors(part: nn.Module) -> Iterator[Tensor]:
    """Yield a module's own tensors that are no parameters."""
    yield from part.buffers(recurse=False)
    yield from (x for x in vars(part).values() if isinstance(x, Tensor))


def _same(one: Any, other: Any) -> bool:
    """Whether two arguments are equal; here NaN is equal to NaN."""
    if one is other:
        return True
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other):  # fast, but for it NaN differs from NaN
        return True
    return bool(((one == other) | (one != one) & (other != other)).all())


def _has_nan(x: Tensor) -> bool:
    return x.is_floating_point() and bool((x != x).any())


def _ending(name: str) -> str:
    """The end of a parameter's name, as it is called in the class that holds it."""
    return ".".join(name.split(".")[-2:])


def _require_shape(owned: str, what: str, found: Any, *shapes: tuple) -> None:
    """Refuse what isn't a tensor of one of these shapes, of which the first is told."""
    if not isinstance(found, Tensor) or tuple(found.shape) not in shapes:
        raise Problem(
            f"{_upper(owned)} must return {what} of shape {shapes[0]}, but returned "
            f"{reader.kind_of(found)}."
        )


def _upper(owned: str) -> str:
    return owned[0].upper() + owned[1:]
