"""The same model from other libraries, for the benchmarks."""

import torch
import transformers
from torch import Tensor, nn

from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.masks import causal_mask
from transformer_lib.model.transformer import build_embeddings


class TorchTransformer(nn.Module):
    """`nn.Transformer` with this book's embeddings before and a tied matrix after it.

    Args:
        config: sizes; embeddings are tied on all sides.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings: Embeddings = build_embeddings(config, config.tgt_vocab_size)
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=config.norm_first,
        )
        for module in self.transformer.modules():  # dropout where the paper has it
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(
                module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
            ):
                module.dropout.p = 0.0  # the one inside the feed-forward network

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(batch, src_len), (batch, tgt_len) -> (batch, tgt_len, vocab_size)."""
        src_padding, tgt_padding = (
            ids == self.config.pad_id for ids in (src, tgt_in)
        )  # True where nothing may look
        features = self.transformer(
            self.embeddings(src),
            self.embeddings(tgt_in),
            tgt_mask=~causal_mask(tgt_in.size(1)),
            src_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_padding,
            memory_key_padding_mask=src_padding,
            tgt_is_causal=True,
        )
        return features @ self.embeddings.tokens.weight.T


class Marian(nn.Module):
    """Hugging Face's Marian, which is post-norm, ties all embeddings and has no choice.

    Args:
        config: sizes.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        options = transformers.MarianConfig(
            vocab_size=config.tgt_vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            max_position_embeddings=config.max_len,
            scale_embedding=True,
            dropout=config.dropout,
            pad_token_id=config.pad_id,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            forced_eos_token_id=None,
        )
        self.marian = transformers.MarianMTModel(options)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(batch, src_len), (batch, tgt_len) -> (batch, tgt_len, vocab_size)."""
        real = (src != self.config.pad_id).to(torch.int64)
        return self.marian(
            input_ids=src,
            attention_mask=real,
            decoder_input_ids=tgt_in,
            use_cache=False,
        ).logits
