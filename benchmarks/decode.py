"""Decoding speed against other libraries: `python benchmarks/decode.py`.

All write targets of the same forced length with the same weights, in turns. Before a
setting is measured, all have to write the same first tokens. The table gives
milliseconds for each token of a target, and how many times as long as the first
contestant the others take. The lower bound is what reading the weights and multiplying
by them cannot take less than, by what this machine was measured to reach.

About ten minutes; `--plain`, about ten more, is for what the library reaches without
its engine: its own modules, as they are and compiled, with the time that compiling
takes. `--only` chooses contestants, and stores nothing.
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
from decoders import CONTESTANTS, PLAIN, SHOWN, Setting
from turns import Turn, ratio, store, take_turns, working

from transformer_lib.model.config import TransformerConfig

sizes = partial(TransformerConfig, src_vocab_size=8000, tgt_vocab_size=8000)
CONFIGS = {
    "small": sizes(d_model=256, d_ff=512, n_encoder_layers=3, n_decoder_layers=3),
    "base": sizes(d_model=512, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6),
}
CHECKED = 6  # tokens that have to be equal before anything is measured
SECONDS = 15  # for a setting; a round that has begun is measured to its end


def measure(
    turns: Mapping[str, Turn], setting: Setting, n_rounds: int
) -> Iterator[dict[str, Any]]:
    """Let all decode one setting, in turns.

    Args:
        turns: by name.
        setting: what is decoded.
        n_rounds: times that each is measured, at most.

    Yields:
        For each the medians of its times and of their ratios to those of the first,
        and what the two searches before them took above that.

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
            "ms_per_token": round(1000 * usual / setting.n_tokens, 4),
            "warm_up_s": round(begun[name][0] + longer[name] - usual, 1),
            **ratio(taken, times[first]),
            "n_rounds": len(taken),
        }


def main() -> None:
    """Read the command line, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="at most")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--plain", action="store_true", help="and of 64 tokens only")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, metavar="NAME")
    options = parser.parse_args()
    names = options.only or (PLAIN if options.plain else SHOWN)
    lengths = [64] if options.plain else options.tokens
    torch.set_num_threads(options.threads)
    machine = {name: measure_machine(config) for name, config in CONFIGS.items()}
    rows = []
    chosen = {name: CONTESTANTS[name] for name in names}
    with working(chosen, options.threads) as turns:
        for name, batch, n_tokens, n_beams in product(
            CONFIGS, (1, 32), lengths, (1, 4)
        ):
            setting = Setting(CONFIGS[name], batch, n_beams, n_tokens)
            bound = round(lower_bound(setting, machine[name]), 4)
            sizes = {"batch": batch, "n_beams": n_beams, "n_tokens": n_tokens}
            label = "{:5} {:2} sentences {} beams {:3} tokens".format(
                name, *sizes.values()
            )
            sys.stdout.write(f"{label}  {'lower bound':20} {bound:9.3f} ms\n")
            for row in measure(turns, setting, options.rounds):
                rows.append({"model": name, **sizes, "bound_ms": bound, **row})
                sys.stdout.write(
                    f"{label}  {row['library']:20} {row['ms_per_token']:9.3f} ms "
                    f"{row['ours_is']:6.2f} x "
                    f"({row['ours_low']:.2f} to {row['ours_high']:.2f})\n"
                )
            sys.stdout.flush()
    if not options.only:
        configs = {name: asdict(config) for name, config in CONFIGS.items()}
        result = {"measured": machine, "configs": configs, "rows": rows}
        name = "plain_speed.json" if options.plain else "decode_speed.json"
        store(name, options.threads, result)


if __name__ == "__main__":
    main()
