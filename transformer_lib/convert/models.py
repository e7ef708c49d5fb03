"""Other people's weights in our Transformer, which then gives their logits and beams.

from_torch      nn.Transformer between embeddings and an output layer
from_marian     Marian of Hugging Face: the models of OPUS-MT
from_fsmt       FSMT of Hugging Face: fairseq's models of WMT 2019
from_fairseq    fairseq itself

All take a state dict. Sizes and choices are read from their configuration, keys are
renamed by the cross-walk, and what our model has no place for is refused by its name.
Dropout of whole layers is not taken over: it matters only to further training. Give the
models sources that are padded on the right.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.convert.options import (
    as_mapping,
    fairseq_options,
    fsmt_options,
    marian_options,
    torch_options,
)
from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.model.config import TransformerConfig, Tying
from transformer_lib.model.embeddings import sinusoid_table
from transformer_lib.model.state_dict import load_weights
from transformer_lib.model.transformer import Transformer

State = Mapping[str, Tensor]

SRC_TOKENS = "src_embeddings.tokens.weight"
TGT_TOKENS = "tgt_embeddings.tokens.weight"
HEAD, HEAD_BIAS = "lm_head.weight", "lm_head.bias"
LEARNED = "src_embeddings.positions.table"
SINUSOIDS = "sinusoids"  # stands for a table that is kept by them, but computed by us

FAIRSEQ_MATRICES = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
)

# What the best-known model around nn.Transformer calls its parts: that of PyTorch's
# tutorial on translation.
TUTORIAL_NAMES = {
    "transformer.": "",
    "src_tok_emb.embedding.": "src_embeddings.tokens.",
    "tgt_tok_emb.embedding.": "tgt_embeddings.tokens.",
    "generator.": "lm_head.",
    "positional_encoding.pos_embedding": SINUSOIDS,
}


def from_torch(
    state: State,
    transformer: nn.Transformer,
    pad_id: int,
    names: Mapping[str, str] = TUTORIAL_NAMES,
    scale_embeddings: bool = True,
) -> Transformer:
    """Load a model built around `nn.Transformer`.

    Args:
        state: state dict of the whole model.
        transformer: from which sizes and choices are read; weights come from the state.
        pad_id: the padding token, the same in both vocabularies.
        names: what the model's keys begin with -> what ours begin with. "" stands for
            `nn.Transformer` itself; SINUSOIDS for its table of positions, of which is
            made sure that it is the paper's. Tables of learned positions are ours under
            {src,tgt}_embeddings.positions.table.
        scale_embeddings: whether the model multiplies token vectors by sqrt(d_model).

    Raises:
        ValueError: something has no place in our model.
    """
    inner, weights = {}, {}
    for key, tensor in state.items():
        prefix = next((name for name in names if key.startswith(name)), None)
        if prefix is None:
            raise ValueError(f"{key} begins with none of {', '.join(names)}")
        place = weights if names[prefix] else inner
        place[names[prefix] + key.removeprefix(prefix)] = tensor
    weights |= convert_weights(inner, "torch.nn", "transformer_lib", strict=True)
    sinusoids = weights.pop(SINUSOIDS, None)
    table = weights.get(LEARNED, sinusoids)
    config = TransformerConfig(
        **_vocabularies(weights, "the state dict"),
        **torch_options(transformer),
        pad_id=pad_id,
        learned_positions=LEARNED in weights,
        scale_embeddings=scale_embeddings,
        **({} if table is None else {"max_len": table.flatten(0, -2).size(0)}),
    )
    if sinusoids is not None:
        tables = {SINUSOIDS: sinusoids.flatten(0, -2)}
        _check_tables(tables, sinusoid_table(config.max_len, config.d_model))
    return _build(config, weights, "the model of PyTorch")


def from_marian(state: State, options: Any) -> Transformer:
    """Load Marian of Hugging Face, that is a model of OPUS-MT.

    It starts targets with its padding token: decode with bos_id = config.pad_id.

    Args:
        state: state dict of `MarianMTModel`, or the content of its file, in which tied
            matrices are kept once.
        options: its MarianConfig, or the content of its config.json.

    Raises:
        ValueError: something has no place in our model.
    """
    options, state = as_mapping(options), dict(state)
    tied = ["model.decoder.embed_tokens.weight", "lm_head.weight"]
    if options.get("share_encoder_decoder_embeddings", True):
        tied = ["model.shared.weight", "model.encoder.embed_tokens.weight", *tied]
    if not options.get("tie_word_embeddings", True):
        tied.pop()
    _fill_tied(state, tied)
    state.pop("model.shared.weight", None)
    bias = state.pop("final_logits_bias", torch.zeros(1))
    tables = _take(state, "embed_positions.weight")
    weights = convert_weights(state, "Hugging Face", "transformer_lib", strict=True)
    if bias.any():
        weights[HEAD_BIAS] = bias.flatten()  # from (1, vocab_size)
    config = TransformerConfig(
        **_vocabularies(weights, "Marian"),
        **marian_options(options),
    )
    positions = sinusoid_halves(config.max_len, config.d_model, "marian")
    _check_tables(tables, positions)
    return _build(config, weights, "Marian", positions)


def from_fsmt(state: State, options: Any) -> Transformer:
    """Load FSMT of Hugging Face, which holds fairseq's models of WMT 2019.

    It starts targets with its end token: decode with bos_id = eos_id.

    Args:
        state: state dict of `FSMTForConditionalGeneration`.
        options: its FSMTConfig, or the content of its config.json.

    Raises:
        ValueError: something has no place in our model.
    """
    options = as_mapping(options)
    state = {key.removeprefix("model."): tensor for key, tensor in state.items()}
    tables = _take(state, "embed_positions.weight")
    if options.get("tie_word_embeddings"):
        _fill_tied(state, FAIRSEQ_MATRICES)
    weights = convert_weights(state, "fairseq", "transformer_lib", strict=True)
    config = TransformerConfig(
        **_vocabularies(weights, "FSMT"),
        **fsmt_options(options),
    )
    positions = _fairseq_positions(config)
    start = config.pad_id + 1
    _check_tables({key: table[start:] for key, table in tables.items()}, positions)
    return _build(config, weights, "FSMT", positions)


def from_fairseq(state: State, options: Any, pad_id: int = 1) -> Transformer:
    """Load a `TransformerModel` of fairseq.

    Fairseq starts targets with its end token: decode with bos_id = eos_id.

    Args:
        state: its state dict.
        options: its arguments, by the names that fairseq's command line has for them
            with underscores, in a mapping or a namespace.
        pad_id: the padding token; 1 in fairseq's dictionaries.

    Raises:
        ValueError: something has no place in our model.
    """
    options, state = as_mapping(options), dict(state)
    _take(state, ".version")
    _take(state, "._float_tensor")
    if options.get("share_all_embeddings"):
        _fill_tied(state, FAIRSEQ_MATRICES)
    elif options.get("share_decoder_input_output_embed"):
        _fill_tied(state, FAIRSEQ_MATRICES[1:])
    weights = convert_weights(state, "fairseq", "transformer_lib", strict=True)
    config = TransformerConfig(
        **_vocabularies(weights, "fairseq"),
        **fairseq_options(options),
        pad_id=pad_id,
    )
    return _build(config, weights, "fairseq", _fairseq_positions(config))


def _fairseq_positions(config: TransformerConfig) -> Tensor:
    """Return fairseq's sinusoids, which count from pad_id + 1."""
    start = config.pad_id + 1
    return sinusoid_halves(start + config.max_len, config.d_model, "fairseq")[start:]


def _vocabularies(weights: State, source: str) -> dict[str, Any]:
    """Read the vocabularies from the matrices, and which of these are the same."""
    for name in (SRC_TOKENS, TGT_TOKENS, HEAD):
        if name not in weights:
            raise ValueError(f"{source} has no matrix for our {name}")
    src, tgt, head = (weights[name] for name in (SRC_TOKENS, TGT_TOKENS, HEAD))
    tying: Tying = "none"
    if torch.equal(tgt, head):
        tying = "all" if torch.equal(src, tgt) else "decoder"
    return {
        "src_vocab_size": len(src),
        "tgt_vocab_size": len(tgt),
        "tie_embeddings": tying,
        "head_bias": HEAD_BIAS in weights,
    }


def _build(
    config: TransformerConfig,
    weights: State,
    source: str,
    positions: Tensor | None = None,
) -> Transformer:
    model = Transformer(config)
    # Half precision would only be slower on a CPU.
    model.to(torch.promote_types(weights[HEAD].dtype, torch.float32))
    own = dict(model.named_parameters())  # tied ones once
    tied = model.state_dict().keys() - own.keys()
    kept = {name: weights[name] for name in weights if name not in tied}
    load_weights(model, kept, source)
    if positions is not None:
        fix_positions(model, positions)
    return model.eval()


def _check_tables(tables: State, ours: Tensor) -> None:
    """Make sure that positions kept by them are those that are computed by us."""
    for name, table in tables.items():
        n = min(len(table), len(ours))
        fits = table.size(1) == ours.size(1) and torch.allclose(
            table[:n].to(ours), ours[:n], rtol=0, atol=1e-3
        )
        if not fits:
            raise ValueError(
                f"{name} of shape {tuple(table.shape)} does not hold the sinusoids of "
                f"shape {tuple(ours.shape)} that are computed for it"
            )


def _take(state: dict[str, Tensor], ending: str) -> dict[str, Tensor]:
    return {key: state.pop(key) for key in [*state] if key.endswith(ending)}


def _fill_tied(state: dict[str, Tensor], names: Iterable[str]) -> None:
    """Write a matrix that is kept once under all its names."""
    found = [state[name] for name in names if name in state]
    for name in names if found else ():
        state.setdefault(name, found[0])
