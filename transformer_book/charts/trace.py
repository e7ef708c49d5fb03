"""What the library computes for the machine in a page, before its model is there.

trace = trace_translation(load("multi30k-de-en"), "Im Schnee spielt ein Hund.")
"""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer_lib import (
    GenerationConfig,
    Tokenizer,
    Transformer,
    TransformerConfig,
    Translator,
)
from transformer_lib.generation import IncrementalDecoder, RecomputingDecoder
from transformer_lib.generation.beam_search import (
    BeamHypotheses,
    Candidates,
    beam_search,
)
from transformer_lib.generation.constraints import without_dropout
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.interpret import edit_weights, named_attentions, without_head
from transformer_lib.interpret.recording import record_attention, record_hidden_states

Plain = dict[str, Any]  # data that JSON can hold
N_NEXT, N_ANSWERS = 5, 3  # likeliest tokens that are listed: at the end, in a layer


@contextmanager
def intervene(model: Transformer, edits: Plain) -> Iterator[None]:
    """Change a model inside the block, as `intervene` of the pages' engine does.

    Hidden tokens are not its business: the mask of the source is an argument.

    Args:
        model: any.
        edits: "without", heads to remove by the name of their attention; and
            "src_positions", "tgt_positions", "causal": False for off.
    """
    with ExitStack() as stack:
        for side in "src", "tgt":
            if not edits.get(f"{side}_positions", True):
                positions = model.get_submodule(f"{side}_embeddings.positions")
                hook = positions.register_forward_hook(lambda *args: args[-1] * 0)
                stack.enter_context(hook)
        if not edits.get("causal", True):
            unmasked = lambda _, inputs: (*inputs[:3], None)  # noqa: E731
            stack.enter_context(model.decoder.register_forward_pre_hook(unmasked))
        without = edits.get("without", {}).items()
        gone = {name: without_head(*heads) for name, heads in without}
        stack.enter_context(edit_weights(model, gone))
        yield


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round a matrix to 8 bits, row by row, as the pages have it.

    Args:
        weight: (n_rows, n_columns)

    Returns:
        numbers: (n_rows, n_columns), int8 from -127 to 127.
        scales: (n_rows,), float32. numbers * scales[:, None] is close to the weight.
    """
    largest = weight.abs().amax(dim=1)
    scales = torch.where(largest > 0, largest, 1.0) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


@torch.inference_mode()
def trace_translation(
    translator: Translator,
    sentence: str,
    *,
    heads: dict[str, int] | None = None,
    edits: Plain | None = None,
    n_beams: int = 0,
) -> Plain:
    """Translate a sentence and keep all that the machine in a page shows.

    It is the translation of the model with weights in 8 bits, as the pages have it.

    Args:
        translator: model and tokenizer.
        sentence: in the source language.
        heads: for the names of attentions, the head whose queries, keys and values are
            kept; None for the most decided head of every attention.
        edits: see `intervene`; the translation is that of the changed model.
        n_beams: of a beam search that is kept step by step; 0 for none.

    Returns:
        Plain data: ids and their labels, weights of every head rounded to 6 digits,
        the vectors of one head of each attention, the length of the residual streams,
        what each layer would answer, the likeliest next tokens, and the search.
    """
    translator = deepcopy(replace(translator, decoder=None))  # without an engine
    for weight in translator.model.parameters():
        if weight.dim() == 2:
            numbers, scales = quantize(weight)
            weight.copy_(numbers * scales[:, None])
    model, tokenizer, edits = translator.model, translator.tokenizer, edits or {}
    src, sizes = tokenizer.encode(sentence.strip()), model.config
    max_len = min(len(src) + 50, sizes.max_len)
    config = GenerationConfig(tokenizer.bos_id, tokenizer.eos_id, max_len=max_len)

    def write() -> list[int]:
        decoder = RecomputingDecoder(model)  # exact without a causal mask, too
        return greedy_decode(model, torch.tensor([src]), config, decoder)[0].ids

    with without_dropout(model):
        own = write() if edits else []  # of the model as it was trained
    with without_dropout(model), intervene(model, edits):
        written = write()
        trace = {
            "source": sentence,
            "sizes": {"d_model": sizes.d_model, "d_ff": sizes.d_ff},
            "edits": edits,
            "src": src,
            "tgt": written,
            "src_labels": tokenizer.tokens(src),
            "tgt_labels": tokenizer.tokens(written),
            "text": tokenizer.decode(written),
        }
        trace |= _look(translator, *map(torch.tensor, (src, written)), heads, edits)
        if edits:  # what the model's own translation costs the changed model
            ids = torch.tensor([tokenizer.bos_id, *own])
            logits = model(torch.tensor([src]), ids[None, :-1])[0]
            trace["nats"] = _numbers(cross_entropy(logits, ids[1:], reduction="none"))
        if n_beams:
            trace["search"] = _search(translator, src, config, n_beams)
    return trace


def _look(
    translator: Translator, src: Tensor, tgt: Tensor, heads: dict | None, edits: Plain
) -> Plain:
    """Read the translation, and keep weights, vectors, answers, probabilities."""
    model = translator.model
    tgt_in = torch.cat([torch.tensor([translator.tokenizer.bos_id]), tgt[:-1]])
    vectors: dict[str, list[Tensor]] = {}
    with _projections(model, vectors):
        maps, streams, logits = _pass(model, src, tgt_in)
    ahead: dict[str, list[list[float]]] = {}  # mean of the heads: rows of each pass
    if not edits.get("causal", True):  # then each step is a pass over what was there
        for i in range(len(tgt)):
            early, before, scores = _pass(model, src, tgt_in[: i + 1])
            logits[i] = scores[i]
            for stage, x in zip(streams["decoder"], before["decoder"], strict=True):
                stage[i] = x[i]
            for name in (name for name in maps if name.startswith("decoder")):
                row = early[name][:, i]
                maps[name][:, i] = 0
                maps[name][:, i, : row.size(-1)] = row
                if name.endswith("self_attn"):
                    uncut = early[name][early[name][:, 0, 0] > 0]
                    mean = uncut.sum(dim=0) / max(1, len(uncut))
                    ahead.setdefault(name, []).append(_numbers(mean.flatten()))
    log_probs = logits.log_softmax(dim=-1)  # (tgt_len, vocab_size)
    norm = model.decoder.norm or torch.nn.Identity()
    answers = [model.lm_head(norm(x)).log_softmax(-1) for x in streams["decoder"]]
    return {
        "maps": {name: [*map(_numbers, x.flatten(1))] for name, x in maps.items()},
        "ahead": ahead,
        "heads": {
            name: _one_head(weights, vectors[name], (heads or {}).get(name))
            for name, weights in maps.items()
            if heads is None or name in heads
        },
        "norms": {
            stack: [_numbers(x.norm(dim=-1)) for x in stream]
            for stack, stream in streams.items()
        },
        "log_probs": _numbers(log_probs.gather(1, tgt[:, None])[:, 0]),
        "next": _likeliest(log_probs, translator, N_NEXT),
        "layers": [_likeliest(each, translator, N_ANSWERS) for each in answers],
    }


def _pass(model: Transformer, src: Tensor, tgt_in: Tensor) -> tuple[dict, dict, Tensor]:
    """Return weights, residual streams before and after each layer, and logits."""
    with record_attention(model) as maps, record_hidden_states(model) as states:
        logits = model(src[None], tgt_in[None])[0]
    embedded = model.src_embeddings(src[None])[0], model.tgt_embeddings(tgt_in[None])[0]
    streams = {"encoder": [embedded[0]], "decoder": [embedded[1]]}
    for name, state in states.items():
        streams[name.split(".")[0]].append(state[0])
    return {name: weights[0] for name, weights in maps.items()}, streams, logits


@contextmanager
def _projections(model: Transformer, kept: dict[str, list[Tensor]]) -> Iterator[None]:
    """Keep queries, keys and values of all heads: (length, d_model) each."""
    with ExitStack() as stack:
        for name, attention in named_attentions(model):
            kept[name] = []
            keep = lambda *args, to=kept[name]: to.append(args[-1][0])  # noqa: E731
            for projection in attention.q_proj, attention.k_proj, attention.v_proj:
                stack.enter_context(projection.register_forward_hook(keep))
        yield


def _one_head(weights: Tensor, vectors: list[Tensor], head: int | None) -> Plain:
    """Return q, k and v of one head, as base64 of 32-bit numbers, row after row.

    Args:
        weights: (n_heads, q_len, k_len)
        vectors: q, k and v of all heads: (length, d_model) each.
        head: None for the one whose queries are most decided.
    """
    if head is None:
        head = int(weights.amax(dim=-1).mean(dim=-1).argmax())
    parts = [x.unflatten(-1, (len(weights), -1))[:, head] for x in vectors]
    text = (b64encode(x.contiguous().numpy().tobytes()).decode() for x in parts)
    return {"head": head, **dict(zip("qkv", text, strict=True))}


def _search(
    translator: Translator, src: list[int], config: GenerationConfig, n_beams: int
) -> Plain:
    """Keep each step of `beam_search` for one sentence."""
    model, tokenizer = translator.model, translator.tokenizer
    decoder, steps = IncrementalDecoder(model), []
    done = multiplications(model.config, len(src), 0, 0)["encoder"]
    before: list[list[int]] = [[config.bos_id]] * n_beams  # the beams' tokens

    def keep(
        position: int, searches: list[BeamHypotheses], candidates: Candidates
    ) -> None:
        nonlocal done, before
        [search] = searches
        counted = partial(multiplications, model.config, len(src), position, n_beams)
        done += sum(counted(n_new=1).values())
        cache = decoder.cache
        # Only what has been read counts, not the space that is not in use.
        counts = {"length": cache.length, "multiplications": done}
        counts["n_bytes"] = sum(cache[name].nbytes for name in cache.buffers)
        counts["source_bytes"] = sum(x.nbytes for x in cache.source.kept.values())
        steps.append(
            {
                "position": position,
                "candidates": _fates(search, position, candidates, before, tokenizer),
                "beams": [
                    {"parent": beam.parent, "labels": tokenizer.tokens(beam.ids[1:])}
                    for beam in search.beams
                ],
                "cache": counts,
                "recomputed": counted(),
            }
        )
        before = [beam.ids for beam in search.beams]

    [hypotheses] = beam_search(
        model, torch.tensor([src]), config, n_beams, decoder=decoder, listener=keep
    )
    found = [
        asdict(hypothesis)
        | {
            "labels": tokenizer.tokens(hypothesis.ids),
            "text": tokenizer.decode(hypothesis.ids),
        }
        for hypothesis in hypotheses
    ]
    options = {"n_beams": n_beams, "length_penalty": 1}
    return {**options, "steps": steps, "hypotheses": found}


def _fates(
    search: BeamHypotheses,
    position: int,
    candidates: Candidates,
    before: list[list[int]],
    tokenizer: Tokenizer,
) -> list[Plain]:
    """Say of each candidate of a step what became of it.

    Args:
        search: of the only sentence, after the step.
        position: of the new token, from 1.
        candidates: of the step.
        before: the tokens of the beams that they continue.
        tokenizer: names tokens.
    """
    beams = {(beam.parent, beam.ids[-1]) for beam in search.beams}
    ended = [found.ids for found in search.hypotheses if len(found.ids) == position]

    def describe(log_prob: float, parent: int, token: int) -> Plain:
        ids = [*before[parent][1:], token]
        fate = "beam" if (parent, token) in beams else "dropped"
        return {
            "log_prob": _short(log_prob),
            "parent": parent,
            "token": token,
            "label": tokenizer.tokens([token])[0],
            "text": tokenizer.decode(ids),
            "fate": "ended" if ids in ended else fate,
        }

    rows = zip(*(column[0].tolist() for column in candidates), strict=True)
    return [describe(*row) for row in rows if row[0] > float("-inf")]


def multiplications(
    config: TransformerConfig, n_src: int, n_tgt: int, n_rows: int, n_new: int = 0
) -> dict[str, int]:
    """Count the multiplications of one pass, layer norms aside.

    Args:
        config: sizes of the model.
        n_src: source tokens.
        n_tgt: target tokens that have been read, in each row.
        n_rows: targets of the one source.
        n_new: those of them that are computed; the rest is in a cache, and so are the
            encoder's work and, after the first token, the memory's projections. 0 for
            a pass without a cache.

    Returns:
        "encoder"; "decoder", with the projections of the memory; and "head", the scores
        of the token after the last one.
    """
    d, feed = config.d_model, 2 * config.d_model * config.d_ff
    n_queries, first = n_new or n_tgt, n_rows > 0 and n_new in (0, n_tgt)
    encoder = 0 if n_new else n_src * (4 * d * d + 2 * n_src * d + feed)
    attentions = 6 * d * d + 2 * (n_tgt + n_src) * d
    decoder = n_rows * n_queries * (attentions + feed) + first * 2 * n_src * d * d
    return {
        "encoder": config.n_encoder_layers * encoder,
        "decoder": config.n_decoder_layers * decoder,
        "head": n_rows * d * config.tgt_vocab_size,
    }


def _likeliest(log_probs: Tensor, translator: Translator, n: int) -> list[list[Plain]]:
    """Return the n likeliest tokens of each row: (length, vocab_size)."""

    def tell(p: Tensor, token: Tensor) -> Plain:
        [label] = translator.tokenizer.tokens([int(token)])
        return {"id": int(token), "label": label, "p": _short(float(p))}

    return [[*map(tell, *row)] for row in zip(*log_probs.exp().topk(n), strict=True)]


def _numbers(values: Tensor) -> list[float]:
    return [_short(value) for value in values.tolist()]


def _short(value: float) -> float:
    """Round to 6 digits; only what is zero becomes zero."""
    return round(value, 6) or (1e-6 if value > 0 else 0.0)
