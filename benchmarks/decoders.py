"""The contestants of the decoding benchmark: the same model in several libraries."""

import copy
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from peers import Marian
from torch import Tensor, nn

from transformer_lib.convert import convert_weights, fix_positions, sinusoid_halves
from transformer_lib.fast import keep_freed_memory, make_engine
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import Decoding, IncrementalDecoder
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

BOS, EOS = 1, 2
LONGEST_SOURCE = 20
OURS, PEER, CTRANSLATE2 = "transformer_lib", "Hugging Face Marian", "CTranslate2"


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
    """Draw the model, with positions as in Marian. It never pads or ends a target."""
    torch.manual_seed(0)
    model = Transformer(config).eval()
    fix_positions(model, sinusoid_halves(config.max_len, config.d_model, "marian"))
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


def decode_ours(
    make_decoder: Callable[[Transformer], Decoding],
) -> Callable[[Setting], Any]:
    """Return the library's decoding; prepared once, as CTranslate2 loads a model."""
    keep_freed_memory()
    decoder_of = cache(lambda config: make_decoder(make_model(config)))

    def decode(setting: Setting) -> list[list[int]]:
        decoder, model = decoder_of(setting.config), make_model(setting.config)
        n_tokens, src = setting.n_tokens, make_source(setting)
        config = GenerationConfig(BOS, EOS, max_len=n_tokens, min_len=n_tokens)
        if setting.n_beams == 1:
            return [each.ids for each in greedy_decode(model, src, config, decoder)]
        targets = beam_search(model, src, config, setting.n_beams, decoder=decoder)
        return [each[0].ids for each in targets]

    return decode


def compile_steps(model: Transformer) -> Decoding:
    """Return a decoder on the model's own modules that compiles what a step calls."""
    torch._dynamo.config.recompile_limit = 64  # a graph for each state of the cache
    model = copy.deepcopy(model)
    model.decode = torch.compile(model.decode, dynamic=True)
    return IncrementalDecoder(model)


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


def decode_hugging_face() -> Callable[[Setting], Any]:
    """Return `generate` of Marian."""
    keep_freed_memory()

    def decode(setting: Setting) -> list[list[int]]:
        src = make_source(setting)
        ids = make_marian(setting.config).generate(
            input_ids=src,
            attention_mask=(src != setting.config.pad_id).long(),
            num_beams=setting.n_beams,
            do_sample=False,
            min_new_tokens=setting.n_tokens,
            max_new_tokens=setting.n_tokens,
        )
        return ids[:, 1:].tolist()

    return decode


def decode_ctranslate2() -> Callable[[Setting], Any]:
    """Return CTranslate2's decoding."""
    import ctranslate2

    @cache
    def translator(config: TransformerConfig) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            _write_ctranslate2(config, folder)
            threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
            return ctranslate2.Translator(folder, compute_type="float32", **threads)

    def decode(setting: Setting) -> list[list[int]]:
        pad_id = setting.config.pad_id
        rows = make_source(setting).tolist()
        found = translator(setting.config).translate_batch(
            [[str(i) for i in row if i != pad_id] for row in rows],
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


CONTESTANTS: dict[str, Callable[[], Callable[[Setting], Any]]] = {
    OURS: partial(decode_ours, make_engine),
    PEER: decode_hugging_face,
    CTRANSLATE2: decode_ctranslate2,
    "own modules": partial(decode_ours, IncrementalDecoder),
    "compiled modules": partial(decode_ours, compile_steps),
}
WITHOUT_ENGINE = ["own modules", "compiled modules"]
INSTALLED = [CTRANSLATE2] * bool(find_spec("ctranslate2"))
SHOWN = [OURS, PEER, *INSTALLED, *WITHOUT_ENGINE]  # on the page
