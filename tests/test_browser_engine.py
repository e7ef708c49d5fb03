"""The engine of the pages, in Chromium, against PyTorch with the same 8-bit weights."""

from __future__ import annotations

import json
import math
import os
import random
import struct
from base64 import b64decode

import pytest
import torch
from quick_cases import some_now
from torch import Tensor
from torch.nn.functional import cross_entropy

from book._ext.browser_model import write_scripts
from book._ext.toc import ROOT
from transformer_book.charts.machine import read_choices
from transformer_book.charts.trace import (
    intervene,
    multiplications,
    quantize,
    trace_translation,
)
from transformer_lib import (
    GenerationConfig,
    SamplingConfig,
    beam_search,
    causal_mask,
    greedy_decode,
    load,
    pad_batch,
    record_attention,
)
from transformer_lib.data.corpora import load as load_corpus

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)

NAME = "multi30k-de-en"
SOURCE = ROOT / "book" / "machine"
CAPTIONS = [
    "Ein Hund spielt im Schnee.",
    "Zwei Kinder laufen am Strand.",
    "Eine Frau mit einem roten Hut liest ein Buch in der Sonne.",
    "Drei Männer mit Helmen stehen vor einem großen Gebäude.",
    "Ein kleines Mädchen isst ein Eis.",
    "Zwei Fußballspieler kämpfen um den Ball.",
]
EDITS = [
    {"src_positions": False},
    {"tgt_positions": False},
    {"hide": [1]},
    {"hide": [0, 3, 4]},
    {"without": {"encoder.layers.0.self_attn": [0, 5]}},
    {"without": {"decoder.layers.2.self_attn": [7]}},
    {"without": {"decoder.layers.1.cross_attn": list(range(8))}},
    {
        "without": {f"decoder.layers.{i}.cross_attn": list(range(8)) for i in range(3)},
        "hide": [2],
        "tgt_positions": False,
    },
    {"causal": False},
]


@pytest.fixture(scope="module")
def translator():
    """The shipped model with the weights that the browser has."""
    found = load(NAME)
    for parameter in found.model.parameters():
        if parameter.dim() == 2:
            numbers, scales = quantize(parameter.data)
            parameter.data = numbers * scales[:, None]
    return found


@pytest.fixture(scope="module")
def engine(browser, tmp_path_factory):
    """Run a body of JavaScript with an argument x; it has E, model, tokenizer, run."""
    page = browser.new_page()
    page.evaluate(
        "() => { window.parts = [];window.machine_model = (x) => parts.push(x); }"
    )
    for name in "engine.js", "tasks.js":  # modules, whose functions become global here
        text = (SOURCE / name).read_text(encoding="utf-8")
        page.add_script_tag(content=text.replace("export function", "function"))
    for path in write_scripts(tmp_path_factory.mktemp("engine")):
        page.add_script_tag(path=path)
    page.evaluate(
        """() => { window.E = transformer_engine();
        const [first, ...rest] = parts;
        window.data = { ...first, data: rest.join("") };
        Object.assign(window, E.load(data), translator_tasks(E));
        window.run = (task, question) => tasks[task](question, () => {});
        run("load", data); }"""
    )
    yield lambda body, x=None: page.evaluate(f"(x) => {{ {body} }}", x)
    page.close()


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """200 sentences of three kinds."""
    grammar = [src for _, src in load_corpus("grammar").test[:97]]
    home = [src for _, src in load_corpus("home-assistant").test]
    home = [text for text in home if len(text) < 80][:97]
    return [*CAPTIONS, *grammar, *home]


def test_quantized_rows_keep_their_largest_number_and_are_close() -> None:
    weight = torch.randn(5, 7) * torch.tensor([[1.0], [100.0], [1e-3], [0.0], [2.0]])
    numbers, scales = quantize(weight)
    close = numbers * scales[:, None]
    assert numbers.dtype == torch.int8
    assert ((weight - close).abs() <= scales[:, None] / 2 + 1e-9).all()
    assert numbers.abs().amax(dim=1).tolist() == [127, 127, 127, 0, 127]


# --- the model -------------------------------------------------------------------

PASS = """
  E.intervene(model, x.edits);
  const maps = {}, memory = model.encode(x.src);
  const logits = model.forward(x.src, x.tgt_in);
  for (const [name, { seen }] of model.named_attentions()) {
    maps[name] = seen.weights.map((weights) => Array.from(weights));
  }
  const stream = model.decoder.stream.map((x) => Array.from(x.data));
  E.intervene(model);
  return { maps, stream,
    memory: Array.from(memory.data), logits: Array.from(logits.data) };
"""


def library_pass(model, src: Tensor, tgt_in: Tensor, edits: dict) -> dict:
    """What the library gives with the same edits, each made in its own way."""
    mask = torch.ones(1, 1, 1, src.size(1), dtype=torch.bool)
    mask[..., edits.get("hide", [])] = False
    stream: list[Tensor] = []
    layers = model.decoder.layers
    hooks = [
        layer.register_forward_hook(lambda *args: stream.append(args[-1]))
        for layer in layers
    ]
    hooks.append(
        layers[0].register_forward_pre_hook(lambda _, args: stream.append(args[0]))
    )
    with torch.no_grad(), intervene(model, edits), record_attention(model) as maps:
        memory = model.encode(src, mask)
        x = model.decode(tgt_in, memory, mask, causal_mask(tgt_in.size(1)))
        logits = model.lm_head(x)
    for hook in hooks:
        hook.remove()
    found = {"maps": dict(maps), "memory": memory, "logits": logits}
    return found | {"stream": torch.stack(stream)}


@pytest.mark.parametrize("edits", [{}, *EDITS], ids=json.dumps)
def test_a_pass_agrees_with_the_library(engine, translator, edits) -> None:
    """Numbers inside the model, and the loss of a translation."""
    encode = translator.tokenizer.encode
    src, tgt = encode(CAPTIONS[2]), encode("A woman in a red hat reads.")
    tgt_in = [1, *tgt[:-1]]
    there = engine(PASS, {"src": src, "tgt_in": tgt_in, "edits": edits})
    rows = torch.tensor([src]), torch.tensor([tgt_in])
    here = library_pass(translator.model, *rows, edits)
    pairs = [(name, there[name], here[name]) for name in ("memory", "logits", "stream")]
    assert len(there["maps"]) == 9
    for name, weights in there["maps"].items():
        pairs.append((name, weights, here["maps"][name]))
    for name, ours, theirs in pairs:
        gap = torch.tensor(ours).flatten() - theirs.flatten()
        assert gap.abs().max() < 1e-4, name
    plain = library_pass(translator.model, *rows, {})
    moved = (plain["logits"] - here["logits"]).abs().max()
    assert moved > 0.01 if edits else moved == 0
    found = engine('return run("loss", x);', {"src": src, "tgt": tgt, "edits": edits})
    nats = cross_entropy(here["logits"][0], torch.tensor(tgt), reduction="none")
    assert found == pytest.approx(nats.tolist(), abs=1e-3)


@pytest.mark.parametrize("choice", read_choices(), ids=lambda choice: choice["name"])
def test_a_choice_writes_what_it_says(engine, translator, choice) -> None:
    """In the page and in the library: each token is the likeliest there."""
    src = translator.tokenizer.encode(choice["text"])
    for edits, text in ({}, choice["was"]), (choice["edits"], choice["now"]):
        found = engine('return run("write", x);', {"src": src, "edits": edits})
        assert found["text"] == text
        ids = found["ids"]  # without a causal mask, each step is a pass of its own
        starts = [len(ids)] if edits.get("causal", True) else range(1, len(ids) + 1)
        for end in starts:
            rows = torch.tensor([src]), torch.tensor([[1, *ids[: end - 1]]])
            logits = library_pass(translator.model, *rows, edits)["logits"][0]
            first = 0 if edits.get("causal", True) else end - 1
            assert logits[first:].argmax(dim=-1).tolist() == ids[first:end]


# --- searches --------------------------------------------------------------------


SEARCH = """return x.map(([ids, max_len, prefix, n_beams, length_penalty]) => {
  const config = {bos_id: 1, eos_id: 2, max_len, prefix};
  return n_beams === 1 ? E.greedy_decode(model, ids, config)
    : E.beam_search(model, ids, config, n_beams, length_penalty); });"""


@pytest.mark.parametrize(
    ("every", "n_beams", "length_penalty", "prefix"),
    some_now(
        [
            (40, 1, 1.0, ""),
            (40, 4, 1.0, "The dog"),
            (40, 4, 1.0, ""),
            (40, 3, -1.0, ""),
            (40, 3, 0.0, ""),
            (40, 3, 2.0, ""),
            (1, 1, 1.0, ""),
            (1, 4, 1.0, ""),
        ],
        *(0, 1),
    ),
)
def test_searches_agree(
    engine, translator, sentences, every, n_beams, length_penalty, prefix
) -> None:
    encode = translator.tokenizer.encode
    rows = [encode(text) for text in sentences[::every]]
    prefix = encode(prefix, eos=False) if prefix else []
    max_len = [min(len(ids) + 50, 128) for ids in rows]
    options = [prefix, n_beams, length_penalty]
    found = engine(
        SEARCH, [[*one, *options] for one in zip(rows, max_len, strict=True)]
    )
    batch = pad_batch(rows, 0)
    config = GenerationConfig(bos_id=1, eos_id=2, max_len=max_len, prefixes=[prefix])
    if n_beams == 1:
        expected = [[each] for each in greedy_decode(translator.model, batch, config)]
        found = [[each] for each in found]
    else:
        expected = beam_search(translator.model, batch, config, n_beams, length_penalty)
    for ours, theirs in zip(expected, found, strict=True):
        assert [each["ids"] for each in theirs] == [each.ids for each in ours]
        assert [each["finished"] for each in theirs] == [each.finished for each in ours]
        for name in ("log_prob", "score")[: 1 if n_beams == 1 else 2]:
            numbers = [getattr(each, name) for each in ours]
            assert [each[name] for each in theirs] == pytest.approx(numbers, abs=1e-3)


def test_probabilities_are_those_of_the_library(engine) -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 50) * 3
    for temperature, top_p in [(1.0, 1.0), (0.5, 0.9), (2.0, 0.6), (1.0, 0.01)]:
        found = engine(
            """return Array.from(E.probabilities(
                 E.log_softmax(x[0]), {temperature: x[1], top_p: x[2]}));""",
            [logits[0].tolist(), temperature, top_p],
        )
        config = SamplingConfig(temperature=temperature, top_p=top_p)
        expected = config.probabilities(logits)[0].tolist()
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_samples_come_as_often_as_their_probability_says(engine, translator) -> None:
    """First tokens of 400 samples against the probabilities they are drawn with."""
    ids = translator.tokenizer.encode(CAPTIONS[0])
    found = engine(
        """const found = [], config = {bos_id: 1, eos_id: 2, max_len: 1};
        for (let seed = 0; seed < 400; seed++) {
          const draw = () => E.sample(
            model, x, config, {temperature: 2, top_p: 0.6}, seed).ids[0];
          found.push(draw());
          if (seed === 3) found.push(draw());
        }
        return found;""",
        ids,
    )
    assert found[3] == found.pop(4), "the same seed gives the same sample"
    with torch.no_grad():
        logits = translator.model(torch.tensor([ids]), torch.tensor([[1]]))[:, 0]
    logits[:, 0] = -math.inf
    p = SamplingConfig(temperature=2.0, top_p=0.6).probabilities(logits)[0]
    assert all(p[token] > 0 for token in found)
    for token in p.topk(3).indices.tolist():
        share, expected = found.count(token) / 400, p[token].item()
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 400)


# --- what a page asks ------------------------------------------------------------


def rounded(value):
    """The same data with numbers that can be compared."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-4)
    if isinstance(value, list):
        return [rounded(each) for each in value]
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize(
    ("sentence", "edits"),
    some_now(
        [(text, {}) for text in CAPTIONS[:3]]
        + [(CAPTIONS[2], edits) for edits in EDITS if "hide" not in edits],
        *(0, 4),
    ),
)
def test_the_trace_of_a_page_is_what_its_engine_says(
    engine, translator, sentence, edits
) -> None:
    """The engine writes with a cache, but for the causal mask; the trace without."""
    trace = trace_translation(load(NAME), sentence, edits=edits, n_beams=4)
    there = engine(
        """const { src, src_labels } = run("tokens", { text: x.sentence });
        const written = run("write", { src, edits: x.edits });
        const asked = { src, tgt: written.ids, edits: x.edits };
        const seen = run("look", asked), heads = {};
        for (const name in seen.maps) {
          seen.maps[name] = seen.maps[name].map((head) => Array.from(head));
          const { q, k, v } = run("head", { ...asked, name, head: x.heads[name] });
          heads[name] = [q, k, v].map((part) => Array.from(part));
        }
        const search = x.edits.causal === false ? null
          : run("search", { src, edits: x.edits });
        return { ...seen, heads, written, src_labels, search };
        """,
        {
            "sentence": sentence,
            "edits": edits,
            "heads": {name: kept["head"] for name, kept in trace["heads"].items()},
        },
    )
    for name in (
        "src",
        "tgt",
        "src_labels",
        "tgt_labels",
        "text",
        "maps",
        "ahead",
        "log_probs",
    ):
        assert there[name] == rounded(trace[name]), name
    for name, kept in trace["heads"].items():
        numbers = (b64decode(kept[part]) for part in "qkv")
        exact = [list(struct.unpack(f"<{len(x) // 4}f", x)) for x in numbers]
        assert there["heads"][name] == rounded(exact), name
    for stack, lengths in trace["norms"].items():
        for ours, theirs in zip(lengths, there["norms"][stack], strict=True):
            assert theirs == pytest.approx(ours, rel=1e-4)
    for ours, theirs in zip(
        [*trace["layers"], trace["next"]],
        [*there["layers"], there["next"]],
        strict=True,
    ):
        for one, other in zip(ours, theirs, strict=True):
            # close ones may change places
            assert [each["p"] for each in other] == rounded([e["p"] for e in one])
            assert one[0]["p"] - one[1]["p"] < 2e-3 or one[0]["id"] == other[0]["id"]
    if there["search"]:
        assert there["search"] == rounded(trace["search"])


def test_multiplications_are_those_that_are_counted(engine, translator) -> None:
    n_src, n_tgt, n_rows = 6, 4, 3
    counted = engine(
        """const src = Array(x[0]).fill(5);
        const rows = Array(x[2]).fill(Array(x[1]).fill(7));
        const count = (act) => { const before = E.work.multiplications;
          const found = act(); return [E.work.multiplications - before, found]; };
        const [encoder, memory] = count(() => model.encode(src));
        const [decoder, states] = count(
          () => model.decode(rows, memory, E.causal_mask));
        const [first] = count(
          () => new E.RecomputingDecoder(model).prefill(src));
        return { encoder, decoder, first, told: multiplications(...x) };""",
        [n_src, n_tgt, n_rows],
    )
    config = translator.model.config
    expected = multiplications(config, n_src, n_tgt, n_rows)
    assert counted["told"] == expected
    assert counted["encoder"] == counted["first"] == expected["encoder"]
    assert counted["decoder"] == expected["decoder"]
    assert expected["head"] == n_rows * config.d_model * config.tgt_vocab_size
    counts = [multiplications(config, n_src, i, n_rows, n_new=1) for i in range(1, 5)]
    steps = [sum(count.values()) for count in counts]
    assert steps[0] > steps[1] < steps[2] < steps[3]


# --- the tokenizer ---------------------------------------------------------------

ODD = [
    "<eos>", "a<eos>b", "<pad> <bos> <unk>", "x" * 300, "---...!!!", "1234567",
    "it's we'll I'd they've you're can't I'm 'sx", "IT'S", "\ufeffHund", "Hund\ufeff",
    "\x85Hund\x85 x\x85y", "\x1cHund\x1d", " \u0085\u001c ", "  two  spaces ",
    "👩‍👩‍👧‍👦 familie", "🇩🇪🇬🇧", "e\u0301 é", "a\u0300\u0301\u0302", "٣٤٥ 12½ Ⅷ",
    "中文 句子。", "שלום עולם", "ß ẞ ſ", "\u0000", "﷽", "𝔘𝔫𝔦", "\uFFFD", "\U0010FFFF",
    "ǅ ʰ", "Ａ１",
]  # fmt: skip
# Strings are drawn of these, so that letters of all kinds meet.
PARTS = [
    *"aäßzAÖſıİ0189 .,!?'<>|_$^{}\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000",
    *"\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u200d\u180e\u2060\u0301\u0308",
    *"\u20dd٠٩०९½²Ⅷאבגד中文かな한👍🏽👩🇩𝔘𐍈\x00\x01\x7f\x9f",
    *["Hund", "Schnee", "'s", "'ll", "<eos>", "ein", " im", "n't", "U.S.A."] * 2,
]


def odd_strings(n: int = 3000) -> list[str]:
    """The list above, and strings of letters of all kinds, always the same."""
    rng = random.Random(0)
    drawn = (rng.choices(rng.sample(PARTS, 9), k=rng.randint(1, 14)) for _ in range(n))
    return [*ODD, *map("".join, drawn)]


TOKENIZE = """return x.map((text) => {
  try { const ids = tokenizer.encode(text);
    return [ids, tokenizer.decode(ids), ids.map((id) => tokenizer.label(id))];
  } catch (error) { return null; } });"""


# What the engine reads all texts as; each sign is named by its number.
def expected_pieces(tokenizer, text: str) -> list | None:
    """As `Translator.translate` reads it; None if it is refused."""
    try:
        ids = tokenizer.encode(text.strip())
    except ValueError:
        return None
    return [ids, tokenizer.decode(ids), tokenizer.tokens(ids)]


def test_any_string_becomes_the_same_tokens(engine, translator, sentences) -> None:
    texts = [*sentences, *odd_strings()]
    assert len(set(texts)) > 2500
    expected = [expected_pieces(translator.tokenizer, text) for text in texts]
    written = engine(TOKENIZE, texts)
    for text, found, pieces in zip(texts, written, expected, strict=True):
        assert found == pieces, repr(text)
    assert expected.count(None) > 1


def test_any_ids_become_the_same_text(engine, translator) -> None:
    rng = random.Random(1)
    rows = [[rng.randrange(8000) for _ in range(6)] for _ in range(500)]
    rows += [[rng.randrange(4, 260) for _ in range(6)] for _ in range(500)]
    found = engine("return x.map((ids) => tokenizer.decode(ids));", rows)
    assert found == [translator.tokenizer.decode(ids) for ids in rows]
