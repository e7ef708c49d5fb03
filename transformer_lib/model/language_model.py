"""Half a Transformer: a decoder that continues a text."""

import torch
from torch import Tensor, nn

from transformer_lib.model.attention import Cache, MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.layers import FeedForward, SublayerConnection
from transformer_lib.model.transformer import (
    build_attention,
    build_embeddings,
    build_feed_forward,
    build_final_norm,
    initialize,
)


class DecoderOnlyLayer(nn.Module):
    """A decoder layer without a memory: masked self-attention, then feed-forward.

    Args:
        self_attn: attention of the text to itself.
        feed_forward: the position-wise network.
        dropout: rate of dropout on both sub-layers' outputs while training.
        norm_first: pre-norm, as in GPT-2 and all that came after it.
        eps: of the layer norms.
    """

    def __init__(
        self,
        self_attn: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        norm_first: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        options = (self_attn.d_model, dropout, norm_first, eps)
        self.self_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Look back at the text, then think for itself.

        Args:
            x: (batch, length, d_model)
            mask: boolean, broadcastable to (batch, n_heads, length, k_len).
            cache: stores keys and values; x then holds only what is new.

        Returns:
            (batch, length, d_model)
        """
        x = self.self_attn_connection(
            x, lambda x: self.self_attn(x, x, x, mask, cache=cache)
        )
        return self.feed_forward_connection(x, self.feed_forward)


class LanguageModel(nn.Module):
    """A decoder by itself, which continues a text: GPT, and with other parts Llama.

    The target side of the config is used. The paper's parts with norm_first and
    learned_positions make GPT-2 (Radford et al. 2019); what `model.modern` puts in
    their places makes Llama (Touvron et al. 2023).

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        config.require_paper_parts()
        self.config = config
        options = (config.dropout, config.norm_first, config.norm_eps)
        self.layers = nn.ModuleList(
            DecoderOnlyLayer(
                build_attention(config), build_feed_forward(config), *options
            )
            for _ in range(config.n_decoder_layers)
        )
        self.norm = build_final_norm(config)
        self.lm_head = nn.Linear(
            config.d_model, config.tgt_vocab_size, bias=config.head_bias
        )
        initialize(self)
        self.embeddings = build_embeddings(config, config.tgt_vocab_size)
        if config.tie_embeddings != "none":
            self.lm_head.weight = self.embeddings.tokens.weight

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Score every possible next token after every token.

        Args:
            ids: (batch, length), the text, or with a cache what is new of it.
            mask: boolean, (batch, 1, 1, k_len), False where a token is padding.
                Positions count the others. Padding on the right needs no mask: what
                comes before does not see it. None if all tokens are real.
            cache: stores keys and values of the tokens that came before.

        Returns:
            logits: (batch, length, vocab_size). Those of a token depend on it and on
                what comes before.

        Raises:
            ValueError: the text is longer than the config's max_len.
        """
        start = 0 if cache is None else cache.length
        k_len = start + ids.size(1)
        if k_len > self.config.max_len:
            raise ValueError(
                f"{k_len} tokens are longer than max_len {self.config.max_len}"
            )
        numbers = torch.arange(k_len, device=ids.device)
        look_back = numbers[start:, None] >= numbers  # (length, k_len)
        positions = numbers
        if mask is not None:
            look_back = look_back & mask  # (batch, 1, length, k_len)
            positions = (mask.flatten(1).cumsum(dim=1) - 1).clamp(min=0)
        x = self.embeddings(ids, positions[..., start:])
        for layer in self.layers:
            x = layer(x, look_back, cache=cache)
        return self.lm_head(x if self.norm is None else self.norm(x))
