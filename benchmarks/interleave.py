#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares modes of one program inside one process, in short blocks.

Separate processes of one program differ by more than what is to be measured.
interleave() therefore runs blocks of a few steps in turn: past the recorder,
with recording armed but idle, with every step written to the trace. The order
changes from round to round so that each mode follows each other one equally
often, and ratios are taken within a round, so that what drifts slowly (clocks,
heat, other load) cancels out.

The modes are those of include/heddle/measure.h and need the program to run
under libheddle_preload.so with HEDDLE_TRACE set. Without it there is one mode,
"plain".

Run as a program, this file measures a step of its own that uses no device:

  interleave.py --dry-run                          (what it prints, without CUDA)
  interleave.py --dry-run --simulate --cost 200    (three modes of known cost)
"""

import argparse
import ctypes
import gc
import hashlib
import itertools
import json
import math
import statistics
import sys
import time

# Of heddle_measure(), in the order in which results list them.
MODES = {"detached": 1, "attached": 0, "writing": 2}
RESULTS = {1: "nothing is recorded in this process: set HEDDLE_TRACE, and make "
              "a CUDA call first",
           2: "a step is being recorded or a stream captures",
           3: "this heddle does not know the mode"}
PLAIN = "plain"
BASELINES = ("detached", PLAIN)
# The modes in which no block runs: how a measurement leaves the process.
AT_REST = "attached"


class Switch:
    """heddle_measure() of the preload library, if that is loaded."""

    def __init__(self):
        try:
            self._measure = ctypes.CDLL(None).heddle_measure
        except AttributeError:
            self._measure = None
            self.modes = [PLAIN]
            return
        self._measure.argtypes = [ctypes.c_int]
        self._measure.restype = ctypes.c_int
        self.modes = list(MODES)

    def to(self, mode):
        if self._measure is None:
            return
        result = self._measure(MODES[mode])
        if result != 0:
            raise RuntimeError(f"heddle_measure({mode}): "
                               f"{RESULTS.get(result, result)}")


def add_arguments(parser):
    """The options that every program with an interleaved mode has."""
    parser.add_argument("--interleave", type=int, default=0, metavar="N",
                        help="N rounds of short blocks, one for each mode of "
                        "recording, instead of --steps; needs "
                        "libheddle_preload.so to compare anything")
    parser.add_argument("--block-steps", type=int, default=6, metavar="N",
                        help="timed steps of a block, after an untimed one [6]")


def check_arguments(parser, args):
    if args.interleave < 0:
        parser.error("--interleave must not be negative")
    if args.block_steps < 1:
        parser.error("--block-steps must be at least 1")


def interleave(begin, step, outputs, rounds, block_steps, switch=None):
    """Runs the blocks and returns a dictionary that JSON can hold.

    begin() puts the program back to where every block starts and waits for the
    device; step() runs a step and waits; outputs() describes what the steps of
    a block computed, for comparison. Only step() is timed.
    """
    switch = switch or Switch()
    orders = list(itertools.permutations(switch.modes))
    blocks = {mode: [] for mode in switch.modes}
    results = {mode: [] for mode in switch.modes}
    collects = gc.isenabled()
    try:
        for number in range(rounds):
            for mode in orders[number % len(orders)]:
                begin()
                gc.collect()
                gc.disable()  # a collection would fall on one mode or another
                switch.to(mode)
                step()
                times = []
                for _ in range(block_steps):
                    start = time.perf_counter_ns()
                    step()
                    times.append((time.perf_counter_ns() - start) / 1e3)
                if collects:
                    gc.enable()
                blocks[mode].append(statistics.median(times))
                results[mode].append(outputs())
    finally:
        if collects:
            gc.enable()
        if AT_REST in switch.modes:
            switch.to(AT_REST)
    return summarize(blocks, results, block_steps)


def summarize(blocks, results, block_steps):
    """What the blocks' times and outputs say; see interleave()."""
    baseline = next(mode for mode in BASELINES if mode in blocks)
    first = results[baseline][0]
    modes = {}
    for mode, times in blocks.items():
        modes[mode] = {
            "median_us": statistics.median(times),
            "spread_us": spread(times),
            "same_outputs": all(result == first for result in results[mode]),
            "block_us": times,
        }
        if mode != baseline:
            pairs = [base / value
                     for base, value in zip(blocks[baseline], times)]
            low, high = median_bounds(pairs)
            modes[mode]["paired_ratio"] = statistics.median(pairs)
            modes[mode]["paired_ratio_bounds"] = [low, high]
    return {"baseline": baseline, "rounds": len(blocks[baseline]),
            "block_steps": block_steps, "modes": modes}


def spread(values):
    """Half the range of the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    middle = ordered[quarter:len(ordered) - quarter]
    return (middle[-1] - middle[0]) / 2


def median_bounds(values):
    """Between these the median lies with 95 % probability (at least, or the
    extremes if there are too few values): order statistics, which assume
    nothing about the distribution."""
    ordered = sorted(values)
    n = len(ordered)
    outside, k = 0.0, 0
    # The k-th value from below and from above, with the largest k for which
    # the median lies outside with at most 5 %.
    while k < n // 2:
        outside += 2 * math.comb(n, k) / 2.0**n
        if outside > 0.05:
            break
        k += 1
    k = max(k - 1, 0)
    return ordered[k], ordered[n - 1 - k]


def report(result):
    """Lines for a person to read."""
    lines = []
    for mode, values in result["modes"].items():
        line = (f"{mode:9s} {values['median_us']:10.1f} us a step "
                f"+- {values['spread_us']:.1f}")
        if "paired_ratio" in values:
            low, high = values["paired_ratio_bounds"]
            line += (f"   {result['baseline']} / {mode} = "
                     f"{values['paired_ratio']:.4f} "
                     f"[{low:.4f}, {high:.4f}]")
        if not values["same_outputs"]:
            line += "   outputs differ"
        lines.append(line)
    return "\n".join(lines)


class SimulatedSwitch:
    """Adds a known cost to each step, in place of a recorder."""

    def __init__(self, cost_us):
        self.modes = list(MODES)
        self.cost_us = {"detached": 0, "attached": cost_us,
                        "writing": 2 * cost_us}
        self.mode = AT_REST

    def to(self, mode):
        self.mode = mode

    def pay(self):
        end = time.perf_counter_ns() + self.cost_us[self.mode] * 1000
        while time.perf_counter_ns() < end:
            pass


def dry_run(args):
    switch = SimulatedSwitch(args.cost) if args.simulate else Switch()
    data = b"x" * 200_000
    state = {}

    def begin():
        state["digest"] = b""

    def step():
        for _ in range(10):
            state["digest"] = hashlib.sha256(state["digest"] + data).digest()
        if args.simulate:
            switch.pay()

    return interleave(begin, step, lambda: state["digest"].hex(),
                      args.interleave, args.block_steps, switch)


def main(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", required=True,
                        help="measure a step that hashes, without a device")
    parser.add_argument("--simulate", action="store_true",
                        help="three modes that busy-wait, without heddle")
    parser.add_argument("--cost", type=int, default=100, metavar="US",
                        help="of a step with --simulate [100]")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(interleave=30)
    args = parser.parse_args(argv)
    check_arguments(parser, args)
    if args.interleave == 0:
        parser.error("--interleave must be at least 1")
    result = dry_run(args)
    print(json.dumps(result, indent=2) if args.json else report(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
