"""The benchmarks run, on tiny models, and what they compare is the same.

No time is asserted: machines differ, and this one may be busy.
"""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # scripts, which import each other by their names

import bounds  # noqa: E402
import decode  # noqa: E402
import decoders  # noqa: E402
import interleaved  # noqa: E402
import quality  # noqa: E402
import train  # noqa: E402
from decoders import Setting  # noqa: E402

CONFIG = replace(
    decode.CONFIGS["small"],
    src_vocab_size=50, tgt_vocab_size=50, d_model=32, n_heads=2, d_ff=64,
    n_encoder_layers=1, n_decoder_layers=2, max_len=40,
)  # fmt: skip
SETTINGS = pytest.mark.parametrize(("batch", "n_beams"), [(1, 1), (3, 1), (2, 3)])
MACHINE = {"bytes_per_second": 1e9, "flops": 1e10}


@SETTINGS
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (decoders.make_hugging_face, {"use_cache": True}),
        (decoders.make_hugging_face, {"use_cache": False}),
        (decoders.make_ours, {"precision": "modules"}),
    ],
)
def test_all_decoders_write_the_same(make, options, batch, n_beams) -> None:
    setting = Setting(CONFIG, batch, n_beams, 9)
    expected = decoders.make_ours()(setting)
    assert [len(ids) for ids in expected] == [9] * batch
    assert make(**options)(setting) == expected


@pytest.mark.skipif(not decoders.has_ctranslate2(), reason="needs CTranslate2")
@SETTINGS
def test_ctranslate2_writes_the_same(batch, n_beams) -> None:
    setting = Setting(CONFIG, batch, n_beams, 9)
    expected = decoders.make_ours()(setting)
    assert decoders.make_ctranslate2(n_threads=1)(setting) == expected
    in_8_bits = decoders.make_ctranslate2(n_threads=1, precision="int8")(setting)
    assert [len(ids) for ids in in_8_bits] == [9] * batch


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_weights_of_fewer_bits_change_little(precision) -> None:
    model, src = decoders.make_model(CONFIG), torch.randint(4, 50, (4, 6))
    logits = []
    for decoder in (decoders.prepare(model), decoders.prepare(model, precision)):
        decoder.prefill(src)
        logits.append(decoder.step(src))
    assert 0 < (logits[1] - logits[0]).abs().max() < 0.3
    setting = Setting(CONFIG, 2, 3, 5)
    assert [len(ids) for ids in decoders.make_ours(precision)(setting)] == [5, 5]


def test_a_contestant_that_writes_something_else_is_refused() -> None:
    class Fake:
        def __init__(self, *results: int) -> None:
            self.results = list(results)

        def turn(self, setting):
            return 0.5, [[self.results.pop(0)]]

    setting = Setting(CONFIG, 1, 1, 10)
    workers = {decode.OURS: Fake(7), decode.PEER: Fake(8)}
    with pytest.raises(RuntimeError, match="Marian writes .*8.*, but transformer_lib"):
        list(decode.measure(workers, setting, 1, 1.0))
    workers = {decode.OURS: Fake(7, 7), f"{decode.OURS}, int8": Fake(8, 8)}
    rows = list(decode.measure(workers, setting, 1, 1.0))
    assert [row["ms_per_token"] for row in rows] == [50.0, 50.0]
    assert [row["equal"] for row in rows] == [1.0, 0.0]


@pytest.mark.slow
def test_the_lower_bound_is_that_of_reading_or_of_multiplying() -> None:
    one = Setting(CONFIG, 1, 1, 1)
    # 6 matrices of 32 x 32 and 2 of 32 x 64 in each of 2 layers, 32 x 50 at the end.
    weights = 2 * (6 * 32 * 32 + 2 * 32 * 64) + 32 * 50
    assert sum(bounds.matrices(CONFIG)) == weights
    kept = 2 * 2 * 32 * (0.5 + 20)  # keys and values, layers
    assert bounds.lower_bound(one, MACHINE) == pytest.approx(
        1000 * 4 * (weights + kept) / 1e9
    )
    many = Setting(CONFIG, 100, 4, 1)
    assert bounds.lower_bound(many, MACHINE) == pytest.approx(
        1000 * 2 * weights * 400 / 1e10
    )
    measured = bounds.measure_machine(CONFIG)
    assert all(math.isfinite(value) and value > 0 for value in measured.values())


@pytest.mark.slow
def test_the_decoding_benchmark_stores_and_prints(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(decode, "CONFIGS", {"small": CONFIG})
    kept = (decode.OURS, decode.PEER)
    everybody = decode.contestants
    monkeypatch.setattr(
        decode, "contestants", lambda n: {name: everybody(n)[name] for name in kept}
    )
    monkeypatch.setattr(decode, "measure_quality", lambda n: [])
    out = tmp_path / "speed.json"
    decode.main(["--quick", "--threads", "1", "--out", str(out)])
    result = json.loads(out.read_text())
    assert len(result["rows"]) == 2 * 2 * 2 * 2
    assert {row["library"] for row in result["rows"]} == set(kept)
    assert all(row["equal"] == 1.0 for row in result["rows"])
    printed = capsys.readouterr().out
    assert printed.count("lower bound") == 8
    assert printed.count(" x\n") == 16


def test_every_setting_and_contestant_has_its_place() -> None:
    settings = list(decode.settings(quick=False))
    assert len(settings) == len(set(settings)) == 17
    for _, setting in settings:
        assert decode.takes_part(decode.OURS, setting)
    asked = [s for _, s in settings if decode.takes_part(decode.RECOMPUTE, s)]
    assert any(setting.n_tokens == 256 for setting in asked)
    assert all(setting.batch == 1 for setting in asked)


def test_quality_is_scored_for_every_precision(monkeypatch) -> None:
    monkeypatch.setattr(quality, "PRECISIONS", ("float32", "bfloat16"))
    rows = quality.measure_quality(4)
    assert {row["precision"] for row in rows} == {"float32", "bfloat16"}
    assert {row["model"] for row in rows} >= {"grammar"}
    assert all(0 <= row["bleu"] <= 100 for row in rows)


def test_turns_are_taken_in_processes_of_their_own() -> None:
    with interleaved.Worker(interleaved.Contestant(len_of, {}), 1) as worker:
        seconds, result = worker.turn([1, 2, 3])
    assert result == 3
    assert seconds >= 0


def len_of():
    return len


@pytest.mark.parametrize("library", list(train.MODELS))
def test_the_steps_of_training_run(library, monkeypatch) -> None:
    monkeypatch.setattr(train, "CONFIG", replace(train.CONFIG, d_model=16, d_ff=16))
    train.make_step(library, "float32")()
