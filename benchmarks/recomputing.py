"""Decoding without a cache of keys and values, as it is often shown."""

from collections.abc import Callable

from torch import Tensor, nn

from transformer_lib.convert import convert_weights
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer


class Recomputing(nn.Module):
    """A model for `RecomputingDecoder`: reads the source once, all targets every time.

    Args:
        model: whose embeddings and output matrix it has.
        encode: from embedded sources and their padding mask to the memory.
        decode: from embedded targets, the memory and its mask to features.
    """

    def __init__(
        self,
        model: Transformer,
        encode: Callable[[Tensor, Tensor], Tensor],
        decode: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> None:
        super().__init__()
        self.model, self.encode, self.decode = model, encode, decode
        self.source: Tensor | None = None

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(batch, src_len), (batch, tgt_len) -> logits (batch, 1, vocab_size)."""
        model = self.model
        mask = padding_mask(src, model.config.pad_id)
        if src is not self.source:
            self.source = src
            self.memory = self.encode(model.src_embeddings(src), mask)
        features = self.decode(model.tgt_embeddings(tgt_in), self.memory, mask)
        return model.lm_head(features[:, -1:])


def recompute_ours(model: Transformer) -> Recomputing:
    """Return our own layers without a cache."""

    def decode(x: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        return model.decoder(x, memory, src_mask, causal_mask(x.size(1)))

    return Recomputing(model, model.encoder, decode)


def recompute_torch(model: Transformer) -> Recomputing:
    """Return the layers of `nn.Transformer` with the weights of our model."""
    config = model.config
    sizes = (config.d_model, config.n_heads, config.d_ff, 0.0)
    options = {"batch_first": True, "norm_first": config.norm_first}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **options),
        config.n_encoder_layers,
        enable_nested_tensor=False,
    )
    layer = nn.TransformerDecoderLayer(*sizes, **options)
    decoder = nn.TransformerDecoder(layer, config.n_decoder_layers)
    weights = convert_weights(model.state_dict(), "transformer_lib", "torch.nn")
    stacks = nn.ModuleDict({"encoder": encoder, "decoder": decoder}).eval()
    stacks.load_state_dict(weights)

    def encode(x: Tensor, src_mask: Tensor) -> Tensor:
        return encoder(x, src_key_padding_mask=~src_mask[:, 0, 0])

    def decode(x: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        return decoder(
            x,
            memory,
            tgt_mask=~causal_mask(x.size(1)),
            memory_key_padding_mask=~src_mask[:, 0, 0],
            tgt_is_causal=True,
        )

    return Recomputing(model, encode, decode)
