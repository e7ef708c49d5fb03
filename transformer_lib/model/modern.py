"""What changed after 2017: the parts of today's models, in the places of the paper's.

Each part stands where one of the paper's parts stands, with the same `forward`:

    RMSNorm                  instead of LayerNorm
    GroupedQueryAttention    instead of MultiHeadAttention; it can rotate queries and
                             keys, and NoPositions then takes the place of sinusoids
    GatedFeedForward         instead of FeedForward

So a modern layer is a paper's layer made of other parts, and functions at the end
exchange the parts of a whole model, a `Transformer` or a `LanguageModel`. They note in
its config what they did, a `ModernConfig`, of which `build_model` makes such a model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor, nn

from transformer_lib.model.attention import Cache, Kernel, fused_attention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.layers import ACTIVATIONS, Activation, LayerNorm
from transformer_lib.model.transformer import Transformer, initialize

Model = TypeVar("Model", bound=nn.Module)
# Of `rotary_speeds`: factor, trained length, circles of slow and of fast pairs.
Stretch = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class ModernConfig(TransformerConfig):
    """A TransformerConfig with the parts that came later; by default it has none.

    Attributes:
        rms_norm: RMSNorm instead of layer norm, everywhere.
        gated: feed-forward networks of width d_ff with a gate, of the activation.
        gate_bias: biases of the three matrices of a gated network.
        n_kv_heads: heads of keys and values of `GroupedQueryAttention`, whose four
            projections have a bias if attention_bias says so; None for the paper's
            attention.
        rotary: base of the rotary positions of self-attention.
        window: keys that self-attention looks back on.
        qk_norm: RMSNorm on queries and keys.
        no_positions: nothing is added to the embeddings for a position.
        d_head: width of a head of `GroupedQueryAttention`; None for d_model / n_heads.
        stretch: slows rotary positions down for longer texts, see `rotary_speeds`.

    Raises:
        ValueError: rotary, window, qk_norm or d_head without n_kv_heads, stretch
            without rotary, or gate_bias without a gate: the part that has them is not
            there. Or heads do not divide.
    """

    rms_norm: bool = False
    gated: bool = False
    gate_bias: bool = False
    n_kv_heads: int | None = None
    rotary: float | None = None
    window: int | None = None
    qk_norm: bool = False
    no_positions: bool = False
    d_head: int | None = None
    stretch: Stretch | None = None

    def __post_init__(self) -> None:
        """Refuse choices of parts that are not there."""
        super().__post_init__()
        for name, owner in (
            ("rotary", "n_kv_heads"),
            ("window", "n_kv_heads"),
            ("qk_norm", "n_kv_heads"),
            ("d_head", "n_kv_heads"),
            ("stretch", "rotary"),
            ("gate_bias", "gated"),
        ):
            if getattr(self, name) and not getattr(self, owner):
                raise ValueError(
                    f"{name} {getattr(self, name)} has no effect without {owner}"
                )
        if self.stretch is not None:  # a file has a list
            object.__setattr__(self, "stretch", tuple(self.stretch))
        n_kv_heads = self.n_heads if self.n_kv_heads is None else self.n_kv_heads
        if n_kv_heads < 1 or self.n_heads % n_kv_heads != 0:
            raise ValueError(
                f"n_kv_heads {n_kv_heads} does not divide n_heads {self.n_heads}"
            )

    def require_paper_parts(self) -> None:
        """Refuse to be taken for the paper's model.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "a ModernConfig describes parts that the paper's model lacks: make the "
            "model with build_model(config)"
        )


def modernize(config: TransformerConfig, **parts: object) -> ModernConfig:
    """Return a config with other parts, and all else as it was."""
    return ModernConfig(**{**vars(config), **parts})


class RMSNorm(nn.Module):
    """Divide every position by the root of its mean square, then multiply by a gain.

    x / sqrt(mean(x²) + eps) * gain (Zhang and Sennrich 2019): layer norm without the
    mean that is taken away and without the bias that is added.

    Args:
        d_model: number of features.
        eps: keeps the root away from 0 where all features are 0.
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model)."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.gain


def rotary_speeds(
    pairs: Tensor, base: float = 10_000.0, stretch: Stretch | None = None
) -> Tensor:
    """Return the speed of each pair of features, in radians for a position.

    A model that was trained with short texts can read longer ones if its slow pairs
    turn more slowly: by a factor, so that at the end of a long text they have turned as
    far as they once did at the end of a short one. Fast pairs have seen every angle and
    stay. In between, a pair gets a bit of both. That is what Llama 3.1 does, and YaRN
    (Peng et al. 2023) does to speeds.

    Args:
        pairs: 2i / d_head for each pair i, from 0 to almost 1.
        base: the longest wavelength is almost base * 2 pi.
        stretch: the factor; the length of the texts in training; how many circles in
            that length a pair turns at most to be slow; and how many at least to be
            fast. None for no stretch.
    """
    speeds = 1 / base**pairs
    if stretch is None:
        return speeds
    factor, trained_len, slow, fast = stretch
    circles = trained_len * speeds / (2 * math.pi)
    kept = ((circles - slow) / (fast - slow)).clamp(0, 1)
    return speeds * (kept + (1 - kept) / factor)


def rotate(
    x: Tensor,
    positions: Tensor,
    base: float = 10_000.0,
    interleaved: bool = False,
    stretch: Stretch | None = None,
) -> Tensor:
    """Turn pairs of features by angles that grow with the position.

    Pair i of position p is turned by p / base^(2i / d_head), the angle of the paper's
    sinusoids (Su et al. 2021). The dot product of a query and a key that are both
    turned depends on the distance of their positions, not on the positions.

    Which two features are a pair is a convention. Weights trained with one of them give
    wrong numbers with the other.

    Args:
        x: (batch, n_heads, length, d_head), queries or keys; d_head is even.
        positions: (length,), integers from 0.
        base: the longest wavelength is almost base * 2 pi.
        interleaved: pairs are (0, 1), (2, 3), ..., as in the article and in Meta's
            Llama. If not, feature i goes with feature i + d_head / 2, as in GPT-NeoX
            and in Hugging Face's Llama.
        stretch: for longer texts than in training, see `rotary_speeds`.

    Returns:
        (batch, n_heads, length, d_head)

    Raises:
        ValueError: d_head is odd.
    """
    d_head = x.size(-1)
    if d_head % 2 != 0:
        raise ValueError(f"features are turned in pairs: d_head {d_head} is odd")
    # Apple's graphics cards have no 64 bits; far on, 32 bits round the angles
    precise = torch.float32 if x.device.type == "mps" else torch.float64
    even = torch.arange(0, d_head, 2, dtype=precise, device=x.device)
    speeds = rotary_speeds(even / d_head, base, stretch)  # (d_head / 2,)
    angle = positions[:, None] * speeds  # (length, d_head / 2)
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x.chunk(2, dim=-1)
    turned = (first * cos - second * sin, first * sin + second * cos)
    if interleaved:
        return torch.stack(turned, dim=-1).flatten(-2)
    return torch.cat(turned, dim=-1)


class NoPositions(nn.Module):
    """Add nothing for a position: attention that rotates knows the distances.

    Args:
        d_model: width of the token vectors.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor) -> Tensor:
        """(..., length) -> the number 0, which broadcasts."""
        return positions.new_zeros(())


class GroupedQueryAttention(nn.Module):
    """Multi-head attention in which several query heads share one head of keys.

    Decoding reads all earlier keys and values for every new token, so fewer of them
    mean less memory and less time. One head of keys and values for all queries is
    multi-query attention (Shazeer 2019), one for each group of them is grouped-query
    attention (Ainslie et al. 2023), and one for each query is the paper's attention.

    Args:
        d_model: width of input and output.
        n_heads: heads of queries; must divide d_model.
        n_kv_heads: heads of keys and values; must divide n_heads.
        rotary: the base of `rotate`, which turns queries and keys by their positions;
            None leaves them as they are, as cross-attention needs it.
        window: keys that a query may look back on, its own counted (Mistral 2023);
            without a causal mask, as many ahead (Beltagy et al. 2020). None for all.
            The cache keeps the others nevertheless.
        qk_norm: RMSNorm on every head's queries and keys, which keeps scores from
            growing (Henry et al. 2020).
        bias: whether the four projections add a bias.
        dropout: rate of dropout on the attention weights while training.
        d_head: width of a head; None for d_model / n_heads.
        stretch: slows the rotation down for longer texts, see `rotary_speeds`.

    Attributes:
        kernel: how the heads attend, as in `MultiHeadAttention`.

    Raises:
        ValueError: heads do not divide, or the window holds not even one key.
    """

    def __init__(  # noqa: PLR0913
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int,
        rotary: float | None = None,
        window: int | None = None,
        qk_norm: bool = False,
        bias: bool = False,
        dropout: float = 0.0,
        d_head: int | None = None,
        stretch: Stretch | None = None,
    ) -> None:
        super().__init__()
        if d_head is None and d_model % n_heads != 0:
            raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")
        if n_heads % n_kv_heads != 0:
            raise ValueError(
                f"n_kv_heads {n_kv_heads} does not divide n_heads {n_heads}"
            )
        if window is not None and window < 1:
            raise ValueError(f"window must be at least 1, the token itself: {window}")
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.rotary, self.window, self.dropout = rotary, window, dropout
        self.stretch = stretch
        d_q, d_kv = n_heads * self.d_head, n_kv_heads * self.d_head
        self.q_proj = nn.Linear(d_model, d_q, bias=bias)
        self.k_proj = nn.Linear(d_model, d_kv, bias=bias)
        self.v_proj = nn.Linear(d_model, d_kv, bias=bias)
        self.out_proj = nn.Linear(d_q, d_model, bias=bias)
        self.q_norm = RMSNorm(self.d_head) if qk_norm else nn.Identity()
        self.k_norm = RMSNorm(self.d_head) if qk_norm else nn.Identity()
        self.kernel: Kernel = fused_attention

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Attend from every query position to every key position the mask allows.

        Args:
            query: (batch, q_len, d_model)
            key: (batch, k_len, d_model)
            value: (batch, k_len, d_model)
            mask: boolean, (q_len, k_len) or broadcastable to (batch, n_heads, q_len,
                k_len) with all four axes; True where the query may attend to the key.
                None allows every pair.
            cache: stores keys and values, rotated already. Those that it holds from
                earlier calls come before those of this call, and count in k_len of the
                mask.

        Returns:
            (batch, q_len, d_model)

        Raises:
            ValueError: the mask is not boolean, or has neither two nor four axes;
                queries and keys that have positions are not of one sequence.
        """
        if mask is not None and (mask.dtype != torch.bool or mask.dim() not in (2, 4)):
            raise ValueError(
                "mask must be boolean, (q_len, k_len) or (batch, n_heads, q_len, "
                f"k_len), not {mask.dtype} of shape {tuple(mask.shape)}"
            )
        has_positions = self.rotary is not None or self.window is not None
        if has_positions and query.shape != key.shape:
            raise ValueError(
                "rotary positions and windows are for self-attention: queries are "
                f"{tuple(query.shape)}, keys {tuple(key.shape)}"
            )
        q = self.q_norm(self.split_heads(self.q_proj(query)))
        k = self.k_norm(self.split_heads(self.k_proj(key)))
        v = self.split_heads(self.v_proj(value))
        if has_positions:
            positions = torch.arange(query.size(1), device=query.device)
            if cache is not None:
                positions = cache.positions(query[..., 0])
        if self.rotary is not None:
            how = {"base": self.rotary, "stretch": self.stretch}
            q, k = rotate(q, positions, **how), rotate(k, positions, **how)
        if cache is not None:
            k, v = cache.update(self, k, v)
        if self.window is not None:
            distance = positions[:, None] - torch.arange(k.size(2), device=k.device)
            near = distance.abs() < self.window  # (q_len, k_len)
            mask = near if mask is None else mask & near
        group = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        dropout = self.dropout if self.training else 0.0
        output = self.kernel(q, k, v, mask, dropout)  # (batch, n_heads, q_len, d_head)
        return self.out_proj(output.transpose(1, 2).flatten(-2))

    def split_heads(self, x: Tensor) -> Tensor:
        """(batch, length, n * d_head) -> (batch, n, length, d_head)."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


class GatedFeedForward(nn.Module):
    """A feed-forward network whose hidden layer is multiplied by a gate.

    W_2 (activation(W_g x) * W_1 x) (Shazeer 2020), SwiGLU with "swish". It has three
    matrices instead of two: with 2/3 of the paper's d_ff it has as many parameters.

    Args:
        d_model: width of input and output.
        d_ff: width of the hidden layer and of its gate.
        activation: of the gate.
        bias: whether the three matrices have biases.
        dropout: rate of dropout on the hidden layer while training.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = "swish",
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=bias)
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model), every position by itself."""
        hidden = self.activation(self.gate(x)) * self.expand(x)
        return self.contract(self.dropout(hidden))


def build_model(
    config: TransformerConfig,
    kind: Callable[[TransformerConfig], Model] = Transformer,
) -> Model:
    """Make a new model of the parts that its config names, the paper's or later ones.

    Args:
        config: a TransformerConfig, or a ModernConfig.
        kind: makes a model of the paper's parts: `Transformer`, or `LanguageModel`.
    """
    names = [field.name for field in fields(TransformerConfig)]
    model = kind(TransformerConfig(**{name: getattr(config, name) for name in names}))
    if isinstance(config, ModernConfig):
        if config.rms_norm:
            replace_norms(model)
        if config.gated:
            replace_feed_forward(
                model, config.d_ff, config.activation, config.gate_bias
            )
        if config.n_kv_heads is not None:
            replace_attention(
                model,
                config.n_kv_heads,
                config.rotary,
                config.window,
                config.qk_norm,
                config.attention_bias,
                config.d_head,
                config.stretch,
            )
        if config.no_positions:
            remove_positions(model)
    return model


def replace_norms(model: nn.Module) -> None:
    """Put a fresh RMSNorm in the place of every layer norm, with its eps, in place.

    Args:
        model: of any parts, with a config, which notes the change.
    """
    for part in list(model.modules()):
        if isinstance(getattr(part, "norm", None), LayerNorm):
            part.norm = RMSNorm(len(part.norm.gain), part.norm.eps)
    model.config = modernize(model.config, rms_norm=True)


def replace_feed_forward(
    model: nn.Module, d_ff: int, activation: Activation = "swish", bias: bool = False
) -> None:
    """Put a fresh gated network in the place of every feed-forward, in place.

    Args:
        model: of any parts, with a config, which notes the change.
        d_ff: hidden width; 2/3 of the old one leaves the number of parameters.
        activation: of the gate.
        bias: whether the matrices have biases.
    """
    config = modernize(
        model.config, d_ff=d_ff, activation=activation, gated=True, gate_bias=bias
    )
    options = (config.d_model, d_ff, activation, bias, config.activation_dropout)
    for part in list(model.modules()):
        if hasattr(part, "feed_forward"):
            part.feed_forward = GatedFeedForward(*options)
            initialize(part.feed_forward)
    model.config = config


def replace_attention(  # noqa: PLR0913
    model: nn.Module,
    n_kv_heads: int | None = None,
    rotary: float | None = None,
    window: int | None = None,
    qk_norm: bool = False,
    bias: bool = False,
    d_head: int | None = None,
    stretch: Stretch | None = None,
) -> None:
    """Put a fresh grouped-query attention in the place of every attention, in place.

    Cross-attention gets no rotation and no window: its keys are another sequence's.

    Args:
        model: of any parts, with a config, which notes the change.
        n_kv_heads: heads of keys and values; as many as of queries if None.
        rotary: the base of rotary positions, which then replace all that embeddings
            add for positions; None keeps the embeddings as they are.
        window: keys that self-attention looks back on; None for all.
        qk_norm: RMSNorm on queries and keys.
        bias: whether the projections add a bias.
        d_head: width of a head; None for d_model / n_heads.
        stretch: slows rotary positions down for longer texts, see `rotary_speeds`.
    """
    config = modernize(
        model.config,
        n_kv_heads=model.config.n_heads if n_kv_heads is None else n_kv_heads,
        rotary=rotary,
        window=window,
        qk_norm=qk_norm,
        attention_bias=bias,
        d_head=d_head,
        stretch=stretch,
    )
    sizes = (config.d_model, config.n_heads, config.n_kv_heads)
    shared = {
        "qk_norm": qk_norm,
        "bias": bias,
        "dropout": config.attention_dropout,
        "d_head": d_head,
    }
    for part in list(model.modules()):
        if hasattr(part, "self_attn"):
            part.self_attn = GroupedQueryAttention(
                *sizes, rotary, window, **shared, stretch=stretch
            )
            initialize(part.self_attn)
        if hasattr(part, "cross_attn"):
            part.cross_attn = GroupedQueryAttention(*sizes, **shared)
            initialize(part.cross_attn)
    model.config = config
    if rotary is not None:
        remove_positions(model)


def remove_positions(model: nn.Module) -> None:
    """Let embeddings add nothing for a position, in place.

    Args:
        model: of any parts, with a config, which notes the change.
    """
    for part in list(model.modules()):
        if isinstance(part, Embeddings):
            part.positions = NoPositions(model.config.d_model)
    model.config = modernize(model.config, no_positions=True)
