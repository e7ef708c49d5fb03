"""The engine of the pages, in Chromium, against PyTorch with the same 8-bit weights."""

from __future__ import annotations

import json
import math
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.interventions import intervene, target_mask, write
from book_tools.browser_model import (
    dequantize_in_place,
    model_data,
    quantize,
    write_script,
)
from book_tools.toc import ROOT
from transformer_book.charts.trace import (
    multiplications,
    step_multiplications,
    trace_translation,
)
from transformer_lib import (
    GenerationConfig,
    SamplingConfig,
    Transformer,
    Translator,
    beam_search,
    greedy_decode,
    load,
    pad_batch,
    record_attention,
)
from transformer_lib.data.corpora import load as load_corpus
from transformer_lib.data.corpora.download import cache_folder
from transformer_lib.data.corpora.multi30k import load_multi30k

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)

NAME = "multi30k-de-en"
PUBLISHED = Path(
    os.environ.get("TRANSFORMER_LIB_MULTI30K") or cache_folder() / "multi30k"
)
STATIC = ROOT / "book" / "_static" / "translator"
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
    dequantize_in_place(found.model)
    return found


@pytest.fixture(scope="module")
def engine(browser, tmp_path_factory):
    """Run a body of JavaScript with an argument x; it has E, model, tokenizer, run."""
    script = tmp_path_factory.mktemp("engine") / "model.js"
    write_script(NAME, script)
    page = browser.new_page()
    page.evaluate("window.transformer_model = (data) => { window.data = data; }")
    for path in STATIC / "engine.js", STATIC / "tasks.js", script:
        page.add_script_tag(path=path)
    page.evaluate(
        """() => { window.E = transformer_engine();
        Object.assign(window, E.finish(E.load(data)), translator_tasks(E));
        window.run = (task, question) => E.finish(tasks[task](question));
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


def limits(*rows: list[int]) -> GenerationConfig:
    max_len = [min(len(ids) + 50, 128) for ids in rows]
    return GenerationConfig(bos_id=1, eos_id=2, max_len=max_len)


SEARCH = """const run = ([ids, max_len]) => E.finish(
  E.beam_search(model, ids, {bos_id: 1, eos_id: 2, max_len}, 4));"""


def test_quantized_rows_keep_their_largest_number_and_are_close() -> None:
    weight = torch.randn(5, 7) * torch.tensor([[1.0], [100.0], [1e-3], [0.0], [2.0]])
    numbers, scales = quantize(weight)
    close = numbers * scales[:, None]
    assert numbers.dtype == torch.int8
    assert ((weight - close).abs() <= scales[:, None] / 2 + 1e-9).all()
    assert numbers.abs().amax(dim=1).tolist() == [127, 127, 127, 0, 127]


def test_another_kind_of_model_is_refused(translator) -> None:
    config = replace(translator.model.config, norm_first=False, d_model=8, d_ff=8)
    post_norm = Translator(Transformer(config), translator.tokenizer)
    with pytest.raises(ValueError, match="norm_first=True only, not False"):
        model_data(post_norm)
    with pytest.raises(ValueError, match="byte-pair encoding only, not WordLevel"):
        model_data(load("grammar"))


# --- the model -------------------------------------------------------------------

PASS = """
  E.intervene(model, x.edits);
  const maps = {}, stream = [];
  for (const [name, attention] of model.named_attentions()) {
    maps[name] = [];
    attention.watch = (head, row, weights) => maps[name].push(Array.from(weights));
  }
  model.decoder.watch = (x) => stream.push(Array.from(x.data));
  const memory = E.finish(model.encode(x.src));
  const logits = E.finish(model.forward(x.src, x.tgt_in));
  for (const [, attention] of model.named_attentions()) attention.watch = null;
  model.decoder.watch = null;
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
        x = model.decode(tgt_in, memory, mask, target_mask(tgt_in.size(1), edits))
        logits = model.lm_head(x)
    for hook in hooks:
        hook.remove()
    return {"maps": dict(maps), "stream": stream, "memory": memory, "logits": logits}


def compare_passes(there: dict, here: dict) -> None:
    """The numbers of a browser against the library's."""
    for name in "memory", "logits":
        gap = torch.tensor(there[name]) - here[name].flatten()
        assert gap.abs().max() < 1e-4, name
    for layer, (ours, theirs) in enumerate(
        zip(there["stream"], here["stream"], strict=True)
    ):
        assert (torch.tensor(ours) - theirs.flatten()).abs().max() < 1e-4, layer
    assert len(there["maps"]) == 9
    for name, weights in there["maps"].items():
        # the encoder ran twice: by itself and in the pass
        ours = torch.tensor(weights[-8:]).flatten()
        assert (ours - here["maps"][name].flatten()).abs().max() < 1e-4, name


@pytest.mark.parametrize("edits", [{}, *EDITS], ids=json.dumps)
def test_a_pass_agrees_with_the_library(engine, translator, edits) -> None:
    src = translator.tokenizer.encode(CAPTIONS[2])
    tgt_in = [1, *translator.tokenizer.encode("A woman in a red hat reads.", eos=False)]
    there = engine(PASS, {"src": src, "tgt_in": tgt_in, "edits": edits})
    here = library_pass(
        translator.model, torch.tensor([src]), torch.tensor([tgt_in]), edits
    )
    compare_passes(there, here)
    plain = library_pass(
        translator.model, torch.tensor([src]), torch.tensor([tgt_in]), {}
    )
    moved = (plain["logits"] - here["logits"]).abs().max()
    assert moved > 0.01 if edits else moved == 0


# --- searches --------------------------------------------------------------------


EVERY = pytest.mark.parametrize(
    "every", [10, pytest.param(1, marks=pytest.mark.slow)], ids=["20 of 200", "all"]
)


@EVERY
def test_greedy_search_agrees(engine, translator, sentences, every) -> None:
    sentences = sentences[::every]
    rows = [translator.tokenizer.encode(text) for text in sentences]
    found = engine(
        """return x.map(([ids, max_len]) => E.finish(
             E.greedy_decode(model, ids, {bos_id: 1, eos_id: 2, max_len})));""",
        [[ids, limits(ids).max_len[0]] for ids in rows],
    )
    assert len(rows) == 200 // every
    batch, config = pad_batch(rows, 0), limits(*rows)
    expected = greedy_decode(translator.model, batch, config)
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs["ids"] == ours.ids
        assert theirs["finished"] == ours.finished
        assert theirs["log_prob"] == pytest.approx(ours.log_prob, abs=1e-3)


@EVERY
def test_beam_search_agrees(engine, translator, sentences, every) -> None:
    sentences = sentences[::every]
    rows = [translator.tokenizer.encode(text) for text in sentences]
    found = engine(
        f"{SEARCH} return x.map(run);", [[ids, limits(ids).max_len[0]] for ids in rows]
    )
    expected = beam_search(translator.model, pad_batch(rows, 0), limits(*rows), 4)
    for ours, theirs in zip(expected, found, strict=True):
        assert [h["ids"] for h in theirs] == [h.ids for h in ours]
        scores = [h.score for h in ours]
        assert [h["score"] for h in theirs] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 2.0])
def test_a_length_penalty_ranks_as_in_the_library(
    engine, translator, length_penalty
) -> None:
    ids = translator.tokenizer.encode(CAPTIONS[0])
    found = engine(
        """return E.finish(E.beam_search(
             model, x[0], {bos_id: 1, eos_id: 2, max_len: 40}, 3, x[1]));""",
        [ids, length_penalty],
    )
    config = GenerationConfig(bos_id=1, eos_id=2, max_len=40)
    ours = beam_search(
        translator.model, torch.tensor([ids]), config, 3, length_penalty
    )[0]
    assert [h["ids"] for h in found] == [h.ids for h in ours]


def test_a_search_goes_on_from_tokens_that_are_given(engine, translator) -> None:
    ids = translator.tokenizer.encode(CAPTIONS[0])
    prefix = translator.tokenizer.encode("The dog", eos=False)
    found = engine(
        """const config = {bos_id: 1, eos_id: 2, max_len: 40, prefix: x[1]};
        return E.finish(E.beam_search(model, x[0], config, 4));""",
        [ids, prefix],
    )
    config = GenerationConfig(bos_id=1, eos_id=2, max_len=40, prefixes=[prefix])
    ours = beam_search(translator.model, torch.tensor([ids]), config, 4)[0]
    assert [h["ids"] for h in found] == [h.ids for h in ours]
    assert found[0]["ids"][: len(prefix)] == prefix
    assert found[0]["score"] == pytest.approx(ours[0].score, abs=1e-4)


def test_a_cache_changes_nothing(engine, translator) -> None:
    rows = [translator.tokenizer.encode(text) for text in CAPTIONS]
    cached, plain = (
        engine(
            f"""return x.map((ids) => E.finish(E.beam_search(
            model, ids, {{bos_id: 1, eos_id: 2, max_len: 40}}, 4, 1,
            new E.{kind}(model))));""",
            rows,
        )
        for kind in ("IncrementalDecoder", "RecomputingDecoder")
    )
    for one, other in zip(cached, plain, strict=True):
        assert [h["ids"] for h in one] == [h["ids"] for h in other]
        assert [h["score"] for h in one] == pytest.approx([h["score"] for h in other])


@pytest.mark.parametrize(
    "edits", [some for some in EDITS if "hide" not in some], ids=json.dumps
)
def test_a_changed_model_writes_what_the_library_writes(
    engine, translator, edits
) -> None:
    """Without a cache there, and where a cache can be, with one here."""
    ids = translator.tokenizer.encode(CAPTIONS[2])
    found = engine(
        """E.intervene(model, x.edits);
        const found = E.finish(E.greedy_decode(
          model, x.ids, {bos_id: 1, eos_id: 2, max_len: x.ids.length + 50}));
        E.intervene(model);
        return found.ids;""",
        {"ids": ids, "edits": edits},
    )
    assert found == write(translator, [ids], edits)[0]


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
          found.push(E.finish(E.sample(
            model, x, config, {temperature: 2, top_p: 0.6}, seed)).ids[0]);
          if (seed === 3) found.push(E.finish(E.sample(
            model, x, config, {temperature: 2, top_p: 0.6}, seed)).ids[0]);
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
        return pytest.approx(value, abs=2e-3)
    if isinstance(value, list):
        return [rounded(each) for each in value]
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize("sentence", CAPTIONS[:3])
def test_the_trace_of_a_page_is_what_its_engine_says(
    engine, translator, sentence
) -> None:
    trace = trace_translation(translator, sentence)
    there = engine(
        """const { src, src_labels } = run("tokens", { text: x });
        const written = run("write", { src, edits: {} });
        const seen = run("look", { src, tgt: written.ids, edits: {} });
        for (const name in seen.maps)
          seen.maps[name] = seen.maps[name].map((head) => Array.from(head));
        const search = run("search", { src, edits: {} });
        return { ...seen, written, src_labels, search };
        """,
        sentence,
    )
    for name in "src", "tgt", "src_labels", "tgt_labels", "text", "maps", "log_probs":
        assert there[name] == rounded(trace[name]), name
    for ours, theirs in zip(
        [*trace["layers"], trace["next"]],
        [*there["layers"], there["next"]],
        strict=True,
    ):
        for one, other in zip(ours, theirs, strict=True):
            # close ones may change places
            assert [each["p"] for each in other] == rounded([e["p"] for e in one])
            assert one[0]["p"] - one[1]["p"] < 2e-3 or one[0]["id"] == other[0]["id"]
    assert there["search"] == rounded(trace["search"])


def test_multiplications_are_those_that_are_counted(engine, translator) -> None:
    n_src, n_tgt, n_rows = 6, 4, 3
    counted = engine(
        """const src = Array(x[0]).fill(5);
        const rows = Array(x[2]).fill(Array(x[1]).fill(7));
        const count = (act) => { const before = E.work.multiplications;
          const found = act(); return [E.work.multiplications - before, found]; };
        const [encoder, memory] = count(() => E.finish(model.encode(src)));
        const [decoder, states] = count(
          () => E.finish(model.decode(rows, memory, E.causal_mask)));
        const [first] = count(
          () => E.finish(new E.RecomputingDecoder(model).prefill(src)));
        return { encoder, decoder, first, told: multiplications(...x) };""",
        [n_src, n_tgt, n_rows],
    )
    config = translator.model.config
    expected = multiplications(config, n_src, n_tgt, n_rows)
    assert counted["told"] == expected
    assert counted["encoder"] == counted["first"] == expected["encoder"]
    assert counted["decoder"] == expected["decoder"]
    assert expected["head"] == n_rows * config.d_model * config.tgt_vocab_size
    steps = [step_multiplications(config, n_src, i, n_rows) for i in range(1, 5)]
    assert steps[0] > steps[1] < steps[2] < steps[3]


def test_the_loss_of_a_translation_is_that_of_the_library(engine, translator) -> None:
    src, tgt = (
        translator.tokenizer.encode(text)
        for text in (CAPTIONS[2], "A woman wearing a red hat reads in the sun.")
    )
    for edits in ({}, *EDITS):
        found = engine(
            'return run("loss", x);', {"src": src, "tgt": tgt, "edits": edits}
        )
        here = library_pass(
            translator.model, torch.tensor([src]), torch.tensor([[1, *tgt[:-1]]]), edits
        )
        nats = torch.nn.functional.cross_entropy(
            here["logits"][0], torch.tensor(tgt), reduction="none"
        )
        assert found["nats"] == pytest.approx(nats.tolist(), abs=1e-3)
        assert found["mean"] == pytest.approx(nats.mean().item(), abs=1e-3)


def test_without_a_causal_mask_free_writing_gets_worse(engine, translator) -> None:
    """Every training token can be seen, and what is written freely is less likely."""
    src = translator.tokenizer.encode(CAPTIONS[2])
    found = engine(
        """const write = (edits) => run("write", { src: x, edits });
        const own = write({}), blind = write({ causal: false });
        const loss = (tgt) => run("loss", { src: x, tgt, edits: {} }).mean;
        return { own: loss(own.ids), blind: loss(blind.ids), steps: blind.steps };""",
        src,
    )
    assert found["blind"] > found["own"] + 0.5
    assert not any(found["steps"]), "there is no cache without a causal mask"


def test_a_worker_answers_as_the_page_does(engine) -> None:
    """The worker is made of the text of the functions; it must need nothing else."""
    answers = engine(
        """const text = [transformer_engine, translator_tasks, translator_worker]
          .join("\\n") + "\\ntranslator_worker();";
        const worker = new Worker(URL.createObjectURL(new Blob([text])));
        const questions = [["load", data], ["tokens", { text: x }],
          ["tokens", { text: " " }], ["write", { src: [485, 17, 2], edits: {} }]];
        return new Promise((resolve) => {
          const answers = [];
          worker.onmessage = ({ data }) => {
            answers.push(data);
            if (data.id === questions.length && "answer" in data) {
              resolve([answers, run("write", questions[3][1])]);
              worker.terminate();
            }
          };
          questions.forEach(([task, question], i) =>
            worker.postMessage({ id: i + 1, task, question }));
        });""",
        CAPTIONS[0],
    )
    told, here = answers
    assert told[0]["answer"] == {"n_tokens": 8000}
    assert told[1]["answer"]["src_labels"][1] == "▁Hund"
    assert told[2]["error"] == "a sentence needs at least 1 word"
    events = [each["event"] for each in told if "event" in each]
    assert [event["token"] for event in events] == here["ids"]
    assert told[-1]["answer"]["ids"] == here["ids"]


# --- the tokenizer ---------------------------------------------------------------

ODD = [
    "<eos>", "a<eos>b", "<pad> <bos> <unk>",
    "it's we'll I'd they've you're can't I'm", "IT'S", "\ufeffHund", "Hund\ufeff",
    "\x85Hund\x85 x\x85y", "\x1cHund\x1d", "a\x1eb", "\x1f\x1f a \x1f", "x\u00a0y",
    "x\u2028y\u2029z", "\u3000Hund\u3000", "  two  spaces ", "a\tb\nc\r\nd",
    "\u200bzero\u200b", "👩‍👩‍👧‍👦 familie", "e\u0301 é", "٣٤٥ 12½ Ⅷ",
    "中文 句子。", "שלום עולם", "ß ẞ ſ", "\u0000", "\u0001 a", "﷽", "𝔘𝔫𝔦",
    "🇩🇪🇬🇧", "x" * 300, "\u180ex", "\u2060x", "a\u0300\u0301\u0302", "$x^2$",
    "_a_b_", "--- ... !!!", "1234567", "\uFFFD", "\U0010FFFF", "ǅ ʰ", "a'b 'sx 'S",
    " \u0085\u001c ", "Ａ１", "\x7f",
]  # fmt: skip


def odd_strings(n: int = 3000) -> list[str]:
    """The list above, and strings of letters of all kinds, always the same."""
    rng = random.Random(0)
    kinds = [
        "aäßzAÖ", "0189", " ", "\t\n\x0b\x0c\r", "\x1c\x1d\x1e\x1f",
        "\x85\xa0\u1680", "\u2000\u200a\u2028\u2029\u202f\u205f\u3000",
        "\ufeff\u200b\u200d\u180e", ".,!?'", "<>|_$^{}", "\u0301\u0308\u20dd",
        "٠٩०९", "½²Ⅷ", "אבגد", "中文かな한", "👍🏽👩🇩", "𝔘𐍈", "\x00\x01\x7f\x9f",
        "ſıİ",
    ]  # fmt: skip
    words = ["Hund", "Schnee", "'s", "'ll", "<eos>", "ein", " im", "n't", "U.S.A."]
    strings = list(ODD)
    while len(strings) < n:
        some = rng.sample(kinds, rng.randint(1, 4))
        parts = [
            rng.choice(words) if rng.random() < 0.2 else rng.choice(rng.choice(some))
            for _ in range(rng.randint(1, 14))
        ]
        strings.append("".join(parts))
    return strings


def encoded(tokenizer, text: str) -> list[int] | None:
    """As `Translator.translate` reads it; None if it is refused."""
    try:
        return tokenizer.encode(text.strip())
    except ValueError:
        return None


TOKENIZE = """return x.map((text) => {
  try { const ids = tokenizer.encode(text);
    return [ids, tokenizer.decode(ids), ids.map((id) => tokenizer.label(id))];
  } catch (error) { return null; } });"""


def compare_texts(pieces: list, tokenizer, texts: list[str]) -> int:
    """Return how many are refused by both."""
    refused = 0
    for text, found in zip(texts, pieces, strict=True):
        ids = encoded(tokenizer, text)
        if ids is None:
            assert found is None, repr(text)
            refused += 1
            continue
        assert found is not None, repr(text)
        assert found[0] == ids, repr(text)
        assert found[1] == tokenizer.decode(ids), repr(text)
        assert found[2] == tokenizer.tokens(ids), repr(text)
    return refused


def test_odd_strings_become_the_same_tokens(engine, translator) -> None:
    texts = odd_strings()
    assert len(set(texts)) > 2500
    refused = compare_texts(engine(TOKENIZE, texts), translator.tokenizer, texts)
    assert 10 < refused < 300


def test_any_ids_become_the_same_text(engine, translator) -> None:
    rng = random.Random(1)
    rows = [[rng.randrange(8000) for _ in range(6)] for _ in range(500)]
    rows += [[rng.randrange(4, 260) for _ in range(6)] for _ in range(500)]
    found = engine("return x.map((ids) => tokenizer.decode(ids));", rows)
    assert found == [translator.tokenizer.decode(ids) for ids in rows]


def test_half_a_character_is_refused(engine) -> None:
    message = engine(
        """try { tokenizer.encode("Hund " + String.fromCharCode(0xD83D)); }
        catch (error) { return error.message; }"""
    )
    assert message == "half a character: no valid Unicode"


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"no Multi30k in {PUBLISHED}")
def test_all_of_multi30k_becomes_the_same_tokens(engine, translator) -> None:
    corpus = load_multi30k(PUBLISHED)
    texts = [text for part in (corpus.train, corpus.valid, corpus.test)
             for pair in part for text in pair]  # fmt: skip
    assert compare_texts(engine(TOKENIZE, texts), translator.tokenizer, texts) == 0
