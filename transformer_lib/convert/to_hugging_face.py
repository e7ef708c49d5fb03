"""Our translators in models of Hugging Face, which other programs read as well.

Two of its models hold ours without a change of what they compute:

to_marian     post-norm, as in the paper: `MarianMTModel`
to_pegasus    pre-norm: `PegasusForConditionalGeneration`

Both compute their sinusoids with all sines before all cosines. A model does not mind in
which order its features stand as long as all its matrices agree, so ours are put into
that order. Both start targets with their padding token, so that token gets the vector
of our start token. CTranslate2 goes further and starts Marian's targets with a vector
of zeros: all target embeddings are moved by the same vector, so that the start token's
is zero, and the biases of the first decoder layer move them back.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer_lib.convert.models import HEAD, HEAD_BIAS, SETTINGS, SRC, TGT
from transformer_lib.convert.weights import convert_weights
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

if TYPE_CHECKING:
    from transformers import MarianMTModel, PegasusForConditionalGeneration
    from transformers import PreTrainedModel as TheirModel

# What is added to the logit of the padding token, which no target may hold.
NEVER = -1e9

# Parameters that write features of the model, by the ends of their names: their rows
# are features. The columns of all other matrices are.
WRITERS = ("out_proj.weight", "out_proj.bias", "contract.weight", "contract.bias",
           "norm.gain", "norm.bias")  # fmt: skip


def to_marian(model: Transformer, bos_id: int, eos_id: int) -> "MarianMTModel":
    """Turn a post-norm model into `MarianMTModel`.

    The padding token becomes the last of the vocabulary, as CTranslate2 wants it; the
    tokens after it move up by one: see `pad_last`.

    Args:
        model: one vocabulary for both sides, sinusoids.
        bos_id: the token that its targets start with.
        eos_id: the token that its targets end with.

    Raises:
        ValueError: Marian has no place for something in the model.
        ImportError: transformers is not installed.
    """
    from transformers import MarianConfig, MarianMTModel

    config = model.config
    _require_place(config, "Marian", pre_norm=False)
    weights, ours = _weights(model), pad_last(config)
    start = weights[TGT][bos_id]
    weights[TGT] = weights[TGT] - start
    _undo_shift(weights, start * model.tgt_embeddings.scale)
    weights[TGT][config.pad_id] = 0
    for name in (SRC, TGT, HEAD, HEAD_BIAS):
        weights[name] = weights[name][ours]
    bos, eos, pad = ours.argsort()[[bos_id, eos_id, config.pad_id]].tolist()
    options = _options(config, bos, eos, pad) | {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    }
    return _filled(MarianMTModel(MarianConfig(**options)), weights)


def to_pegasus(
    model: Transformer, bos_id: int, eos_id: int
) -> "PegasusForConditionalGeneration":
    """Turn a pre-norm model into `PegasusForConditionalGeneration`.

    Args and errors are those of `to_marian`; ids stay as they are.
    """
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    config = model.config
    _require_place(config, "Pegasus", pre_norm=True)
    weights = _weights(model)
    weights[TGT][config.pad_id] = weights[TGT][bos_id]
    tied = config.tie_embeddings == "all"
    if tied:  # padding is masked in the source, and ruled out by its bias in the output
        weights[SRC] = weights[HEAD] = weights[TGT]
    options = _options(config, bos_id, eos_id, config.pad_id)
    options |= {"tie_word_embeddings": tied}
    # CTranslate2 asks for these two.
    options |= {"normalize_before": True, "normalize_embedding": False}
    return _filled(PegasusForConditionalGeneration(PegasusConfig(**options)), weights)


def pad_last(config: TransformerConfig) -> Tensor:
    """Return our id of each of Marian's: (vocab_size,), the padding token last."""
    others = [i for i in range(config.tgt_vocab_size) if i != config.pad_id]
    return torch.tensor([*others, config.pad_id])


def _require_place(config: TransformerConfig, theirs: str, pre_norm: bool) -> None:
    """Refuse what their code would leave out without a word."""
    if config.norm_first != pre_norm:
        kind, other = ("post", "marian") if pre_norm else ("pre", "pegasus")
        raise ValueError(
            f"norm_first is {config.norm_first}: {theirs} has no place for {kind}-norm "
            f"layers, but {other} has"
        )
    final_norm = pre_norm if config.final_norm is None else config.final_norm
    for name, value, wanted in (
        ("final_norm", final_norm, pre_norm),
        ("norm_eps", config.norm_eps, 1e-5),
        ("learned_positions", config.learned_positions, False),
        ("embedding_norm_eps", config.embedding_norm_eps, None),
        ("tgt_vocab_size", config.tgt_vocab_size, config.src_vocab_size),
    ):
        if value != wanted:
            raise ValueError(
                f"{name} is {value}, but {theirs} has a place for {wanted}"
            )


def _weights(model: Transformer) -> dict[str, Tensor]:
    """Return our weights with features in their order and with all biases."""
    config = model.config
    order = torch.arange(config.d_model).view(-1, 2).T.flatten()  # sines, cosines
    weights = {HEAD_BIAS: torch.zeros(config.tgt_vocab_size)}
    for name, weight in model.state_dict().items():
        weight = weight.detach().cpu().float().clone()
        if name.endswith(WRITERS):
            weight = weight[order]
        elif weight.dim() == 2:
            weight = weight[:, order]
        weights[name] = weight
        if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight")):
            zeros = torch.zeros(config.d_model)
            weights.setdefault(name.removesuffix("weight") + "bias", zeros)
    weights[HEAD_BIAS][config.pad_id] = NEVER
    return weights


def _undo_shift(weights: dict[str, Tensor], shift: Tensor) -> None:
    """Give the first decoder layer the input that `shift` was taken from, in place.

    W (x - shift) + (b + W shift) = W x + b for its projections, and what its residual
    connection passes on comes back with the bias of the output projection.
    """
    start = "decoder.layers.0.self_attn."
    for name in ("q_proj", "k_proj", "v_proj"):
        weight, bias = f"{start}{name}.weight", f"{start}{name}.bias"
        weights[bias] = weights[bias] + weights[weight] @ shift
    bias = f"{start}out_proj.bias"
    weights[bias] = weights[bias] + shift


def _options(
    config: TransformerConfig, bos: int, eos: int, pad: int
) -> dict[str, object]:
    """Return what both configurations have the same names for."""
    sizes = {
        name: getattr(config, ours)
        for ours, names in SETTINGS.items()
        for name in names
    }
    return sizes | {
        "vocab_size": config.src_vocab_size,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": None,
    }


def _filled(theirs: "TheirModel", weights: dict[str, Tensor]) -> "TheirModel":
    """Give their model our weights; the sinusoids it has computed stay."""
    bias = weights.pop(HEAD_BIAS)[None]  # (1, vocab_size)
    state = convert_weights(weights, "transformer_lib", "Hugging Face", strict=True)
    kept = ("embed_positions.weight", "shared.weight")
    own = {k: t for k, t in theirs.state_dict().items() if k.endswith(kept)}
    theirs.load_state_dict(own | state | {"final_logits_bias": bias})
    return theirs.eval()
