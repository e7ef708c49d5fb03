"""Decoding speed against other libraries: `python benchmarks/decode.py`.

All write targets of the same forced length with the same weights, in turns. Before a
setting is measured, all have to write the same first tokens. Stored are the
milliseconds for each token of a target, of every round; printed are their median and
how many times as long as the first contestant the others take. The lower bound is what
reading the weights and multiplying by them cannot take less than, by what this machine
was measured to reach.

About half an hour, on a machine that does nothing else. The library without its engine,
its own modules as they are and compiled, takes part where targets are short. `--only`
chooses contestants, and stores nothing.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import torch
from bounds import lower_bound, measure_machine
from decoders import CONTESTANTS, SHOWN, WITHOUT_ENGINE, Setting
from turns import Turn, compare, store, take_turns, working

from transformer_book.resampling import FEWEST
from transformer_lib.model.config import TransformerConfig

sizes = partial(TransformerConfig, src_vocab_size=8000, tgt_vocab_size=8000)
CONFIGS = {
    "small": sizes(d_model=256, d_ff=512, n_encoder_layers=3, n_decoder_layers=3),
    "base": sizes(d_model=512, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6),
}
SETTINGS = [(1, 64), (32, 64), (1, 256)]  # sentences, tokens of each target
CHECKED = 6  # tokens that have to be equal before anything is measured
SECONDS = 15  # for a setting, or the fewest rounds, whichever is longer
SHORT = 64  # tokens: up to here, the library without its engine takes part


def measure(
    turns: Mapping[str, Turn], setting: Setting, n_rounds: int
) -> Iterator[dict[str, Any]]:
    """Let all decode one setting, in turns.

    Args:
        turns: by name.
        setting: what is decoded.
        n_rounds: times that each is measured, at most.

    Yields:
        For each its milliseconds for a token in every round, and the seconds that the
        two searches before took above the usual ones.

    Raises:
        RuntimeError: first tokens differ.
    """
    short = setting._replace(n_tokens=min(CHECKED, setting.n_tokens))
    begun = {name: turn(short) for name, turn in turns.items()}
    first = next(iter(turns))
    for name, (_, written) in begun.items():
        if written != begun[first][1]:
            raise RuntimeError(f"{name} writes {written}, not {begun[first][1]}")
    longer = {name: turn(setting)[0] for name, turn in turns.items()}
    times = take_turns(turns, n_rounds, setting, seconds=SECONDS)
    for name, taken in times.items():
        usual = statistics.median(taken)
        yield {
            "library": name,
            "ms_per_token": [
                round(1000 * each / setting.n_tokens, 4) for each in taken
            ],
            "warm_up_s": round(begun[name][0] + longer[name] - usual, 1),
        }


def main() -> None:
    """Read the command line, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=15, help=f"from {FEWEST}, at most"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, metavar="NAME")
    options = parser.parse_args()
    names = options.only or SHOWN
    torch.set_num_threads(options.threads)
    machine = {name: measure_machine(config) for name, config in CONFIGS.items()}
    rows = []
    chosen = {name: CONTESTANTS[name] for name in names}
    with working(chosen, options.threads) as turns:
        for name, (batch, n_tokens), n_beams in product(CONFIGS, SETTINGS, (1, 4)):
            setting = Setting(CONFIGS[name], batch, n_beams, n_tokens)
            bound = round(lower_bound(setting, machine[name]), 4)
            sizes = {"batch": batch, "n_beams": n_beams, "n_tokens": n_tokens}
            label = "{:5} {:2} sentences {} beams {:3} tokens".format(
                name, *sizes.values()
            )
            sys.stdout.write(f"{label}  {'lower bound':20} {bound:9.3f} ms\n")
            taking_part = {
                who: turn
                for who, turn in turns.items()
                if n_tokens <= SHORT or who not in WITHOUT_ENGINE
            }
            found = list(measure(taking_part, setting, options.rounds))
            for row in found:
                rows.append({"model": name, **sizes, "bound_ms": bound, **row})
                times = row["ms_per_token"]
                sys.stdout.write(
                    f"{label}  {row['library']:20} {statistics.median(times):9.3f} ms  "
                    f"{compare(times, found[0]['ms_per_token'])}\n"
                )
            sys.stdout.flush()
    if not options.only:
        configs = {name: asdict(config) for name, config in CONFIGS.items()}
        result = {"measured": machine, "configs": configs, "rows": rows}
        store("decode_speed.json", options.threads, result)


if __name__ == "__main__":
    main()
