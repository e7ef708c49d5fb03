"""Our translators in models of Hugging Face, which other programs read as well.

Two of its models hold ours without a change of what they compute: `MarianMTModel` one
that is post-norm, as in the paper, and `PegasusForConditionalGeneration` one that is
pre-norm.

Both compute their sinusoids with all sines before all cosines. A model does not mind in
which order its features stand as long as all its matrices agree, so ours are put into
that order. Both start targets with their padding token, so that token gets the vector
of our start token. CTranslate2 goes further: it starts Marian's targets with a vector
of zeros, and leaves out the last token, which is to be the padding. So all target
embeddings of a post-norm model are moved by the same vector, so that the start token's
is zero, and the biases of the first decoder layer move them back; and the padding token
changes places with the last one.
"""

import torch
from torch import Tensor, nn

from transformer_lib.convert.models import HEAD, HEAD_BIAS, SETTINGS, SRC, TGT
from transformer_lib.convert.weights import convert_weights
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.modern import ModernConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.probe import (
    at_rest,
    draw_batches,
    exact_copy,
    require_described,
    require_same_stages,
)

# What is added to the logit of the padding token, which no target may hold.
NEVER = -1e9

# Parameters that write features of the model, by the ends of their names: their rows
# are features. The columns of all other matrices are.
WRITERS = ("out_proj.weight", "out_proj.bias", "contract.weight", "contract.bias",
           "norm.gain", "norm.bias")  # fmt: skip


def to_hugging_face(model: Transformer, bos_id: int, eos_id: int) -> nn.Module:
    """Turn a post-norm model into Marian, a pre-norm one into Pegasus.

    Tied matrices are written out. Ids are ours but for the padding: see `their_ids`.
    Their model is proven to give our logits.

    Args:
        model: one vocabulary for both sides, sinusoids.
        bos_id: the token that its targets start with.
        eos_id: the token that its targets end with.

    Raises:
        ValueError: they have no place for something in the model, or it computes
            something else than its configuration says.
        ImportError: transformers is not installed.
    """
    import transformers

    config = model.config
    _require_place(config)
    model = require_described(model, lambda: Transformer(config))
    weights = _reordered_weights(model)
    weights[TGT][config.pad_id] = weights[TGT][bos_id]
    if config.norm_first:
        kind = transformers.PegasusForConditionalGeneration
    else:
        kind = transformers.MarianMTModel
        _start_with_zeros(weights, weights[TGT][bos_id].clone(), model)
    ids = their_ids(config)
    for name in (SRC, TGT, HEAD, HEAD_BIAS):
        weights[name] = weights[name][ids]
    bos, eos, pad = ids[[bos_id, eos_id, config.pad_id]].tolist()
    options = {
        name: getattr(config, ours)
        for ours, names in SETTINGS.items()
        for name in names
    } | {
        "vocab_size": config.src_vocab_size,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "forced_eos_token_id": None,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        # CTranslate2 asks for these two.
        "normalize_before": config.norm_first,
        "normalize_embedding": False,
    }
    theirs = kind(kind.config_class(**options))
    bias = weights.pop(HEAD_BIAS)[None]  # (1, vocab_size)
    state = convert_weights(weights, "transformer_lib", "Hugging Face", strict=True)
    computed = ("embed_positions.weight", "shared.weight")  # they stay
    own = {k: t for k, t in theirs.state_dict().items() if k.endswith(computed)}
    theirs.load_state_dict(own | state | {"final_logits_bias": bias})
    _require_same_logits(theirs.eval(), model, bos_id)
    return theirs


def _require_same_logits(theirs: nn.Module, model: Transformer, bos_id: int) -> None:
    """Compare their model with ours, in float64, but for the padding's own logit."""
    config = model.config
    ids = their_ids(config)
    with at_rest():
        exact = exact_copy(theirs)
        for src, tgt in draw_batches(config):
            tgt[:, 0] = bos_id
            their_tgt = ids[tgt]
            their_tgt[:, 0] = ids[config.pad_id]
            logits = exact(
                input_ids=ids[src],
                attention_mask=(src != config.pad_id).long(),
                decoder_input_ids=their_tgt,
            ).logits[..., ids]
            expected = model(src, tgt)
            logits[..., config.pad_id] = expected[..., config.pad_id]
            require_same_stages(
                {"logits": logits},
                {"logits": expected},
                "the model for Hugging Face",
                torch.float32,  # of their weights
            )


def their_ids(config: TransformerConfig) -> Tensor:
    """Return their id of each of ours: padding and the last token change places.

    It is our id of each of theirs, too: (vocab_size,).
    """
    ids = torch.arange(config.tgt_vocab_size)
    ids[[config.pad_id, -1]] = ids[[-1, config.pad_id]]
    return ids


def _require_place(config: TransformerConfig) -> None:
    """Refuse what their code would leave out without a word."""
    if isinstance(config, ModernConfig):
        raise ValueError("their models have no place for parts that came later")
    wanted = {
        "final_norm": (None, config.norm_first),
        "norm_eps": (1e-5,),
        "learned_positions": (False,),
        "embedding_norm_eps": (None,),
        "tgt_vocab_size": (config.src_vocab_size,),
    }
    for name, values in wanted.items():
        if getattr(config, name) not in values:
            raise ValueError(
                f"{name} is {getattr(config, name)}, but their models have a place "
                f"for {values[-1]}"
            )


def _reordered_weights(model: Transformer) -> dict[str, Tensor]:
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


def _start_with_zeros(
    weights: dict[str, Tensor], start: Tensor, model: Transformer
) -> None:
    """Take `start` from all target embeddings, and let the first layer add it again.

    W (x - shift) + (b + W shift) = W x + b for its projections, and what its residual
    connection passes on comes back with the bias of the output projection.
    """
    weights[TGT] -= start
    shift = start * model.tgt_embeddings.scale
    first = "decoder.layers.0.self_attn."
    for name in ("q_proj", "k_proj", "v_proj"):
        weights[f"{first}{name}.bias"] += weights[f"{first}{name}.weight"] @ shift
    weights[f"{first}out_proj.bias"] += shift
