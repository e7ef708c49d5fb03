"""The translator in the page: what it shows before a reader loads its model.

    trace = trace_translation(load("multi30k-de-en"), "Im Schnee spielt ein Hund.")
    show_part("heads", trace, block="encoder.layers.0.self_attn")

The web page runs the model itself, in JavaScript (book/_static/translator). Until its
weights are loaded it shows this trace, which the library has computed; notebooks show
a picture of it.
"""

import base64
import io
import json
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from transformer_book.charts.parts import Chart, mime_bundle
from transformer_book.charts.translator_pictures import ALT, still_picture
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.generation.beam_search import (
    BeamHypotheses,
    BeamOptions,
    begin,
    best_candidates,
    check_options,
)
from transformer_lib.generation.constraints import (
    GenerationConfig,
    LogitsProcessor,
    without_dropout,
)
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import IncrementalDecoder, KeyValueCache
from transformer_lib.interpret.interventions import edit_weights, without_head
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.checks import check_kind
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import Translator

MIME = "application/vnd.transformer-book.translator+json"
N_NEXT, N_ANSWERS = 10, 3  # likeliest tokens that are listed: at the end, in a layer
_ALWAYS = ("source", "src", "tgt", "src_labels", "tgt_labels", "text", "log_probs")
OPTIONS = ("block", "head", "position", "step", "share")
# What each part needs of a trace, beside what all of them do.
PARTS: dict[str, tuple[str, ...]] = {
    "alive": ("alignment",),
    "type": ("read",),
    "heads": ("maps",),
    "step": ("layers", "next"),
    "search": ("search",),
    "cache": ("search",),
    "operate": ("written",),
}


@torch.inference_mode()
def trace_translation(
    translator: Translator, sentence: str, n_beams: int = 4
) -> dict[str, Any]:
    """Translate a sentence and keep all that the parts of the page show.

    Args:
        translator: model and tokenizer.
        sentence: in the source language.
        n_beams: of the beam search that is kept step by step.

    Returns:
        Plain data: ids and their labels, weights of every head rounded to thousandths,
        what each layer would answer, the likeliest next tokens, and the search.

    Raises:
        ValueError: the sentence holds no word.
    """
    check_kind(str, sentence=sentence)
    check_options(translator.model, n_beams, early_stopping=False)
    model, tokenizer = translator.model, translator.tokenizer
    src = tokenizer.encode(sentence.strip())
    config = GenerationConfig(
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        max_len=min(len(src) + 50, model.config.max_len),
    )
    written = greedy_decode(model, torch.tensor([src]), config)[0]
    seen = _look(model, tokenizer, src, written.ids)
    return {
        "source": sentence,
        "read": {"src": src, "src_labels": tokenizer.tokens(src)},
        "src": src,
        "tgt": written.ids,
        "src_labels": tokenizer.tokens(src),
        "tgt_labels": tokenizer.tokens(written.ids),
        "text": tokenizer.decode(written.ids),
        "cuts": _cuts(model, tokenizer, src, written.ids),
        "written": {"ids": written.ids, "log_prob": _short(written.log_prob)},
        **seen,
        "search": _search(model, tokenizer, src, config, n_beams),
    }


def show_part(part: str, trace: dict[str, Any], **options: str) -> None:
    """Display one part of the translator: alive on the web page, elsewhere a picture.

    Args:
        part: one of PARTS.
        trace: from `trace_translation`.
        options: what the part begins with: block and head of "heads", position of
            "step", step of "search" and "cache"; share="yes" lets the page keep the
            reader's changes in its address.

    Raises:
        ValueError: there is no part or no option of this name.
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, not {part!r}")
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"options are {', '.join(OPTIONS)}, not {name!r}")
    needed = {name: trace[name] for name in (*_ALWAYS, *PARTS[part]) if name in trace}
    alt, picture = ALT[part], still_picture(part, trace, **options)
    bundle = {
        # The trace as text: a notebook would give each of its numbers a line.
        MIME: {"part": part, "alt": alt, "options": options, "trace": _text(needed)},
        "image/png": _png(picture, alt),
        "text/plain": alt,
    }
    try:
        from IPython.display import display
    except ImportError:
        return  # a plain script has nowhere to show it
    display(bundle, raw=True)


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _png(picture: Figure | Chart, alt: str) -> str:
    """Return a picture as base64."""
    if not isinstance(picture, Figure):
        return mime_bundle(picture, alt)["image/png"]
    png = io.BytesIO()
    picture.savefig(png, format="png", bbox_inches="tight")
    plt.close(picture)
    drawn, png = Image.open(png), io.BytesIO()
    few = drawn.convert("RGB").quantize(32, dither=Image.Dither.NONE)
    few.save(png, "PNG", optimize=True)
    return base64.b64encode(png.getvalue()).decode()


def _look(
    model: Transformer, tokenizer: Tokenizer, src: list[int], tgt: list[int]
) -> dict[str, Any]:
    """Read the translation once, and keep weights, layers' answers, probabilities."""
    tgt_in = torch.tensor([[tokenizer.bos_id, *tgt[:-1]]])
    embedded: list[Tensor] = []
    hook = model.tgt_embeddings.register_forward_hook(
        lambda *args: embedded.append(args[-1])
    )
    try:
        with (
            without_dropout(model),
            record_attention(model) as maps,
            record_hidden_states(model.decoder) as states,
        ):
            logits = model(torch.tensor([src]), tgt_in)[0]
    finally:
        hook.remove()
    log_probs = logits.log_softmax(dim=-1)  # (tgt_len, vocab_size)
    norm = model.decoder.norm or torch.nn.Identity()
    stages = [*embedded, *states.values()]  # (1, tgt_len, d_model) each
    chosen = log_probs.gather(1, torch.tensor(tgt)[:, None])[:, 0]
    cross = maps[f"decoder.layers.{len(model.decoder.layers) // 2}.cross_attn"]
    return {
        "maps": {
            name: [_numbers(head.flatten()) for head in weights[0]]
            for name, weights in maps.items()
        },
        "alignment": _numbers(cross[0].mean(dim=0).flatten()),
        "log_probs": _numbers(chosen),
        "next": _likeliest(log_probs, tokenizer, N_NEXT),
        "layers": [
            _likeliest(model.lm_head(norm(x))[0].log_softmax(-1), tokenizer, N_ANSWERS)
            for x in stages
        ],
    }


def _cuts(
    model: Transformer, tokenizer: Tokenizer, src: list[int], tgt: list[int]
) -> dict[str, float]:
    """Return the loss of the translation with less and less cross-attention."""
    source = torch.tensor([src])
    tgt_in = torch.tensor([[tokenizer.bos_id, *tgt[:-1]]])
    last = len(model.decoder.layers) - 1
    cross = [f"decoder.layers.{i}.cross_attn" for i in range(last + 1)]
    every = without_head(*range(model.config.n_heads))
    losses = {}
    for name, edits in {
        "as trained": {},
        "without one head": {cross[last // 2]: without_head(0)},
        f"layer {last} cut": {cross[last]: every},
        "all cut": dict.fromkeys(cross, every),
    }.items():
        with without_dropout(model), edit_weights(model, edits):
            logits = model(source, tgt_in)
        loss = torch.nn.functional.cross_entropy(logits[0], torch.tensor(tgt))
        losses[name] = _short(loss.item())
    return losses


def _search(
    model: Transformer,
    tokenizer: Tokenizer,
    src: list[int],
    config: GenerationConfig,
    n_beams: int,
) -> dict[str, Any]:
    """Run `beam_search` for one sentence and keep each of its steps."""
    source = torch.tensor([src])
    steps = []
    with without_dropout(model):
        processor = LogitsProcessor(model, source, config)
        decoder = IncrementalDecoder(model)
        decoder.prefill(source, n_beams)
        (search,) = begin(processor, BeamOptions(n_beams, 1.0, False))
        ids, copied = processor.start(n_beams).flatten(0, 1), 0
        done = multiplications(model.config, len(src), 0, 0)["encoder"]
        while not search.done:
            logits = decoder.step(ids)[None]
            position = decoder.length
            done += step_multiplications(model.config, len(src), position, n_beams)
            log_probs = processor.log_probs(logits, position)
            before = list(search.beams)
            candidates = _candidates(search, log_probs, position, tokenizer)
            kept = _in_use(decoder.cache)
            steps.append(
                {
                    "position": position,
                    "candidates": candidates,
                    "beams": [
                        {"parent": b.parent, "labels": tokenizer.tokens(b.ids[1:])}
                        for b in search.beams
                    ],
                    "parents": search.parents(),
                    "cache": {**kept, "copied": copied, "multiplications": done},
                    "recomputed": multiplications(
                        model.config, len(src), position, n_beams
                    ),
                }
            )
            if not search.done:
                parents = search.parents()
                moved = sum(i != parent for i, parent in enumerate(parents))
                copied += kept["n_bytes"] * moved // len(before)
                decoder.reorder(torch.tensor([parents]))
                ids = torch.tensor(search.newest()).view(-1, 1)
    return {
        "n_beams": n_beams,
        "length_penalty": 1,
        "steps": steps,
        "hypotheses": [
            {
                "ids": found.ids,
                "labels": tokenizer.tokens(found.ids),
                "text": tokenizer.decode(found.ids),
                "log_prob": _short(found.log_prob),
                "score": _short(found.score),
                "finished": found.finished,
            }
            for found in search.hypotheses
        ],
    }


def _candidates(
    search: BeamHypotheses, log_probs: Tensor, position: int, tokenizer: Tokenizer
) -> list[dict[str, Any]]:
    """Let the search take a step; return its candidates and what became of them."""
    before = list(search.beams)
    totals = torch.tensor([[beam.log_prob for beam in before]])
    best = best_candidates(log_probs, totals, 2 * len(before))
    rows = list(zip(*(part[0].tolist() for part in best), strict=True))
    known = {tuple(found.ids) for found in search.hypotheses}
    search.advance(rows, position)
    beams = {(beam.parent, beam.ids[-1]) for beam in search.beams}
    ended = {tuple(found.ids) for found in search.hypotheses} - known
    result = []
    for log_prob, parent, token in rows:
        ids = [*before[parent].ids[1:], token]
        fate = "beam" if (parent, token) in beams else "dropped"
        if tuple(ids) in ended and log_prob > float("-inf"):
            fate = "ended"
        if log_prob == float("-inf"):
            continue
        result.append(
            {
                "log_prob": _short(log_prob),
                "parent": parent,
                "token": token,
                "label": tokenizer.tokens([token])[0],
                "text": tokenizer.decode(ids),
                "fate": fate,
            }
        )
    return result


def _in_use(cache: KeyValueCache) -> dict[str, int]:
    """Count the bytes of the tokens read so far, without room that is not in use."""
    own = sum(cache[attention].nbytes for attention in cache.rooms)
    source = sum(kept.nbytes for kept in cache.source.kept.values())
    return {"length": cache.length, "n_bytes": own, "source_bytes": source}


def multiplications(
    config: TransformerConfig, n_src: int, n_tgt: int, n_rows: int
) -> dict[str, int]:
    """Count the multiplications of one pass without a cache, layer norms aside.

    Args:
        config: sizes of the model.
        n_src: source tokens.
        n_tgt: target tokens that are read, in each row.
        n_rows: targets of the one source.

    Returns:
        "encoder"; "decoder", with the projections of the memory; and "head", the scores
        of the token after the last one.
    """
    d, feed = config.d_model, 2 * config.d_model * config.d_ff
    encoder = n_src * (4 * d * d + 2 * n_src * d + feed)
    own = n_tgt * (4 * d * d + 2 * n_tgt * d)
    cross = n_tgt * (2 * d * d + 2 * n_src * d)
    memory = 2 * n_src * d * d if n_rows else 0
    decoder = n_rows * (own + cross + n_tgt * feed) + memory
    return {
        "encoder": config.n_encoder_layers * encoder,
        "decoder": config.n_decoder_layers * decoder,
        "head": n_rows * d * config.tgt_vocab_size,
    }


def step_multiplications(
    config: TransformerConfig, n_src: int, position: int, n_rows: int
) -> int:
    """Count the multiplications of one step with a cache: one new token in each row.

    Args:
        config: sizes of the model.
        n_src: source tokens.
        position: tokens of the target that have been read, the new one among them.
        n_rows: targets of the one source.
    """
    d = config.d_model
    own = 4 * d * d + 2 * position * d
    cross = 2 * d * d + 2 * n_src * d
    memory = 2 * n_src * d * d if position == 1 else 0  # in the first step only
    layer = n_rows * (own + cross + 2 * d * config.d_ff) + memory
    return config.n_decoder_layers * layer + n_rows * d * config.tgt_vocab_size


def _likeliest(
    log_probs: Tensor, tokenizer: Tokenizer, n: int
) -> list[list[dict[str, Any]]]:
    """Return the n likeliest tokens of each row: (length, vocab_size)."""
    best, tokens = log_probs.exp().topk(n, dim=-1)
    return [
        [
            {"id": token, "label": tokenizer.tokens([token])[0], "p": _short(p)}
            for p, token in zip(row, ids, strict=True)
        ]
        for row, ids in zip(best.tolist(), tokens.tolist(), strict=True)
    ]


def _numbers(values: Tensor) -> list[float]:
    return [_short(value) for value in values.tolist()]


def _short(value: float) -> float:
    """Round to thousandths; only what is zero becomes zero."""
    return round(value, 3) or (0.001 if value > 0 else 0.0)
