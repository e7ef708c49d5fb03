"""A decoder of prepared operations, which takes less time than the model's modules.

A step of a search multiplies a few rows by every matrix of the decoder, and calling a
hundred modules takes longer than the work itself. The engine does the same work without
modules: matrices that read the same rows are joined, each is stored in the order in
which it is read, and what follows a product is done with it where that pays.

It is made once for many searches, and proven when it is made: it computes the model's
numbers, or there is no engine.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from threading import get_ident
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from transformer_lib.fast.caches import (
    MemoryCache,
    SourceMask,
    TargetCache,
    attend,
    attend_batched,
    is_batched,
)
from transformer_lib.fast.linear import Multiply, MultiplyAdd, PreparedLinear
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.embeddings import Embeddings, PositionalEncoding
from transformer_lib.model.layers import (
    ACTIVATIONS,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    SublayerConnection,
)
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import Decoder, Encoder, Transformer
from transformer_lib.precision import at_least_float32
from transformer_lib.probe import at_rest, draw_batches, exact_copy, require_same_stages

_DTYPES = (torch.float32, torch.float64, torch.bfloat16)

# What the engine reads: by a module's last name what it has to be.
_KINDS = {
    "encoder": Encoder,
    "decoder": Decoder,
    "src_embeddings": Embeddings,
    "tgt_embeddings": Embeddings,
    "positions": PositionalEncoding,
    "self_attn": MultiHeadAttention,
    "cross_attn": MultiHeadAttention,
    "feed_forward": FeedForward,
    "self_attn_connection": SublayerConnection,
    "cross_attn_connection": SublayerConnection,
    "feed_forward_connection": SublayerConnection,
    "norm": LayerNorm,
    "activation": tuple(ACTIVATIONS.values()),
    "tokens": nn.Embedding,
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "out_proj"), nn.Linear),
    **dict.fromkeys(("expand", "contract", "lm_head"), nn.Linear),
}
_LAYERS = {"encoder.layers": EncoderLayer, "decoder.layers": DecoderLayer}

Norm = Callable[[Tensor], Tensor]
# From a sum of residual and sub-layer's output to what the next sub-layer needs: its
# residual, and its input. Pre-norm normalizes the second, post-norm both.
Close = Callable[[Tensor], tuple[Tensor, Tensor]]


def make_engine(model: nn.Module) -> "Engine":
    """Prepare a model's decoding, and prove that it computes what the model computes.

    The proof is by numbers, on a few random batches, in float64 and as the weights are.

    Args:
        model: a Transformer of the paper's parts, on the CPU, in any state. What is
            attached to it now must not change its numbers; what is done to it later,
            the engine doesn't see: it has a copy of the weights.

    Raises:
        ValueError: a part is of another kind, or missing, or the numbers differ.
    """
    try:
        engine = Engine(model)
    except (AttributeError, IndexError) as error:
        raise ValueError(f"the engine misses a part of the model: {error}") from None
    with at_rest():
        exact = exact_copy(model)
        for some in (Engine(exact), engine):
            _require_same_numbers(some, exact)
    return engine


def _require_same_numbers(engine: "Engine", model: Transformer) -> None:
    """Compare memory and logits of an engine with those of a model in float64."""
    for src, tgt in draw_batches(model.config):
        mask = padding_mask(src, model.config.pad_id)
        memory = model.encode(src, mask)
        engine.prefill(src)
        found = {
            "memory": engine.encode(src).double(),
            "logits": torch.stack([engine.step(ids) for ids in tgt.split(1, 1)], 1),
        }
        real = mask.flatten(1)[..., None]  # what stands at padding is never read
        found["memory"] = found["memory"].where(real, 0.0)
        expected = {"memory": memory.where(real, 0.0), "logits": model(src, tgt)}
        require_same_stages(found, expected, "the engine", engine.dtype)


class Engine:
    """The protocol `Decoding` of `generation.incremental` on prepared operations.

    It has a copy of the weights, and is not proven: `make_engine` does that. It serves
    one search at a time, and one thread.

    Args:
        model: a Transformer of the paper's parts, on the CPU.
        capacity: tokens of a target that there is room for at first.

    Raises:
        ValueError: a part is of another kind; the message names it.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, capacity: int = 32) -> None:
        _require_known_parts(model)
        self.model = model  # whose numbers these are; it is not asked again
        model = deepcopy(model).eval().requires_grad_(False)
        self.pad_id, self.capacity = model.config.pad_id, capacity
        self.dtype = model.lm_head.weight.dtype
        attentions = [layer.cross_attn for layer in model.decoder.layers]
        self.n_heads, self.d_head = attentions[0].n_heads, attentions[0].d_head
        self.n_layers = len(attentions)
        self.read_source = _Reader(model.src_embeddings)
        self.read_target = _Reader(model.tgt_embeddings)
        self.encoder = _Stack(model.encoder)
        self.decoder = _Stack(model.decoder)
        self.lm_head = _join([model.lm_head])
        # The memory's keys and values, of all layers at once.
        self.source_projection = _join(
            [
                projection
                for attention in attentions
                for projection in (attention.k_proj, attention.v_proj)
            ]
        )

    @property
    def length(self) -> int:
        """Tokens of the targets that were read so far."""
        return self.target.length

    @torch.no_grad()
    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Read the source (batch, src_len), and forget what was before."""
        self._thread = get_ident()
        mask = self._mask(src)
        memory = self._encode(src, mask)  # (batch * src_len, d_model)
        kept = self.source_projection.multiply(len(memory))(memory)
        # -> (2 * n_layers, batch, n_heads, src_len, d_head)
        kept = kept.view(*src.shape, 2 * self.n_layers, self.n_heads, self.d_head)
        kept = kept.permute(2, 0, 3, 1, 4).contiguous()
        self.source = MemoryCache(kept, mask)
        self.n_beams, self.n_rows = n_beams, len(src) * n_beams
        sizes = (self.n_layers, len(src), n_beams, self.n_heads, self.d_head)
        self.target = TargetCache(sizes, memory.dtype, self.capacity)

    @torch.no_grad()
    def encode(self, src: Tensor) -> Tensor:
        """Return the memory (batch, src_len, d_model); any numbers where padding is."""
        return self._encode(src, self._mask(src)).view(*src.shape, -1)

    def _mask(self, src: Tensor) -> SourceMask:
        return SourceMask(padding_mask(src, self.pad_id), self.dtype)

    def _encode(self, src: Tensor, mask: SourceMask) -> Tensor:
        """(batch, src_len) -> (batch * src_len, d_model)."""
        x, h = self.encoder.open(self.read_source(src, 0))
        for layer in self.encoder.bind(len(x)):
            output = self._attend_within(layer.joint(h), src.shape, mask)
            x, h = layer.close_self(layer.out(output, x))
            x, h = layer.close_feed(layer.contract(layer.expand(h), x))
        return h

    def _attend_within(
        self, joint: Tensor, shape: torch.Size, mask: SourceMask
    ) -> Tensor:
        """Let sources (batch, src_len) attend to themselves.

        What a sentence of padding gets here, the decoder does not read.

        (batch * src_len, 3 * d_model) -> (batch * src_len, d_model)
        """
        n_sentences, src_len = shape
        sizes = (n_sentences, self.n_heads, src_len, self.d_head)
        joint = joint.view(n_sentences, src_len, 3, self.n_heads, self.d_head)
        q, k, v = joint.permute(2, 0, 3, 1, 4)  # (batch, n_heads, src_len, d_head)
        if is_batched((*sizes[:3], src_len), q.dtype):
            q, k, v = (part.flatten(0, 1) for part in (q, k, v))
            output = attend_batched(q, k, v, mask.added_to(self.n_heads)).view(sizes)
        else:
            output = attend(q, k, v, mask.added)
        return output.transpose(1, 2).reshape(n_sentences * src_len, -1)

    def step(self, ids: Tensor) -> Tensor:
        """Read the next tokens (n_rows, n_new); return logits (n_rows, vocab_size).

        They score the token after the last one, in float32 at least.

        Raises:
            RuntimeError: another thread has begun a search meanwhile.
        """
        self._require_own_thread()
        source, target, n_new = self.source, self.target, ids.size(-1)
        x, h = self.decoder.open(self.read_target(ids, target.length))
        target.begin(n_new)
        source.begin(self.n_beams * n_new)
        for number, layer in enumerate(self.decoder.bind(len(x))):
            x, h = layer.close_self(layer.out(target.attend(number, layer.joint(h)), x))
            output = source.attend(number, layer.query(h))
            x, h = layer.close_cross(layer.cross_out(output, x))
            x, h = layer.close_feed(layer.contract(layer.expand(h), x))
        target.end()
        if n_new > 1:
            h = h[n_new - 1 :: n_new]
        logits = self.lm_head.multiply(self.n_rows)(h)
        return at_least_float32(logits)

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent read.

        Args:
            parents: (n_sentences, n_beams), the number of a beam of the same sentence.
        """
        self._require_own_thread()
        self.target.reorder(parents.tolist())

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        self._require_own_thread()
        self.n_rows = len(sentences) * self.n_beams
        self.source.select(sentences)
        self.target.select(sentences)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied: a copy would have to be proven anew."""
        raise TypeError("an engine can't be copied: copy the model, and make another")

    def _require_own_thread(self) -> None:
        if self._thread != get_ident():  # it would read the other one's sentences
            raise RuntimeError(
                "an engine serves one thread at a time: make one for each"
            )


class _Reader:
    """Embeddings: ids and the position of the first one -> a row for each token."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.tokens = embeddings.tokens.weight
        self.positions, self.scale = embeddings.positions, embeddings.scale
        self.norm = None if embeddings.norm is None else _norm(embeddings.norm)
        self.vectors = self.tokens[:0]  # of the first positions

    def __call__(self, ids: Tensor, start: int) -> Tensor:
        """(n_rows, n_new) -> (n_rows * n_new, d_model)."""
        n_new = ids.size(1)
        positions = self._vectors_of(start + n_new)[start:]
        x = torch.embedding(self.tokens, ids)
        x = torch.add(positions, x, alpha=self.scale).view(-1, x.size(2))
        return x if self.norm is None else self.norm(x)

    def _vectors_of(self, n_positions: int) -> Tensor:
        """Return the vectors of the first positions: (n_positions, d_model)."""
        if n_positions > len(self.vectors):
            wanted = n_positions if self.positions.learned else 2 * n_positions
            vectors = self.positions(
                torch.arange(wanted, device=self.tokens.device)
            ).detach()
            self.vectors = vectors.to(self.tokens.dtype)
        return self.vectors[:n_positions]


class _Stack:
    """An encoder or decoder: prepared layers, bound to the number of rows they get.

    Attributes:
        open: from embeddings to the first residual and the first sub-layer's input.
    """

    def __init__(self, stack: Encoder | Decoder) -> None:
        self.layers = [_Layer(layer) for layer in stack.layers]
        self.open, self.closings = _chain_norms(stack)
        self._bound: dict[int, list[_Operations]] = {}

    def bind(self, n_rows: int) -> "list[_Operations]":
        """Return the layers' operations on so many rows."""
        if n_rows not in self._bound:
            closings = iter(self.closings)
            self._bound[n_rows] = [
                layer.bind(n_rows, closings) for layer in self.layers
            ]
        return self._bound[n_rows]


class _Layer:
    """The prepared matrices of one layer."""

    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        own, feed_forward = layer.self_attn, layer.feed_forward
        self.joint = _join([own.q_proj, own.k_proj, own.v_proj], own.d_head)
        self.out = _join([own.out_proj])
        self.query = self.cross_out = None
        if isinstance(layer, DecoderLayer):
            cross = layer.cross_attn
            self.query = _join([cross.q_proj], cross.d_head)
            self.cross_out = _join([cross.out_proj])
        self.expand = _join([feed_forward.expand])
        self.contract = _join([feed_forward.contract])
        self.activation = next(
            name
            for name, kind in ACTIVATIONS.items()
            if isinstance(feed_forward.activation, kind)
        )

    def bind(self, n_rows: int, closings: Iterator[Close]) -> "_Operations":
        """Return the operations on so many rows; take the layer's closings."""
        has_cross = self.query is not None
        return _Operations(
            joint=self.joint.multiply(n_rows),
            out=self.out.multiply_add(n_rows),
            close_self=next(closings),
            query=self.query.multiply(n_rows) if has_cross else None,
            cross_out=self.cross_out.multiply_add(n_rows) if has_cross else None,
            close_cross=next(closings) if has_cross else None,
            expand=self.expand.multiply(n_rows, self.activation),
            contract=self.contract.multiply_add(n_rows),
            close_feed=next(closings),
        )


class _Operations(NamedTuple):
    """What one layer does with its rows, in this order."""

    joint: Multiply
    out: MultiplyAdd
    close_self: Close
    query: Multiply | None
    cross_out: MultiplyAdd | None
    close_cross: Close | None
    expand: Multiply
    contract: MultiplyAdd
    close_feed: Close


def _join(linears: Sequence[nn.Linear], d_head: int | None = None) -> PreparedLinear:
    """Prepare linear maps of the same rows as one.

    Args:
        linears: their outputs will stand side by side.
        d_head: divide the first output by its square root, as queries are.
    """
    weights = [linear.weight.detach() for linear in linears]
    biases: list[Tensor | None] = [linear.bias for linear in linears]
    if any(bias is not None for bias in biases):
        biases = [
            weight.new_zeros(len(weight)) if bias is None else bias.detach()
            for weight, bias in zip(weights, biases, strict=True)
        ]
    if d_head is not None:
        scale = d_head**-0.5
        weights[0] = weights[0] * scale
        biases[0] = None if biases[0] is None else biases[0] * scale
    if len(linears) == 1:
        return PreparedLinear(weights[0], biases[0])
    bias = None if biases[0] is None else torch.cat(biases)
    return PreparedLinear(torch.cat(weights), bias)


def _norm(norm: LayerNorm) -> Norm:
    shape, eps = tuple(norm.gain.shape), norm.eps
    gain, bias = norm.gain.detach(), norm.bias.detach()
    return lambda x: torch.layer_norm(x, shape, gain, bias, eps, False)


def _chain_norms(stack: Encoder | Decoder) -> tuple[Close, list[Close]]:
    """Put every norm where one sub-layer ends and the next begins.

    Returns:
        What opens the stack, and what closes each of its sub-layers.
    """

    def normalize_both(norm: Norm) -> Close:
        def close(x: Tensor) -> tuple[Tensor, Tensor]:
            x = norm(x)
            return x, x

        return close

    def normalize_input(norm: Norm | None) -> Close:
        return lambda x: (x, x if norm is None else norm(x))

    names = ("self_attn", "cross_attn", "feed_forward")
    connections = [
        getattr(layer, f"{name}_connection")
        for layer in stack.layers
        for name in names
        if hasattr(layer, f"{name}_connection")
    ]
    norms = [_norm(connection.norm) for connection in connections]
    last = None if stack.norm is None else _norm(stack.norm)
    if connections[0].norm_first:
        first, *rest = [normalize_input(norm) for norm in [*norms, last]]
        return first, rest
    closings = [normalize_both(norm) for norm in norms]
    if last is not None:
        final = norms[-1]
        closings[-1] = normalize_both(lambda x: last(final(x)))
    return normalize_input(None), closings


def _require_known_parts(model: nn.Module) -> None:
    """Refuse parts that the engine can't read, and numbers that it can't multiply.

    Whether parts compute what their classes compute is not asked: the proof tells.
    """
    if not isinstance(model, Transformer):
        raise ValueError(f"the engine decodes a Transformer, not a {_kind(model)}")
    for name, module in model.named_modules():
        parent, _, own = name.rpartition(".")
        known = _LAYERS.get(parent) or _KINDS.get(own, nn.Module)
        if not isinstance(module, known):
            raise ValueError(f"the engine doesn't know {name}, a {_kind(module)}")
        if getattr(module, "max_norm", None) is not None:
            raise ValueError(f"{name} changes its weights when it is read")
    for name, parameter in model.named_parameters():
        if parameter.device.type != "cpu" or parameter.dtype not in _DTYPES:
            raise ValueError(
                "the engine decodes on the CPU in float32, float64 or bfloat16, but "
                f"{name} is {parameter.dtype} on {parameter.device}"
            )
        if parameter.dtype != model.lm_head.weight.dtype:
            raise ValueError(f"{name} is {parameter.dtype}, but lm_head is not")
        if not parameter.isfinite().all():
            raise ValueError(f"{name} holds NaN or infinity: it is broken")


def _kind(module: nn.Module) -> str:
    return type(module).__name__
