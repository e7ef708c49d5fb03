"""Graders of the chapter on the full Transformer."""

from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.exercises.grading import Grader, Seen
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.presets import PRESETS
from transformer_lib.model.transformer import Transformer, count_parameters

BUDGET = 10_000_000  # parameters
VOCABULARY = 8_000


def _config(vocab_size, d_model, d_ff, n_layers):
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), vocab_size)
    sizes |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), n_layers)
    sizes |= {"d_model": d_model, "d_ff": d_ff, "n_heads": 2}
    return replace(PRESETS["paper-base"], **sizes)


def _size(config):
    with torch.device("meta"):
        return count_parameters(Transformer(config))


def _formula(cross=1, cross_norm=1, norms=1, matrices=1, out_bias=1, sides=1, **more):
    """The formula of the exercise, with one of its terms changed."""

    def answer(vocab_size, d, d_ff, n_layers):
        attention = more.get("squares", 4) * d * d + out_bias * d
        attention += 3 * d * more.get("in_bias", 0)
        network = 2 * d * d_ff + more.get("ff_bias", 1) * (d_ff + d)
        norm = norms * 2 * d
        encoder = attention + network + 2 * norm
        decoder = (1 + cross) * attention + network + (2 + cross_norm) * norm
        return matrices * vocab_size * d + n_layers * (encoder + sides * decoder)

    return answer


check_parameter_count = Grader(
    "vocab_size, d_model, d_ff, n_layers (on each side) -> number of parameters of a "
    "model as in the paper: one tied matrix, no bias in the query, key and value "
    "projections, no positions to learn",
    cases=lambda: [(11, 6, 10, 1), (23, 12, 40, 3)],
    solution=lambda vocab_size, d_model, d_ff, n_layers: (
        _size(_config(vocab_size, d_model, d_ff, n_layers))
    ),
    right="Your formula agrees with the model, number for number.",
    mistakes={
        "the tied matrix is counted three times; it is one.": _formula(matrices=3),
        "the embedding matrix is missing.": _formula(matrices=0),
        "the decoder's cross-attention is missing.": _formula(cross=0),
        "cross-attention and its norm are missing.": _formula(cross=0, cross_norm=0),
        "the layer norms are missing; each has a gain and a bias.": _formula(norms=0),
        "a layer norm has two vectors, a gain and a bias.":
            lambda *sizes: int(_formula(norms=0.5)(*sizes)),
        "the biases of the feed-forward network are missing.": _formula(ff_bias=0),
        "the bias of the attention's output projection is missing.":
            _formula(out_bias=0),
        "query, key and value projections have no bias here.": _formula(in_bias=1),
        "the output projections of the attentions are missing.":
            _formula(squares=3, out_bias=0),
        "only one side is counted; encoder and decoder have n_layers each.":
            _formula(sides=0),
    },
)  # fmt: skip


def _draw_batch():
    src = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 4, 11, 5], [1, 9, 0, 0]])
    return [(Transformer(_config(13, 12, 20, 2)).eval(), src, tgt_in)]


def _features(model, src, tgt_in, encoder=True, cross=True, causal=True, scaled=True):
    """What the decoder returns, with some masks left out."""
    src_mask, tgt_mask = padding_mask(src, 0), padding_mask(tgt_in, 0)
    x = model.src_embeddings(src)
    if not scaled:
        x = x - (12**0.5 - 1) * model.src_embeddings.tokens(src)
    memory = model.encoder(x, src_mask if encoder else None)
    tgt_mask = tgt_mask & causal_mask(tgt_in.size(1)) if causal else tgt_mask
    y = model.tgt_embeddings(tgt_in)
    return model.decoder(y, memory, src_mask if cross else None, tgt_mask)


def _forward(**masks):
    return lambda model, src, tgt: model.lm_head(_features(model, src, tgt, **masks))


check_forward = Grader(
    "a model, src (batch, src_len), tgt_in (batch, tgt_len) -> logits (batch, tgt_len, "
    "tgt_vocab_size), put together from the model's parts",
    cases=_draw_batch,
    # Only positions that hold a token count: nobody reads what padding predicts.
    view=lambda logits, model, src, tgt_in: logits[tgt_in != 0],
    solution=lambda model, src, tgt_in: model(src, tgt_in),
    right="Six calls, and the logits are the model's.",
    mistakes={
        "these are features; lm_head turns them into logits.": _features,
        "these are probabilities; return logits, before the softmax.":
            lambda *given: _forward()(*given).softmax(dim=-1),
        "no mask anywhere: the future and the padding are seen.":
            [_forward(encoder=False, cross=False, causal=False),
             lambda model, src, tgt_in: (
                 model.lm_head(model.decode(tgt_in, model.encode(src))))],
        "the decoder sees the future; its self-attention needs the causal mask.":
            _forward(causal=False),
        "the encoder sees padding; its attention needs the source mask.":
            _forward(encoder=False),
        "cross-attention sees padding; it needs the source mask.":
            _forward(cross=False),
        "the source's padding is seen in both places; build its mask.":
            _forward(encoder=False, cross=False),
        "token vectors are not scaled; call src_embeddings itself.":
            _forward(scaled=False),
    },
)  # fmt: skip


def _count_writing(src_len, tgt_len, d_model, d_ff, n_layers, vocab_size):
    """Let a model write under a counter."""
    with torch.device("meta"):
        model = Transformer(_config(vocab_size, d_model, d_ff, n_layers))
        ids = torch.ones(1, max(src_len, tgt_len), dtype=torch.long)
    with record_attention(model), FlopCounterMode(display=False) as counter:
        memory = model.encode(ids[:, :src_len])
        for t in range(1, tgt_len + 1):
            model.lm_head(model.decode(ids[:, :t], memory)[:, -1])
    return counter.get_total_flops()


def _write(
    encoders=1, cross=1, lengths=lambda m: range(1, m + 1), heads=lambda t, m: 1
):
    """The formula, with one of its terms changed."""

    def attention(q_len, k_len, d):
        return 4 * (q_len + k_len) * d * d + 4 * q_len * k_len * d

    def answer(n, m, d, d_ff, n_layers, vocab_size):
        runs = encoders(m) if callable(encoders) else encoders
        total = runs * n_layers * (attention(n, n, d) + 4 * n * d * d_ff)
        for t in lengths(m):
            layer = attention(t, t, d) + cross * attention(t, n, d) + 4 * t * d * d_ff
            total += n_layers * layer + heads(t, m) * 2 * d * vocab_size
        return total

    return answer


check_writing_flops = Grader(
    "src_len, tgt_len, d_model, d_ff, n_layers (on each side), vocab_size -> "
    "floating-point operations of writing a translation, 2 for each multiplication and "
    "addition. The encoder runs once; for every token to be written the decoder "
    "reads all target tokens so far, and lm_head reads the last one.",
    cases=lambda: [(3, 4, 8, 12, 1, 11), (5, 7, 12, 20, 2, 17)],
    solution=_count_writing,
    right="Your formula agrees with a model that writes, under a counter.",
    mistakes={
        "each multiplication comes with an addition: twice as many.":
            lambda *sizes: _write()(*sizes) // 2,
        "this is one pass over all tokens, as in training; when writing, the decoder "
        "runs once for every token.":
            _write(lengths=lambda m: [m], heads=lambda t, m: m),
        "the encoder runs only once; its memory is kept.": _write(encoders=lambda m: m),
        "lm_head is needed at the last position only.": _write(heads=lambda t, m: t),
        "the decoder reads all tokens so far, not only the newest.":
            _write(lengths=lambda m: [1] * m),
        "the first step reads 1 token and the last one reads tgt_len.":
            _write(lengths=range),
        "the encoder is missing.": _write(encoders=0),
        "lm_head is missing.": _write(heads=lambda t, m: 0),
        "the decoder's cross-attention is missing.": _write(cross=0),
    },
)  # fmt: skip


_DESIGN = replace(_config(VOCABULARY, 256, 1024, 4), n_heads=8)

check_design = Grader(
    f"a TransformerConfig with at most {BUDGET:,} parameters, both vocabularies of "
    f"{VOCABULARY} tokens, heads at least 32 wide, at least 2 layers a side, and d_ff "
    "at least d_model",
    cases=lambda: [()],
    run=lambda config: config,
    solution=_DESIGN,
    right=lambda configs: (
        f"{_size(configs[0]):,} parameters, "
        f"{VOCABULARY * configs[0].d_model / _size(configs[0]):.0%} of them in the "
        "shared matrix."
    ),
    any_answer=True,
    mistakes={
        f"both vocabularies must have {VOCABULARY} tokens.":
            Seen(lambda it: {it.src_vocab_size, it.tgt_vocab_size} != {VOCABULARY},
                 replace(_DESIGN, tgt_vocab_size=100, tie_embeddings="decoder")),
        "at least 2 layers a side are asked for.":
            Seen(lambda it: min(it.n_encoder_layers, it.n_decoder_layers) < 2,
                 replace(_DESIGN, n_encoder_layers=1)),
        "heads are less than 32 wide: take fewer heads.":
            Seen(lambda it: it.d_model < 32 * it.n_heads, replace(_DESIGN, n_heads=16)),
        "d_ff is below d_model.":
            Seen(lambda it: it.d_ff < it.d_model, replace(_DESIGN, d_ff=128)),
        "the parameters are over the budget. Are the embeddings tied?":
            Seen(lambda it: _size(it) > BUDGET and it.tie_embeddings != "all",
                 replace(_DESIGN, tie_embeddings="none")),
        "{:,} parameters are over the budget.":
            Seen(lambda it: _size(it) if _size(it) > BUDGET else None,
                 replace(_DESIGN, d_model=512)),
        "{:,} parameters leave more than a tenth of the budget.":
            Seen(lambda it: _size(it) if _size(it) < 0.9 * BUDGET else None,
                 replace(_DESIGN, n_encoder_layers=2, n_decoder_layers=2)),
    },
)  # fmt: skip
