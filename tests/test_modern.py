"""What changed after 2017: today's parts against PyTorch, Hugging Face and plain loops.

Nothing is downloaded.
"""

from dataclasses import replace
from functools import partial

import nbformat
import pytest
import torch
import torch.nn.functional as F
import transformers
from reference import EXACT, draw_parameters, gradients
from small_models import EOS, SRC, make_config, make_model, rounded
from torch import Tensor, nn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import transformer_lib as tl
from book._ext.toc import ROOT
from transformer_lib.convert import convert_weights, from_gpt2, from_llama
from transformer_lib.convert.language_models import MODEL_NAMES, TRANSPOSED
from transformer_lib.generation import RecomputingDecoder, make_decoder
from transformer_lib.model import (
    GatedFeedForward,
    GroupedQueryAttention,
    LanguageModel,
    RMSNorm,
    replace_attention,
    replace_feed_forward,
    replace_norms,
    rotary_speeds,
    rotate,
)

CLOSE = {"rtol": 0.0, "atol": 1e-5}  # Hugging Face's angles are float32
VOCAB = 13
PROMPTS = torch.tensor([[5, 6, 7, 8], [0, 0, 9, 10], [0, 11, 0, 5]])  # padded with 0
CONFIG = tl.TransformerConfig(
    src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, d_model=16, n_heads=4, d_ff=24,
    n_encoder_layers=2, n_decoder_layers=2, max_len=24, norm_first=True,
    learned_positions=True, scale_embeddings=False, embedding_norm_eps=1e-5,
)  # fmt: skip
CHOICES = {
    "plain": {},
    "grouped": {"n_kv_heads": 2},
    "rotary": {"rotary": 50.0, "bias": True},
    "multi-query, rotary, window": {"n_kv_heads": 1, "rotary": 50.0, "window": 3},
    "all": {
        "n_kv_heads": 2, "rotary": 1e4, "window": 2, "qk_norm": True, "d_head": 6,
        "stretch": (8.0, 9, 1.0, 4.0),
    },
}  # fmt: skip
MODELS = {"GPT-2": None, **CHOICES}


def modernize(model: nn.Module, **choices) -> nn.Module:
    """Every part is exchanged, and every number drawn."""
    replace_norms(model)
    replace_feed_forward(model, 10)
    replace_attention(model, **choices)
    return draw_parameters(model).eval()


def make_language_model(choices: dict | None, seed: int = 0) -> LanguageModel:
    torch.manual_seed(seed)
    model = LanguageModel(CONFIG)
    if choices is None:
        return draw_parameters(model).eval()
    return modernize(model, **choices)


def make_attention(**choices) -> GroupedQueryAttention:
    torch.manual_seed(0)
    return draw_parameters(GroupedQueryAttention(16, 4, **choices))


def draw(*shape: int) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


# --- the parts -------------------------------------------------------------------


def test_rms_norm_is_that_of_pytorch() -> None:
    norm, x = draw_parameters(RMSNorm(5, eps=0.1)), draw(2, 3, 5)
    expected = F.rms_norm(x, (5,), norm.gain, 0.1)
    inputs = (x, norm.gain)
    torch.testing.assert_close(norm(x), expected, **EXACT)
    torch.testing.assert_close(
        gradients(norm(x), inputs), gradients(expected, inputs), **EXACT
    )


@pytest.mark.parametrize("interleaved", [False, True])
def test_pairs_are_complex_numbers_that_turn(interleaved) -> None:
    """So the product of two of them depends on the distance only."""
    x, positions = draw(2, 3, 4, 6), torch.tensor([0, 1, 5, 30])
    # A feature, then its partner: the next one, or that of the other half.
    order = [0, 1, 2, 3, 4, 5] if interleaved else [0, 3, 1, 4, 2, 5]
    pairs = torch.view_as_complex(x[..., order].unflatten(-1, (3, 2)))
    angle = positions[:, None] / 50.0 ** (torch.arange(3, dtype=torch.float64) / 3)
    expected = torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(-2)
    found = rotate(x, positions, 50.0, interleaved=interleaved)
    torch.testing.assert_close(found[..., order], expected, **EXACT)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_groups_are_the_papers_attention_with_heads_repeated(n_kv_heads) -> None:
    ours = make_attention(n_kv_heads=n_kv_heads, bias=True)
    theirs = tl.MultiHeadAttention(16, 4).double()
    weights = ours.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        heads = weights[name].unflatten(0, (n_kv_heads, 4))
        weights[name] = heads.repeat_interleave(4 // n_kv_heads, dim=0).flatten(0, 1)
    theirs.load_state_dict(weights)
    query, memory = draw(2, 5, 16), draw(2, 7, 16)
    mask = tl.padding_mask(torch.tensor([[1] * 7, [1] * 3 + [0] * 4]), 0)
    torch.testing.assert_close(
        ours(query, memory, memory, mask), theirs(query, memory, memory, mask), **EXACT
    )


@pytest.mark.parametrize(
    "mask", [None, tl.causal_mask(7), tl.padding_mask(SRC[1:2], 0)]
)
def test_a_window_is_a_mask(mask) -> None:
    whole, near = (make_attention(n_kv_heads=2, window=n) for n in (None, 3))
    x = draw(1, 5 if mask is not None and mask.dim() == 4 else 7, 16)
    distance = torch.arange(x.size(1))[:, None] - torch.arange(x.size(1))
    window = (distance > -3) & (distance < 3)
    expected = whole(x, x, x, window if mask is None else window & mask)
    torch.testing.assert_close(near(x, x, x, mask), expected, **EXACT)
    assert not torch.allclose(expected, whole(x, x, x, mask))


# --- a whole model ---------------------------------------------------------------

RATES = {
    "attention_dropout": GroupedQueryAttention,
    "activation_dropout": GatedFeedForward,
}


def exchanged(model: nn.Module) -> list[nn.Module]:
    """The attentions and feed-forward networks of today in a model."""
    kinds = tuple(RATES.values())
    return [part for part in model.modules() if isinstance(part, kinds)]


@pytest.mark.parametrize("rate", RATES)
def test_exchanged_parts_drop_what_the_config_says(rate) -> None:
    config = replace(CONFIG, dropout=0.0, **{rate: 0.5})
    parts = exchanged(modernize(tl.Transformer(config)).train())
    assert len(parts) == 2 * (2 + 3)  # in two layers of encoder and decoder
    for part in parts:
        torch.manual_seed(0)
        given = [draw(2, 5, 16)] * (3 if hasattr(part, "q_proj") else 1)
        drops = not torch.equal(part(*given), part(*given))
        assert drops == isinstance(part, RATES[rate])
        part.eval()
        assert torch.equal(part(*given), part(*given))


def test_every_attention_gets_the_choices() -> None:
    """But cross-attention has no rotation and no window."""
    choices = {"n_kv_heads": 2, "rotary": 50.0, "window": 3, "qk_norm": True}
    model = modernize(tl.Transformer(CONFIG), **choices)
    for name, part in model.named_modules():
        if isinstance(part, GroupedQueryAttention):
            shapes = {key: tuple(p.shape) for key, p in part.named_parameters()}
            assert shapes["k_proj.weight"] == shapes["v_proj.weight"] == (8, 16)
            assert shapes["q_norm.gain"] == shapes["k_norm.gain"] == (4,)
            crosses = name.endswith("cross_attn")
            expected = (None, None) if crosses else (50.0, 3)
            assert (part.rotary, part.window) == expected


def test_a_kernel_that_is_put_in_is_asked() -> None:
    attention, x = make_attention(n_kv_heads=2), draw(2, 5, 16)
    attention.kernel = lambda q, k, v, mask, dropout: 2 * v
    values = attention.v_proj(x).unflatten(-1, (2, 4)).repeat_interleave(2, dim=2)
    expected = attention.out_proj(2 * values.flatten(-2))
    torch.testing.assert_close(attention(x, x, x), expected, **EXACT)


@pytest.mark.parametrize(
    ("activation", "function"), [("swish", F.silu), ("gelu", F.gelu), ("relu", F.relu)]
)
def test_every_gate_gets_the_activation(activation, function) -> None:
    model, x = tl.Transformer(CONFIG).double().eval(), draw(2, 5, 16)
    replace_feed_forward(model, 10, activation)
    parts = [part for part in exchanged(model) if isinstance(part, GatedFeedForward)]
    assert len(parts) == 4
    for part in parts:
        hidden = function(part.double().gate(x)) * part.expand(x)
        torch.testing.assert_close(part.eval()(x), part.contract(hidden), **EXACT)


def test_exchanged_parts_start_as_those_of_the_paper_do() -> None:
    """Xavier-uniform: drawn up to a bound that both sizes of a matrix decide."""
    torch.manual_seed(0)
    model = tl.Transformer(CONFIG)
    replace_feed_forward(model, 10, bias=True)
    replace_attention(model, 2, bias=True)
    for part in exchanged(model):
        for linear in part.children():
            if isinstance(linear, nn.Linear):
                bound = (6 / sum(linear.weight.shape)) ** 0.5
                assert 0.9 * bound < linear.weight.abs().max() <= bound
                assert linear.bias.count_nonzero() == 0


# --- the models of Hugging Face --------------------------------------------------

SIZES = {
    "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2,
    "vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA = SIZES | {"intermediate_size": 20, "num_key_value_heads": 2}
OTHER_LLAMA = {
    "num_key_value_heads": 1, "tie_word_embeddings": True, "attention_bias": True,
    "mlp_bias": True, "rms_norm_eps": 0.1,
    "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
}  # fmt: skip
LONG_LLAMA = {  # as Llama 3.1 to 3.3, for heads of 4 features
    "rope_type": "llama3", "rope_theta": 9.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 13,
}  # fmt: skip
BERT = SIZES | {"intermediate_size": 20, "max_position_embeddings": 12}
LOAD = {"Llama": from_llama, "GPT-2": from_gpt2}
CLASSES = {"Llama": "LlamaForCausalLM", "GPT-2": "GPT2LMHeadModel"}
FAMILIES = [
    ("Llama", LLAMA),
    ("Llama", LLAMA | OTHER_LLAMA),
    ("Llama", LLAMA | {"rope_parameters": LONG_LLAMA}),
    ("Llama", LLAMA | {"head_dim": 6}),
    ("GPT-2", SIZES | {"n_positions": 12}),
    ("GPT-2", SIZES | {"n_inner": 20, "layer_norm_epsilon": 0.1}),
    ("BERT", BERT),
    ("BERT", BERT | {"layer_norm_eps": 0.1, "type_vocab_size": 3}),
]


def what_a_chapter_defines(name: str, *starts: str) -> dict:
    """Run the imports of a chapter, and the cells that start like this."""
    found = {}
    for cell in nbformat.read(ROOT / "book" / name, 4).cells:
        if cell.source.startswith(starts):
            exec(cell.source.partition("\ntry:")[0], found)
    return found


BERT_SECTION = what_a_chapter_defines(
    "18_a_language_model.ipynb",
    *("import copy", "class MaskedLanguageModel", "def from_bert"),
)
MaskedLanguageModel = BERT_SECTION["MaskedLanguageModel"]


def make_theirs(name: str, options: dict) -> transformers.PreTrainedModel:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = kind(kind.config_class(**options))
    return draw_parameters(model).eval()


def make_family(family: str, options: dict) -> transformers.PreTrainedModel:
    return make_theirs(CLASSES.get(family, "BertForMaskedLM"), options)


def compare(theirs: nn.Module, ours: nn.Module, family: str) -> None:
    """The logits, and the gradient of every parameter."""
    ids = torch.tensor([[5, 6, 7, 8, 2, 9], [9, 10, 3, 4, 0, 0]])
    real, segments = ids != 0, (ids > 6).long()
    if family == "BERT":
        found = ours(ids, segments)
        expected = theirs(ids, real.long(), segments).logits
    else:
        found, expected = ours(ids), theirs(ids, attention_mask=real.long()).logits
    assert expected.std() > 0.3  # the comparison can fail
    torch.testing.assert_close(found[real], expected[real], **CLOSE)
    for logits in (found, expected):
        (logits[real] * logits[real].detach().cos()).sum().backward()
    slopes = {name: p.grad for name, p in theirs.named_parameters()}
    slopes = {k: g.T if k.endswith(TRANSPOSED) else g for k, g in slopes.items()}
    slopes = convert_weights(slopes, family, "transformer_lib", names=MODEL_NAMES)
    for name, parameter in ours.named_parameters():
        if name == "lm_head.weight" and name not in slopes:  # ours by another name
            name = "embeddings.tokens.weight"
        # A bias of keys changes nothing: its slope is rounding.
        scale = slopes[name].abs().max().clamp(min=1)
        found, expected = parameter.grad / scale, slopes[name] / scale
        torch.testing.assert_close(found, expected, **CLOSE)


def test_stretched_speeds_are_those_of_llama_3() -> None:
    rope = LONG_LLAMA | {"rope_theta": 5e5, "original_max_position_embeddings": 8192}
    options = transformers.LlamaConfig(head_dim=64, rope_parameters=rope)
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](options)
    found = rotary_speeds(torch.arange(0, 64, 2) / 64, 5e5, (8, 8192, 1, 4))
    torch.testing.assert_close(found, expected)
    ratio = rotary_speeds(torch.arange(0, 64, 2) / 64, 5e5) / found
    assert (ratio == 1).any() and ((ratio - 8).abs() < 1e-4).any()  # fast and slow
    assert ((ratio > 1.1) & (ratio < 7.9)).any()  # and between


@pytest.mark.parametrize(("family", "options"), FAMILIES)
def test_the_models_of_hugging_face_in_our_parts(family, options) -> None:
    theirs = make_family(family, options)
    state = theirs.state_dict()
    if family == "BERT":
        ours = BERT_SECTION["from_bert"](theirs).double()
    else:
        ours = LOAD[family](state, theirs.config)
    assert tl.count_parameters(ours) == tl.count_parameters(theirs)
    compare(theirs, ours, family)
    if family in LOAD and theirs.config.tie_word_embeddings:
        del state["lm_head.weight"]  # files have such a matrix once
        again = LOAD[family](state, theirs.config)
        torch.testing.assert_close(again(PROMPTS), ours(PROMPTS), **EXACT)


def test_windows_are_those_of_mistral() -> None:
    theirs = make_theirs("MistralForCausalLM", LLAMA | {"sliding_window": 3})
    ours = from_llama(theirs.state_dict(), transformers.LlamaConfig(**LLAMA))
    for layer in ours.layers:
        layer.self_attn.window = 3
    compare(theirs, ours, "Llama")


def test_norms_of_queries_and_keys_are_those_of_qwen() -> None:
    theirs = make_theirs("Qwen3ForCausalLM", LLAMA | {"head_dim": 4})
    llama = make_family("Llama", LLAMA)
    ours = from_llama(llama.state_dict(), llama.config)
    replace_attention(ours, 2, rotary=10_000.0, qk_norm=True)
    weights = convert_weights(
        theirs.state_dict(), "Llama", "transformer_lib", True, MODEL_NAMES
    )
    ours.double().load_state_dict(weights)
    compare(theirs, ours, "Llama")


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (lambda s: s.pop("model.layers.1.mlp.up_proj.weight"), {},
         r"model.layers.1.mlp.up_proj.weight is missing in the weights of this Llama"),
        (lambda s: s.update(more=s["lm_head.weight"]), {},
         "more has no place in the weights of this Llama"),
        (lambda s: None, {"num_hidden_layers": 1}, r"model.layers.1.+ has no place in"),
        (lambda s: None, {"attention_bias": True}, r"model.+k_proj.bias is missing in"),
        (lambda s: None, {"hidden_act": "gelu"}, "hidden_act='gelu' has no place"),
        (lambda s: None, {"rope_parameters": {"rope_type": "linear", "factor": 2.0,
         "rope_theta": 1e4}}, "rope_type='linear' has no place"),
    ],
)  # fmt: skip
def test_what_is_not_this_llama_is_refused(spoil, options, message) -> None:
    state = dict(make_family("Llama", LLAMA).state_dict())
    spoil(state)
    with pytest.raises(ValueError, match=message):
        from_llama(state, transformers.LlamaConfig(**LLAMA | options))


@pytest.mark.parametrize(("family", "options"), FAMILIES[::2])
def test_another_family_is_refused(family, options) -> None:
    theirs = make_family(family, options)
    for load in set(LOAD.values()) - {LOAD.get(family)}:
        with pytest.raises(ValueError, match="model_type='[a-z2]+' has no place"):
            load(theirs.state_dict(), theirs.config)


@pytest.mark.parametrize(("ends", "pad_id"), [(5, 5), ([6, 7], 6)])
def test_padding_is_the_end_where_a_family_has_none(ends, pad_id) -> None:
    theirs = make_family("GPT-2", SIZES | {"pad_token_id": None, "eos_token_id": ends})
    assert from_gpt2(theirs.state_dict(), theirs.config).config.pad_id == pad_id


# --- decoding --------------------------------------------------------------------


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_a_modern_transformer_decodes_as_it_reads(choices) -> None:
    torch.manual_seed(0)
    model = modernize(make_model(norm_first=True, d_model=8, n_heads=4), **choices)
    decoder = make_decoder(model)
    tgt_in = torch.randint(1, 7, (len(SRC), 9))
    decoder.prefill(SRC)
    read = [decoder.read(part) for part in tgt_in.split([1, 3, 1, 2, 2], dim=1)]
    found = model.lm_head(torch.cat(read, dim=1))
    torch.testing.assert_close(found, model(SRC, tgt_in), **EXACT)
    attention = model.decoder.layers[1].self_attn
    assert decoder.cache[attention].size(2) == choices.get("n_kv_heads", 4)
    model(SRC, tgt_in).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("choices", MODELS.values(), ids=MODELS)
def test_a_prompt_is_read_as_if_it_stood_alone(choices) -> None:
    """Whatever its padding, in steps of any length."""
    model = make_language_model(choices)
    decoder = make_decoder(model)
    decoder.prefill(PROMPTS)
    new = torch.tensor([[1, 4, 5, 6, 9, 4, 12]]).expand(3, -1)
    read = [decoder.read(part) for part in new.split([1, 3, 1, 2], dim=1)]
    decoder.truncate(2)
    torch.testing.assert_close(decoder.read(new[:, 2:]), torch.cat(read[1:], 1)[:, 1:])
    decoder.truncate(0)
    torch.testing.assert_close(decoder.read(new), torch.cat(read, 1)[:, 3:], **EXACT)
    for row, n_pads in enumerate((0, 2, 1)):
        alone = torch.cat([PROMPTS[row : row + 1, n_pads:], new[:1, 1:]], dim=1)
        found = torch.cat(read, dim=1)[row, n_pads:]
        torch.testing.assert_close(found, model(alone)[0], **EXACT)


@pytest.mark.parametrize("choices", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    "search", [tl.greedy_decode, partial(tl.beam_search, n_beams=3)]
)
def test_searches_continue_prompts_as_if_they_read_all_anew(choices, search) -> None:
    model = make_language_model(choices, seed=2)

    def read(src: Tensor, targets: Tensor) -> Tensor:
        ids = torch.cat([src, targets[:, 1:]], dim=1)
        return model(ids, (ids != 0).cumsum(dim=1)[:, None, None] > 0)

    config = make_config(prefixes=[[4], [4, 5], [6]])
    found, expected = (
        search(model, PROMPTS, config, decoder=decoder)
        for decoder in (None, RecomputingDecoder(read))
    )
    assert rounded(found) == rounded(expected)


def test_sampling_continues_prompts() -> None:
    model, config = make_language_model(CHOICES["grouped"]), make_config()
    chance = torch.Generator().manual_seed(0)
    found = tl.sample(model, PROMPTS, config, tl.SamplingConfig(top_k=1), chance)
    assert found == tl.greedy_decode(model, PROMPTS, config)


def test_padding_that_is_the_end_can_be_said() -> None:
    """As in GPT-2, which has one token for both."""
    model = make_language_model(None)
    with torch.no_grad():
        model.lm_head.weight[0] += 100 * model.norm.bias
    ended, cut = (
        tl.greedy_decode(model, PROMPTS[:1], tl.GenerationConfig(1, eos_id, 3))[0]
        for eos_id in (0, EOS)
    )
    assert (ended.ids, ended.finished) == ([0], True)
    assert 0 not in cut.ids


@pytest.mark.parametrize("kind", [tl.Transformer, LanguageModel, MaskedLanguageModel])
def test_modern_models_compile_to_one_graph(kind) -> None:
    model = modernize(kind(CONFIG), **CHOICES["all"])
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    texts = [SRC] * (2 if kind is tl.Transformer else 1)
    torch.testing.assert_close(compiled(*texts), model(*texts), **EXACT)


# --- what is refused -------------------------------------------------------------


def attend(length: int, mask: Tensor | None = None, **choices) -> None:
    make_attention(n_kv_heads=2, **choices)(
        draw(1, 3, 16), draw(1, length, 16), draw(1, length, 16), mask
    )


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: rotate(torch.ones(1, 1, 2, 5), torch.arange(2)), "d_head 5 is odd"),
        (lambda: GroupedQueryAttention(10, 4, 2), "n_heads 4 .+ d_model 10"),
        (lambda: GroupedQueryAttention(12, 4, 3), "n_kv_heads 3 .+ n_heads 4"),
        (lambda: GroupedQueryAttention(12, 4, 2, window=0), "at least 1.+: 0"),
        (lambda: attend(3, torch.zeros(3, 3)), "boolean.+float32 of shape .3, 3"),
        (lambda: attend(3, torch.ones(1, 3, 3).bool()), "bool of shape .1, 3, 3"),
        (lambda: attend(4, rotary=50.0), r"\(1, 3, 16\), keys \(1, 4, 16\)"),
        (lambda: attend(4, window=2), r"\(1, 3, 16\), keys \(1, 4, 16\)"),
        (lambda: make_language_model(None)(torch.ones(1, 25).long()),
         "25 tokens .+ max_len 24"),
        (lambda: make_language_model({"rotary": 50.0})(torch.ones(1, 25).long()),
         "25 tokens .+ max_len 24"),
        (lambda: tl.greedy_decode(make_language_model(None), PROMPTS, make_config(99)),
         "25 tokens .+ max_len 24"),
        (lambda: tl.greedy_decode(make_language_model(None), SRC, make_config()),
         "pad prompts on the left"),
    ],
)  # fmt: skip
def test_what_would_go_wrong_in_silence_is_refused(act, message) -> None:
    with pytest.raises(ValueError, match=message):
        act()
