"""As much of PyTorch as the book's chapters need, in plain Python.

`install()` makes this file importable as `torch`, with `torch.nn` and the rest of it.
Then the book's own classes run on it unchanged.

What a tensor is
    A *storage* is one row of numbers, an `array.array`. A tensor is a way to walk
    through it: `shape` says how many steps there are along each dimension, `_strides`
    how many places of the storage one step moves on, `_offset` where the walk begins.
    `transpose`, `expand` and slices only change the walk: they copy no number, and what
    is written through them shows in every other tensor of that storage.

        storage                                    0 1 2 3 4 5
                            shape   strides  offset
        x                   (2, 3)  (3, 1)   0     [[0, 1, 2], [3, 4, 5]]
        x.T                 (3, 2)  (1, 3)   0     [[0, 3], [1, 4], [2, 5]]
        x[:, 1:]            (2, 2)  (3, 1)   1     [[1, 2], [4, 5]]
        x[:1].expand(4, 3)  (4, 3)  (0, 1)   0     four times the row [0, 1, 2]

    A tensor on the device "meta" has a shape, and no storage.

What it isn't
    There are no gradients, no devices but "cpu" and "meta", and no numbers but float32,
    float64, int32, int64 and bool. A name of PyTorch's that is missing is refused in a
    sentence. Sums are added up in float64, so results differ from PyTorch's in the last
    digit. Random numbers are PyTorch's, but for those of dropout.

What may come from outside
    `KERNELS` holds the loops in which a model spends its time. They are plain Python
    here; the page puts faster ones in their places.

Contents
    Types of numbers            float32 and its like; which type a result has
    Shapes and walks            Size, strides, broadcasting
    The kernels                 products of matrices, norm, softmax
    What is known of a tensor   its size, its type; Python's own functions of it
    Reading and writing         x[...], x[...] = y, tolist
    Changing the shape          view, reshape, transpose, expand
    One number at a time        + - * / **, exp, comparisons, masks
    Many numbers to one         sum, mean, max, softmax, sort
    Products                    matmul, einsum
    Joining and picking         cat, stack, split, gather, roll
    Random numbers              PyTorch's generator: manual_seed, randn
    The tensor                  the class, of all these parts
    Making tensors              tensor, zeros, arange, eye
    Printing                    how a tensor is written
    torch.nn.functional         linear, layer_norm, cross_entropy
    torch.nn                    Module, Linear, Embedding
    torch                       names of modules, and install
"""

# Names and arguments are PyTorch's: some shadow a builtin, and types are told there.
# ruff: noqa: A001, A002, A003, A006, ANN001, ANN002, ANN003, ANN201, ANN202, ANN204
# ruff: noqa: ANN205, ANN206, D403, PLR0913, SIM905

import contextlib
import difflib
import functools
import itertools
import math
import operator
import os
import random
import sys
import types
from array import array
from collections import OrderedDict, namedtuple

# ---- Types of numbers


class DType:
    """A type of numbers, `torch.dtype`.

    Attributes:
        name: "float32".
        code: of an `array` of such numbers; None if this file has none.
        kind: 0 for truth values, 1 for integers, 2 for floating-point numbers.
        rank: of two types, the one of the higher rank holds both.
        title, c_name: how PyTorch's errors call it, "Float" and "float".
        itemsize: bytes of a number.
    """

    is_complex = False

    def __init__(self, name, code=None, kind=2, rank=0, title="", c_name=""):
        self.name, self.code, self.kind, self.rank = name, code, kind, rank
        self.title, self.c_name = title, c_name
        self.itemsize = array(code).itemsize if code else None
        self.is_floating_point = kind == 2

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):  # there is one of each, in copies too
        return "bool_" if self.name == "bool" else self.name


bool_ = DType("bool", "b", 0, 0, "Bool", "bool")
int32 = DType("int32", "i", 1, 1, "Int", "int")
int64 = DType("int64", "q", 1, 2, "Long", "long int")
float32 = DType("float32", "f", 2, 3, "Float", "float")
float64 = DType("float64", "d", 2, 4, "Double", "double")
_OTHER_TYPES = {
    name: DType(name) for name in ("float16", "bfloat16", "uint8", "int8", "int16")
}
_NUMBERS = (bool, int, float)


def get_default_dtype():
    """Return the type of new floating-point tensors."""
    return float32


def _require_known(dtype):
    """Return a type that this file has numbers of; the default type for None."""
    if dtype is None:
        return float32
    dtype = {bool: bool_, int: int64, float: float64}.get(dtype, dtype)
    if not isinstance(dtype, DType) or dtype.code is None:
        raise TypeError(
            f"this page's torch has no numbers of type {dtype}, only float32, float64, "
            "int32, int64 and bool; the notebook in Colab has"
        )
    return dtype


def _dtype_of(number):
    """Return the type that a Python number has in a tensor."""
    if isinstance(number, bool):
        return bool_
    return int64 if isinstance(number, int) else float32


def promote_types(a, b):
    """Return the type that holds numbers of both."""
    return a if a.rank >= b.rank else b


def result_type(*operands):
    """Return the type of a result of tensors and numbers.

    A number changes the kind of a tensor's type, never its size, and so does a tensor
    without dimensions: int64 * 2.5 and float32 * 2.5 are float32.
    """
    levels = [], [], []  # tensors, tensors without dimensions, numbers
    for x in operands:
        if isinstance(x, Tensor):
            levels[0 if x.shape else 1].append(x.dtype)
        else:
            levels[2].append(_dtype_of(x))
    result = None
    for level in filter(None, levels):
        best = functools.reduce(promote_types, level)
        result = best if result is None or best.kind > result.kind else result
    return result


def _rounded(number, dtype):
    """Return a Python number as a number of this type."""
    if dtype.kind == 2:
        return array(dtype.code, [number])[0]
    return bool(number) if dtype is bool_ else int(number)


def _converted(flat, old, new):
    """Return numbers of another type: fractions are cut off, all but 0 is true."""
    if new is bool_:
        return array("b", map(bool, flat))
    if new.kind < old.kind:
        whole = (int(x) if math.isfinite(x) else -(2**63) for x in flat)
        return array(new.code, whole)
    return array(new.code, flat)


def finfo(dtype=None):
    """Return the limits of a floating-point type."""
    digits, power = (52, 1023) if dtype is float64 else (23, 127)
    highest = (2 - 2.0**-digits) * 2.0**power
    limits = {"eps": 2.0**-digits, "max": highest, "min": -highest}
    return types.SimpleNamespace(**limits, tiny=2.0 ** (1 - power))


# ---- Shapes and walks


class Size(tuple):
    """The shape of a tensor: a tuple that counts elements."""

    __slots__ = ()

    def numel(self):
        """Return how many elements a tensor of this shape has."""
        return math.prod(self)

    def __add__(self, other):
        return Size(tuple.__add__(self, other))

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self):
        return f"torch.Size({list(self)})"


def _contiguous_strides(shape):
    """Return the strides of elements that stand in their order, without gaps."""
    strides, step = [], 1
    for size in tuple(shape)[::-1]:
        strides.append(step)
        step *= size or 1
    return tuple(strides[::-1])


def _join_axes(shape, strides):
    """Return the same walk with few dimensions: those in one row are joined."""
    sizes, steps = [1], [0]
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if sizes[-1] == 1:
            sizes[-1], steps[-1] = size, stride
        elif steps[-1] == size * stride:
            sizes[-1], steps[-1] = sizes[-1] * size, stride
        else:
            sizes.append(size)
            steps.append(stride)
    return sizes, steps


def _places(shape, strides, start):
    """Return where each element of a walk stands in the storage."""
    places = [start]
    for size, stride in zip(shape, strides, strict=True):
        steps = range(0, size * stride, stride) if stride else (0,) * size
        places = [place + step for place in places for step in steps]
    return places


def _cut(storage, start, step, size):
    """Return so many numbers, at start, start + step, ..."""
    if not step:
        return storage[start : start + 1] * size
    return storage[start : start + (size - 1) * step + 1 : step]


def _collect(storage, shape, strides, start):
    """Return the numbers of a walk in their order: what repeats is collected once."""
    size, step = shape[0], strides[0]
    if len(shape) == 1:
        return _cut(storage, start, step, size)
    if not step:
        return _collect(storage, shape[1:], strides[1:], start) * size
    collected, flat = array(storage.typecode), len(shape) == 2
    for place in range(start, start + size * step, step):
        if flat:
            collected.extend(_cut(storage, place, strides[1], shape[1]))
        else:
            collected.extend(_collect(storage, shape[1:], strides[1:], place))
    return collected


def broadcast_shapes(*shapes):
    """Return the shape that all of these can be expanded to.

    They are compared from the right. A missing size fits any other, and so does 1.
    """
    longest = max(map(len, shapes), default=0)
    result = [1] * longest
    for shape in map(tuple, shapes):
        for place in range(longest - 1, longest - 1 - len(shape), -1):
            size = shape[place - longest]
            if size in (1, result[place]):
                continue
            if result[place] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({result[place]}) must match the size of "
                    f"tensor b ({size}) at non-singleton dimension {place}"
                )
            result[place] = size
    return Size(result)


def _axis(dim, n):
    """Return a dimension of n counted from 0: -1 is the last."""
    most = max(n, 1)
    if not -most <= dim < most:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-most}, {most - 1}]"
            f", but got {dim})"
        )
    return dim % most


def _axes(dim, n):
    """Return several dimensions: from a number, a sequence, or None for all."""
    if dim is None or dim in ((), []):
        return list(range(n))
    dims = [_axis(d, n) for d in (dim if isinstance(dim, (tuple, list)) else [dim])]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims if n else []


def _along(dim, n, index):
    """Return the index that takes this of a dimension, and all of those before it."""
    return (slice(None),) * _axis(dim, n) + (index,)


def _unpacked(values):
    """Return what f(2, 3), f((2, 3)) and f([2, 3]) get: (2, 3)."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def _sizes(sizes, name="view"):
    """Return sizes as a tuple of integers."""
    sizes = _unpacked(sizes)
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
                f"{type(size).__name__}"
            )
    return tuple(map(operator.index, sizes))


# ---- The kernels


class Kernels:
    """The loops in which a model spends its time, in plain Python.

    A page may put functions of the same arguments in the places of these attributes.
    Arrays are `array.array` objects, whose address is `a.buffer_info()[0]`; all other
    arguments are numbers. Starts and strides count elements, not bytes. Arrays of
    numbers have the code "f" (float32), those of starts the code "i"; tensors of other
    types never come here. `out` is new, and is filled from its beginning.

    Attributes:
        multiply: products of pairs of matrices.
        linear: the product of rows and a matrix's rows, plus a bias.
        add: a row of numbers plus another, which may be shorter and is repeated.
        softmax, layer_norm: of rows.
        relu: of a row.
    """

    def __init__(self):
        self.multiply, self.linear, self.add = _multiply, _linear, _add
        self.softmax, self.layer_norm, self.relu = _softmax, _layer_norm, _relu


def _dot(x, y):
    return sum(map(operator.mul, x, y))


_dot = getattr(math, "sumprod", _dot)  # since Python 3.12


def _multiply(
    a, starts_a, row_a, step_a, b, starts_b, step_b, column_b, out, m, k, n
):  # fmt: skip
    """out[p, i, j] = sum over l of a[p, i, l] * b[p, l, j], for each pair p.

    a[p, i, l] stands at starts_a[p] + i * row_a + l * step_a, and b[p, l, j] at
    starts_b[p] + l * step_b + j * column_b.
    """
    place = 0
    for start_a, start_b in zip(starts_a, starts_b, strict=True):
        columns = [
            _cut(b, start_b + j * column_b, step_b, k).tolist() for j in range(n)
        ]
        for i in range(m):
            row = _cut(a, start_a + i * row_a, step_a, k).tolist()
            products = [_dot(row, column) for column in columns]
            out[place : place + n] = array(out.typecode, products)
            place += n


def _linear(x, start_x, weight, start_w, bias, start_b, out, m, k, n):
    """out[i, j] = bias[j] + sum over l of x[i, l] * weight[j, l]; bias may be None."""
    rows = [weight[at : at + k].tolist() for at in range(start_w, start_w + n * k, k)]
    added = [0.0] * n if bias is None else bias[start_b : start_b + n].tolist()
    for i in range(m):
        row = x[start_x + i * k : start_x + i * k + k].tolist()
        sums = [b + _dot(row, w) for w, b in zip(rows, added, strict=True)]
        out[i * n : i * n + n] = array(out.typecode, sums)


def _add(a, start_a, b, start_b, size_b, out, n):
    """out[i] = a[start_a + i] + b[start_b + i % size_b], for n numbers."""
    b = b[start_b : start_b + size_b] * (n // size_b)
    out[:] = array(out.typecode, map(operator.add, a[start_a : start_a + n], b))


def _softmax(x, start, out, rows, n):
    """Each row of n becomes exp(x - its maximum), divided by its sum."""
    for i in range(rows):
        row = x[start + i * n : start + i * n + n]
        top = max(row)
        powers = [math.exp(number - top) for number in row]
        total = sum(powers)
        weights = array(out.typecode, [power / total for power in powers])
        out[i * n : i * n + n] = weights


def _layer_norm(x, start, gain, start_g, bias, start_b, out, rows, n, eps):
    """Each row of n becomes (x - mean) / sqrt(variance + eps) * gain + bias."""
    gain, bias = gain[start_g : start_g + n], bias[start_b : start_b + n]
    for i in range(rows):
        row = x[start + i * n : start + i * n + n]
        mean = sum(row) / n
        row = [number - mean for number in row]
        scale = 1 / math.sqrt(_dot(row, row) / n + eps)
        normed = [v * scale * g + b for v, g, b in zip(row, gain, bias, strict=True)]
        out[i * n : i * n + n] = array(out.typecode, normed)


def _relu(x, start, out, n):
    """out[i] = x[start + i], or 0 where that is negative; NaN stays."""
    out[:] = array(out.typecode, [0.0 if v < 0 else v for v in x[start : start + n]])


KERNELS, _PLAIN = Kernels(), Kernels()


def _kernel(name, dtype):
    """Return the kernel for float32, and the one in Python for other types."""
    return getattr(KERNELS if dtype is float32 else _PLAIN, name)


def _row(x):
    """Return a storage with a tensor's elements in order, and the first one's place."""
    return (x._storage, x._offset) if x.is_contiguous() else (x._flat(), 0)


def _zeros(n, dtype):
    return array(dtype.code, bytes(n * dtype.itemsize))


# ---- What is known of a tensor


class _Known:
    """Sizes and types, and what Python's own functions ask."""

    requires_grad = False
    grad = grad_fn = None

    ndim = property(lambda self: len(self.shape))
    device = property(lambda self: Device("meta" if self.is_meta else "cpu"))
    is_meta = property(lambda self: self._storage is None)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)

    def dim(self):
        """Return the number of dimensions."""
        return len(self.shape)

    def size(self, dim=None):
        """Return the shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[_axis(dim, self.ndim)]

    def numel(self):
        """Return the number of elements."""
        return math.prod(self.shape)

    def stride(self, dim=None):
        """Return how many places of the storage a step moves on, in each dimension."""
        return self._strides if dim is None else self._strides[_axis(dim, self.ndim)]

    def is_contiguous(self):
        """Return whether the elements stand in their order, without gaps."""
        if self._in_order is None:
            wanted = _contiguous_strides(self.shape)
            triples = zip(self.shape, self._strides, wanted, strict=True)
            self._in_order = not self.numel() or all(
                size == 1 or stride == step for size, stride, step in triples
            )
        return self._in_order

    def is_floating_point(self):
        """Return whether the numbers are floating-point numbers."""
        return self.dtype.kind == 2

    def type(self, dtype=None):
        """Return the type's name, or the numbers in another type."""
        return f"torch.{self.dtype.title}Tensor" if dtype is None else self.to(dtype)

    @property
    def data(self):
        """The same numbers; what is assigned takes their place in every module."""
        return self.detach()

    @data.setter
    def data(self, other):
        for name in ("_storage", "shape", "dtype", "_strides", "_offset", "_in_order"):
            setattr(self, name, getattr(other, name))

    def requires_grad_(self, requires_grad=True):
        """Remember the wish: there are no gradients."""
        self.requires_grad = requires_grad
        return self

    def backward(self, *_, **__):
        """Refuse: there are no gradients."""
        raise NotImplementedError(
            "this page's torch has no gradients; the notebook in Colab has"
        )

    # Python's functions

    def __bool__(self):
        if self.numel() != 1:
            what = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return self.item() != 0

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __contains__(self, number):
        return bool((self == number).any())

    def __float__(self):
        if self.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars"
            )
        return float(self.item())

    def __int__(self):
        return int(self.item() if self.numel() == 1 else float(self))

    def __index__(self):
        if self.dtype.kind == 2 or self.numel() != 1:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self.item())

    def __format__(self, specification):
        if self.shape or self._storage is None:
            return object.__format__(self, specification)
        return format(self.item(), specification)

    def __repr__(self):
        return _write_tensor(self)

    def __getattr__(self, name):
        raise AttributeError(_missing(name, "Tensor", dir(Tensor)))


def _missing(name, owner, names):
    """Return the sentence about a name that isn't there."""
    near = difflib.get_close_matches(name, [n for n in names if n[0] != "_"], 1, 0.8)
    if near:
        return f"this page's torch has no `{owner}.{name}`; is `{near[0]}` meant?"
    return f"this page's torch has no `{owner}.{name}`; the notebook in Colab has"


# ---- Reading and writing


class _Readable:
    """Numbers read and written, one by one, through indices, and all of them."""

    def _flat(self):
        """Return the elements in order, to be read: the storage itself, or a copy."""
        storage = self._storage
        if storage is None:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        n = self.numel()
        if not n:
            return array(self.dtype.code)
        if self.is_contiguous():
            start = self._offset
            return storage if n == len(storage) else storage[start : start + n]
        return _collect(storage, *_join_axes(self.shape, self._strides), self._offset)

    def _put(self, flat):
        """Write elements in order, through whatever view this is."""
        pairs = zip(self.shape, self._strides, strict=True)
        if any(n > 1 and not step for n, step in pairs):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor "
                "refers to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )
        shape, strides = _join_axes(self.shape, self._strides)
        size, step, storage = shape[-1], strides[-1] or 1, self._storage
        places = _places(shape[:-1], strides[:-1], self._offset) if len(flat) else []
        for n, place in enumerate(places):
            end = place + (size - 1) * step + 1
            storage[place:end:step] = flat[n * size : n * size + size]

    def item(self):
        """Return the number in a tensor with one element."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        number = self._flat()[0]
        return bool(number) if self.dtype is bool_ else number

    def tolist(self):
        """Return the numbers in nested lists."""
        if not self.shape:
            return self.item()
        numbers = self._flat().tolist()
        if self.dtype is bool_:
            numbers = list(map(bool, numbers))
        return _nested(numbers, self.shape)

    def copy_(self, other, non_blocking=False):
        """Write another tensor's numbers into this one."""
        if self._storage is not None:
            other = other if isinstance(other, Tensor) else tensor(other)
            if other.shape != self.shape:
                broadcast_shapes(self.shape, other.shape)
                other = other.expand(self.shape)
            self._put(other.to(self.dtype)._flat())
        return self

    def __getitem__(self, index):
        shape, strides, offset, picks = _understand(self, index)
        if not picks:
            return self._view(shape, strides, offset)
        shape, places, run = _pick(shape, strides, offset, picks)
        storage, picked = self._storage, array(self.dtype.code)
        for place in places:
            picked.extend(storage[place : place + run])
        return _wrap(picked, shape, self.dtype)

    def __setitem__(self, index, value):
        shape, strides, offset, picks = _understand(self, index)
        if not isinstance(value, (Tensor, *_NUMBERS)):
            kind = type(value).__name__
            raise TypeError(f"can't assign a {kind} to a {self.type()}")
        if self._storage is None:
            return
        value = value if isinstance(value, Tensor) else tensor(value, self.dtype)
        if not picks:
            view = self._view(shape, strides, offset)
            view.copy_(_without_ones(value, len(shape)).expand(shape))
            return
        if value.dtype is not self.dtype and not (
            _is_mask(index) and value.numel() == 1
        ):
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{self.dtype.title} for the destination and {value.dtype.title} for "
                "the source."
            )
        shape, places, run = _pick(shape, strides, offset, picks)
        value = _without_ones(value.to(self.dtype), len(shape))
        flat = value.expand(shape)._flat()
        for n, place in enumerate(places):
            self._storage[place : place + run] = flat[n * run : n * run + run]


def _nested(numbers, shape):
    """Return numbers in lists of lists."""
    if len(shape) == 1:
        return numbers
    n, shape = math.prod(shape[1:]), tuple(shape)
    rows = (numbers[i * n : i * n + n] for i in range(shape[0]))
    return [_nested(row, shape[1:]) for row in rows]


def _understand(x, index):
    """Split an index into a view and what is picked from it.

    Numbers, slices, None and ... give a view. Each tensor of integers picks places
    along one dimension, each mask along as many as it has.

    Returns:
        shape, strides, offset: the view, without the dimensions that are picked from.
        picks: for each of these where it stands among those of the view, the numbers,
            and the stride.
    """
    index = list(index) if isinstance(index, tuple) else [index]
    index = [tensor(i) if isinstance(i, (list, tuple, range)) else i for i in index]
    index = _fill_ellipsis(x, index)
    shape, strides, offset, picks, axis = [], [], x._offset, [], 0
    for i in index:
        if i is None:
            shape.append(1)
            strides.append(0)
        elif isinstance(i, bool) or (_is_mask(i) and not i.shape):
            picks.append((len(shape), tensor([0] if i else [], int64), 0))
        elif _is_mask(i):
            part = x.shape[axis : axis + i.ndim]
            if part != i.shape:
                n = next(n for n in range(i.ndim) if part[n] != i.shape[n])
                raise IndexError(
                    f"The shape of the mask {list(i.shape)} at index {n} does not "
                    f"match the shape of the indexed tensor {list(x.shape)} at index "
                    f"{axis + n}"
                )
            for column in i.nonzero().unbind(1):
                picks.append((len(shape), column, x._strides[axis]))
                axis += 1
        else:
            size, stride = x.shape[axis], x._strides[axis]
            if isinstance(i, slice):
                if i.step is not None and i.step <= 0:
                    raise ValueError("step must be greater than zero")
                start, stop, step = i.indices(size)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * step)
                offset += start * stride
            elif isinstance(i, Tensor) and i.shape:
                if i.dtype.kind == 2:
                    raise IndexError(_NOT_AN_INDEX)
                numbers = array("q", [_in_range(n, size, axis) for n in i._flat()])
                picks.append((len(shape), _wrap(numbers, i.shape, int64), stride))
            else:
                offset += _in_range(i, size, axis) * stride
            axis += 1
    return shape, strides, offset, picks


def _is_mask(i):
    return isinstance(i, Tensor) and i.dtype is bool_


def _fill_ellipsis(x, index):
    """Replace `...`, or the end, by slices of everything."""
    used = 0
    for i in index:
        if i is None or i is Ellipsis or isinstance(i, bool):
            continue
        if not isinstance(i, slice) and not hasattr(i, "__index__"):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                f"Variables are valid indices (got {type(i).__name__})"
            )
        used += i.ndim if _is_mask(i) else 1
    if used > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    at = next((n for n, i in enumerate(index) if i is Ellipsis), len(index))
    index[at : at + 1] = [slice(None)] * (x.ndim - used)
    return index


def _in_range(i, size, axis):
    """Return an index counted from 0."""
    if isinstance(i, Tensor) and i.dtype.kind == 2:
        raise IndexError(_NOT_AN_INDEX)
    i = operator.index(i)
    if not -size <= i < size:
        raise IndexError(
            f"index {i} is out of bounds for dimension {axis} with size {size}"
        )
    return i % size


_NOT_AN_INDEX = "tensors used as indices must be long, int, byte or bool tensors"


def _pick(shape, strides, offset, picks):
    """Return the shape of what is picked, where it stands, and in runs of what length.

    The picked dimensions stand where the first of them stood, or before all others if
    a slice stands between them.
    """
    shapes = [numbers.shape for _, numbers, _ in picks]
    try:
        picked = broadcast_shapes(*shapes)
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with "
            "shapes " + ", ".join(str(list(s)) for s in shapes)
        ) from None
    at = picks[0][0] if len({at for at, _, _ in picks}) == 1 else 0
    steps = [0] * picked.numel()
    for _, numbers, stride in picks:
        flat = numbers.expand(picked)._flat()
        steps = [step + n * stride for step, n in zip(steps, flat, strict=True)]
    before, run = _places(shape[:at], strides[:at], offset), math.prod(shape[at:])
    places = [place + step for place in before for step in steps]
    if _contiguous_strides(shape[at:]) != tuple(strides[at:]):
        after, run = _places(shape[at:], strides[at:], 0), 1
        places = [place + step for place in places for step in after]
    return Size([*shape[:at], *picked, *shape[at:]]), places, run


def _without_ones(value, ndim):
    """Drop leading dimensions of size 1 that the place to write to doesn't have."""
    while value.ndim > ndim and value.shape[0] == 1:
        value = value[0]
    return value


# ---- Changing the shape


class _Shaped:
    """Other walks through the same storage, and copies where there is none."""

    def _view(self, shape, strides, offset=None):
        """Return another walk through the same storage."""
        offset = self._offset if offset is None else offset
        return _wrap(self._storage, shape, self.dtype, strides, offset)

    def detach(self):
        """Return the same numbers, without a history: there is none here."""
        return self._view(self.shape, self._strides)

    def clone(self, memory_format=None):
        """Return a copy, with a storage of its own."""
        storage = None if self._storage is None else self._flat()[:]
        return _wrap(storage, self.shape, self.dtype)

    def contiguous(self, memory_format=None):
        """Return the tensor itself, or a copy whose elements stand in their order."""
        return self if self.is_contiguous() else self.clone()

    def to(self, *target, dtype=None, device=None, copy=False, non_blocking=False):
        """Return the numbers in another type; the tensor itself if it has that."""
        for wanted in target:
            if isinstance(wanted, Tensor):
                dtype, device = wanted.dtype, wanted.device
            elif isinstance(wanted, (str, Device)):
                device = wanted
            else:
                dtype = wanted
        dtype = self.dtype if dtype is None else _require_known(dtype)
        if self.is_meta or (device is not None and Device(device).type == "meta"):
            return _wrap(None, self.shape, dtype)
        if dtype is self.dtype:
            return self.clone() if copy else self
        return _wrap(_converted(self._flat(), self.dtype, dtype), self.shape, dtype)

    def permute(self, *dims):
        """Return the dimensions in another order."""
        dims = _unpacked(dims)
        if len(dims) != self.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does "
                "not match the length of the desired ordering of dimensions i.e. "
                f"input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
            )
        dims = [_axis(dim, self.ndim) for dim in dims]
        if len({*dims}) < len(dims):
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        strides = [self._strides[dim] for dim in dims]
        return self._view([self.shape[dim] for dim in dims], strides)

    def transpose(self, dim0, dim1):
        """Return two dimensions in each other's place."""
        order = list(range(self.ndim))
        a, b = _axis(dim0, self.ndim), _axis(dim1, self.ndim)
        if order:
            order[a], order[b] = b, a
        return self.permute(order)

    swapaxes = transpose

    def t(self):
        """Return the transpose of a matrix."""
        if self.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D"
            )
        return self.T

    @property
    def T(self):
        """All dimensions in reverse order: of a matrix, the transpose."""
        return self._view(self.shape[::-1], self._strides[::-1])

    @property
    def mT(self):
        """The last two dimensions in each other's place: of matrices, the transpose."""
        if self.ndim == 1:
            raise RuntimeError(
                "tensor.mT is only supported on matrices or batches of matrices. Got "
                "1-D tensor."
            )
        return self.transpose(-2, -1) if self.shape else self

    def expand(self, *sizes):
        """Make dimensions of size 1 longer without copying: their stride becomes 0."""
        sizes, shape = list(_sizes(sizes)), tuple(self.shape)
        new = len(sizes) - len(shape)
        if new < 0:
            raise RuntimeError(
                f"expand({self.type()}{{{list(shape)}}}, size={sizes}): the number of "
                f"sizes provided ({len(sizes)}) must be greater or equal to the number "
                f"of dimensions in the tensor ({len(shape)})"
            )
        strides = [0] * new
        for dim, wanted in enumerate(sizes):
            old = shape[dim - new] if dim >= new else 1
            if wanted == -1 and dim < new:
                raise RuntimeError(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {dim}"
                )
            sizes[dim] = wanted = old if wanted == -1 else wanted
            if old not in (1, wanted):
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) must match the "
                    f"existing size ({old}) at non-singleton dimension {dim}.  Target "
                    f"sizes: {sizes}.  Tensor sizes: {list(shape)}"
                )
            if dim >= new:
                strides.append(self._strides[dim - new] if wanted == old else 0)
        return self._view(sizes, strides)

    def view(self, *sizes):
        """Return the same storage in another shape; refuse what must be copied."""
        sizes = _complete(_sizes(sizes), self.numel())
        strides = _strides_of_view(self, sizes)
        if strides is None:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at "
                "least one dimension spans across two contiguous subspaces). Use "
                ".reshape(...) instead."
            )
        return self._view(sizes, strides)

    def reshape(self, *sizes):
        """Return another shape: a view if that is possible, or else a copy."""
        sizes = _complete(_sizes(sizes), self.numel())
        strides = _strides_of_view(self, sizes)
        if strides is None:
            return _wrap(self._flat(), sizes, self.dtype)
        return self._view(sizes, strides)

    def flatten(self, start_dim=0, end_dim=-1):
        """Join dimensions to one."""
        start, end = _axis(start_dim, self.ndim), _axis(end_dim, self.ndim)
        if start > end:
            raise RuntimeError(
                "flatten() has invalid args: start_dim cannot come after end_dim"
            )
        joined = math.prod(self.shape[start : end + 1])
        return self.reshape(*self.shape[:start], joined, *self.shape[end + 1 :])

    def unflatten(self, dim, sizes):
        """Split a dimension into several."""
        dim, sizes = _axis(dim, self.ndim), list(_sizes([sizes]))
        size, known = self.shape[dim], math.prod(size for size in sizes if size != -1)
        free = sizes.count(-1)
        if free > 1 or (not known or size % known if free else known != size):
            raise RuntimeError(
                f"unflatten: Provided sizes {sizes} don't multiply up to the size of "
                f"dim {dim} ({size}) in the input tensor"
            )
        sizes = [size // known if s == -1 else s for s in sizes]
        return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])

    def unsqueeze(self, dim):
        """Insert a dimension of size 1."""
        return self[_along(dim, self.ndim + 1, None)]

    def squeeze(self, dim=None):
        """Drop dimensions of size 1, all or the named ones."""
        named = _axes(dim, self.ndim)
        kept = [d for d in range(self.ndim) if d not in named or self.shape[d] != 1]
        strides = [self._strides[d] for d in kept]
        return self._view([self.shape[d] for d in kept], strides)

    def unbind(self, dim=0):
        """Return a tuple of all that stands along a dimension."""
        return tuple(self.select(dim, i) for i in range(self.size(dim)))

    def split(self, split_size_or_sections, dim=0):
        """Return views of one size, or of several sizes, along a dimension."""
        sizes, length = split_size_or_sections, self.size(dim)
        if isinstance(sizes, int):
            if sizes <= 0:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got "
                    f"dimension size of {length}"
                )
            starts = range(0, max(length, 1), sizes)
            sizes = [min(sizes, length - start) for start in starts]
        if sum(sizes) != length:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {length} "
                f"(input tensor's size at dimension {_axis(dim, self.ndim)}), but got "
                f"split_sizes={list(sizes)}"
            )
        ends = zip(itertools.accumulate(sizes), sizes, strict=True)
        return tuple(self._part(dim, end - size, size) for end, size in ends)

    def chunk(self, chunks, dim=0):
        """Return at most so many views of one size; the last may be smaller."""
        if chunks < 1:
            raise RuntimeError(
                f"chunk expects `chunks` to be greater than 0, got: {chunks}"
            )
        n = self.size(dim)
        return self.split(-(-n // chunks) if n else [0] * chunks, dim)

    def diagonal(self, offset=0, dim1=0, dim2=1):
        """Return the diagonal of matrices, as a view."""
        a, b = _axis(dim1, self.ndim), _axis(dim2, self.ndim)
        n = min(self.shape[a] + min(offset, 0), self.shape[b] - max(offset, 0))
        steps = self._strides[a], self._strides[b]
        start = self._offset + max(offset, 0) * steps[1] - min(offset, 0) * steps[0]
        kept = [d for d in range(self.ndim) if d not in (a, b)]
        shape = [*(self.shape[d] for d in kept), max(n, 0)]
        return self._view(shape, [*(self._strides[d] for d in kept), sum(steps)], start)


def _complete(sizes, numel):
    """Return sizes whose -1 is computed; refuse those that don't multiply to numel."""
    sizes, written = list(sizes), list(sizes)
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in sizes:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = numel // known if known else 0
    if math.prod(sizes) != numel or min(sizes, default=0) < 0:
        raise RuntimeError(f"shape '{written}' is invalid for input of size {numel}")
    return sizes


def _strides_of_view(x, sizes):
    """Return the strides of a walk through x's storage in another shape, or None.

    Dimensions in one row can be cut anew; others can't be joined.
    """
    if x.is_contiguous():
        return _contiguous_strides(sizes)
    rows, steps = _join_axes(x.shape, x._strides)
    strides, at = [0] * len(sizes), len(sizes) - 1
    for size, step in zip(rows[::-1], steps[::-1], strict=True):
        taken = 1
        while at >= 0 and (taken < size or sizes[at] == 1):
            strides[at] = step * taken
            taken *= sizes[at]
            at -= 1
        if taken != size:
            return None
    return strides if at < 0 else None


# ---- One number at a time


def _ieee(made):
    """Return a function that answers as IEEE 754 does where Python's raises."""

    def answer(*numbers):
        try:
            return made(*numbers)
        except ZeroDivisionError:
            x, y = numbers if len(numbers) == 2 else (1.0, numbers[0])
            if made is operator.mod or x == 0 or x != x:
                return math.nan
            return math.copysign(math.inf, x) * math.copysign(1, y)
        except OverflowError:
            odd = made is math.pow and numbers[0] < 0 and numbers[1] % 2 == 1
            return -math.inf if odd else math.inf
        except ValueError:  # outside of the function's domain
            return _EDGES.get((made, numbers[0]), math.nan)

    return answer


_EDGES = {(math.log, 0.0): -math.inf, (math.log2, 0.0): -math.inf}
_EDGES[math.pow, 0.0] = math.inf


def _apply(made, dtype, *columns):
    """Return an `array` of results: in a fast loop, or with care if that fails."""
    try:
        return array(dtype.code, map(made, *columns))
    except (ArithmeticError, ValueError):
        if dtype.kind < 2:
            raise
        return array(dtype.code, map(_ieee(made), *columns))


def _combine(made, compute, result, *operands):
    """Apply a function to operands, number by number, in the shape that fits all.

    Args:
        made: takes as many numbers as there are operands.
        compute: the type that Python's numbers are rounded to.
        result: the type of the results.
        operands: tensors and numbers.
    """
    tensors = [x for x in operands if isinstance(x, Tensor)]
    shape = tensors[0].shape
    if any(x.shape != shape for x in tensors):
        shape = broadcast_shapes(*(x.shape for x in tensors))
    if any(x.is_meta for x in tensors):
        return _wrap(None, shape, result)
    columns = []
    for x in operands:
        if isinstance(x, Tensor):
            columns.append((x if x.shape == shape else x.expand(shape))._flat())
        else:
            number = _rounded(x, compute)
            columns.append(array(compute.code, [number]) * math.prod(shape))
    return _wrap(_apply(made, result, *columns), shape, result)


def _each(made, x, rule="float"):
    """Apply a function to each number of x.

    The rule says of what type the results are: "same", "bool", or "float", where
    integers become floating-point numbers.
    """
    dtype = bool_ if rule == "bool" else x.dtype
    if rule == "float" and x.dtype.kind < 2:
        dtype = float32
    if x.is_meta:
        return _wrap(None, x.shape, dtype)
    return _wrap(_apply(made, dtype, x._flat()), x.shape, dtype)


# two operands


def _arithmetic(made, truth=None):
    """Return a function of two operands, in the type that holds both.

    `made` is the function of two numbers; `truth` of two truth values, if it differs.
    """

    def compute(a, b):
        dtype = result_type(a, b)
        return _combine(truth if truth and dtype is bool_ else made, dtype, dtype, a, b)

    return compute


def _comparison(made):
    """Return a function of two operands whose results are truth values."""
    return lambda a, b: _combine(made, result_type(a, b), bool_, a, b)


def _bitwise(made):
    """Return a function of the bits of integers, or of truth values."""

    def compute(a, b):
        dtype = result_type(a, b)
        if dtype.kind == 2:
            name = f"bitwise_{made.__name__.strip('_')}_cpu"
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.title}'")
        return _combine(made, dtype, dtype, a, b)

    return compute


_plain_sum = _arithmetic(operator.add, operator.or_)


def _sum_of_two(a, b):
    """a + b: with the kernel where b's numbers repeat along a."""
    if (
        isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and a.dtype is b.dtype is float32
    ):
        more, less = (b, a) if len(a.shape) < len(b.shape) else (a, b)
        n = more.numel()
        repeats = less.shape == more.shape[more.ndim - less.ndim :]
        if n and repeats and not more.is_meta and not less.is_meta:
            out = _zeros(n, float32)
            KERNELS.add(*_row(more), *_row(less), less.numel(), out, n)
            return _wrap(out, more.shape, float32)
    return _plain_sum(a, b)


_plain_difference = _arithmetic(operator.sub)
_NO_MINUS = (
    "{}, the `-` operator, {} a bool tensor is not supported. If you are trying to "
    "invert a mask, use the `~` or `logical_not()` operator instead."
)


def _difference(a, b):
    """a - b, but not of truth values."""
    if any(isinstance(x, bool) or _is_mask(x) for x in (a, b)):
        raise RuntimeError(_NO_MINUS.format("Subtraction", "with"))
    return _plain_difference(a, b)


def _quotient(a, b):
    """a / b, in floating-point numbers."""
    dtype = result_type(a, b)
    dtype = dtype if dtype.kind == 2 else float32
    return _combine(operator.truediv, dtype, dtype, a, b)


def _floor_of_quotient(x, y):
    return x // y if y or isinstance(x, int) else x / y


def _power(a, b):
    """a ** b."""
    dtype = result_type(a, b)
    if dtype.kind == 2:
        return _combine(math.pow, dtype, dtype, a, b)
    if not isinstance(b, Tensor) and b < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return _combine(_integer_power, dtype, dtype, a, b)


def _integer_power(x, y):
    return x**y if y >= 0 else int(x**y) if x else 0


def _higher(x, y):
    return x if x >= y or x != x else y


def _lower(x, y):
    return x if x <= y or x != x else y


_BINARY = {  # name: (of two operands, the name of Python's operator)
    "add": (_sum_of_two, "add"), "sub": (_difference, "sub"),
    "mul": (_arithmetic(operator.mul, operator.and_), "mul"),
    "div": (_quotient, "truediv"), "pow": (_power, "pow"),
    "floor_divide": (_arithmetic(_floor_of_quotient), "floordiv"),
    "remainder": (_arithmetic(operator.mod), "mod"),
    "bitwise_and": (_bitwise(operator.and_), "and"),
    "bitwise_or": (_bitwise(operator.or_), "or"),
    "bitwise_xor": (_bitwise(operator.xor), "xor"),
    "eq": (_comparison(operator.eq), "eq"), "ne": (_comparison(operator.ne), "ne"),
    "lt": (_comparison(operator.lt), "lt"), "le": (_comparison(operator.le), "le"),
    "gt": (_comparison(operator.gt), "gt"), "ge": (_comparison(operator.ge), "ge"),
    "logical_and": (_comparison(lambda x, y: bool(x and y)), None),
    "logical_or": (_comparison(lambda x, y: bool(x or y)), None),
    "maximum": (_arithmetic(_higher), None), "minimum": (_arithmetic(_lower), None),
}  # fmt: skip
_UNARY = {  # name: (of one number, rule of the result's type)
    "exp": (math.exp, "float"), "log": (math.log, "float"),
    "log2": (math.log2, "float"),
    "sqrt": (math.sqrt, "float"), "rsqrt": (lambda x: 1 / math.sqrt(x), "float"),
    "reciprocal": (lambda x: 1 / x, "float"), "tanh": (math.tanh, "float"),
    "sin": (math.sin, "float"), "cos": (math.cos, "float"),
    "erf": (math.erf, "float"), "sigmoid": (lambda x: _sigmoid(x), "float"),
    "abs": (abs, "same"),
    "sign": (lambda x: (x > 0) - (x < 0), "same"),
    "floor": (lambda x: _whole(math.floor, x), "same"),
    "ceil": (lambda x: _whole(math.ceil, x), "same"),
    "isnan": (math.isnan, "bool"), "isinf": (math.isinf, "bool"),
    "isfinite": (math.isfinite, "bool"), "logical_not": (operator.not_, "bool"),
}  # fmt: skip


def _sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))


def _whole(made, x):
    """Round with this function; infinity and NaN pass."""
    if isinstance(x, int) or not math.isfinite(x):
        return x
    return math.copysign(made(x), x)


class _Numbers:
    """What is done with each number by itself."""

    def __neg__(self):
        if self.dtype is bool_:
            raise RuntimeError(_NO_MINUS.format("Negation", "on"))
        return _each(operator.neg, self, "same")

    def __invert__(self):
        if self.dtype.kind == 2:
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type "
                "tensors"
            )
        made = operator.not_ if self.dtype is bool_ else operator.inv
        return _each(made, self, "same")

    neg, bitwise_not = __neg__, __invert__

    def round(self, *, decimals=0):
        """Round to the nearest whole number, of two to the even one."""
        scale = 10.0**decimals
        if self.dtype.kind < 2:
            return self.clone()
        return _each(lambda x: _whole(round, x * scale) / scale, self)

    def relu(self):
        """Replace negative numbers by 0."""
        if self.dtype is not float32 or self.is_meta or not self.numel():
            return _each(lambda x: x if x >= 0 or x != x else 0, self, "same")
        out = _zeros(self.numel(), float32)
        KERNELS.relu(*_row(self), out, len(out))
        return _wrap(out, self.shape, float32)

    def clamp(self, min=None, max=None):
        """Replace numbers below min by min, and those above max by max."""
        low = self if min is None else _arithmetic(_higher)(self, min)
        return low if max is None else _arithmetic(_lower)(low, max)

    def masked_fill(self, mask, value):
        """Write one number where the mask is True."""
        _require_tensor(mask, "masked_fill", "mask")
        if mask.dtype is not bool_:
            raise RuntimeError(
                "masked_fill_ only supports boolean masks, but got mask with dtype "
                f"{mask.dtype.c_name}"
            )
        value = value.item() if isinstance(value, Tensor) else value
        if self.dtype.kind == 1 and not math.isfinite(value):
            raise RuntimeError(
                "value cannot be converted to type int64_t without overflow"
            )
        value, shape = (
            _rounded(value, self.dtype),
            broadcast_shapes(mask.shape, self.shape),
        )
        numbers, marks = self.expand(shape)._flat(), mask.expand(shape)._flat()
        filled = [value if m else x for x, m in zip(numbers, marks, strict=True)]
        return _wrap(array(self.dtype.code, filled), shape, self.dtype)

    def tril(self, diagonal=0):
        """Write 0 above the diagonal of each matrix."""
        return _triangle("tril", self, lambda i, j: j <= i + diagonal)

    def triu(self, diagonal=0):
        """Write 0 below the diagonal of each matrix."""
        return _triangle("triu", self, lambda i, j: j >= i + diagonal)

    def isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        """Return where numbers differ by at most atol + rtol * |other|."""
        if self.dtype is not other.dtype:
            raise RuntimeError(f"{self.dtype.title} did not match {other.dtype.title}")

        def near(x, y):
            if x == y or (equal_nan and x != x and y != y):
                return True
            return not math.isinf(y) and abs(x - y) <= atol + rtol * abs(y)

        return _combine(near, self.dtype, bool_, self, other)

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        """Return whether all numbers differ by at most atol + rtol * |other|."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def equal(self, other):
        """Return whether two tensors have the same shape and numbers."""
        same = self.shape == other.shape
        return same and all(map(operator.eq, self._flat(), other._flat()))


def _triangle(name, x, kept):
    """Write 0 where kept(row, column) is false, in each matrix."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    rows, columns = x.shape[-2:]
    marks = [kept(i, j) for i in range(rows) for j in range(columns)]
    mask = _wrap(array("b", marks), (rows, columns), bool_)
    return x.masked_fill(~mask.expand(x.shape), 0)


def where(condition, input=None, other=None):
    """Take numbers of input where the condition is true, of other elsewhere."""
    if input is None:
        return condition.nonzero(as_tuple=True)
    if condition.dtype is not bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {condition.dtype.title}"
        )
    dtype = result_type(input, other)
    return _combine(
        lambda m, x, y: x if m else y, dtype, dtype, condition, input, other
    )


def _require_tensor(x, name, argument="input", place=1):
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {place}) must be Tensor, not "
            f"{type(x).__name__}"
        )


def _define_unary(name, made, rule):
    def operation(self):
        return _each(made, self, rule)

    operation.__name__, operation.__doc__ = name, f"The {name} of each number."
    setattr(_Numbers, name, operation)


def _define_binary(name, compute, special):
    """Define x.add(y), x + y and y + x; x.add_(y) and x += y come with the class."""
    operands = (Tensor,) if name in ("maximum", "minimum") else (Tensor, *_NUMBERS)

    def operation(self, other, *, alpha=1, place=1):
        if not isinstance(other, operands):
            _require_tensor(other, name, "other", place)
        return compute(self, other if alpha == 1 else other * alpha)

    def forward(self, other):
        return compute(self, other) if isinstance(other, operands) else NotImplemented

    def backward(self, other):
        return compute(other, self) if isinstance(other, operands) else NotImplemented

    operation.__name__, operation.__doc__ = name, f"The {name} of two numbers each."
    setattr(_Numbers, name, operation)
    if special:
        setattr(_Numbers, f"__{special}__", forward)
        setattr(_Numbers, f"__r{special}__", backward)


# ---- Many numbers to one


def _reduce(x, made, dim, keepdim, dtype):
    """Apply a function of rows (`array`) to the numbers along some dimensions."""
    dims = _axes(dim, x.ndim)
    kept = [d for d in range(x.ndim) if d not in dims]
    n = math.prod(x.shape[d] for d in dims)
    shape = [size for d, size in enumerate(x.shape) if d not in dims]
    count = math.prod(shape)
    if keepdim:
        shape = [1 if d in dims else size for d, size in enumerate(x.shape)]
    if x.is_meta:
        return _wrap(None, shape, dtype)
    in_order = kept + dims == list(range(x.ndim))
    flat = (x if in_order else x.permute(kept + dims))._flat()
    rows = (flat[i * n : i * n + n] for i in range(count))
    return _wrap(array(dtype.code, map(made, rows)), shape, dtype)


def _place_of(best):
    """Return a function for the place of the largest or smallest number, or of NaN."""

    def place(row):
        found = best(row)
        # Python's max and min overlook NaN. A sum doesn't.
        if row.typecode in "fd" and sum(row) != sum(row):
            nan = next((i for i, x in enumerate(row) if x != x), None)
            return row.index(found) if nan is None else nan
        return row.index(found)

    return place


_place_of_highest, _place_of_lowest = _place_of(max), _place_of(min)


def _highest(row):
    return row[_place_of_highest(row)]


def _lowest(row):
    return row[_place_of_lowest(row)]


def _mean(row):
    return sum(row) / len(row) if row else math.nan


def _log_of_sum(row):
    """The log of the sum of the exponentials."""
    top = _highest(row) if row else -math.inf
    if not math.isfinite(top):
        return top
    return top + math.log(sum([math.exp(x - top) for x in row]))


_REDUCTIONS = {  # name: (of a row, rule of the result's type)
    "sum": (sum, "sum"), "prod": (math.prod, "sum"), "mean": (_mean, "mean"),
    "all": (all, "bool"), "any": (any, "bool"), "logsumexp": (_log_of_sum, "same"),
    "amax": (_highest, "same"), "amin": (_lowest, "same"),
    "argmax": (_place_of_highest, "place"), "argmin": (_place_of_lowest, "place"),
}  # fmt: skip


def _define_reduction(name, made, rule):
    """Define x.sum(dim, keepdim), which knows NumPy's axis and keepdims, too."""

    def operation(
        self, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=False
    ):
        x = self if dtype is None else self.to(dtype)
        dim = axis if dim is None else dim
        kind = {"bool": bool_, "place": int64}.get(rule, x.dtype)
        if name == "logsumexp" and x.dtype.kind < 2:
            x, kind = x.float(), float32
        if rule == "sum" and x.dtype.kind < 2:
            kind = int64
        if rule == "mean":
            _require_floating(x, name)
        if rule == "place" and x.dtype is bool_:
            raise RuntimeError(f"{name}(): does not support bool input")
        if name[:2] in ("am", "ar"):
            _require_some(x, dim, name)
        return _reduce(x, made, dim, keepdim or keepdims, kind)

    operation.__name__ = name
    operation.__doc__ = f"The {name} of all numbers, or of those along dimensions."
    setattr(_Reduced, name, operation)


def _require_floating(x, name):
    """Refuse integers and truth values."""
    if x.dtype.kind < 2:
        raise RuntimeError(
            f"{name}() needs floating-point numbers, but got {x.dtype}: write x.float()"
        )


def _require_some(x, dim, name):
    """Refuse to look for the largest of no numbers."""
    if not all(x.shape[d] for d in _axes(dim, x.ndim)):
        raise IndexError(f"{name}(): there are no numbers to choose from")


def _results(name, **fields):
    """Return several results with names, which PyTorch writes below each other."""

    def write(self):
        lines = [f"{field}={x!r}" for field, x in zip(fields, self, strict=True)]
        return f"torch.return_types.{name}(\n" + ",\n".join(lines) + ")"

    kind = namedtuple(name, fields)
    kind.__repr__ = write
    return kind(**fields)


def _order(row, descending=False):
    """Return the places of a row's numbers in order; NaN is largest."""
    key = row.__getitem__
    if row.typecode in "fd" and any(map(math.isnan, row)):
        return sorted(
            range(len(row)),
            key=lambda i: (row[i] != row[i], row[i]),
            reverse=descending,
        )
    return sorted(range(len(row)), key=key, reverse=descending)


class _Reduced:
    """What many numbers come to, and in which order they stand."""

    def max(self, dim=None, keepdim=False, *, other=None, axis=None):
        """Return the largest number; along a dimension; or the larger of two."""
        return self._extreme("max", dim if axis is None else axis, keepdim, other)

    def min(self, dim=None, keepdim=False, *, other=None, axis=None):
        """Return the smallest number; along a dimension; or the smaller of two."""
        return self._extreme("min", dim if axis is None else axis, keepdim, other)

    def _extreme(self, name, dim, keepdim, other):
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return self.maximum(other) if name == "max" else self.minimum(other)
        _require_some(self, dim, name)
        values = self.amax if name == "max" else self.amin
        if dim is None:
            return values()
        place = _place_of_highest if name == "max" else _place_of_lowest
        indices = _reduce(self, place, dim, keepdim, int64)
        return _results(name, values=values(dim, keepdim), indices=indices)

    def var(
        self, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None,
        keepdims=False,
    ):  # fmt: skip
        """Return the mean square of the distances from the mean."""
        dim = axis if dim is None else dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        _require_floating(self, "var")

        def variance(row):
            center = _mean(row)
            squares, n = sum((x - center) ** 2 for x in row), len(row) - correction
            return squares / n if n > 0 else math.inf if squares else math.nan

        return _reduce(self, variance, dim, keepdim or keepdims, self.dtype)

    def norm(self, p=2, dim=None, keepdim=False, dtype=None):
        """Return the length of vectors: the root of the sum of squares or powers."""
        _require_floating(self, "norm")
        p = 2 if p in (None, "fro") else p

        def length(row):
            sizes = list(map(abs, row))
            if p == 2:
                return math.sqrt(_dot(sizes, sizes))
            return max(sizes) if p == math.inf else sum(x**p for x in sizes) ** (1 / p)

        return _reduce(self, length, dim, keepdim, self.dtype)

    def _along(self, dim, made, dtype):
        """Apply a function from rows to rows along one dimension."""
        dim = _axis(dim, self.ndim)
        if not self.numel():
            return _wrap(array(dtype.code), self.shape, dtype)
        turned = (self if self.shape else self[None]).transpose(dim, -1)
        result, n, flat = array(dtype.code), turned.shape[-1], turned._flat()
        for start in range(0, len(flat), n):
            result.extend(array(dtype.code, made(flat[start : start + n])))
        result = _wrap(result, turned.shape, dtype).transpose(dim, -1).contiguous()
        return result if self.shape else result[0]

    def softmax(self, dim, dtype=None):
        """Return exp(x), divided by its sum along a dimension."""
        x = self if dtype is None else self.to(dtype)
        _require_floating(x, "softmax")
        if x.is_meta or not x.numel():
            return x.clone()
        dim = _axis(dim, x.ndim)
        turned = x if dim >= x.ndim - 1 else x.transpose(dim, -1)
        n = turned.shape[-1] if turned.shape else 1
        out = _zeros(x.numel(), x.dtype)
        _kernel("softmax", x.dtype)(*_row(turned), out, len(out) // n, n)
        result = _wrap(out, turned.shape, x.dtype)
        return result if turned is x else result.transpose(dim, -1).contiguous()

    def log_softmax(self, dim, dtype=None):
        """Return the log of the softmax, computed without it."""

        def logs(row):
            top = _highest(row)
            moved = [x - top for x in row]
            total = sum(map(math.exp, moved)) if top == top else math.nan
            return [x - math.log(total) for x in moved]

        x = self if dtype is None else self.to(dtype)
        _require_floating(x, "log_softmax")
        return x._along(dim, logs, x.dtype)

    def cumsum(self, dim, *, dtype=None):
        """Return the sums of the numbers so far, along a dimension."""
        dtype = dtype or (int64 if self.dtype.kind < 2 else self.dtype)
        return self.to(dtype)._along(dim, itertools.accumulate, dtype)

    def argsort(self, dim=-1, descending=False, stable=False):
        """Return the places of the numbers in order, along a dimension."""
        return self._along(dim, lambda row: _order(row, descending), int64)

    def sort(self, dim=-1, descending=False, stable=False):
        """Return the numbers in order along a dimension, and where they stood."""
        indices = self.argsort(dim, descending)
        return _results("sort", values=self.gather(dim, indices), indices=indices)

    def topk(self, k, dim=-1, largest=True, sorted=True):
        """Return the k largest numbers along a dimension, and where they stood."""
        if not 0 <= k <= (self.size(dim) if self.shape else 1):
            raise RuntimeError("selected index k out of range")

        indices = self.argsort(dim, largest)
        if self.shape:
            indices = indices._part(dim, 0, k)
        return _results("topk", values=self.gather(dim, indices), indices=indices)

    def nonzero(self, *, as_tuple=False):
        """Return the indices of the numbers that aren't 0: (n, dimensions)."""
        x = self[None] if as_tuple and not self.shape else self
        places = itertools.product(*map(range, x.shape))
        found = list(itertools.compress(places, x._flat()))
        flat = array("q", itertools.chain.from_iterable(found))
        rows = _wrap(flat, (len(found), x.ndim), int64)
        return rows.unbind(1) if as_tuple else rows


# ---- Products


def _times(a, b):
    """Return the products of pairs of matrices: (..., m, k) and (..., k, n)."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.is_meta or b.is_meta:
        return _wrap(None, (*batch, m, n), a.dtype)
    if a.dtype is bool_:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    a, b = a.expand(*batch, m, k), b.expand(*batch, k, n)
    starts_a = array("i", _places(batch, a._strides[:-2], a._offset))
    starts_b = array("i", _places(batch, b._strides[:-2], b._offset))
    out = _zeros(len(starts_a) * m * n, a.dtype)
    if len(out) and k:
        _kernel("multiply", a.dtype)(
            a._storage, starts_a, *a._strides[-2:],
            b._storage, starts_b, *b._strides[-2:], out, m, k, n,
        )  # fmt: skip
    return _wrap(out, (*batch, m, n), a.dtype)


def _require_product(a, b):
    """Refuse matrices that can't be multiplied, as PyTorch words it."""
    (m, k), (rows, n) = a.shape[-2:], b.shape[-2:]
    many = a.ndim > 2 or b.ndim > 2
    count = math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    if k != rows and many:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {k}] but got: [{count}, {rows}]."
        )
    if k != rows:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{a.dtype.c_name} != {b.dtype.c_name}"
        )


class _Products:
    """Products of matrices and vectors."""

    def matmul(self, other, *, place=1):
        """Return the products of matrices, the last two dimensions; or of vectors.

        Dimensions before the last two count pairs of matrices, and are broadcast.
        """
        a, b = self, other
        _require_tensor(b, "matmul", "other", place)
        if not a.shape or not b.shape:
            raise RuntimeError(
                "both arguments to matmul need to be at least 1D, but they are "
                f"{a.ndim}D and {b.ndim}D"
            )
        if b.ndim == 1:
            return a.dot(b) if a.ndim == 1 else a._times_vector(b)
        if a.ndim == 1:
            return a[None].matmul(b).squeeze(-2)
        if b.ndim == 2 and a.ndim > 2:  # one product of many rows
            rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
            return rows.matmul(b).view(*a.shape[:-1], b.shape[-1])
        _require_product(a, b)
        return _times(a, b)

    def __matmul__(self, other):
        return self.matmul(other) if isinstance(other, Tensor) else NotImplemented

    def _times_vector(self, vector):
        m, k = math.prod(self.shape[:-1]), self.shape[-1]
        if k != len(vector):
            raise RuntimeError(
                f"size mismatch, got input ({m}), mat ({m}x{k}), vec ({len(vector)})"
            )
        return self.matmul(vector[:, None]).squeeze(-1)

    def bmm(self, mat2):
        """Return the products of pairs of matrices."""
        for x, name in ((self, "batch1"), (mat2, "batch2")):
            if x.ndim != 3:
                raise RuntimeError(f"{name} must be a 3D tensor")
        return self.matmul(mat2)

    def dot(self, tensor):
        """Return the sum of the products of two vectors' numbers."""
        a, b = _of_dims(self, 1), _of_dims(tensor, 1)
        if a.dtype is not b.dtype:
            raise RuntimeError(
                "dot : expected both vectors to have same dtype, but found "
                f"{a.dtype.title} and {b.dtype.title}"
            )
        if len(a) != len(b):
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{len(a)}] and src "
                f"[{len(b)}] to have the same number of elements, but got {len(a)} and "
                f"{len(b)} elements respectively"
            )
        return _wrap(array(a.dtype.code, [_dot(a._flat(), b._flat())]), (), a.dtype)


def einsum(equation, *operands):
    """Return sums of products, as letters for the dimensions say: "ij,jk->ik".

    A letter that the result doesn't have is summed over. `...` stands for any
    dimensions, which are broadcast.
    """
    inputs, output = _read_equation(equation, operands)
    sizes = _sizes_of_letters(inputs, output, operands)
    letters, result = "", tensor(1, operands[0].dtype)
    for n, x in enumerate(operands):
        term, wanted = inputs[n], {*output}.union(*inputs[n + 1 :])
        x = x.expand([sizes[letter] for letter in term])
        letters, result = _contract(letters, result, term, x, wanted, sizes)
    return result.permute([letters.index(letter) for letter in output])


def _read_equation(equation, operands):
    """Return the letters of each operand and of the result; `...` becomes capitals."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs, dots = left.split(","), ""
    if len(inputs) != len(operands):
        what = "fewer" if len(inputs) > len(operands) else "more"
        raise RuntimeError(
            f"einsum(): {what} operands were provided than specified in the equation"
        )
    for n, (term, x) in enumerate(zip(inputs, operands, strict=True)):
        if "..." in term:
            found = "ZYXWVUTS"[: x.ndim - len(term) + 3][::-1]
            inputs[n], dots = term.replace("...", found), max(found, dots, key=len)
    if not arrow:
        letters = sorted("".join(inputs))
        once = [c for c in letters if letters.count(c) == 1 and c not in dots]
        output = "..." + "".join(once)
    return inputs, output.replace("...", dots)


def _sizes_of_letters(inputs, output, operands):
    """Return the size of each letter; 1 fits any other size."""
    sizes = {}
    for n, (term, x) in enumerate(zip(inputs, operands, strict=True)):
        if len(term) != x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) "
                f"does not match the number of dimensions ({x.ndim}) for operand {n} "
                "and no ellipsis was given"
            )
        if len({*term}) < len(term):
            raise NotImplementedError(
                "this page's torch has no einsum with a letter twice in one term; the "
                "notebook in Colab has"
            )
        for letter, size in zip(term, x.shape, strict=True):
            seen = sizes.setdefault(letter, size)
            if size != seen and 1 not in (size, seen):
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {size} for operand {n} "
                    f"which does not broadcast with previously seen size {seen}"
                )
            sizes[letter] = max(size, seen)
    for letter in output:
        if letter not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation "
                "for any input operand"
            )
    return sizes


def _contract(left, a, right, b, wanted, sizes):
    """Return the product of two operands, summed over letters that nobody wants now."""
    batch = [c for c in left if c in right and c in wanted]
    summed = [c for c in left if c in right and c not in wanted]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    a = a.permute([left.index(c) for c in batch + rows + summed])
    b = b.permute([right.index(c) for c in batch + summed + columns])
    batch_sizes, row_sizes, summed_sizes, column_sizes = (
        [sizes[letter] for letter in letters]
        for letters in (batch, rows, summed, columns)
    )
    m, k, n = map(math.prod, (row_sizes, summed_sizes, column_sizes))
    product = a.reshape(*batch_sizes, m, k) @ b.reshape(*batch_sizes, k, n)
    product = product.reshape(batch_sizes + row_sizes + column_sizes)
    letters = batch + rows + columns
    gone = [n for n, c in enumerate(letters) if c not in wanted]
    product = product.sum(gone) if gone else product
    return [c for c in letters if c in wanted], product


# ---- Joining and picking


def _require_tensors(tensors, name):
    """Return the tensors of a list or tuple."""
    if isinstance(tensors, Tensor):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            "Tensor"
        )
    tensors = list(tensors)
    for n, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {n} in argument 0, but got "
                f"{type(x).__name__}"
            )
    return tensors


def cat(tensors, dim=0):
    """Join tensors along a dimension."""
    tensors = _require_tensors(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    parts = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    first, dtype = parts[0], result_type(*tensors)
    if not first.shape:
        raise RuntimeError(
            "zero-dimensional tensor (at position 0) cannot be concatenated"
        )
    dim = _axis(dim, first.ndim)
    for n, x in enumerate(tensors):
        if x.shape != (0,):
            _require_joinable(first, x, dim, n)
    shape = list(first.shape)
    shape[dim] = sum(x.shape[dim] for x in parts)
    if any(x.is_meta for x in parts):
        return _wrap(None, shape, dtype)
    out, at = _zeros(math.prod(shape), dtype), 0
    width = math.prod(shape[dim:])
    for x in parts:
        own = math.prod(x.shape[dim:])
        _put_beside(out, x.to(dtype)._flat(), at, own, width)
        at += own
    return _wrap(out, shape, dtype)


def _put_beside(out, flat, at, own, width):
    """Write runs of length own to at, at + width, ...: as few slices as can be."""
    if own * own < len(flat):
        for place in range(own):
            out[at + place :: width] = flat[place::own]
    else:
        for n in range(len(flat) // own if own else 0):
            place = at + n * width
            out[place : place + own] = flat[n * own : n * own + own]


def _require_joinable(first, x, dim, n):
    if x.ndim != first.ndim:
        raise RuntimeError(
            f"Tensors must have same number of dimensions: got {first.ndim} and "
            f"{x.ndim}"
        )
    for d, (size, wanted) in enumerate(zip(x.shape, first.shape, strict=True)):
        if d != dim and size != wanted:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size "
                f"{wanted} but got size {size} for tensor number {n} in the list."
            )


def stack(tensors, dim=0):
    """Put tensors of one shape side by side along a new dimension."""
    tensors = _require_tensors(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for n, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                "stack expects each tensor to be equal size, but got "
                f"{list(tensors[0].shape)} at entry 0 and {list(x.shape)} at entry {n}"
            )
    dim = _axis(dim, tensors[0].ndim + 1)
    return cat([x.unsqueeze(dim) for x in tensors], dim)


def block_diag(*tensors):
    """Put matrices along the diagonal of a matrix of zeros."""
    parts = [x if x.ndim == 2 else x.reshape(1, -1) for x in tensors]
    sizes = [sum(x.shape[d] for x in parts) for d in (0, 1)]
    made, row, column = zeros(sizes, dtype=result_type(*parts)), 0, 0
    for x in parts:
        made[row : row + x.shape[0], column : column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return made


def pdist(input, p=2.0):
    """Return the distances of all pairs of rows."""
    pairs = itertools.combinations(input.tolist(), 2)
    found = array(input.dtype.code, [math.dist(*pair) for pair in pairs])
    return _wrap(found, (len(found),), input.dtype)


class _Picked:
    """Parts picked, repeated, moved and put in other orders."""

    def gather(self, dim, index):
        """Pick a number for each index, along a dimension."""
        places = _places_along(self, dim, index)
        numbers = array(self.dtype.code, map(self._storage.__getitem__, places))
        return _wrap(numbers, index.shape, self.dtype)

    def index_select(self, dim, index):
        """Pick what stands at these indices of a dimension."""
        return self[_along(dim, self.ndim, index.reshape(-1))]

    def roll(self, shifts, dims=None):
        """Move along dimensions; what leaves at the end comes in at the beginning."""
        if dims is None or dims == ():
            return self.flatten().roll(shifts, 0).view(self.shape)
        pairs = zip(
            *(x if isinstance(x, (tuple, list)) else [x] for x in (shifts, dims)),
            strict=True,
        )
        result = self.clone()
        for shift, dim in pairs:
            if size := self.size(dim):
                cut = -shift % size
                parts = result._part(dim, cut, size - cut), result._part(dim, 0, cut)
                result = cat(parts, dim)
        return result

    def flip(self, *dims):
        """Turn the order along dimensions round."""
        result = self.clone()
        for dim in _axes(_unpacked(dims) or None, self.ndim):
            result = result.index_select(dim, arange(self.size(dim) - 1, -1, -1))
        return result

    def repeat(self, *sizes):
        """Repeat the whole tensor so many times along each dimension."""
        sizes = _sizes(sizes)
        if len(sizes) < self.ndim or min(sizes, default=0) < 0:
            raise RuntimeError(
                "Number of dimensions of repeat dims can not be smaller than number of "
                "dimensions of tensor"
            )
        result = self.reshape((1,) * (len(sizes) - self.ndim) + self.shape)
        for dim, n in enumerate(sizes):
            result = cat([result] * n, dim) if n else result._part(dim, 0, 0)
        return result.clone()

    def repeat_interleave(self, repeats, dim=None):
        """Repeat each number, or each part along a dimension, in a row."""
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        rows = [i for i in range(self.size(dim)) for _ in range(repeats)]
        return self.index_select(dim, tensor(rows, int64))


def _places_along(x, dim, index):
    """Return the places in the storage that indices along a dimension mean."""
    dim = _axis(dim, x.ndim)
    if index.ndim != x.ndim:
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as input tensor"
        )
    step, size = (x._strides[dim], x.shape[dim]) if x.shape else (0, 1)
    others = [0 if d == dim else stride for d, stride in enumerate(x._strides)]
    bases, flat = _places(index.shape, others, x._offset), index._flat()
    for number in flat:
        if not 0 <= number < size:
            raise RuntimeError(
                f"index {number} is out of bounds for dimension {dim} with size {size}"
            )
    return [base + number * step for base, number in zip(bases, flat, strict=True)]


# ---- Random numbers


class Generator:
    """PyTorch's random numbers on the CPU: the Mersenne Twister mt19937.

    Python's own generator is the same one, and gives the same words of 32 bits once its
    624 words of state are set as PyTorch sets them.
    """

    def __init__(self, device="cpu"):
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        """Begin anew, as the seed says."""
        words = [int(seed) % 2**32]
        for place in range(1, 624):
            last = words[-1]
            words.append((1812433253 * (last ^ (last >> 30)) + place) % 2**32)
        self.engine = random.Random()
        self.engine.setstate((3, (*words, 624), None))
        self.second = None  # normal numbers come in pairs
        return self

    def get_state(self):
        """Return what `set_state` needs to go on from here."""
        return self.engine.getstate(), self.second

    def set_state(self, new_state):
        """Go on from a state."""
        engine, self.second = new_state
        self.engine.setstate(engine)

    def words(self, n):
        """Return so many integers of 32 bits."""
        if not n:
            return []
        words = self.engine.getrandbits(32 * n).to_bytes(4 * n, "little")
        return memoryview(words).cast("I").tolist()

    def double_words(self, n):
        """Return so many integers of 64 bits: two words each, the high one first."""
        words = self.words(2 * n)
        pairs = zip(words[::2], words[1::2], strict=True)
        return [high << 32 | low for high, low in pairs]

    def uniform(self, n, dtype):
        """Return so many numbers from 0 to before 1: of 24 bits, or 53 in float64."""
        if dtype is float64:
            return [(w & (2**53 - 1)) * 2.0**-53 for w in self.double_words(n)]
        return [(word & (2**24 - 1)) * 2.0**-24 for word in self.words(n)]

    def normal(self, n, dtype, whole=True):
        """Return so many normal numbers, of mean 0 and variance 1.

        Few of them, and those for a storage with gaps, are drawn one by one.
        """
        if n < 16 or not whole:
            return [self.one_normal() for _ in range(n)]
        numbers = self.uniform(n, dtype)
        for start in range(0, n - 15, 16):
            _box_muller(numbers, start)
        if n % 16:  # the last 16 are drawn anew
            numbers[-16:] = self.uniform(16, dtype)
            _box_muller(numbers, n - 16)
        return numbers

    def one_normal(self):
        """Return a normal number of a pair, whose other one is kept for later."""
        if self.second is not None:
            number, self.second = self.second, None
            return number
        angle, size = self.uniform(2, float64)
        radius, angle = math.sqrt(-2 * math.log1p(-size)), 2 * math.pi * angle
        self.second = radius * math.sin(angle)
        return radius * math.cos(angle)

    def integers(self, n, low, high):
        """Return so many integers from low to before high."""
        span = high - low
        words = self.words(n) if span < 2**28 else self.double_words(n)
        return [word % span + low for word in words]


def _box_muller(numbers, start):
    """Make 16 uniform numbers normal, in place: 8 become lengths, 8 become angles."""
    for i in range(start, start + 8):
        radius = math.sqrt(-2 * math.log(1 - numbers[i]))
        angle = 2 * math.pi * numbers[i + 8]
        numbers[i] = radius * math.cos(angle)
        numbers[i + 8] = radius * math.sin(angle)


default_generator = Generator()
default_generator.manual_seed(int.from_bytes(os.urandom(4), "little"))


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Let random numbers go on afterwards as if none had been drawn inside."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)


class _Random:
    """Tensors filled with random numbers."""

    def uniform_(self, from_=0.0, to=1.0, *, generator=None):
        """Fill with numbers that are as likely everywhere between two."""
        numbers = (generator or default_generator).uniform

        def make(n):
            return [x * (to - from_) + from_ for x in numbers(n, self.dtype)]

        return self._draw(make)

    def normal_(self, mean=0.0, std=1.0, *, generator=None):
        """Fill with normal numbers."""
        numbers, whole = (generator or default_generator).normal, self.is_contiguous()

        def make(n):
            return [x * std + mean for x in numbers(n, self.dtype, whole)]

        return self._draw(make)

    def _draw(self, make):
        """Fill with the numbers that make(how many) returns, in the storage's order."""
        if self.is_meta:
            return self
        _require_floating(self, "normal")
        order = sorted(range(self.ndim), key=lambda d: -self._strides[d])
        self.permute(order)._put(array(self.dtype.code, make(self.numel())))
        return self


def rand(*size, generator=None, dtype=None, device=None, requires_grad=False):
    """Return numbers from 0 to before 1."""
    return empty(*size, dtype=dtype, device=device).uniform_(generator=generator)


def randn(*size, generator=None, dtype=None, device=None, requires_grad=False):
    """Return normal numbers, of mean 0 and variance 1."""
    return empty(*size, dtype=dtype, device=device).normal_(generator=generator)


def randn_like(input, *, dtype=None, **_):
    """Return normal numbers, in a tensor's shape."""
    return randn(input.shape, dtype=dtype or input.dtype, device=input.device)


def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None):
    """Return integers from low to before high; from 0 if there is no low."""
    if size is None:
        low, high, size = 0, low, high
    if high <= low:
        raise RuntimeError(f"randint: low must be below high, but got {low}, {high}")
    made = empty(size, dtype=dtype or int64, device=device)
    if not made.is_meta:
        source = generator or default_generator
        made._put(array(made.dtype.code, source.integers(made.numel(), low, high)))
    return made


def randperm(n, *, generator=None, dtype=None, device=None):
    """Return the integers from 0 to before n, in random order."""
    numbers = list(range(n))
    words = (generator or default_generator).words(max(n - 1, 0))
    for i, word in enumerate(words):
        j = i + word % (n - i)
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return tensor(numbers, dtype=dtype or int64)


# ---- The tensor


class Tensor(
    _Known, _Readable, _Shaped, _Numbers, _Reduced, _Products, _Picked, _Random
):  # fmt: skip
    """Numbers of one type: a storage, and a walk through it.

    Attributes:
        shape: the sizes of the dimensions.
        dtype: the type of the numbers.
        requires_grad: only remembered; there are no gradients here.
        _storage: an `array` of numbers, shared by all views; None on "meta".
        _strides: for each dimension, by how many places of the storage a step moves on.
        _offset: the place of the first element.
        _in_order: whether the elements stand in their order, without gaps; None if
            nobody has asked yet.
    """

    def __init__(self, *data, device=None):
        """`torch.Tensor(2, 3)` has that shape; `torch.Tensor([2, 3])` these numbers."""
        if len(data) == 1 and isinstance(data[0], (list, tuple, Tensor)):
            self.data = tensor(data[0], float32, device)
        else:
            self.data = empty(*data or (0,), device=device)

    __hash__ = object.__hash__


def _wrap(storage, shape, dtype, strides=None, offset=0):
    """Return a tensor of numbers that are there: all tensors are made here."""
    x = object.__new__(Tensor)
    x._storage, x.dtype, x._offset = storage, dtype, offset
    x.shape = shape if type(shape) is Size else Size(shape)
    if strides is None:
        x._strides, x._in_order = _contiguous_strides(shape), True
    else:
        x._strides, x._in_order = tuple(strides), None
    return x


for _name, _entry in _UNARY.items():
    _define_unary(_name, *_entry)
for _name, _entry in _BINARY.items():
    _define_binary(_name, *_entry)
for _name, _entry in _REDUCTIONS.items():
    _define_reduction(_name, *_entry)

# Methods that are short, written with the others.
_SHORT = {
    "float": lambda x: x.to(float32), "double": lambda x: x.to(float64),
    "long": lambda x: x.to(int64), "int": lambda x: x.to(int32),
    "bool": lambda x: x.to(bool_), "half": lambda x: x.to(_OTHER_TYPES["float16"]),
    "cpu": lambda x: x, "cuda": lambda x: x.to("cuda"),
    "type_as": lambda x, other: x.to(other.dtype),
    "view_as": lambda x, other: x.view(other.shape),
    "expand_as": lambda x, other: x.expand(other.shape),
    "zero_": lambda x: x.copy_(0), "fill_": lambda x, value: x.copy_(value),
    "fill_diagonal_": lambda x, value: (x.diagonal().copy_(value), x)[1],
    "select": lambda x, dim, index: x[_along(dim, x.ndim, operator.index(index))],
    "_part": lambda x, dim, start, length: (
        x[_along(dim, x.ndim, slice(start, start + length))]
    ),
    "diff": lambda x, dim=-1: (
        x._part(dim, 1, x.size(dim) - 1) - x._part(dim, 0, x.size(dim) - 1)
    ),
    "where": lambda x, condition, other: where(condition, x, other),
    "std": lambda x, *dims, **options: x.var(*dims, **options).sqrt(),
    "square": lambda x: x**2,
    "mm": lambda x, mat2: _of_dims(x, 2).matmul(_of_dims(mat2, 2)),
    "mv": lambda x, vec: _of_dims(x, 2).matmul(_of_dims(vec, 1)),
    "outer": lambda x, vec2: _of_dims(x, 1)[:, None] * _of_dims(vec2, 1),
    "new_full": lambda x, size, value, **options: (
        full_like(x, value, size=size, **options)
    ),
    "new_zeros": lambda x, *size, **options: x.new_full(_unpacked(size), 0, **options),
    "new_ones": lambda x, *size, **options: x.new_full(_unpacked(size), 1, **options),
    "new_empty": lambda x, *size, **options: x.new_full(_unpacked(size), 0, **options),
    "new_tensor": lambda x, data, dtype=None, **options: (
        tensor(data, dtype or x.dtype, **options)
    ),
}  # fmt: skip
_ALIASES = {
    "multiply": "mul", "divide": "div", "clip": "clamp",
    "__abs__": "abs", "__round__": "round",
}  # fmt: skip
_IN_PLACE = (
    "add clamp div exp masked_fill mul pow relu sqrt square sub tril triu".split()
)


def _of_dims(x, n):
    """Return the tensor if it has n dimensions."""
    if x.ndim != n:
        raise RuntimeError(f"{n}D tensors expected, but got {x.ndim}D tensor")
    return x


def _in_place(name):
    """Return the method that writes a result into its tensor, and returns that."""
    made = getattr(Tensor, name)

    def operation(self, *arguments, **options):
        result = made(self, *arguments, **options)
        if result is NotImplemented:
            return result
        if result.dtype.kind > self.dtype.kind:
            raise RuntimeError(
                f"result type {result.dtype.title} can't be cast to the desired output "
                f"type {self.dtype.title}"
            )
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast "
                f"shape {list(result.shape)}"
            )
        return self.copy_(result)

    operation.__name__, operation.__doc__ = f"{name}_", f"The same as {name}, in place."
    return operation


for _name, _made in _SHORT.items():
    _made.__name__ = _name
    setattr(Tensor, _name, _made)
for _alias, _name in _ALIASES.items():
    setattr(Tensor, _alias, getattr(Tensor, _name))
for _name in _IN_PLACE:
    setattr(Tensor, f"{_name}_", _in_place(_name))
for _name in "add sub mul truediv floordiv mod pow and or xor".split():
    setattr(Tensor, f"__i{_name}__", _in_place(f"__{_name}__"))


# ---- Making tensors


class Device:
    """A device, `torch.device`: "cpu", or "meta", where tensors have no numbers.

    `with torch.device("meta"):` makes new tensors there.
    """

    default = "cpu"
    index = None

    def __init__(self, type, index=None):
        self.type = str(type).partition(":")[0]
        if self.type not in ("cpu", "meta"):
            raise RuntimeError(
                f"this page's torch has no device {self.type!r}, only 'cpu' and 'meta';"
                " the notebook in Colab has"
            )

    def __enter__(self):
        self.before, Device.default = Device.default, self.type
        return self

    def __exit__(self, *_):
        Device.default = self.before

    def __eq__(self, other):
        return isinstance(other, Device) and self.type == other.type

    def __hash__(self):
        return hash(self.type)

    def __str__(self):
        return self.type

    def __repr__(self):
        return f"device(type='{self.type}')"


def _filled(name, shape, dtype, device, value):
    """Return a tensor with the same number everywhere."""
    shape, dtype = Size(_sizes(shape, name)), _require_known(dtype)
    if any(size < 0 for size in shape):
        raise RuntimeError(f"{name}: Dimension size must be non-negative.")
    if Device(device or Device.default).type == "meta":
        return _wrap(None, shape, dtype)
    n = math.prod(shape)
    storage = array(dtype.code, [value]) * n if value else _zeros(n, dtype)
    return _wrap(storage, shape, dtype)


def zeros(*size, dtype=None, device=None, requires_grad=False):
    """Return zeros."""
    return _filled("zeros", size, dtype, device, 0)


def ones(*size, dtype=None, device=None, requires_grad=False):
    """Return ones."""
    return _filled("ones", size, dtype, device, 1)


def empty(*size, dtype=None, device=None, requires_grad=False):
    """Return numbers that will be written over: zeros, here."""
    return _filled("empty", size, dtype, device, 0)


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    """Return the same number everywhere."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    dtype = _require_known(_dtype_of(value) if dtype is None else dtype)
    return _filled("full", (size,), dtype, device, _rounded(value, dtype))


def full_like(input, fill_value, *, size=None, dtype=None, device=None, **_):
    """Return the same number everywhere, in the shape and type of another tensor."""
    size, device = input.shape if size is None else size, device or input.device
    return full(size, fill_value, dtype=dtype or input.dtype, device=device)


def zeros_like(input, **options):
    """Return zeros, in the shape and type of another tensor."""
    return full_like(input, 0, **options)


def ones_like(input, **options):
    """Return ones, in the shape and type of another tensor."""
    return full_like(input, 1, **options)


def tensor(data, dtype=None, device=None, requires_grad=False):
    """Return the numbers in nested lists as a tensor."""
    if isinstance(data, Tensor):
        return data.to(dtype or data.dtype, device=device, copy=True)
    shape, flat = [], [data]
    while any(isinstance(x, (list, tuple, range)) or _has_rows(x) for x in flat):
        flat = [x.tolist() if _has_rows(x) else x for x in flat]
        for x in flat:
            if not isinstance(x, (list, tuple, range)):
                raise TypeError("not a sequence")
            if len(x) != len(flat[0]):
                raise ValueError(
                    f"expected sequence of length {len(flat[0])} at dim {len(shape)} "
                    f"(got {len(x)})"
                )
        shape.append(len(flat[0]))
        flat = [x for part in flat for x in part]
    flat = [x.item() if isinstance(x, Tensor) else x for x in flat]
    for x in flat:
        if isinstance(x, str):
            raise ValueError("too many dimensions 'str'")
        if not isinstance(x, _NUMBERS):
            raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")
    if dtype is None:
        kinds = map(_dtype_of, flat)
        dtype = functools.reduce(promote_types, kinds) if flat else float32
    dtype = _require_known(dtype)
    if Device(device or Device.default).type == "meta":
        return _wrap(None, shape, dtype)
    storage = array(dtype.code, [_rounded_in(x, dtype) for x in flat])
    made = _wrap(storage, shape, dtype)
    made.requires_grad = requires_grad
    return made


def _has_rows(x):
    return isinstance(x, Tensor) and x.shape != ()


def _rounded_in(number, dtype):
    """Return a number that an `array` of this type takes."""
    return number if dtype.kind == 2 else _rounded(number, dtype)


def frombuffer(buffer, *, dtype):
    """Return the numbers of an `array`, which becomes the storage itself."""
    return _wrap(buffer, (len(buffer),), dtype)


def arange(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    """Return the numbers from start to before end."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (
        x.item() if isinstance(x, Tensor) else x for x in (start, end, step)
    )
    if not step:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(x, int) for x in (start, end, step))
    dtype = _require_known((int64 if whole else None) if dtype is None else dtype)
    numbers = [start + i * step for i in range(math.ceil((end - start) / step))]
    made = array(dtype.code, [_rounded_in(x, dtype) for x in numbers])
    return _wrap(made, (len(made),), dtype).to(device=device or Device.default)


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False):
    """Return so many numbers at equal distances, from start to end."""
    dtype = _require_known(dtype)
    step = (end - start) / max(steps - 1, 1)
    numbers = [start + i * step for i in range(steps)]
    return _wrap(array(dtype.code, numbers), (steps,), dtype)


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False):
    """Return ones on the diagonal, zeros elsewhere."""
    made = zeros(n, n if m is None else m, dtype=dtype, device=device)
    return made if made.is_meta else made.fill_diagonal_(1)


# ---- Printing


class _Options:
    """How tensors are written; see `set_printoptions`."""

    precision, threshold, sci_mode = 4, 1000, None


_EDGE, _LINE = 3, 80  # rows shown at both ends if there are too many; letters of a line


def set_printoptions(precision=None, threshold=None, sci_mode=None):
    """Choose how tensors are written: decimals, and when they are shortened."""
    if precision is not None:
        _Options.precision = precision
    if threshold is not None:
        _Options.threshold = threshold
    _Options.sci_mode = sci_mode


class _Format:
    """Writes the numbers of a tensor, all in the same width and form."""

    def __init__(self, numbers, dtype):
        self.floating, self.whole, self.scientific = dtype.kind == 2, True, False
        shown = numbers
        if self.floating:
            shown = [x for x in numbers if math.isfinite(x) and x]
            self.whole = all(x == math.ceil(x) for x in shown)
            self.scientific = _Options.sci_mode
        if self.floating and shown and self.scientific is None:
            sizes = list(map(abs, shown))
            least, most = min(sizes), max(sizes)
            self.scientific = most / least > 1000 or most > 1e8 or least < 1e-4
        self.width = max([len(self.write(x)) for x in shown], default=1)

    def write(self, x):
        """Return a number without spaces before it."""
        if not self.floating:
            return str(x)
        if self.scientific:
            return f"{x:.{_Options.precision}e}"
        if self.whole:
            return f"{x:.0f}" + "." * math.isfinite(x)
        return f"{x:.{_Options.precision}f}"

    def __call__(self, x):
        return self.write(x).rjust(self.width)


def _write_tensor(x):
    """Return a tensor as PyTorch writes it."""
    text, notes = "tensor([]", []
    if x.is_meta:
        text = "tensor(..."
        notes = ["device='meta'", f"size={tuple(x.shape)}"]
    elif x.numel():
        shortened = x.numel() > _Options.threshold
        shown = (_shorten(x) if shortened else x).reshape(-1).tolist()
        text = "tensor(" + _write_lists(x, 7, shortened, _Format(shown, x.dtype))
    elif x.ndim != 1:
        notes = [f"size={tuple(x.shape)}"]
    usual = (float32, int64, bool_) if x.numel() else (float32,)
    if x.dtype not in usual:
        notes.append(f"dtype={x.dtype}")
    if x.requires_grad:
        notes.append("requires_grad=True")
    for note in notes:
        last = len(text) - text.rfind("\n") + 1
        fits = last + len(note) + 2 <= _LINE
        text += f", {note}" if fits else ",\n" + " " * 7 + note
    return ("Parameter containing:\n" if isinstance(x, Parameter) else "") + text + ")"


def _ends(x):
    """Return the numbers of the rows that are shown if a tensor is shortened."""
    n = len(x)
    if n <= 2 * _EDGE:
        return [*range(n)]
    return [*range(_EDGE), *range(n - _EDGE, n)]


def _shorten(x):
    """Return the numbers that are shown."""
    return stack([_shorten(x[i]) for i in _ends(x)]) if x.shape else x


def _write_lists(x, indent, shortened, form):
    """Return a tensor's numbers in brackets, row below row."""
    if not x.shape:
        return form(x.item())
    rows = _ends(x) if shortened else range(len(x))
    if x.ndim == 1:
        numbers = x.tolist()
        parts = [form(numbers[i]) for i in rows]
    else:
        parts = [_write_lists(x[i], indent + 1, shortened, form) for i in rows]
    if len(rows) < len(x):
        parts.insert(_EDGE, " ..." if x.ndim == 1 else "...")
    if x.ndim == 1:
        n = max(1, (_LINE - indent) // (form.width + 2))
        parts = [", ".join(parts[i : i + n]) for i in range(0, len(parts), n)]
    between = "," + "\n" * max(x.ndim - 1, 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


# ---- torch.nn.functional


def linear(input, weight, bias=None):
    """Return x W^T + b: each row of weight (n_out, n_in) gives one number."""
    _require_tensor(input, "linear")
    x, parts = input, (input, weight) if bias is None else (input, weight, bias)
    fast = all(part.dtype is float32 and not part.is_meta for part in parts)
    n, k = weight.shape if weight.ndim == 2 else (0, 0)
    fits = x.shape[-1:] == (k,) and (bias is None or bias.shape == (n,))
    if not (fast and fits and n and x.numel() and weight.is_contiguous()):
        return _plain_linear(x, weight, bias)
    m = x.numel() // k
    out = _zeros(m * n, float32)
    added = (None, 0) if bias is None else _row(bias)
    KERNELS.linear(*_row(x), *_row(weight), *added, out, m, k, n)
    return _wrap(out, (*x.shape[:-1], n), float32)


def _plain_linear(x, weight, bias):
    """The same for other types and shapes, with the errors that PyTorch raises."""
    if bias is None:
        return x @ weight.t()
    if x.dtype is not weight.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {x.dtype.title} and "
            f"{weight.dtype.title}"
        )
    product = x @ weight.t()
    if product.ndim > 1:
        rows = math.prod(product.shape[:-1])
        bias.expand(rows, product.shape[-1])
    return product + bias


def embedding(input, weight, padding_idx=None, *_, **__):
    """Return the rows of a table with these numbers."""
    _require_tensor(input, "embedding", "indices", 2)
    if input.dtype.kind != 1:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following "
            f"scalar types: Long, Int; but got {input.type()} instead (while checking "
            "arguments for embedding)"
        )
    if any(not 0 <= number < len(weight) for number in input._flat()):
        raise IndexError("index out of range in self")
    return weight[input]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Give the last dimensions mean 0 and variance 1; then times weight, plus bias."""
    _require_tensor(input, "layer_norm")
    if isinstance(normalized_shape, int):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of "
            "ints, not int"
        )
    x, shape = input, tuple(normalized_shape)
    for part, name in ((weight, "weight"), (bias, "bias")):
        if part is not None and part.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got "
                f"{name} of shape {list(part.shape)} and normalized_shape = "
                f"{list(shape)}"
            )
    if x.shape[x.ndim - len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{sizes}], but got input of size{list(x.shape)}"
        )
    _require_floating(x, "layer_norm")
    n, out = math.prod(shape), _zeros(x.numel(), x.dtype)
    gain = ones(n, dtype=x.dtype) if weight is None else weight.to(x.dtype)
    bias = zeros(n, dtype=x.dtype) if bias is None else bias.to(x.dtype)
    if len(out):
        norm = _kernel("layer_norm", x.dtype)
        norm(*_row(x), *_row(gain), *_row(bias), out, len(out) // n, n, eps)
    return _wrap(out, x.shape, x.dtype)


def dropout(input, p=0.5, training=True, inplace=False):
    """Replace each number by 0 with the probability p; the others grow to make up.

    Which ones is not what PyTorch would draw.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or not p:
        return input
    kept = rand(input.shape) >= p
    return input * kept / (1 - p) if p < 1 else input * 0.0


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None
):
    """Return softmax(Q K^T / sqrt(d_head)) V; a query without any key gets zeros.

    A mask of truth values says what may be attended to; one of numbers is added.
    """
    scores = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = ones(scores.shape[-2:], dtype=bool_).tril()
    if attn_mask is not None and attn_mask.dtype is not bool_:
        scores, attn_mask = scores + attn_mask, None
    if attn_mask is not None:
        hidden = ~attn_mask.expand(broadcast_shapes(scores.shape, attn_mask.shape))
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights.masked_fill(hidden, 0.0)
    return dropout(weights, dropout_p) @ value


def pad(input, pad, mode="constant", value=None):
    """Put numbers before and behind: (before, behind) of the last dimension, ..."""
    if mode != "constant":
        raise NotImplementedError("this page's torch pads with a constant only")
    shape, inner = list(input.shape), [slice(None)] * input.ndim
    for n, (before, behind) in enumerate(zip(pad[::2], pad[1::2], strict=True), 1):
        inner[-n] = slice(before, before + shape[-n])
        shape[-n] += before + behind
    made = full(shape, value or 0, dtype=input.dtype)
    made[tuple(inner)] = input
    return made


def cross_entropy(input, target, *, ignore_index=-100, reduction="mean"):
    """Return how unlikely the targets are: the mean of -log of their probabilities.

    input (n, n_classes) or (n, n_classes, length), target (n,) or (n, length).
    """
    rows = input.transpose(1, -1) if input.ndim > 2 else input
    rows, ids = rows.reshape(-1, rows.shape[-1]), target.reshape(-1)
    logs, counted = rows.log_softmax(-1), ids != ignore_index
    if len(ids) != len(rows):
        raise ValueError(
            f"Expected input batch_size ({len(rows)}) to match target batch_size "
            f"({len(ids)})."
        )
    for number in ids[counted].tolist():
        if not 0 <= number < rows.shape[1]:
            raise IndexError(f"Target {number} is out of bounds.")
    losses = -logs.gather(1, ids.masked_fill(~counted, 0)[:, None])[:, 0]
    losses = losses.masked_fill(~counted, 0.0)
    if reduction == "none":
        return losses.view(target.shape)
    return losses.sum() / counted.sum() if reduction == "mean" else losses.sum()


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Give the last dimensions mean square 1; then times weight."""
    dims = list(range(-len(normalized_shape), 0))
    eps = finfo(input.dtype).eps if eps is None else eps
    normed = input * (input.square().mean(dims, keepdim=True) + eps).rsqrt()
    return normed if weight is None else normed * weight


def gelu(input, approximate="none"):
    """Return x times the probability that a normal number is below x."""
    _require_tensor(input, "gelu")
    if approximate == "none":
        return _each(lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))), input)
    c = math.sqrt(2 / math.pi)
    return _each(lambda x: x / 2 * (1 + math.tanh(c * (x + 0.044715 * x**3))), input)


def one_hot(tensor, num_classes=-1):
    """Return for each integer a row of zeros, with 1 at its place."""
    n = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    if (tensor >= n).any():
        raise RuntimeError("Class values must be smaller than num_classes.")
    return (tensor[..., None] == arange(n)).long()


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Return the cosine of the angle between vectors."""
    lengths = x1.norm(2, dim).clamp(min=eps) * x2.norm(2, dim).clamp(min=eps)
    return (x1 * x2).sum(dim) / lengths


def relu(input, inplace=False):
    """Return max(0, x)."""
    _require_tensor(input, "relu")
    return input.relu()


def silu(input, inplace=False):
    """Return x times its sigmoid."""
    return _each(lambda x: x * _sigmoid(x), input)


def softmax(input, dim=None, dtype=None):
    """Return exp(x), divided by its sum along a dimension."""
    return input.softmax(_understood(dim, input), dtype)


def log_softmax(input, dim=None, dtype=None):
    """Return the log of the softmax, computed without it."""
    return input.log_softmax(_understood(dim, input), dtype)


def _understood(dim, x):
    """Return the dimension that PyTorch takes if none is named."""
    return int(x.ndim not in (0, 1, 3)) if dim is None else dim


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Divide vectors by their lengths."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


# ---- torch.nn


class Parameter(Tensor):
    """A tensor that a module trains."""

    def __init__(self, data=None, requires_grad=True):
        self.data = empty(0) if data is None else data
        self.requires_grad = requires_grad

    def __deepcopy__(self, memo):
        memo[id(self)] = copied = Parameter(self.clone(), self.requires_grad)
        return copied


_Keys = namedtuple("_IncompatibleKeys", "missing_keys unexpected_keys")


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` found on one side only."""

    def __repr__(self):
        return super().__repr__() if any(self) else "<All keys matched successfully>"


class _Handle:
    """What `remove` takes a hook away with."""

    def __init__(self, hooks, hook):
        self.hooks = hooks
        hooks[self] = hook

    def remove(self):
        """Take the hook away."""
        self.hooks.pop(self, None)


class Module:
    """A part of a model: parameters, other modules, and `forward`, which uses them.

    Attributes:
        training: whether dropout drops.
        _parameters, _modules, _buffers: what is in it, by name. Attributes are looked
            up there, too.
    """

    def __init__(self):
        own = vars(self)
        own.update({store: {} for store in _STORES}, training=True)
        own.update(_forward_hooks={}, _forward_pre_hooks={}, _not_saved=set())

    def forward(self, *_):
        """Compute something of the inputs."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *inputs, **options):
        """Call the hooks, and forward between them."""
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        output = self.forward(*inputs, **options)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, inputs, output)
            output = output if changed is None else changed
        return output

    def register_forward_hook(self, hook):
        """Call hook(module, inputs, output) after each forward."""
        return _Handle(self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook):
        """Call hook(module, inputs) before each forward."""
        return _Handle(self._forward_pre_hooks, hook)

    # attributes

    def __getattr__(self, name):
        own = vars(self)
        for store in _STORES:
            if name in own.get(store, ()):
                return own[store][name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name, value):
        own = vars(self)
        for store, (kind, what, wanted) in _STORES.items():
            mine = isinstance(value, kind) and store != "_buffers"
            if mine and store not in own:
                what = "module" if store == "_modules" else "parameters"
                raise AttributeError(
                    f"cannot assign {what} before Module.__init__() call"
                )
            if not mine and name not in own.get(store, ()):
                continue
            if value is not None and not isinstance(value, kind):
                kind = (
                    value.type() if isinstance(value, Tensor) else type(value).__name__
                )
                raise TypeError(
                    f"cannot assign '{kind}' as {what} '{name}' ({wanted} or None "
                    "expected)"
                )
            for other in (own, *(own[s] for s in _STORES if s != store)):
                other.pop(name, None)
            own[store][name] = value
            return
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        store = next((s for s in _STORES if name in vars(self)[s]), None)
        if store:
            del vars(self)[store][name]
        else:
            object.__delattr__(self, name)

    def register_parameter(self, name, param):
        """Add a parameter, or None in its place."""
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that isn't trained; it is saved if it is persistent."""
        self._buffers[name] = tensor
        if not persistent:
            self._not_saved.add(name)

    def add_module(self, name, module):
        """Add a module."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = module

    # what is in it

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yield this module and all inside it, with their names; each once."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, part in self.named_children():
            path = f"{prefix}.{name}" if prefix else name
            yield from part.named_modules(seen, path, remove_duplicate)

    def modules(self):
        """Yield this module and all inside it, each once."""
        return (part for _, part in self.named_modules())

    def named_children(self):
        """Yield the modules right inside, with their names."""
        return (
            (name, part) for name, part in self._modules.items() if part is not None
        )

    def children(self):
        """Yield the modules right inside."""
        return (part for _, part in self.named_children())

    def _named(self, stores, prefix="", recurse=True, remove_duplicate=True):
        """Yield what is in these stores, with the names."""
        seen, own = set(), [(prefix, self)]
        parts = self.named_modules(None, prefix, remove_duplicate) if recurse else own
        for path, part in parts:
            inside = ((name, x) for s in stores for name, x in vars(part)[s].items())
            for name, x in inside:
                saved = len(stores) == 1 or name not in part._not_saved
                if x is not None and saved and not (remove_duplicate and x in seen):
                    seen.add(x)
                    yield (f"{path}.{name}" if path else name), x

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield all parameters with their names; each once."""
        return self._named(["_parameters"], prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yield all parameters; each once."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield all buffers with their names; each once."""
        return self._named(["_buffers"], prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield all buffers; each once."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target):
        """Return the module of a name with dots."""
        part = self
        for name in target.split(".") if target else ():
            if not hasattr(part, name):
                raise AttributeError(f"{type(part).__name__} has no attribute `{name}`")
            part = getattr(part, name)
        return part

    def state_dict(self):
        """Return all parameters and buffers by their names: the tensors themselves."""
        saved = self._named(["_parameters", "_buffers"], remove_duplicate=False)
        return OrderedDict((name, x.detach()) for name, x in saved)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Write tensors into the parameters and buffers of their names.

        Returns:
            missing_keys, unexpected_keys: names that only one side has.

        Raises:
            RuntimeError: there are such names, if strict; or shapes differ.
        """
        own = dict(self._named(["_parameters", "_buffers"], remove_duplicate=False))
        missing = [name for name in own if name not in state_dict]
        unexpected, errors = [name for name in state_dict if name not in own], []
        for names, what in ((unexpected, "Unexpected"), (missing, "Missing")):
            if strict and names:
                listed = ", ".join(f'"{name}"' for name in names)
                errors.append(f"{what} key(s) in state_dict: {listed}. ")
        for name in own.keys() & state_dict.keys():
            x, new = own[name], state_dict[name]
            if x.shape != new.shape:
                errors.append(
                    f"size mismatch for {name}: copying a param with shape {new.shape} "
                    f"from checkpoint, the shape in current model is {x.shape}."
                )
            elif assign or x.is_meta:
                x.data = new
            else:
                x.copy_(new)
        if errors:
            title = type(self).__name__
            raise RuntimeError(
                f"Error(s) in loading state_dict for {title}:\n\t" + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)

    # changing all of it

    def apply(self, fn):
        """Call a function with every module inside, then with this one."""
        for part in self.children():
            part.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Let dropout drop, or not."""
        for part in self.modules():
            part.training = mode
        return self

    def eval(self):
        """Let dropout do nothing."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Remember for every parameter whether it is trained."""
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Do nothing: there are no gradients."""

    def to(self, *target, **options):
        """Give all floating-point numbers another type."""
        for x in [*self.parameters(), *self.buffers()]:
            if x.is_floating_point():
                x.data = x.detach().to(*target, **options)
        return self

    def float(self):
        """Make all floating-point numbers float32."""
        return self.to(float32)

    def double(self):
        """Make all floating-point numbers float64."""
        return self.to(float64)

    # how it is written

    def extra_repr(self):
        """Return what stands in the brackets: the sizes of a layer."""
        return ""

    def __repr__(self):
        return _write_module(
            self, [(name, "", repr(part)) for name, part in self._modules.items()]
        )


_STORES = {  # what each holds, and how errors call it
    "_parameters": (Parameter, "parameter", "torch.nn.Parameter"),
    "_modules": (Module, "child module", "torch.nn.Module"),
    "_buffers": (Tensor, "buffer", "torch.Tensor"),
}


def _write_module(module, parts):
    """Return a module as PyTorch writes it: (name, how often, text) of each part."""
    extra = [module.extra_repr()] if module.extra_repr() else []
    lines = [f"({name}): {n}" + text.replace("\n", "\n  ") for name, n, text in parts]
    body = "\n  " + "\n  ".join(extra + lines) + "\n" if lines else "".join(extra)
    return f"{type(module).__name__}({body})"


class _Container(Module):
    """Modules in a row."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            parts = list(self)[index]
            kind = type(self)
            return kind(*parts) if isinstance(self, Sequential) else kind(parts)
        return self._modules[self._name(index)]

    def __setitem__(self, index, module):
        self.add_module(self._name(index), module)

    def _name(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self


class ModuleList(_Container):
    """Modules in a list."""

    def __init__(self, modules=None):
        super().__init__()
        self.extend(modules or ())

    def __repr__(self):
        parts, start = [], 0
        for text, same in itertools.groupby(map(repr, self)):
            n = len(list(same))
            name = str(start) if n == 1 else f"{start}-{start + n - 1}"
            parts.append((name, "" if n == 1 else f"{n} x ", text))
            start += n
        return _write_module(self, parts)


class Sequential(_Container):
    """Modules that are called one after the other."""

    def __init__(self, *modules):
        super().__init__()
        self.extend(modules)

    def forward(self, input):
        """Call each with what the one before it returned."""
        for module in self:
            input = module(input)
        return input


class Linear(Module):
    """x W^T + b: weight (out_features, in_features), bias (out_features,) or None."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        made = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(out_features, in_features, **made))
        self.register_parameter("bias", None)
        if bias:
            self.bias = Parameter(empty(out_features, **made))
        bound = 1 / math.sqrt(in_features) if in_features else 0
        for x in self.parameters():
            x.uniform_(-bound, bound)

    def forward(self, input):
        """(..., in_features) -> (..., out_features)."""
        return linear(input, self.weight, self.bias)

    def extra_repr(self):
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    """A table with a vector for each number: weight (num_embeddings, embedding_dim)."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        *,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        made = empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.weight, self.padding_idx = Parameter(made.normal_()), padding_idx
        if padding_idx is not None:
            self.weight[padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True):
        """Make one of a table that is there."""
        with Device("meta"):
            made = cls(*embeddings.shape)
        made.weight = Parameter(embeddings, not freeze)
        return made

    def forward(self, input):
        """(...), integers -> (..., embedding_dim)."""
        return embedding(input, self.weight)

    def extra_repr(self):
        """Return the sizes."""
        padding = (
            "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        )
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions; then times weight, plus bias."""

    def __init__(
        self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        shape = normalized_shape
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = {"device": device, "dtype": dtype}
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = Parameter(ones(self.normalized_shape, **made))
        if elementwise_affine and bias:
            self.bias = Parameter(zeros(self.normalized_shape, **made))

    def forward(self, input):
        """(..., *normalized_shape) -> the same shape."""
        return layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self):
        """Return the sizes."""
        bias = f", bias={self.bias is not None}" if self.elementwise_affine else ""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}{bias}"
        )


class Dropout(Module):
    """While training, each number becomes 0 with the probability p."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p, self.inplace = p, inplace

    def forward(self, input):
        """Any shape -> the same shape."""
        return dropout(input, self.p, self.training)

    def extra_repr(self):
        """Return the probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Identity(Module):
    """Nothing."""

    def forward(self, input):
        """Any shape -> the same numbers."""
        return input


class ReLU(Module):
    """max(0, x)."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, input):
        """Any shape -> the same shape."""
        return input.relu()


class SiLU(Module):
    """x times its sigmoid."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, input):
        """Any shape -> the same shape."""
        return silu(input)


class GELU(Module):
    """x times the probability that a normal number is below x."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        """Any shape -> the same shape."""
        return gelu(input, self.approximate)

    def extra_repr(self):
        """Return the option."""
        return f"approximate={self.approximate!r}"


class Softmax(Module):
    """exp(x), divided by its sum along a dimension."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        """Any shape -> the same shape."""
        return softmax(input, self.dim)

    def extra_repr(self):
        """Return the dimension."""
        return f"dim={self.dim}"


# torch.nn.init


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Draw uniform numbers of variance 2 / (rows + columns)."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    bound = gain * math.sqrt(6.0 / sum(tensor.shape))
    return tensor.uniform_(-bound, bound, generator=generator)


_INIT = {
    "xavier_uniform_": xavier_uniform_,
    "uniform_": lambda tensor, a=0.0, b=1.0, **o: tensor.uniform_(a, b, **o),
    "normal_": lambda tensor, mean=0.0, std=1.0, **o: tensor.normal_(mean, std, **o),
    "constant_": lambda tensor, val: tensor.fill_(val),
    "ones_": lambda tensor: tensor.fill_(1),
    "zeros_": lambda tensor: tensor.fill_(0),
}


# ---- torch


class no_grad(contextlib.ContextDecorator):
    """Nothing: there are no gradients anyway."""

    def __new__(cls, mode=True):
        """Decorate without brackets, too: `@torch.no_grad`."""
        return mode if callable(mode) else super().__new__(cls)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def assert_close(
    actual, expected, *, rtol=1.3e-6, atol=1e-5, equal_nan=False, msg=None
):
    """Raise an AssertionError if two tensors differ in more than rounding."""
    for name in ("shape", "dtype"):
        x, y = getattr(actual, name), getattr(expected, name)
        if x != y:
            raise AssertionError(
                f"The values for attribute '{name}' do not match: {x} != {y}."
            )
    far = ~actual.isclose(expected, rtol, atol, equal_nan)
    if far.any():
        n, total = int(far.sum()), far.numel()
        raise AssertionError(
            msg
            or "Tensor-likes are not close!\n\nMismatched elements: "
            f"{n} / {total} ({n / total:.1%})"
        )


# Methods that aren't functions of torch, too.
_METHODS_ONLY = frozenset(
    "backward bool contiguous copy_ cpu cuda dim double expand expand_as "
    "fill_ fill_diagonal_ float half int is_contiguous item long new_empty "
    "new_full new_ones new_tensor new_zeros normal_ repeat requires_grad_ size stride "
    "to tolist type type_as uniform_ view view_as zero_".split()
)


def _function_of(name):
    """Return the function of torch that does what a tensor's method does."""

    def function(input, *arguments, **options):
        _require_tensor(input, name)
        if name in _BINARY or name == "matmul":
            options["place"] = 2
        return getattr(input, name)(*arguments, **options)

    function.__name__ = function.__qualname__ = name
    return function


def _by_name(*things):
    return {thing.__name__: thing for thing in things}


def _module(name, names):
    """Return a module of these names, which refuses all others in a sentence."""
    made = types.ModuleType(name)
    vars(made).update(names, __path__=[])

    def refuse(missing):
        if missing.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {missing!r}")
        raise AttributeError(_missing(missing, name, names))

    made.__getattr__ = refuse
    return made


class _Finder:
    """Refuses to import a module of torch that isn't there, in a sentence."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Refuse names that begin with torch."""
        if name.startswith("torch."):
            raise ModuleNotFoundError(
                f"this page's torch has no `{name}`; the notebook in Colab has",
                name=name,
            )


def _modules():
    """Return the names of torch, and of each of its modules."""
    names = [name for name in dir(Tensor) if callable(getattr(Tensor, name))]
    names = [name for name in names if name[0] != "_" and name not in _METHODS_ONLY]
    functions = {name: _function_of(name) for name in names}
    torch = functions | _OTHER_TYPES | _by_name(
        Tensor, Size, Generator, tensor, frombuffer, zeros, zeros_like, ones, ones_like,
        empty, full, full_like, arange, linspace, eye, rand, randn, randn_like, randint,
        randperm, cat, stack, block_diag, where, einsum, pdist, cosine_similarity,
        promote_types, get_default_dtype, finfo,
        set_printoptions, no_grad,
    ) | {
        "default_generator": default_generator,
        "manual_seed": default_generator.manual_seed,
        "dtype": DType, "device": Device, "bool": bool_, "int32": int32, "int": int32,
        "int64": int64, "long": int64, "float32": float32, "float": float32,
        "float64": float64, "double": float64, "half": _OTHER_TYPES["float16"],
        "pow": lambda input, exponent: input**exponent,
        "as_tensor": lambda data, **options: (
            data.to(**options) if isinstance(data, Tensor) else tensor(data, **options)
        ),
        "empty_like": zeros_like, "concat": cat, "concatenate": cat,
        "vstack": lambda tensors: cat([x[None] if x.ndim < 2 else x for x in tensors]),
        "inference_mode": no_grad, "enable_grad": no_grad, "set_grad_enabled": no_grad,
        "is_tensor": lambda x: isinstance(x, Tensor),
        "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
        "__version__": "page",
    }  # fmt: skip
    nn = _by_name(
        Module, Parameter, ModuleList, Sequential, Linear, Embedding,
        Dropout, LayerNorm, Identity, ReLU, GELU, SiLU, Softmax,
    )  # fmt: skip
    functional = _by_name(
        linear, embedding, layer_norm, rms_norm, dropout, scaled_dot_product_attention,
        relu, silu, gelu, softmax, log_softmax, normalize, pad, one_hot, cross_entropy,
        cosine_similarity, pdist,
    ) | {name: functions[name] for name in ("sigmoid", "tanh")}  # fmt: skip
    hooks = {"_global_forward_hooks": {}, "_global_forward_pre_hooks": {}}
    return {
        "torch": torch,
        "torch.nn": nn,
        "torch.nn.functional": functional,
        "torch.nn.init": _INIT,
        "torch.nn.modules": nn,
        "torch.nn.modules.module": hooks | {"Module": Module},
        "torch.random": {"fork_rng": fork_rng},
        "torch.linalg": {"norm": functions["norm"]},
        "torch.testing": _by_name(assert_close),
        "torch.cuda": {"is_available": lambda: False},
    }


def install():
    """Make this file importable as torch, and return that module."""
    modules = {name: _module(name, names) for name, names in _modules().items()}
    for name, module in modules.items():
        owner, _, last = name.rpartition(".")
        if owner:
            setattr(modules[owner], last, module)
    sys.modules.update(modules)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    return modules["torch"]


for _part in Tensor.__mro__[:-1]:  # errors call a method by its name
    for _name, _made in vars(_part).items():
        if isinstance(_made, types.FunctionType):
            _made.__qualname__ = _name
Tensor.__module__ = "torch"
Parameter.__module__ = "torch.nn.parameter"
Module.__module__ = "torch.nn.modules.module"
