"""Our translators as two graphs of ONNX, which run without Python.

The graphs are traced from the model itself: the encoder as it is, and the decoder with
a cache whose keys and values come in as inputs and go out as results.
"""

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lib.generation.constraints import without_dropout
from transformer_lib.generation.incremental import KeyValueCache
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import Transformer

ENCODER, DECODER_STEP = "encoder.onnx", "decoder_step.onnx"
AXES = {  # that have a size of their own in every call
    "src": {0: "batch", 1: "src_len"},
    "ids": {0: "batch"},
    "memory": {2: "batch", 4: "src_len"},
    "past": {2: "batch", 4: "length"},
}


class Encoding(nn.Module):
    """Read the source, and compute what every step of the decoder attends to."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor) -> Tensor:
        """(batch, src_len), ids -> the memory's keys and values.

        They are (n_decoder_layers, 2, batch, n_heads, src_len, d_head).
        """
        memory = self.model.encode(src, padding_mask(src, self.model.config.pad_id))
        kept = [
            layer.cross_attn.split_heads(project(memory))
            for layer in self.model.decoder.layers
            for project in (layer.cross_attn.k_proj, layer.cross_attn.v_proj)
        ]
        return torch.stack(kept).unflatten(0, (-1, 2))


class GrowingCache(KeyValueCache):
    """A cache without space to spare: every step returns a longer tensor."""

    def update(
        self, attention: MultiHeadAttention, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return keys and values (batch, n_heads, length, d_head) of all tokens."""
        both = torch.cat([self.buffers[attention], torch.stack([key, value])], dim=3)
        self.buffers[attention] = both
        return both[0], both[1]


class DecodingStep(nn.Module):
    """Read one token, and score the next one."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, ids: Tensor, src: Tensor, memory: Tensor, past: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Go one step on.

        Args:
            ids: (batch, 1), the last token of each target.
            src: (batch, src_len), source ids.
            memory: what `Encoding` returned.
            past: (n_decoder_layers, 2, batch, n_heads, length, d_head), keys and values
                of the tokens before.

        Returns:
            logits: (batch, vocab_size)
            present: as past, one token longer.
        """
        cache = GrowingCache()
        cache.length = past.size(4)
        for layer, written, read in zip(
            self.model.decoder.layers, past, memory, strict=True
        ):
            cache.buffers[layer.self_attn] = written
            cache.source.kept[layer.cross_attn] = read
        mask = padding_mask(src, self.model.config.pad_id)
        nothing_new = memory.new_zeros(src.size(0), 0, self.model.config.d_model)
        features = self.model.decode(ids, nothing_new, mask, cache=cache)
        return self.model.lm_head(features[:, -1]), torch.stack(
            [*cache.buffers.values()]
        )


def to_onnx(model: Transformer, folder: Path) -> None:
    """Write the two graphs of a model, with weights in single precision.

    Args:
        model: in either mode; the graphs have no dropout.
        folder: where ENCODER and DECODER_STEP are written.

    Raises:
        ImportError: onnx or onnxscript is not installed.
    """
    src = torch.full((2, 3), (model.config.pad_id + 1) % model.config.src_vocab_size)
    with without_dropout(model), torch.no_grad():
        encoding = Encoding(model)
        memory = encoding(src)
        inputs = {"src": src}
        _write(folder / ENCODER, encoding, inputs, ["memory"])
        inputs |= {"ids": src[:, :1], "memory": memory, "past": memory[..., :2, :]}
        outputs = ["logits", "present"]
        _write(folder / DECODER_STEP, DecodingStep(model), inputs, outputs)


def _write(
    path: Path, module: nn.Module, inputs: dict[str, Tensor], outputs: list[str]
) -> None:
    logging.disable(logging.WARNING)  # of packages that are not needed
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            f=path,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes={name: AXES[name] for name in inputs},
            external_data=False,
            verbose=False,
        )
    logging.disable(logging.NOTSET)
