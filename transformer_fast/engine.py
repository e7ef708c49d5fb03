"""A decoder of prepared operations, for models that it knows exactly.

A step of a search multiplies a few rows by every matrix of the decoder, and calling a
hundred modules takes longer than the work itself. The engine does the same work without
modules: matrices that read the same rows are joined, each is stored in the order in
which it is read, and what follows a product is done with it where that pays. It does so
for models that `recognition` knows in every detail.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_fast.caches import (
    SourceCache,
    SourceMask,
    TargetCache,
    attend,
    attend_batched,
    is_batched,
)
from transformer_fast.linear import Multiply, MultiplyAdd, PreparedLinear
from transformer_fast.recognition import why_unknown
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.layers import (
    ACTIVATIONS,
    DecoderLayer,
    EncoderLayer,
    LayerNorm,
)
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import Decoder, Encoder, Transformer

_LOGGER = logging.getLogger("transformer_fast")
_ACTIVATION_NAMES = {kind: name for name, kind in ACTIVATIONS.items()}

Norm = Callable[[Tensor], Tensor]
# From a sum of residual and sub-layer's output to what the next sub-layer needs: its
# residual, and its input. Pre-norm normalizes the second, post-norm both.
Close = Callable[[Tensor], tuple[Tensor, Tensor]]


def make_engine(model: nn.Module) -> "Engine | None":
    """Prepare a model's decoding; None if the model is not known in every detail.

    Why it is not known stands in the debug log of "transformer_fast".

    Args:
        model: any; its weights must not change while the engine is used.
    """
    reason = why_unknown(model)
    if reason is not None:
        _LOGGER.debug("the model's own modules decode: %s", reason)
        return None
    return Engine(model)


class Engine:
    """The protocol `Decoding` of `generation.incremental` on prepared operations.

    Args:
        model: one that `why_unknown` has nothing against.
        capacity: tokens of a target that there is room for at first.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, capacity: int = 32) -> None:
        self.pad_id, self.capacity = model.config.pad_id, capacity
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
            [part for each in attentions for part in (each.k_proj, each.v_proj)]
        )

    @property
    def length(self) -> int:
        """Tokens of the targets that were read so far."""
        return self.target.length

    @torch.no_grad()
    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Read the source (batch, src_len), and forget what was before."""
        is_token = padding_mask(src, self.pad_id)
        mask = SourceMask(is_token, self.read_source.tokens.dtype)
        memory = self._encode(src, mask)  # (batch * src_len, d_model)
        kept = self.source_projection.multiply(len(memory))(memory)
        # -> (2 * n_layers, batch, n_heads, src_len, d_head)
        kept = kept.view(*src.shape, 2 * self.n_layers, self.n_heads, self.d_head)
        kept = kept.permute(2, 0, 3, 1, 4).contiguous()
        self.source = SourceCache(kept, mask)
        self.n_beams, self.n_rows = n_beams, len(src) * n_beams
        sizes = (self.n_layers, len(src), n_beams, self.n_heads, self.d_head)
        self.target = TargetCache(sizes, memory.dtype, self.capacity)

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
        """
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
        return logits.float() if logits.dtype == torch.bfloat16 else logits

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent read.

        Args:
            parents: (n_sentences, n_beams), the number of a beam of the same sentence.
        """
        self.target.reorder(parents.tolist())

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        self.n_rows = len(sentences) * self.n_beams
        self.source.select(sentences)
        self.target.select(sentences)


class _Reader:
    """Embeddings: ids and the position of the first one -> a row for each token."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.tokens = embeddings.tokens.weight.detach()
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
        self.activation = _ACTIVATION_NAMES[type(feed_forward.activation)]

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
