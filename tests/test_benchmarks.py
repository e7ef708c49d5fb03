"""The benchmarks run, on tiny models, and what they compare is the same.

No time is asserted: machines differ, and this one may be busy.
"""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # scripts, which import each other by their names

import bounds  # noqa: E402
import corpus  # noqa: E402
import decode  # noqa: E402
import decoders  # noqa: E402
import grammar  # noqa: E402
import train  # noqa: E402
import turns  # noqa: E402

CONFIG = replace(
    decode.CONFIGS["small"],
    src_vocab_size=50, tgt_vocab_size=50, d_model=32, n_heads=2, d_ff=64,
    n_encoder_layers=1, n_decoder_layers=2, max_len=40,
)  # fmt: skip
MACHINE = {"bytes_per_second": 1e9, "flops": 1e10}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(who, marks=[pytest.mark.slow] * ("compiled" in who))
        for who in decoders.SHOWN
        if who != decoders.OURS
    ],
)
@pytest.mark.parametrize(("batch", "n_beams"), [(1, 1), (3, 1), (2, 3)])
def test_all_decoders_write_the_same(name, batch, n_beams):
    setting = decoders.Setting(CONFIG, batch, n_beams, 9)
    expected, found = (
        decoders.CONTESTANTS[who]()(setting) for who in (decoders.OURS, name)
    )
    assert [len(ids) for ids in expected] == [9] * batch
    assert found == expected


def test_one_who_writes_something_else_is_refused():
    turns = {"one": lambda setting: (0.5, [[7]]), "other": lambda setting: (1, [[8]])}
    setting = decoders.Setting(CONFIG, 1, 1, 10)
    with pytest.raises(RuntimeError, match="other writes .*8.*, not .*7"):
        next(decode.measure(turns, setting, 1))
    turns["other"] = lambda setting: (1, [[7]])
    one, other = decode.measure(turns, setting, 2)
    assert one["ms_per_token"] == [50, 50] and other["ms_per_token"] == [100, 100]


def test_the_lower_bound_is_that_of_reading_or_of_multiplying():
    # 6 matrices of 32 x 32 and 2 of 32 x 64 in each of 2 layers, 32 x 50 at the end.
    weights = 2 * (6 * 32 * 32 + 2 * 32 * 64) + 32 * 50
    kept = 2 * 2 * 32 * (0.5 + 20)  # keys and values, layers
    one, many = (decoders.Setting(CONFIG, *sizes, 1) for sizes in ((1, 1), (100, 4)))
    reading, multiplying = (bounds.lower_bound(each, MACHINE) for each in (one, many))
    assert reading == pytest.approx(1000 * 4 * (weights + kept) / 1e9)
    assert multiplying == pytest.approx(1000 * 2 * weights * 400 / 1e10)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", [decode, train])
def test_a_benchmark_stores_and_prints(benchmark, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(turns, "RESULTS", tmp_path)
    monkeypatch.setattr(decode, "CONFIGS", {"small": CONFIG})
    monkeypatch.setattr(decode, "SETTINGS", [(1, 8), (2, 8)])
    n_rounds = 6 if benchmark is decode else 1
    arguments = ["--rounds", str(n_rounds), "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["benchmark", *arguments])
    benchmark.main()
    [path] = tmp_path.iterdir()
    result = json.loads(path.read_text())
    n_rows = 4 * len(decoders.SHOWN) if benchmark is decode else 10
    assert len(result["rows"]) == n_rows
    key = "ms_per_token" if benchmark is decode else "seconds"
    assert {len(row[key]) for row in result["rows"]} == {n_rounds}
    assert result["machine"]["threads"] == 1
    assert capsys.readouterr().out.count(" x (") == n_rows


@pytest.mark.slow
def test_ids_in_lists_need_more_memory_than_a_mapped_file(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmark", "--pairs", "20000"])
    corpus.main()
    [row] = json.loads((tmp_path / "corpus.json").read_text())["rows"]
    first, again, lists = (
        row[way]["memory"] for way in ("first start", "next start", "in lists")
    )
    assert again < first and again + 20_000 * 1000 < lists
    assert 4 * row["n_tokens"] / 2 < row["disk"]


def test_ratios_are_those_of_the_same_round():
    ours = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert turns.compare([2 * each for each in ours], ours) == "2.00 x (2.00 to 2.00)"
    assert turns.compare(ours[::-1], ours) == "1.04 x (0.17 to 6.00)"
    assert turns.compare([3.0], [2.0]) == "1.50 x (of 1)"


def test_turns_are_taken_in_processes_of_their_own():
    with turns.working({"len": partial(partial, len)}, 1) as workers:
        assert workers["len"]([1, 2, 3])[1] == 3
        times = turns.take_turns(workers, 3, "ab")
        longer = turns.take_turns(workers, 9, "ab", seconds=0)
    assert [len(taken) for taken in (*times.values(), *longer.values())] == [3, 6]


@pytest.mark.parametrize("library", list(train.MODELS))
def test_the_steps_of_training_run(library, monkeypatch):
    monkeypatch.setattr(train, "CONFIG", replace(train.CONFIG, d_model=16, d_ff=16))
    train.make_step(library, "float32")()


def test_a_causal_encoder_hides_what_comes_later():
    src, later = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[5, 6, 9, 8]])
    for kind, n_equal in (grammar.CausalEncoder, 2), (grammar.Transformer, 0):
        torch.manual_seed(0)
        model, mask = kind(CONFIG).eval(), torch.ones(1, 1, 1, 4).bool()
        gap = (model.encode(src, mask) - model.encode(later, mask)).abs().amax(-1)[0]
        assert (gap < 1e-6).tolist() == [True] * n_equal + [False] * (4 - n_equal)


def test_a_mixture_holds_right_tokens_and_own_choices_one_position_later():
    torch.manual_seed(0)
    model = grammar.Transformer(CONFIG).eval()
    pairs = [([5, 6, 2], [7, 8, 9, 2]), ([5, 2], [7, 2])]
    batch = grammar.make_batch(pairs, bos_id=1, pad_id=0)
    chosen = model(batch.src, batch.tgt_in).argmax(dim=-1)
    own = grammar.mix(model, batch, share=1.0)
    assert torch.equal(grammar.mix(model, batch, share=0.0), batch.tgt_in)
    assert own[0].tolist() == [1, *chosen[0, :-1].tolist()] != batch.tgt_in[0].tolist()
    assert own[1].tolist() == [1, chosen[1, 0], 0, 0]


def test_batches_go_from_short_to_long_in_each_epoch():
    pairs = [([5] * n, [6] * (400 - n)) for n in range(1, 400)]
    order = grammar.by_length(pairs, 0, {"bos_id": 1, "pad_id": 0})
    n_read, longest = 0, []
    while n_read < len(pairs):
        [batch] = next(order)
        n_read += len(batch.src)
        longest.append(max(batch.src.size(1), batch.tgt_in.size(1)))
    assert n_read == len(pairs) and longest == sorted(longest)
    [again] = next(order)
    assert max(again.src.size(1), again.tgt_in.size(1)) == longest[0] < longest[-1]
