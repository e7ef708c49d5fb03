"""Graders of the chapter on the full Transformer."""

from dataclasses import replace

import torch
from torch import nn

from transformer_book.exercises.grading import Grader, Seen
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.presets import PRESETS
from transformer_lib.model.transformer import Transformer, count_parameters

BUDGET = 10_000_000  # parameters
VOCABULARY = 8_000


def _predict(features, table):
    return (features[:, -1] @ table.T).softmax(dim=-1)


check_prediction = Grader(
    "features (batch, length, d_model), table (vocab_size, d_model) -> probabilities "
    "of the token after the last position, (batch, vocab_size)",
    cases=lambda: [(torch.randn(3, 5, 4), torch.randn(7, 4))],
    solution=_predict,
    right="Dot products with every row, then the softmax.",
    mistakes={
        "these are logits; the softmax turns them into probabilities.":
            lambda features, table: features[:, -1] @ table.T,
        "every position is predicted; only the last one is asked for here.":
            lambda features, table: (features @ table.T).softmax(dim=-1),
        "these are the predictions of the first position; take the last.":
            lambda features, table: _predict(features[:, :1], table),
        "these are the predictions of the last sentence; take the last position of "
        "every sentence: features[:, -1], not features[-1].":
            lambda features, table: (features[-1] @ table.T).softmax(dim=-1),
        "each column sums to 1, but each row should: softmax over the last axis.":
            lambda features, table: (features[:, -1] @ table.T).softmax(dim=0),
        "there's no factor sqrt(d_model) at this end of the model.":
            [lambda features, table: _predict(2 * features, table),
             lambda features, table: _predict(features / 2, table)],
    },
)  # fmt: skip


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
    'model like PRESETS["paper-base"]: one tied matrix, no bias in the query, key, and '
    "value projections, no positions to learn",
    cases=lambda: [(11, 6, 10, 1), (23, 12, 40, 3)],
    solution=lambda vocab_size, d_model, d_ff, n_layers: (
        _size(_config(vocab_size, d_model, d_ff, n_layers))
    ),
    right="Your formula agrees with the model exactly.",
    mistakes={
        "the tied matrix is counted three times, but it's a single matrix.":
            _formula(matrices=3),
        "the embedding matrix is missing.": _formula(matrices=0),
        "the decoder's cross-attention is missing.": _formula(cross=0),
        "cross-attention and its norm are missing.": _formula(cross=0, cross_norm=0),
        "the layer norms are missing; each has a gain and a bias.": _formula(norms=0),
        "a layer norm has two vectors, a gain and a bias.":
            lambda *sizes: int(_formula(norms=0.5)(*sizes)),
        "the biases of the feed-forward network are missing.": _formula(ff_bias=0),
        "the bias of the attention's output projection is missing.":
            _formula(out_bias=0),
        "the query, key, and value projections have no bias here.": _formula(in_bias=1),
        "the output projections of the attention blocks are missing.":
            _formula(squares=3, out_bias=0),
        "only the encoder is counted; the decoder has n_layers too.":
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
    right="The logits are the model's: every mask is where it belongs.",
    mistakes={
        "these are features; lm_head turns them into logits.": _features,
        "these are probabilities; return logits, before the softmax.":
            lambda *given: _forward()(*given).softmax(dim=-1),
        "there's no mask anywhere, so positions see the future and padding.":
            [_forward(encoder=False, cross=False, causal=False),
             lambda model, src, tgt_in: (
                 model.lm_head(model.decode(tgt_in, model.encode(src))))],
        "the decoder sees the future: its self-attention needs the causal mask.":
            _forward(causal=False),
        "the encoder sees padding: its self-attention needs the source's mask.":
            _forward(encoder=False),
        "cross-attention sees padding: it needs the source's mask.":
            _forward(cross=False),
        "the encoder and cross-attention see padding: both need the source's mask.":
            _forward(encoder=False, cross=False),
        "the token vectors aren't scaled: call src_embeddings(src) itself.":
            _forward(scaled=False),
    },
)  # fmt: skip


class _LanguageModel(nn.Module):
    """Embeddings, a causal stack and a tied output layer; or one with a mistake."""

    def __init__(self, embeddings, encoder, fault=""):
        super().__init__()
        self.embeddings, self.encoder, self.fault = embeddings, encoder, fault
        d_model, vocab_size = embeddings.positions.d_model, embeddings.vocab_size
        self.lm_head = nn.Linear(d_model, vocab_size, bias=fault == "bias")
        if fault == "copied":
            self.lm_head.weight.data = embeddings.tokens.weight.data.clone()
        elif fault != "own matrix":
            self.lm_head.weight = embeddings.tokens.weight

    def forward(self, ids):
        mask = None if self.fault == "no mask" else causal_mask(ids.size(1))
        x = self.embeddings(ids)
        if self.fault == "no positions":
            x = self.embeddings.scale * self.embeddings.tokens(ids)
        features = self.encoder(x, mask)
        if self.fault == "features":
            return features
        if self.fault == "scaled":
            features = self.embeddings.scale * features
        logits = self.lm_head(features)
        return logits.softmax(dim=-1) if self.fault == "probabilities" else logits


def _draw_language_model():
    model = Transformer(_config(13, 12, 20, 2)).eval().requires_grad_(False)
    ids = torch.tensor([[1, 5, 7, 9, 4], [1, 8, 6, 3, 2]])
    return [(model.src_embeddings, model.encoder, ids)]


def _run_language_model(model_class, embeddings, encoder, ids):
    """Return the logits and how many parameters are neither embeddings nor encoder."""
    with torch.random.fork_rng(devices=[]):
        model = model_class(embeddings, encoder)
    if not isinstance(model, nn.Module):
        return model  # no model: the grader says what is expected instead
    logits = model.eval()(ids)
    given = {id(p) for part in (embeddings, encoder) for p in part.parameters()}
    new = sum(p.numel() for p in model.parameters() if id(p) not in given)
    return None if logits is None else (logits, new)


def _model_with(fault):
    return lambda *parts: _LanguageModel(*parts, fault=fault)


check_language_model = Grader(
    "a class: (embeddings, encoder) makes a model, and model(ids) returns logits of "
    "the next token, (batch, length, vocab_size)",
    cases=_draw_language_model,
    run=_run_language_model,
    solution=_LanguageModel,
    right="A language model: each position predicts the next token from the tokens "
    "so far.",
    mistakes={
        "positions see the tokens that they should predict: give the stack a causal "
        "mask.": _model_with("no mask"),
        "these are features; lm_head turns them into logits.": _model_with("features"),
        "these are probabilities; return logits, before the softmax.":
            _model_with("probabilities"),
        "the factor sqrt(d_model) belongs to the way in, and embeddings(ids) applies "
        "it already.": _model_with("scaled"),
        "the positions are missing: call embeddings(ids) itself.":
            _model_with("no positions"),
        "{} parameters are new here; a tied lm_head without a bias adds none. Assign "
        "the matrix itself: self.lm_head.weight = embeddings.tokens.weight.":
            Seen(lambda result, *parts: result[1] or None,
                 [_model_with(f) for f in ("own matrix", "copied", "bias")]),
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
        f"both vocabularies must have {VOCABULARY:,} tokens.":
            Seen(lambda it: {it.src_vocab_size, it.tgt_vocab_size} != {VOCABULARY},
                 replace(_DESIGN, tgt_vocab_size=100, tie_embeddings="decoder")),
        "each side needs at least 2 layers.":
            Seen(lambda it: min(it.n_encoder_layers, it.n_decoder_layers) < 2,
                 replace(_DESIGN, n_encoder_layers=1)),
        "the heads are narrower than 32: take fewer heads.":
            Seen(lambda it: it.d_model < 32 * it.n_heads, replace(_DESIGN, n_heads=16)),
        "d_ff is below d_model.":
            Seen(lambda it: it.d_ff < it.d_model, replace(_DESIGN, d_ff=128)),
        "the model is over the budget. Are the embeddings tied?":
            Seen(lambda it: _size(it) > BUDGET and it.tie_embeddings != "all",
                 replace(_DESIGN, tie_embeddings="none")),
        "{:,} parameters: that's over the budget.":
            Seen(lambda it: _size(it) if _size(it) > BUDGET else None,
                 replace(_DESIGN, d_model=512)),
        "{:,} parameters: more than a tenth of the budget is left.":
            Seen(lambda it: _size(it) if _size(it) < 0.9 * BUDGET else None,
                 replace(_DESIGN, n_encoder_layers=2, n_decoder_layers=2)),
    },
)  # fmt: skip
