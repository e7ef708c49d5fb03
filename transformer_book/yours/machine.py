"""The tasks of the pages' machine in Python, on a model with a reader's parts.

Questions and answers are those of `Tasks` in book/machine/types.d.ts, and the numbers
those of book/machine/tasks.js, which does the same in JavaScript. But nothing is cached
across steps: every step reads the whole target again. So a reader's mask counts, and
what a step saw is what the picture shows.
"""

import base64
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.yours.parts import PADDING
from transformer_book.yours.reader import Problem
from transformer_book.yours.runner import Edits, Runner
from transformer_lib.model.config import TransformerConfig

Plain = dict[str, Any]
N_NEXT, N_ANSWERS = 5, 3  # likeliest tokens that are listed: at the end, in a layer
PAD, BOS, EOS = 0, 1, 2

# Parts in which a mistake can let a position see later ones: then each step has its own
# pass. The others leave to the masks what is seen.
BLIND = {"positions", "encoder", "search"}


def widen(data: bytes, offset: int, shape: Sequence[int], scale: int | None) -> array:
    """Read one tensor of a packed model as 32-bit numbers.

    A page puts its own in the place of this one, in this module: it takes a second.

    Args:
        data: all tensors.
        offset: where its numbers begin, in bytes.
        shape: of the tensor.
        scale: where the scales of its rows begin, if the numbers have 8 bits.
    """
    n, n_rows = math.prod(shape), shape[0]
    if scale is None:
        return array("f", data[offset : offset + 4 * n])
    eights = array("b", data[offset : offset + n])
    scales = array("f", data[scale : scale + 4 * n_rows])
    numbers, width = array("f"), n // n_rows
    for row, factor in enumerate(scales):
        part = eights[row * width : (row + 1) * width]
        numbers.extend([factor * number for number in part])
    return numbers


class Machine:
    """A trained model and its tokens; the parts that are the reader's can be changed.

    Args:
        packed: what book/_ext/browser_model.model_data returns; its data may be bytes.

    Attributes:
        runner: the model, with the reader's parts in it.
        progress: is told the share of a task that is done.
    """

    def __init__(self, packed: Plain) -> None:
        data = packed["data"]
        data = base64.b64decode(data) if isinstance(data, str) else data
        weights = {}
        for entry in packed["tensors"]:
            numbers = widen(data, entry["offset"], entry["shape"], entry.get("scale"))
            tensor = torch.frombuffer(numbers, dtype=torch.float32)
            weights[entry["name"]] = nn.Parameter(
                tensor.view(*entry["shape"]), requires_grad=False
            )
        self.config = read_config(packed, weights)
        for side in "src", "tgt":  # one matrix for all three
            weights[f"{side}_embeddings.tokens.weight"] = weights["lm_head.weight"]
        self.weights = weights
        self.tokens = Tokens(packed["tokens"])
        self.progress: Callable[[float], Any] = lambda share: None
        self.use({})

    def use(self, parts: Mapping[str, str]) -> None:
        """Put a reader's parts in the place of the book's.

        Args:
            parts: the text of each part that is the reader's.

        Raises:
            Problem: they don't make a model with the trained weights, or it doesn't
                run. Then the parts are what they were.
        """
        self.runner = Runner(self.config, self.weights, parts)
        self.runner.progress = self._tick
        self._src: list[int] = []
        self._about = ""  # which source and which edits the following are of:
        self._steps: dict[tuple[int, ...], Plain] = {}  # after these ids
        self._encoder: Plain = {}  # what it has shown
        self._passed: list[int] | None = None  # what the last pass has read
        self._n_done, self._n_layers = 0, 1

    # --- the tasks --------------------------------------------------------------------

    def write(
        self,
        src: Sequence[int],
        edits: Edits | None = None,
        method: str = "greedy",
        prefix: Sequence[int] = (),
        seed: int = 0,
        **sampling: float,
    ) -> Plain:
        """Write a translation: the likeliest tokens, or sampled ones.

        A reader's search writes it, if nothing is sampled and no word is forced.

        Args:
            src: ids of the source.
            edits: what is changed in the model.
            method: "greedy" or "sample".
            prefix: ids to begin with.
            seed: of the samples.
            sampling: temperature and top_p.

        Returns:
            ids; text; padding, how many tokens of it stood behind the source, if any;
            cut, if it didn't end by itself; and problem, if a number was none: then
            the translation ends there.
        """
        self._begin(src, edits, n_steps=len(src) + 2)
        ids, limit = list(prefix), self._limit(len(src), len(prefix))
        draw = random_numbers(seed) if method == "sample" else None
        if self.runner.search and draw is None and not ids:
            ids, limit = self._search_of_the_reader(limit), 0
        problem = ""
        while ids[-1:] != [EOS] and len(ids) < limit:
            step = self._step(ids)
            if has_nan(step):
                problem = self._why_nan(ids)
                ids.append(EOS)
                break
            ids.append(choose(step["logits"][0], draw, **sampling))
        answer = {"ids": ids, "text": self.tokens.decode(ids)}
        if n_pads := self._n_pads():
            answer["padding"] = n_pads
        if problem:
            return answer | {"cut": True, "problem": problem}
        return answer if ids[-1] == EOS else answer | {"cut": True}

    def look(
        self,
        src: Sequence[int],
        tgt: Sequence[int],
        edits: Edits | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Plain:
        """Tell everything that is seen while a translation is written.

        Args:
            src: ids of the source.
            tgt: ids of the translation.
            edits: what is changed in the model.
            temperature: of the probabilities that are listed.
            top_p: of these, too.

        Returns:
            `Look` of types.d.ts, but what can't be seen is left out: weights of an
            attention, lengths and answers of a stream. problem: if a number was none.
            padded: if padding behind the source gets weight.
        """
        self._begin(src, edits, n_steps=len(tgt))
        if self._one_pass_tells_all():
            steps = [self._pass(tgt[:-1], range(len(tgt)))]
        else:
            steps = [self._step(tgt[:row]) for row in range(len(tgt))]
        logits = [row for step in steps for row in step["logits"]]
        log_probs = [
            log_prob
            for step, tokens in zip(steps, _dealt(tgt, steps), strict=True)
            for log_prob in log_probs_of(step, tokens)
        ]
        if temperature == 1 and top_p >= 1:
            listed = [row for step in steps for row in step["p"].tolist()]
        else:
            listed = [probabilities(row, temperature, top_p) for row in logits]
        answer = {
            "src": list(src),
            "tgt": list(tgt),
            "src_labels": self.tokens.labels(src),
            "tgt_labels": self.tokens.labels(tgt),
            "maps": self._maps(steps, len(src), len(tgt)),
            "ahead": {},
            "norms": dict(self._encoder["norms"]),
            "log_probs": log_probs,
            "next": [self._likeliest(p, N_NEXT) for p in listed],
            "text": self.tokens.decode(tgt),
        }
        if any(step["looks_ahead"] for step in steps):
            answer["ahead"] = {
                name: [step["ahead"][name] for step in steps]
                for name in steps[0]["ahead"]
            }
        padded = {
            name: joined(step["padded"][name] for step in steps)
            for name in steps[0]["padded"]
            if all(name in step["padded"] for step in steps)
        }
        if any(
            share > 0 for heads in padded.values() for head in heads for share in head
        ):
            answer["padded"] = padded
        if all(step["streams"] for step in steps):
            answer["norms"]["decoder"] = joined(step["norms"] for step in steps)
            answer["layers"] = self._answers(steps)
        if any(map(has_nan, steps)):
            answer["problem"] = self._why_nan(tgt[:-1])
        return answer

    def head(
        self,
        src: Sequence[int],
        tgt: Sequence[int],
        name: str,
        head: int,
        edits: Edits | None = None,
    ) -> Plain:
        """Tell queries, keys and values of one head: (length, d_head), row after row.

        Raises:
            Problem: they weren't seen.
        """
        self._begin(src, edits, n_steps=1)
        if self._passed != [*tgt[:-1]]:
            self._pass(tgt[:-1], range(len(tgt)))
        width = self.config.d_model // self.config.n_heads
        own = slice(head * width, (head + 1) * width)
        found = self.runner.vectors.get(name, {})
        if len(found) < 3:
            raise Problem(
                f"Queries, keys and values of {name} can't be seen: your code doesn't "
                "call q_proj, k_proj and v_proj."
            )
        # Padding behind the source isn't shown.
        n_keys = len(tgt) if name.endswith("self_attn") else len(src)
        n_queries = len(tgt) if name.startswith("decoder") else len(src)
        n_keys = len(src) if name.startswith("encoder") else n_keys
        lengths = {"q": n_queries, "k": n_keys, "v": n_keys}
        vectors = {
            role: array("f", _flat(x[0, : lengths[role], own]))
            for role, x in found.items()
        }
        return {"head": head, **vectors}

    def search(
        self,
        src: Sequence[int],
        edits: Edits | None = None,
        n_beams: int = 4,
        length_penalty: float = 1.0,
    ) -> Plain:
        """Tell a beam search step by step: `Found` of types.d.ts, without a cache."""
        self._begin(src, edits, n_steps=n_beams * (len(src) + 2))
        beams = Beams(n_beams, length_penalty, self._limit(len(src)))
        steps = []
        while not beams.done:
            before, position = beams.beams, len(beams.beams[0].ids) + 1
            next_ones = [self._best_next(beam, 2 * n_beams) for beam in before]
            fates = beams.advance(next_ones, position)
            steps.append(
                {
                    "position": position,
                    "candidates": [
                        fate
                        | {
                            "label": self.tokens.label(fate["token"]),
                            "text": self.tokens.decode(
                                [*before[fate["parent"]].ids, fate["token"]]
                            ),
                        }
                        for fate in fates
                        if fate["log_prob"] > -math.inf
                    ],
                    "beams": [
                        {"parent": beam.parent, "labels": self.tokens.labels(beam.ids)}
                        for beam in beams.beams
                    ],
                    "cache": None,
                    "recomputed": self._multiplications(len(src), position, n_beams),
                }
            )
        found = [
            each
            | {
                "labels": self.tokens.labels(each["ids"]),
                "text": self.tokens.decode(each["ids"]),
            }
            for each in beams.hypotheses
        ]
        options = {"n_beams": n_beams, "length_penalty": length_penalty}
        return {**options, "steps": steps, "hypotheses": found}

    def loss(
        self, src: Sequence[int], tgt: Sequence[int], edits: Edits | None = None
    ) -> list[float]:
        """Tell what each token of a translation costs in nats, read in one pass."""
        self._begin(src, edits, n_steps=1)
        step = self._pass(tgt[:-1], range(len(tgt)))
        return [-log_prob for log_prob in log_probs_of(step, tgt)]

    # --- passes -----------------------------------------------------------------------

    def _begin(self, src: Sequence[int], edits: Edits | None, n_steps: int) -> None:
        """Take a question up; what was seen of another source or edit is forgotten."""
        edits = {k: x for k, x in (edits or {}).items() if k != "yours"}
        about = json.dumps([list(src), edits], sort_keys=True)
        if about != self._about:
            self.runner.forget()
            self._about, self._src = about, list(src)
            self._steps, self._encoder, self._passed = {}, {}, None
        for side in "src", "tgt":
            if (
                edits.get(f"{side}_positions") is False
                and side not in self.runner.sides
            ):
                raise Problem(
                    "Positions can't be taken out of your Transformer: it has no "
                    f"{side}_embeddings.positions."
                )
        self.runner.edits = edits
        self.runner.n_asked = self.runner.most_asked = 0
        config = self.config
        self._n_done = 0
        self._n_layers = config.n_encoder_layers + n_steps * config.n_decoder_layers

    def _tick(self) -> None:
        self._n_done += 1
        self.progress(min(self._n_done / self._n_layers, 0.99))

    def _limit(self, n_src: int, n_forced: int = 0) -> int:
        """Return how many tokens a translation may have.

        A reader's model that never ends shouldn't keep anyone waiting: twice the source
        and ten more are enough for a translation that is one.
        """
        limit = min(n_src + 50, self.config.max_len)
        if self.runner.sources:
            limit = min(limit, max(2 * n_src, n_forced) + 10)
        return limit

    def _one_pass_tells_all(self) -> bool:
        """Whether no position can see later ones: then all steps are in one pass."""
        is_causal = self.runner.edits.get("causal") is not False
        return is_causal and self.runner.sources.keys() <= BLIND

    def _step(self, ids: Sequence[int]) -> Plain:
        """Tell what comes after these ids: of a pass over them, the last row."""
        key = tuple(ids)
        if key not in self._steps:
            self._steps[key] = self._pass(ids, [len(ids)])
        return self._steps[key]

    def _pass(self, ids: Sequence[int], rows: Sequence[int]) -> Plain:
        """Read the source and these ids, and tell what these rows have shown."""
        src, tgt_in = self._source(), self.runner.shift([*ids, EOS], BOS)
        logits = self.runner.logits(src, tgt_in, last_only=rows[0] == len(ids))
        self._passed = list(ids)
        return self._tell(logits, rows)

    def _tell(self, logits: Tensor, rows: Sequence[int]) -> Plain:
        """Collect what the last pass has shown, before the next one.

        Args:
            logits: (1, n_rows, vocab_size)
            rows: of the target.

        Returns:
            logits and p, probabilities (n_rows, vocab_size); maps, the rows of each
            head of the decoder's attentions; ahead, the mean over the heads of all
            rows; padded, what padding behind the source gets of each row; norms and
            streams, of these rows, before and after each layer.
        """
        runner, first, n_src = self.runner, rows[0], len(self._src)
        told: Plain = {"logits": logits[0], "p": logits[0].softmax(dim=-1)}
        if not self._encoder:
            names = [name for name in runner.names() if name.startswith("encoder")]
            seen = {name: heads for name in names if (heads := runner.heads(name))}
            self._encoder = {
                "maps": {
                    name: [_rows(head[:n_src], n_src) for head in heads]
                    for name, heads in seen.items()
                },
                "norms": {},
            }
            if stream := runner.streams.get("encoder"):
                lengths = [_lengths(x[0, :n_src]) for x in stream]
                self._encoder["norms"]["encoder"] = lengths
        told |= {"maps": {}, "padded": {}, "ahead": {}, "looks_ahead": False}
        for name in runner.names():
            if name.startswith("encoder") or not (heads := runner.heads(name)):
                continue
            if name.endswith("cross_attn"):
                told["maps"][name] = [_rows(head[first:], n_src) for head in heads]
                if self._n_pads():  # behind the source, in no picture
                    told["padded"][name] = [
                        [sum(row[n_src:]) for row in head[first:]] for head in heads
                    ]
            else:
                width = len(heads[0])
                told["maps"][name] = [_rows(head[first:], width) for head in heads]
                all_rows = [_rows(head, width) for head in heads]
                told["looks_ahead"] |= any(_looks_ahead(x, width) for x in all_rows)
                left = [x for x in all_rows if x[0] > 0]  # those that aren't cut
                n = max(1, len(left))
                told["ahead"][name] = [
                    sum(numbers) / n for numbers in zip(*left, strict=True)
                ] or [0.0] * width**2
        streams = runner.streams.get("decoder", [])
        told["norms"] = [_lengths(x[0, first:]) for x in streams]
        told["streams"] = [x[:, first:] for x in streams]
        return told

    def _maps(self, steps: Sequence[Plain], n_src: int, n_tgt: int) -> dict:
        """Join the rows that the steps have told: weights of each head, row by row."""
        maps = {
            name: [array("f", head) for head in heads]
            for name, heads in self._encoder["maps"].items()
        }
        for name in self.runner.names():
            told = [step["maps"].get(name) for step in steps]
            if name.startswith("encoder") or None in told:
                continue
            if name.endswith("self_attn") and len(steps) > 1:  # each is longer
                told = [
                    [[*row, *[0.0] * (n_tgt - len(row))] for row in heads]
                    for heads in told
                ]
            maps[name] = [
                array("f", [x for row in head for x in row])
                for head in zip(*told, strict=True)
            ]
        return {name: maps[name] for name in self.runner.names() if name in maps}

    def _answers(self, steps: Sequence[Plain]) -> list[list[list[Plain]]]:
        """Tell what each layer would answer at each position."""
        model, answers = self.runner.model, []
        n_stages = len(steps[0]["streams"])
        for stage in range(n_stages - 1):
            x = torch.cat([step["streams"][stage] for step in steps], dim=1)
            with self.runner.telling():
                logits = model.lm_head(model.decoder.norm(x))
            p = logits[0].softmax(dim=-1).tolist()
            answers.append([self._likeliest(row, N_ANSWERS) for row in p])
        p = [row for step in steps for row in step["p"].tolist()]
        return [*answers, [self._likeliest(row, N_ANSWERS) for row in p]]

    def _likeliest(self, p: list[float], n: int) -> list[Plain]:
        """List the n likeliest tokens."""
        return [
            {"id": token, "label": self.tokens.label(token), "p": share}
            for share, token in largest(p, n)
        ]

    def _best_next(self, beam: "Beam", n: int) -> list[tuple[float, int]]:
        """Return the n best log-probabilities after a beam, and their tokens."""
        step = self._step(beam.ids)
        if has_nan(step):
            raise Problem(self._why_nan(beam.ids))
        best = largest(without_padding(step["logits"][0]), n)
        tokens = [token for _, token in best]
        return [*zip(log_probs_of(step, [tokens]), tokens, strict=True)]

    def _search_of_the_reader(self, limit: int) -> list[int]:
        """Let the reader's search write; the model may be asked once a token."""
        runner = self.runner
        runner.listener = self._hear
        try:
            return runner.decode(self._source(), BOS, EOS, limit)
        finally:
            runner.listener = None

    def _hear(self, src: Tensor, tgt_in: Tensor, logits: Tensor) -> None:
        """Keep what a step of the reader's search has shown."""
        if src.tolist() == self._source().tolist() and tgt_in.size(0) == 1:
            [ids] = tgt_in[:, 1:].tolist()
            self._passed = ids
            self._steps[tuple(ids)] = self._tell(logits[:, -1:], [len(ids)])

    def _why_nan(self, ids: Sequence[int]) -> str:
        self._passed = None
        tgt_in = self.runner.shift([*ids, EOS], BOS)
        return self.runner.find_nan(self._source(), tgt_in)

    def _source(self) -> Tensor:
        """Return the source as it is read: (1, src_len).

        Where a reader's masks have to hide it, padding stands behind it, as in a batch
        with a longer sentence. No picture shows it.
        """
        padding = [self.config.pad_id] * self._n_pads()
        return torch.tensor([[*self._src, *padding]])

    def _n_pads(self) -> int:
        """Return how many tokens of padding stand behind the source."""
        return PADDING if self.runner.sources.keys() & {"masks", "model"} else 0

    def _multiplications(self, n_src: int, n_tgt: int, n_rows: int) -> dict[str, int]:
        """Count those of one pass, one target scored in each row."""
        c = self.config
        d, feed = c.d_model, 2 * c.d_model * c.d_ff
        encoder = n_src * (4 * d * d + feed + 2 * n_src * d)
        own = n_tgt * (4 * d * d + 2 * n_tgt * d)
        cross = n_tgt * (2 * d * d + 2 * n_src * d)
        decoder = n_rows * (own + cross + n_tgt * feed) + 2 * n_src * d * d
        return {
            "encoder": c.n_encoder_layers * encoder,
            "decoder": c.n_decoder_layers * decoder,
            "head": n_rows * d * c.tgt_vocab_size,
        }


def read_config(packed: Plain, weights: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the sizes of a packed model; what isn't stored, its weights tell."""
    n_tokens = len(packed["tokens"])
    names = ("n_heads", "d_model", "n_encoder_layers", "n_decoder_layers", "norm_eps",
             "max_len", "pad_id")  # fmt: skip
    return TransformerConfig(
        **{name: packed["config"][name] for name in names},
        src_vocab_size=n_tokens,
        tgt_vocab_size=n_tokens,
        d_ff=weights["encoder.layers.0.feed_forward.expand.weight"].size(0),
        dropout=0.0,
        norm_first=True,
        attention_bias="encoder.layers.0.self_attn.q_proj.bias" in weights,
        head_bias="lm_head.bias" in weights,
    )


# --- choosing tokens ------------------------------------------------------------------


def has_nan(step: Plain) -> bool:
    """Whether a logit is no number: it breaks the probabilities of its whole row."""
    return any(math.isnan(row) for row in step["p"][:, 0].tolist())


def log_probs_of(step: Plain, tokens: Sequence) -> list[float]:
    """Return log-probabilities, exact however small.

    Args:
        step: logits and p of some rows.
        tokens: one of each row, or several of the only one, as a list.
    """
    several = tokens if isinstance(tokens[0], list) else [[token] for token in tokens]
    found = []
    for logits, p, own in zip(step["logits"], step["p"], several, strict=True):
        best = int(logits.argmax())  # its probability can't be rounded to 0
        top, share = float(logits[best]), float(p[best])
        base = math.log(share) - top if share > 0 else math.nan
        found += [float(logits[token]) + base for token in own]
    return found


def largest(numbers: list[float], n: int) -> list[tuple[float, int]]:
    """Return the n largest of many numbers, and where they stand, the largest first."""
    if math.isnan(numbers[0]):
        return [(math.nan, i) for i in range(n)]
    numbers, found = [*numbers], []
    for _ in range(n):
        found.append((best := max(numbers), at := numbers.index(best)))
        numbers[at] = -math.inf
    return found


def without_padding(logits: Tensor) -> list[float]:
    """Return logits (vocab_size,) without the token that is never said."""
    numbers = logits.tolist()
    numbers[PAD] = -math.inf
    return numbers


def choose(logits: Tensor, draw: Callable[[], float] | None, **sampling: float) -> int:
    """Choose a token by its logits (vocab_size,), or draw one."""
    numbers = without_padding(logits)
    if draw is None:
        return numbers.index(max(numbers))
    p, left = probabilities(torch.tensor(numbers), **sampling), draw()
    for token, share in enumerate(p):
        left -= share
        if left < 0:
            return token
    return p.index(max(p))  # shares are rounded


def probabilities(
    logits: Tensor, temperature: float = 1.0, top_p: float = 1.0
) -> list[float]:
    """Return probabilities: temperature first, then the fewest with top_p together.

    Args:
        logits: (vocab_size,)
        temperature: logits are divided by it.
        top_p: what the likeliest tokens have together; the others get 0.
    """
    p = (logits / temperature).softmax(dim=-1).tolist()
    if top_p >= 1:
        return p
    likelier = 0.0
    for token in sorted(range(len(p)), key=p.__getitem__, reverse=True):
        if likelier >= top_p:
            p[token] = 0.0
        likelier += p[token]
    total = sum(p)
    return [share / total for share in p]


def random_numbers(seed: int) -> Callable[[], float]:
    """The generator "mulberry32", as in engine.js: the same seed, the same numbers."""
    state, bits = seed & 0xFFFFFFFF, 0xFFFFFFFF

    def draw() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & bits
        t = (state ^ (state >> 15)) * (state | 1) & bits
        t ^= (t + ((t ^ (t >> 7)) * (t | 61) & bits)) & bits
        return (t ^ (t >> 14)) / 2**32

    return draw


class Beam:
    """A target that is not finished: its ids, without bos."""

    def __init__(self, ids: list[int], log_prob: float, parent: int) -> None:
        self.ids, self.log_prob, self.parent = ids, log_prob, parent


class Beams:
    """The beam search for one sentence, as `BeamHypotheses` of the library.

    Args:
        n_beams: targets that are kept.
        length_penalty: a score is log_prob / length ** length_penalty.
        max_len: at which a target is cut.

    Attributes:
        beams: those that go on.
        hypotheses: those that have ended, best first.
        done: whether no better one can come.
    """

    def __init__(self, n_beams: int, length_penalty: float, max_len: int) -> None:
        self.n_beams, self.length_penalty = n_beams, length_penalty
        self.max_len, self.done = max_len, False
        self.hypotheses: list[Plain] = []
        # All start alike, so one counts.
        self.beams = [Beam([], -math.inf if i else 0.0, i) for i in range(n_beams)]

    def advance(
        self, next_ones: Sequence[list[tuple[float, int]]], position: int
    ) -> list[Plain]:
        """Take a step.

        Args:
            next_ones: for each beam, log-probabilities and tokens of what comes next.
            position: of the new token, from 1.

        Returns:
            What became of each candidate, best first.
        """
        children, fates = [], []
        for rank, (log_prob, parent, token) in enumerate(self._candidates(next_ones)):
            ids = [*self.beams[parent].ids, token]
            ends = position == self.max_len or token == EOS
            is_full, fate = len(children) == self.n_beams, "dropped"
            counts = not is_full and rank < self.n_beams and log_prob > -math.inf
            if not ends and not is_full:
                children.append(Beam(ids, log_prob, parent))
                fate = "beam"
            elif counts and self._keep(ids, log_prob):
                fate = "ended"
            fates.append(
                {"log_prob": log_prob, "parent": parent, "token": token, "fate": fate}
            )
        self.beams = _settled(children)
        self.done = position == self.max_len or self._has_no_hope(position)
        return fates

    def _candidates(
        self, next_ones: Sequence[list[tuple[float, int]]]
    ) -> list[tuple[float, int, int]]:
        found = [
            (log_prob + beam.log_prob, parent, token)
            for parent, beam in enumerate(self.beams)
            for log_prob, token in next_ones[parent]
        ]
        return sorted(found, key=lambda each: -each[0])[: 2 * self.n_beams]

    def _keep(self, ids: list[int], log_prob: float) -> bool:
        found = {"ids": ids, "log_prob": log_prob, "finished": ids[-1] == EOS}
        found["score"] = self._score(log_prob, len(ids))
        best = sorted([*self.hypotheses, found], key=lambda each: -each["score"])
        self.hypotheses = best[: self.n_beams]
        return any(each is found for each in self.hypotheses)

    def _has_no_hope(self, position: int) -> bool:
        if len(self.hypotheses) < self.n_beams:
            return False
        best = max(beam.log_prob for beam in self.beams)
        return self._score(best, position) <= self.hypotheses[-1]["score"]

    def _score(self, log_prob: float, length: int) -> float:
        return log_prob / max(length, 1) ** self.length_penalty


def _settled(children: Sequence[Beam]) -> list[Beam]:
    """Give each beam the row that its parent had, siblings those that are free."""
    heirs = {child.parent: child for child in reversed(children)}
    siblings = (child for child in children if heirs[child.parent] is not child)
    return [heirs.get(row) or next(siblings) for row in range(len(children))]


# --- tokens ---------------------------------------------------------------------------

# The byte that each letter of a byte-level vocabulary stands for, as in the tokenizer
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTED]
_BYTE_OF = dict(zip(map(chr, _PRINTED), _PRINTED, strict=True)) | {
    chr(0x100 + i): byte for i, byte in enumerate(_OTHERS)
}


class Tokens:
    """What the ids of a model stand for.

    Args:
        tokens: by id; the first four are special.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a target, without special tokens."""
        text = self._bytes(id_ for id_ in ids if id_ > 3).decode(errors="replace")
        return text.removeprefix(" ")

    def label(self, token: int) -> str:
        """Return a token for the axes of a picture."""
        if token <= 3:
            return self.tokens[token]
        raw = self._bytes([token])
        try:
            text = raw.decode()
        except UnicodeDecodeError:  # a part of a character
            return "".join(f"<{byte:02X}>" for byte in raw)
        return "▁" + text[1:] if text.startswith(" ") else text

    def labels(self, ids: Sequence[int]) -> list[str]:
        """Return the labels of some tokens."""
        return [self.label(token) for token in ids]

    def _bytes(self, ids: Iterable[int]) -> bytes:
        letters = "".join(self.tokens[id_] for id_ in ids)
        return bytes(_BYTE_OF.get(letter, 0) for letter in letters)


# --- numbers --------------------------------------------------------------------------


def joined(stages_of_steps: Iterable[list[list]]) -> list[list]:
    """Join the rows that several steps tell of the same stages."""
    return [
        [row for rows in stage for row in rows]
        for stage in zip(*stages_of_steps, strict=True)
    ]


def _dealt(tgt: Sequence[int], steps: Sequence[Plain]) -> list[Sequence[int]]:
    """Give each step the tokens of its rows: all in one, or one in each."""
    return [tgt] if len(steps) == 1 else [[token] for token in tgt]


def _flat(x: Tensor) -> list[float]:
    return x.flatten().tolist()


def _rows(rows: list[list[float]], width: int) -> list[float]:
    """Join rows, of which each is cut to a width."""
    return [number for row in rows for number in row[:width]]


def _lengths(x: Tensor) -> list[float]:
    """Return the length of each row: (n_rows, d_model)."""
    return [math.hypot(*row) for row in x.tolist()]


def _looks_ahead(numbers: Sequence[float], width: int) -> bool:
    """Whether a query has weight on a later key: (width, width), row after row."""
    return any(
        number > 0
        for row in range(width - 1)
        for number in numbers[row * width + row + 1 : (row + 1) * width]
    )
