"""The contestants of the decoding benchmark: the same model in several libraries."""

import copy
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from peers import Marian
from recomputing import Recomputing, TorchRecomputing
from torch import Tensor, nn
from torch.ao.quantization import quantize_dynamic

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.fast.packing import packed_weights
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import TargetRules
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

BOS, EOS = 1, 2
LONGEST_SOURCE = 20


class Setting(NamedTuple):
    """What is to be decoded.

    Attributes:
        config: of the model.
        batch: sentences.
        n_beams: of beam search; 1 is greedy search.
        n_tokens: that every target has: its length is forced.
    """

    config: TransformerConfig
    batch: int
    n_beams: int
    n_tokens: int


@cache
def make_model(config: TransformerConfig) -> Transformer:
    """Draw the model. It never pads or ends a target, which is left to the rules."""
    torch.manual_seed(0)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.lm_head.weight[[config.pad_id, EOS]] = 0.0
    return model


def make_source(setting: Setting) -> Tensor:
    """Draw sentences of 10 to 20 tokens, padded: (batch, 20)."""
    torch.manual_seed(1)
    src = torch.randint(4, setting.config.src_vocab_size, (setting.batch, 20))
    lengths = torch.randint(10, LONGEST_SOURCE, (setting.batch, 1))
    lengths[0] = LONGEST_SOURCE
    src[torch.arange(LONGEST_SOURCE) >= lengths] = setting.config.pad_id
    return src


def decode_ours(model: nn.Module, setting: Setting) -> list[list[int]]:
    """Decode as the book does; return the best target of each sentence."""
    n_tokens, src = setting.n_tokens, make_source(setting)
    rules = TargetRules(bos_id=BOS, eos_id=EOS, max_len=n_tokens, min_len=n_tokens)
    if setting.n_beams == 1:
        return [found.ids for found in greedy_decode(model, src, rules)]
    return [found[0].ids for found in beam_search(model, src, rules, setting.n_beams)]


def make_ours(precision: str = "float32") -> Callable[[Setting], Any]:
    """Return the library's decoding, with weights in another precision.

    They are packed once, as CTranslate2 does when it loads a model.
    """
    packed = ExitStack()

    @cache
    def prepared(config: TransformerConfig) -> nn.Module:
        model = change_precision(make_model(config), precision)
        with torch.inference_mode():
            packed.enter_context(packed_weights(model))
        return model

    return lambda setting: decode_ours(prepared(setting.config), setting)


def change_precision(model: Transformer, precision: str) -> Transformer:
    """Return the model, or a copy with weights in "float32", "bfloat16" or "int8".

    Int8 is PyTorch's dynamic quantization. Queries, keys and values of the decoder's
    self-attention stay as they are: the cache packs their weights.
    """
    if precision == "float32":
        return model
    model = copy.deepcopy(model)
    if precision == "bfloat16":
        return model.bfloat16()
    names = {
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
        and not ("decoder" in name and "self_attn" in name and "out_proj" not in name)
    }
    for name in names:  # quantization knows PyTorch's own class only
        module = model.get_submodule(name)
        plain = nn.Linear(module.in_features, module.out_features)
        plain.weight, plain.bias = module.weight, module.bias
        model.set_submodule(name, plain)
    options = dict.fromkeys(names, torch.ao.quantization.default_dynamic_qconfig)
    return quantize_dynamic(model, options, dtype=torch.qint8)


def make_recomputing(library: str) -> Callable[[Setting], Any]:
    """Return decoding that reads the whole target again for every token."""
    wrap = {"transformer_lib": Recomputing, "nn.Transformer": TorchRecomputing}[library]

    @cache
    def prepared(config: TransformerConfig) -> nn.Module:
        return wrap(make_model(config)).eval()

    return lambda setting: decode_ours(prepared(setting.config), setting)


@cache
def make_marian(config: TransformerConfig) -> nn.Module:
    """Return Hugging Face's Marian with the weights of our model."""
    weights = convert_weights(
        make_model(config).state_dict(), "transformer_lib", "Hugging Face"
    )
    theirs = Marian(config).marian
    left = theirs.load_state_dict(
        {key: weights[key] for key in weights if "positions" not in key}, strict=False
    )
    known = {"model.shared.weight", "final_logits_bias"}
    lacking = {key for key in left.missing_keys if "positions" not in key} - known
    if lacking or left.unexpected_keys:
        raise ValueError(f"weights differ: {lacking}, {left.unexpected_keys}")
    return theirs.eval()


def make_hugging_face(use_cache: bool) -> Callable[[Setting], Any]:
    """Return `generate` of Marian."""

    def decode(setting: Setting) -> list[list[int]]:
        src = make_source(setting)
        ids = make_marian(setting.config).generate(
            input_ids=src,
            attention_mask=(src != setting.config.pad_id).long(),
            num_beams=setting.n_beams,
            do_sample=False,
            min_new_tokens=setting.n_tokens,
            max_new_tokens=setting.n_tokens,
            use_cache=use_cache,
        )
        return ids[:, 1:].tolist()

    return decode


def has_ctranslate2() -> bool:
    """Say whether CTranslate2 is installed, which the project does without."""
    return find_spec("ctranslate2") is not None


def make_ctranslate2(n_threads: int) -> Callable[[Setting], Any]:
    """Return CTranslate2's decoding, in float32."""
    import ctranslate2

    @cache
    def prepared(config: TransformerConfig) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            _write_ctranslate2(config, folder)
            return ctranslate2.Translator(
                folder,
                device="cpu",
                compute_type="float32",
                inter_threads=1,
                intra_threads=n_threads,
            )

    def decode(setting: Setting) -> list[list[int]]:
        pad_id = setting.config.pad_id
        found = prepared(setting.config).translate_batch(
            [
                [str(i) for i in row if i != pad_id]
                for row in make_source(setting).tolist()
            ],
            beam_size=setting.n_beams,
            min_decoding_length=setting.n_tokens,
            max_decoding_length=setting.n_tokens,
        )
        return [[int(token) for token in each.hypotheses[0]] for each in found]

    return decode


def _write_ctranslate2(config: TransformerConfig, folder: str) -> None:
    from ctranslate2.converters.transformers import BartLoader

    theirs = make_marian(config)
    theirs.config.normalize_before = theirs.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(theirs)
    tokens = [str(i) for i in range(config.tgt_vocab_size)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token = spec.config.decoder_start_token = str(BOS)
    spec.config.eos_token, spec.config.unk_token = str(EOS), "3"
    spec.validate()
    spec.save(folder)
