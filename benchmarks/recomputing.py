"""Decoding without a cache of keys and values, as it is often shown: the peers'."""

import torch
from torch import Tensor, nn

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer


class Targets:
    """In the place of a cache: what recomputing remembers are the tokens themselves.

    Args:
        memory: (batch, src_len, d_model)
        src_mask: (batch, 1, 1, src_len), boolean.
        n_beams: targets for each sentence.
    """

    def __init__(self, memory: Tensor, src_mask: Tensor, n_beams: int) -> None:
        self.memory = memory.repeat_interleave(n_beams, dim=0)
        self.src_mask = src_mask.repeat_interleave(n_beams, dim=0)
        self.n_beams = n_beams
        self.ids = torch.empty(len(self.memory), 0, dtype=torch.long)

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.ids.size(1)

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from its parent: (n_sentences, n_beams)."""
        ids = self.ids.unflatten(0, parents.shape)
        index = parents[..., None].expand(-1, -1, self.length)
        self.ids = ids.gather(1, index).flatten(0, 1)

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only: (n_kept,), indices."""
        beams = torch.arange(self.n_beams)
        rows = (sentences[:, None] * self.n_beams + beams).flatten()
        self.ids, self.memory = self.ids[rows], self.memory[rows]
        self.src_mask = self.src_mask[rows]


class Recomputing(nn.Module):
    """Our model without its cache, behind the two methods that searches call.

    Args:
        model: whose weights it has.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model, self.config, self.lm_head = model, model.config, model.lm_head

    def start_cache(self, src: Tensor, n_beams: int = 1) -> Targets:
        """Read the source; see `Transformer.start_cache`."""
        src_mask = padding_mask(src, self.config.pad_id)
        return Targets(self.encode(src, src_mask), src_mask, n_beams)

    def decode_next(self, tgt_new: Tensor, targets: Targets) -> Tensor:
        """Read all tokens again; return the features of the new ones."""
        targets.ids = torch.cat([targets.ids, tgt_new], dim=1)
        return self.decode(targets)[:, -tgt_new.size(1) :]

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """(batch, src_len) -> (batch, src_len, d_model)."""
        return self.model.encode(src, src_mask)

    def decode(self, targets: Targets) -> Tensor:
        """Return features of all tokens: (n_rows, length, d_model)."""
        mask = causal_mask(targets.length)
        return self.model.decode(targets.ids, targets.memory, targets.src_mask, mask)


class TorchRecomputing(Recomputing):
    """`nn.Transformer` with the weights and embeddings of our model.

    Args:
        model: whose weights it has.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        config = model.config
        sizes = (config.d_model, config.n_heads, config.d_ff, 0.0)
        options = {"batch_first": True, "norm_first": config.norm_first}
        encoder = nn.TransformerEncoderLayer(*sizes, **options)
        decoder = nn.TransformerDecoderLayer(*sizes, **options)
        self.stacks = nn.ModuleDict(
            {
                "encoder": nn.TransformerEncoder(
                    encoder, config.n_encoder_layers, enable_nested_tensor=False
                ),
                "decoder": nn.TransformerDecoder(decoder, config.n_decoder_layers),
            }
        )
        weights = convert_weights(model.state_dict(), "transformer_lib", "torch.nn")
        self.stacks.load_state_dict(weights)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """(batch, src_len) -> (batch, src_len, d_model)."""
        x = self.model.src_embeddings(src)
        ignored = ~src_mask[:, 0, 0]
        return self.stacks["encoder"](x, src_key_padding_mask=ignored)

    def decode(self, targets: Targets) -> Tensor:
        """Return features of all tokens: (n_rows, length, d_model)."""
        return self.stacks["decoder"](
            self.model.tgt_embeddings(targets.ids),
            targets.memory,
            tgt_mask=~causal_mask(targets.length),
            memory_key_padding_mask=~targets.src_mask[:, 0, 0],
            tgt_is_causal=True,
        )
