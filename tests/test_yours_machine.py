"""The machine in Python with a reader's parts, on PyTorch and on the pages' torch."""

import math
import pickle
import re
import struct
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest
import torch
from py_mini_racer import MiniRacer
from quick_cases import some_now
from torch.nn.functional import cross_entropy

from book._ext.browser_model import model_data
from transformer_book.charts.trace import quantize, trace_translation
from transformer_book.yours import bundle, reader
from transformer_book.yours.machine import Machine, choose, random_numbers
from transformer_book.yours.parts import PADDING, PARTS
from transformer_book.yours.reader import Problem
from transformer_book.yours.runner import Runner
from transformer_book.yours.script import as_script, say
from transformer_lib import Transformer, TransformerConfig, load, padding_mask

NAME = "multi30k-de-en"
ROOT = Path(__file__).parents[1]
CAPTIONS = ["Ein Hund spielt im Schnee.", "Eine Frau mit einem Hut liest ein Buch."]
SOLUTIONS = {name: part.solution for name, part in PARTS.items()}
NO_HEADS = {"without": {"encoder.layers.0.self_attn": [0, 2]}}
EDITS = [
    {},
    {"src_positions": False},
    {"tgt_positions": False},
    {"without": {"decoder.layers.1.cross_attn": list(range(8))}},
    {"without": {"encoder.layers.0.self_attn": [0, 5]}, "tgt_positions": False},
    {"causal": False},
]
LOOK = ["src", "tgt", "src_labels", "tgt_labels", "text", "maps", "ahead", "norms",
        "log_probs", "next", "layers"]  # fmt: skip


@pytest.fixture(scope="module")
def translator():
    return load(NAME)


@pytest.fixture(scope="module")
def machine(translator) -> Machine:
    """Of the shipped model."""
    return Machine(model_data(translator))


def small_packed() -> dict:
    """A random model of the kind that pages have, of 40 tokens."""
    tokens = ["<pad>", "<bos>", "<eos>", "<unk>", *map(chr, range(0xA1, 0xA1 + 12))]
    tokens += [f"Ġ{letter}" for letter in "abcdefghijklmnopqrstuvwx"]
    config = TransformerConfig(
        src_vocab_size=40, tgt_vocab_size=40, d_model=24, n_heads=3, d_ff=20,
        n_encoder_layers=2, n_decoder_layers=2, norm_first=True, max_len=14,
    )  # fmt: skip
    torch.manual_seed(9)
    model = Transformer(config)
    tensors, data = [], bytearray()
    for name, weight in model.named_parameters():
        values = 2 * weight.detach() + 0.05 * torch.randn(weight.shape)
        entry = {"name": name, "shape": list(weight.shape), "offset": len(data)}
        if weight.dim() == 2:
            numbers, scales = quantize(values)
            data += numbers.numpy().tobytes() + bytes(-numbers.numel() % 4)
            entry["scale"] = len(data)
            data += scales.numpy().tobytes()
        else:
            data += values.numpy().tobytes()
        tensors.append(entry)
    sizes = ("n_heads", "d_model", "n_encoder_layers", "n_decoder_layers", "norm_eps",
             "max_len", "pad_id")  # fmt: skip
    config = {name: getattr(config, name) for name in sizes}
    packed = {"config": config, "tokens": tokens, "merges": [], "tensors": tensors}
    return {**packed, "data": bytes(data)}


SRC = [17, 30, 5, 22, 9, 2]


@pytest.fixture(scope="module")
def packed() -> dict:
    return small_packed()


@pytest.fixture
def small(packed) -> Machine:
    return Machine(packed)


def differ(ours, theirs, path: str = "", near: float = 1e-4) -> str:
    """Say where two answers differ: "" if nowhere. Lists and arrays are alike."""
    if isinstance(theirs, float) or isinstance(ours, float):
        same = math.isclose(ours, theirs, rel_tol=near, abs_tol=near)
        return "" if same else f"{path}: {ours} and {theirs}"
    if isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            return f"{path}: {[*ours]} and {[*theirs]}"
        pairs = [(key, ours[key], theirs[key]) for key in theirs]
    elif hasattr(theirs, "__len__") and not isinstance(theirs, str):
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} and {len(theirs)}"
        pairs = zip(range(len(theirs)), ours, theirs, strict=True)
    else:
        return "" if ours == theirs else f"{path}: {ours!r} and {theirs!r}"
    found = (differ(x, y, f"{path}/{key}", near) for key, x, y in pairs)
    return next(filter(None, found), "")


def all_of_it(machine: Machine, src: list[int], edits: dict) -> dict:
    """Everything that a page asks of one sentence."""
    written = machine.write(src, edits)
    tgt = written["ids"]
    name = "decoder.layers.0.cross_attn"
    return {
        "write": written,
        "look": machine.look(src, tgt, edits),
        "head": machine.head(src, tgt, name, 1, edits),
        "search": machine.search(src, edits, n_beams=2),
        "loss": machine.loss(src, tgt, edits),
    }


# --- the same numbers as everywhere ------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "edits"),
    some_now([(CAPTIONS[0], edits) for edits in EDITS] + [(CAPTIONS[1], {})], 1, 3),
    ids=str,
)
def test_all_tasks_tell_what_the_engine_tells(
    machine, translator, sentence, edits
) -> None:
    """The trace is held to the engine of the pages, see test_browser_engine."""
    is_causal = edits.get("causal", True)
    trace = trace_translation(
        translator, sentence, edits=edits, n_beams=4 if is_causal else 0
    )
    src = trace["src"]
    for parts in {}, SOLUTIONS:
        machine.use(parts)
        written = machine.write(src, edits)
        assert written.pop("padding", PADDING) == PADDING  # where there is some
        assert written == {"ids": trace["tgt"], "text": trace["text"]}
        seen = machine.look(src, written["ids"], edits)
        assert not differ(seen, {key: trace[key] for key in LOOK})
        for name, kept in trace["heads"].items() if is_causal else ():
            found = machine.head(src, written["ids"], name, kept["head"], edits)
            for role in "qkv":
                raw = b64decode(kept[role])
                exact = struct.unpack(f"<{len(raw) // 4}f", raw)
                assert not differ(found[role], exact, f"{name} {role}")
        if is_causal:
            search = machine.search(src, edits)
            for step in trace["search"]["steps"]:
                step["cache"] = None  # nothing is cached here
            assert not differ(search, trace["search"])
        if edits:
            own = trace_translation(translator, sentence)["tgt"]
            assert not differ(machine.loss(src, own, edits), trace["nats"], near=1e-3)


@pytest.mark.parametrize("name", some_now([*PARTS], 1, 3))
def test_a_part_opens_with_a_sentence_that_its_mistakes_change(
    machine, translator, name
) -> None:
    """But one whose end tokens no text shows, and one that keeps the logits' order."""
    src = translator.tokenizer.encode(PARTS[name].opening)
    machine.use({})
    own, same = machine.write(src)["text"], set()
    for each in PARTS[name].tries:
        machine.use({name: each.source})
        if machine.write(src)["text"] == own:
            same.add(each.label)
    assert same == {"search": {"never end"}, "model": {"softmax at the end"}}.get(
        name, set()
    )


@pytest.mark.parametrize("parts", [{}, SOLUTIONS], ids=["book", "all"])
def test_hidden_tokens_are_seen_by_nobody(small, parts) -> None:
    """As with a mask of the source that is made by hand."""
    small.use({})
    model = small.runner.model
    src, tgt_in = torch.tensor([SRC]), torch.tensor([[1, 8, 20]])
    mask = padding_mask(src, 0)
    mask[..., [1, 3]] = False
    causal = torch.ones(3, 3, dtype=torch.bool).tril()[None, None]
    memory = model.encode(src, mask)
    logits = model.lm_head(model.decode(tgt_in, memory, mask, causal))[0]
    tgt = [8, 20, 31]
    expected = cross_entropy(logits, torch.tensor(tgt), reduction="none").tolist()
    small.use(parts)
    found = small.loss(SRC, tgt, {"hide": [1, 3]})
    assert not differ(found, expected)
    assert differ(small.loss(SRC, tgt, {}), expected)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "edits", [{}, {"hide": [2], "src_positions": False, **NO_HEADS}], ids=str
)
def test_a_solution_in_the_place_of_a_part_changes_nothing(small, part, edits) -> None:
    expected = all_of_it(small, SRC, edits)
    small.use({part: SOLUTIONS[part]})
    found = all_of_it(small, SRC, edits)
    padding = found["write"].pop("padding", 0)  # which the machine tells
    assert padding == (PADDING if part in {"masks", "model"} else 0)
    assert not differ(found, expected)


def test_random_numbers_are_those_of_the_engine() -> None:
    text = (ROOT / "book/machine/engine.js").read_text(encoding="utf-8")
    [function] = re.findall(r"  function random\(seed\) \{.*?\n  \}\n", text, re.DOTALL)
    script = f"{function}; const draw = random(7); [draw(), draw(), draw(), draw()]"
    draw = random_numbers(7)
    assert [draw() for _ in range(4)] == list(MiniRacer().eval(script))


def test_samples_come_from_the_probabilities_that_are_listed(small) -> None:
    first = [
        small.write(SRC, method="sample", seed=seed, temperature=2.0, top_p=0.6)["ids"]
        for seed in range(60)
    ]
    assert first[3] == small.write(
        SRC, method="sample", seed=3, temperature=2.0, top_p=0.6
    )["ids"]  # fmt: skip
    listed = small.look(SRC, first[0], temperature=2.0, top_p=0.6)["next"][0]
    share = sum(ids[0] == listed[0]["id"] for ids in first) / len(first)
    error = math.sqrt(listed[0]["p"] * (1 - listed[0]["p"]) / len(first))
    assert abs(share - listed[0]["p"]) < 4 * error


def test_padding_is_never_said() -> None:
    assert choose(torch.tensor([9.0, 1.0, 2.0]), None) == 2
    assert choose(torch.tensor([9.0, 1.0, 2.0]), lambda: 0.0) == 1


def test_a_forced_beginning_is_kept(small) -> None:
    written = small.write(SRC, prefix=[9, 11])
    assert written["ids"][:2] == [9, 11]
    assert small.write(SRC, prefix=[9, 2])["ids"] == [9, 2]
    small.use({"search": SOLUTIONS["search"]})  # which can't begin with words
    assert small.write(SRC, prefix=[9, 11])["ids"] == written["ids"]


# --- what a step saw is what is shown ----------------------------------------------

WITHOUT_FUTURE = (".tril()", "")


def changed(part: str, *changes: tuple[str, str]) -> dict[str, str]:
    """A part's solution with replacements, as the only part that is the reader's."""
    source = SOLUTIONS[part]
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return {part: source}


def test_a_mask_that_hides_no_future_is_as_none(small) -> None:
    """In every step the newest token is the last: what it saw is the causal edit's."""
    edits = {"causal": False}
    expected, seen = small.write(SRC, edits), {}
    seen[True] = small.look(SRC, expected["ids"], edits)
    seen[False] = small.look(SRC, expected["ids"])
    small.use(changed("masks", WITHOUT_FUTURE))
    found = small.write(SRC)
    assert found["ids"] == expected["ids"][: len(found["ids"])]
    mine = small.look(SRC, expected["ids"])
    assert not differ(mine, seen[True])
    assert mine["ahead"] and not seen[False]["ahead"]
    assert differ(mine["maps"], seen[False]["maps"])


@pytest.mark.parametrize("part", ["attention", "heads", "decoder", "model"])
def test_look_takes_from_write_what_it_has_computed(small, part) -> None:
    small.use({part: SOLUTIONS[part]})
    ids = small.write(SRC)["ids"]
    assert small.runner.n_asked == len(ids)
    small.look(SRC, ids)
    assert small.runner.n_asked == 0
    small.head(SRC, ids, "decoder.layers.1.self_attn", 0)
    assert small.runner.n_asked == 0
    small.look(SRC, ids, {"hide": [0]})
    assert small.runner.n_asked == len(ids)


def test_padding_that_is_seen_changes_numbers_and_is_not_drawn(small) -> None:
    ids = small.write(SRC)["ids"]
    before = small.look(SRC, ids)
    small.use(changed("masks", ("ids != pad_id", "ids == ids")))
    after = small.look(SRC, ids)
    assert differ(after["log_probs"], before["log_probs"], near=1e-2)
    assert {key: len(x[0]) for key, x in after["maps"].items()} == {
        key: len(x[0]) for key, x in before["maps"].items()
    }
    assert sum(after["maps"]["encoder.layers.0.self_attn"][0]) < len(SRC) - 0.01
    assert [*map(len, after["norms"]["encoder"])] == [len(SRC)] * 3
    assert "padded" not in before  # what it gets is told
    for name, heads in after["padded"].items():
        for rows, padded in zip(after["maps"][name], heads, strict=True):
            shown = [sum(rows[i : i + len(SRC)]) for i in range(0, len(rows), len(SRC))]
            sums = [x + y for x, y in zip(shown, padded, strict=True)]
            assert not differ(sums, [1.0] * len(ids)) and max(padded) > 0


def test_shifting_by_nothing_lets_the_decoder_read_something_else(small) -> None:
    before = small.loss(SRC, [8, 20, 31, 2])
    shift = "torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)"
    small.use(changed("decoder", (shift, "target.clone()")))
    assert differ(small.loss(SRC, [8, 20, 31, 2]), before, near=1e-2)


# --- weights, wherever they are computed -------------------------------------------

ATTEND = "output, _ = scaled_dot_product_attention(q, k, v, mask)"
SCORES = """scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        """
INLINE = {
    "softmax": SCORES + "output = {} @ v",
    "by hand": SCORES + "w = scores.exp()\n"
    "        output = w / w.sum(-1, keepdim=True) @ v",
    "another softmax": ATTEND + "\n        (0 * q @ k.mT).softmax(dim=-1)",
    "head by head": "output = torch.stack([scaled_dot_product_attention("
    "q[:, h], k[:, h], v[:, h], mask if mask is None or mask.dim() == 2 else mask[:, 0]"
    ")[0] for h in range(self.n_heads)], dim=1)",
}


@pytest.mark.parametrize(
    "attend",
    [
        INLINE["softmax"].format(softmax)
        for softmax in (
            "scores.softmax(-1)",
            "torch.softmax(scores, dim=-1)",
            "F.softmax(scores, dim=-1)",
            "nn.Softmax(dim=-1)(scores)",
        )
    ]
    + [INLINE["head by head"], INLINE["another softmax"]],
)
def test_weights_of_heads_are_seen_in_their_softmax(small, attend) -> None:
    ids = small.write(SRC)["ids"]
    before = small.look(SRC, ids)
    small.use(changed("heads", (ATTEND, attend)))
    assert not differ(small.look(SRC, ids), before)
    assert torch.Tensor.softmax is super(torch.Tensor, torch.Tensor).softmax


def test_weights_that_nobody_saw_are_left_out(small) -> None:
    ids = small.write(SRC)["ids"]
    before = small.look(SRC, ids)
    small.use(changed("heads", (ATTEND, INLINE["by hand"])))
    after = small.look(SRC, ids)
    assert after["maps"] == {} and not differ(after["next"], before["next"])


# --- what goes wrong ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "number"), [(part, i) for part in PARTS for i in range(3)]
)
def test_a_mistake_that_can_be_tried_runs(small, part, number) -> None:
    before = small.write(SRC)["ids"]
    expected = small.look(SRC, before)
    tried = PARTS[part].tries[number]
    small.use({part: tried.source})
    written = small.write(SRC)
    seen = small.look(SRC, before)
    assert written["ids"] and "problem" not in written
    padded = seen.pop("padded", None)
    assert (padded is not None) == (tried.label == "padding is seen")
    assert seen.keys() == expected.keys()
    other = part == "search" or tried.label.startswith("shift")
    assert other or differ(seen, expected), tried.label


def test_nan_is_told_and_drawn(small) -> None:
    small.use(changed("attention", ("~mask, float", "mask, float")))
    written = small.write(SRC)
    told = "Your attention gives NaN (in encoder.layers.0.self_attn): "
    assert written["ids"] == [2] and written["cut"]
    assert written["problem"].startswith(told)
    seen = small.look(SRC, written["ids"])
    assert seen["problem"] == written["problem"]
    assert math.isnan(seen["log_probs"][0])
    assert [len(row) for row in seen["next"]] == [5]
    assert len(seen["maps"]) == 6
    with pytest.raises(Problem, match="Your attention gives NaN"):
        small.search(SRC)


MASKED = "weights @ value, weights"
PROBLEMS = {
    "nothing": ("attention", "return weights @ value, weights", "", "returned nothing"),
    "a list": ("attention", MASKED, "[1, 2]", "returned a list (a value of type int, "),
    "no weights": (
        "attention",
        MASKED,
        "weights @ value",
        "must return two tensors, output and weights, but returned a tensor of",
    ),
    "turned": (
        "attention",
        MASKED,
        "weights @ value, weights.transpose(-2, -1)[..., :1]",
        "must return weights of shape (1, 3, 3, 3), but returned a tensor of shape",
    ),
    "raises": (
        "attention",
        "weights = scores.softmax(dim=-1)",
        "weights = scores.softmax(dim=7)",
        "Your attention raised IndexError: Dimension out of range",
    ),
    "for ever": (
        "attention",
        "scores = query",
        "return scaled_dot_product_attention(query, key, value)\n    scores = query",
        "Your attention raised RecursionError: a function calls itself",
    ),
    "exit": ("attention", "scores = query", "exit()\n    scores = query", "SystemExit"),
    "in place": (
        "attention",
        "scores = query",
        "key *= 2\n    scores = query",
        "Your attention changes its key in place",
    ),
    "no parameter": (
        "heads",
        "self.k_proj = nn.Linear(d_model, d_model, bias=bias)\n",
        "self.keys = nn.Linear(d_model, d_model, bias=bias)\n",
        "Your MultiHeadAttention has no parameter k_proj.weight of shape (24, 24)",
    ),
    "another shape": (
        "sublayers",
        "self.expand = nn.Linear(d_model, d_ff)",
        "self.expand = nn.Linear(d_model, 2 * d_ff)",
        "Your FeedForward has a parameter expand.weight of shape (40, 24), but",
    ),
    "one more": (
        "encoder",
        "self.feed_forward = feed_forward",
        "self.feed_forward = feed_forward\n        self.more = nn.Linear(2, 3)",
        "Your EncoderLayer has a parameter more.weight, but",
    ),
    "a layer's shape": (
        "encoder",
        "return self.feed_forward_connection(x, self.feed_forward)",
        "return x[:, :1]",
        "Your EncoderLayer must return a tensor of shape (1, 3, 24), but returned",
    ),
    "a residual in place": (
        "sublayers",
        "return x + self.dropout(sublayer(self.norm(x)))",
        "x += self.dropout(sublayer(self.norm(x)))\n            return x",
        "Your SublayerConnection changes its argument 1 in place",
    ),
    "numbers for a mask": (
        "masks",
        "(ids != pad_id)",
        "(ids != pad_id).float()",
        "Your padding_mask must return a tensor of torch.bool, but returned",
    ),
    "a table": (
        "positions",
        "arange(n_positions)",
        "arange(n_positions + 1)",
        "Your sinusoid_table must return a tensor of shape",
    ),
    "a flat target": (
        "decoder",
        "return torch.cat",
        "return target[0]\n    return torch.cat",
        "Your shift_right must return a tensor of shape (1, 2)",
    ),
    "the last logits": (
        "model",
        "return self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))",
        "return self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))[:, -1]",
        "Your model must return logits of shape (1, 2, 40), but returned a tensor",
    ),
    "a name": ("attention", "def scaled_dot", "def dot", "defines no function scaled_"),
    "no module": ("heads", "(nn.Module)", "", "must be a class made from nn.Module"),
    "no Python": (
        "attention",
        "return weights",
        "return return",
        "can't be read: invalid",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_run_is_refused_in_a_sentence(small, name) -> None:
    part, old, new, sentence = PROBLEMS[name]
    before = small.write(SRC)
    with pytest.raises(Problem) as told:
        small.use(changed(part, (old, new)))
    assert sentence in str(told.value)
    assert re.search(r"[.)]$", str(told.value)) and "\n" not in str(told.value)
    assert small.write(SRC) == before  # the parts are what they were


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        ("return []", "Your greedy_decode wrote nothing"),
        ("return None", "must return a list of ids, but returned nothing"),
        ("return ['a']", "must return a list of ids, but returned a list"),
        ("return [4, 999]", "returned an id that is no token: 999"),
        (
            "while True: model(src, torch.tensor([[1]]))",
            r"Your search has asked the model \d+ times and goes on",
        ),
        ("return 1 / 0", r"Your search raised ZeroDivisionError.* \(line \d+\)"),
    ],
)
def test_a_search_that_finds_nothing_is_told(small, new, sentence) -> None:
    small.use(changed("search", ("target = [bos_id]", new + "\n    target = [bos_id]")))
    with pytest.raises(Problem, match=sentence):
        small.write(SRC)


def test_ids_may_come_as_a_tensor_or_as_a_batch_of_one(small) -> None:
    expected = small.write(SRC)["ids"]
    for new in ("torch.tensor(target)", "[target[1:]]", "torch.tensor([target])"):
        small.use(changed("search", ("return target[1:]", f"return {new}")))
        assert small.write(SRC)["ids"] == expected


def test_what_never_ends_is_cut(small) -> None:
    assert len(small.write(SRC[:1], {"hide": [0]})["ids"]) == 14  # of max_len
    small.use(changed("search", ("target[-1] != eos_id and ", "")))
    written = small.write(SRC[:1])
    assert written["cut"] and len(written["ids"]) == 2 * 1 + 10


def test_a_model_that_computes_its_table_first_runs(small) -> None:
    """What it starts with has numbers, though parameters are made without."""
    expected = small.write(SRC)
    old = "super().__init__()"
    new = old + "\n        self.table = sinusoid_table(60, 24)"
    read = "memory = self.encode(src, src_mask)"
    keep = "assert self.table.sum().item() != 0\n        " + read
    small.use(changed("model", (old, new), (read, keep)))
    assert small.write(SRC) == expected | {"padding": PADDING}


def test_a_model_may_score_without_its_head(small) -> None:
    expected = small.write(SRC)
    scored = "return self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))"
    weight = (
        "return F.linear(self.decode(tgt_in, memory, src_mask, tgt_mask), {}weight)"
    )
    small.use(changed("model", (scored, weight.format("self.lm_head."))))
    assert small.write(SRC) == expected | {"padding": PADDING}


def test_progress_grows(small) -> None:
    shares: list[float] = []
    small.progress = shares.append
    small.use({"attention": SOLUTIONS["attention"]})
    small.write(SRC)
    assert len(shares) > 5 and shares == sorted(shares) and shares[0] > 0
    assert shares[-1] <= 1


def test_helpers_of_one_name_do_not_meet(small) -> None:
    helper = "def scale(x):\n    return x {}\n\n\n"
    parts = changed("attention", (" / math.sqrt(query.size(-1))", " + 0 * scale(1)"))
    parts |= changed("search", ("bos_id]", "scale(bos_id)]"))
    parts["attention"] = helper.format("* 0.0") + parts["attention"]
    parts["search"] = helper.format("") + parts["search"]
    small.use(parts)
    assert small.write(SRC)["ids"]
    with pytest.raises(Problem, match="both define scale, and not alike"):
        as_script(parts)


# --- words and files ---------------------------------------------------------------


def test_lines_are_counted_without_what_the_stub_gives() -> None:
    text = (
        '# a\n\ndef f(x):\n    """Text.\n\n    More.\n    """\n    # b\n    return [\n'
    )
    assert reader.count_lines(text + "        x,\n    ]\n") == 4
    assert reader.count_lines("x = '''a\nb'''") == 2


def test_a_translation_says_whose_it_is() -> None:
    own = {name: SOLUTIONS[name] for name in ("masks", "attention")}
    assert say(own) == "Your attention, your masks; the rest is the book's."
    n_lines = sum(map(reader.count_lines, SOLUTIONS.values()))
    assert say(SOLUTIONS) == (
        f"This sentence was translated by your code alone: {n_lines} lines."
    )
    assert 100 < n_lines < 300


@pytest.mark.parametrize("parts", some_now([["attention", "encoder"], [*PARTS]], 1))
def test_a_program_translates_as_the_machine_does(
    machine, translator, tmp_path, parts
) -> None:
    own = {name: SOLUTIONS[name] for name in parts}
    own["attention"] = own["attention"].replace("-inf", "-1e9").replace("\n", "\r\n")
    machine.use(own)
    written = machine.write(translator.tokenizer.encode(CAPTIONS[1]))
    path = tmp_path / "mine.py"
    path.write_text(as_script(own, CAPTIONS[1]), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == written["text"]


# --- on the torch of pages ---------------------------------------------------------

CHILD = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from transformer_book.yours import page_torch
page_torch.install()
from transformer_book.yours.machine import Machine
packed, questions = pickle.load(open(sys.argv[2], "rb"))
machine, answers = Machine(packed), []
for parts, src, edits in questions:
    machine.use(parts)
    written = machine.write(src, edits)
    tgt = written["ids"]
    answers.append({
        "write": written,
        "look": machine.look(src, tgt, edits),
        "head": machine.head(src, tgt, "decoder.layers.0.cross_attn", 1, edits),
        "search": machine.search(src, edits, n_beams=2),
        "loss": machine.loss(src, tgt, edits),
    })
pickle.dump(answers, open(sys.argv[3], "wb"))
assert "numpy" not in sys.modules and "book" in sys.argv[1]
"""


def test_the_torch_of_pages_gives_the_same(small, packed, tmp_path) -> None:
    """All parts, mistakes, and edits: tokens are equal, numbers to 1e-4."""
    folder = tmp_path / "book"
    for path, text in bundle.sources().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    questions = [({}, SRC, {}), (SOLUTIONS, SRC, {}), (SOLUTIONS, SRC, NO_HEADS)]
    questions += [(changed("masks", WITHOUT_FUTURE), SRC, {"hide": [1]})]
    questions += [({}, SRC, {"causal": False, "src_positions": False})]
    questions += [({"heads": PARTS["heads"].tries[0].source}, SRC, {})]
    given, back = tmp_path / "given", tmp_path / "back"
    given.write_bytes(pickle.dumps((packed, questions)))
    subprocess.run(
        [sys.executable, "-c", CHILD, folder, given, back], check=True, cwd=folder
    )
    for (parts, src, edits), found in zip(
        questions, pickle.loads(back.read_bytes()), strict=True
    ):
        small.use(parts)
        assert not differ(found, all_of_it(small, src, edits)), (parts, edits)


def test_a_runner_has_the_weights_it_is_given(small) -> None:
    """Tied matrices stay one."""
    model = Runner(small.config, small.weights, SOLUTIONS).model
    assert model.lm_head.weight is model.src_embeddings.tokens.weight
    assert model.lm_head.weight is model.tgt_embeddings.tokens.weight
