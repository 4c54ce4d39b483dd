#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what recording costs and checks that what was recorded replays.

For every workload: the program as it is, with recording armed but idle, and
while one step of it is recorded, interleaved; are its outputs unchanged; does
the trace replay to identical memory, as stream launches and as one graph. The
processes differ by the preloaded library alone, so a ratio is of medians over
interleaved processes. Writes one file in the format of the project's results.

Python programs differ from process to process by more than recording costs. For
them there is a second job, interleave-WORKLOAD: blocks of steps past the
recorder, with recording armed and with every step written, in turn in one
process (benchmarks/interleave.py).

usage: record.py --build DIR --out DIR [--only WORKLOAD,...] [--rounds N]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from results import (ROOT, ResultFile, add_arguments, outputs, spread)


def workloads(build):
    """name -> (command, how its JSON is found, microseconds of a step)."""
    llama = [sys.executable, str(ROOT / "benchmarks/pytorch/llama.py")]
    decode = str(build / "bin/decode")
    median = lambda result: result["median_us"]
    wall = lambda result: result["bench"]["wall_us"]
    table = {
        "llama-1b-eager-b1": (llama + ["--model", "1b", "--mode", "eager",
                                       "--steps", "60"], median),
        "llama-1b-graph-b1": (llama + ["--model", "1b", "--mode", "graph",
                                       "--steps", "200"], median),
        "decode-stream": ([decode, "--stream-tokens", "--bench", "3000",
                           "--tokens", "32", "--max-seq", "4096"], wall),
        "decode-graph": ([decode, "--graph", "--bench", "3000", "--tokens",
                          "32", "--max-seq", "4096"], wall),
        "decode-cudart": ([str(build / "bin/decode_cudart"), "--stream-tokens",
                           "--bench", "3000",
                           "--tokens", "32", "--max-seq", "4096"], wall),
        "decode-1b-cublas": ([decode, "--preset", "1b", "--dtype", "bf16",
                              "--gemm", "cublas", "--stream-tokens", "--bench",
                              "300", "--tokens", "32"], wall),
        "inception-b1": ([str(build / "bin/inception"), "--bench", "300"],
                         wall),
        "inception-cudart-b1": ([str(build / "bin/inception_cudart"), "--bench",
                                 "300"], wall),
        "foreign-cupy": ([sys.executable,
                          str(ROOT / "benchmarks/foreign/cupy_chain.py"),
                          "--steps", "200"], median),
        "foreign-jax": ([sys.executable,
                         str(ROOT / "benchmarks/foreign/jax_mlp.py"),
                         "--steps", "200"], median),
    }
    return {name: row for name, row in table.items()
            if pathlib.Path(row[0][0]).exists()}


def interleaved_workloads():
    """name -> command of a program with an --interleave mode."""
    llama = [sys.executable, str(ROOT / "benchmarks/pytorch/llama.py"),
             "--model", "1b", "--interleave", "36"]
    foreign = [sys.executable, str(ROOT / "benchmarks/foreign")]
    # Steps of less than a millisecond: longer blocks, for the first steps after
    # a switch are slower.
    short = ["--interleave", "60", "--block-steps", "40"]
    return {
        "llama-1b-eager-b1": llama + ["--mode", "eager"],
        "llama-1b-graph-b1": llama + ["--mode", "graph", "--block-steps", "20"],
        "foreign-cupy": [foreign[0], foreign[1] + "/cupy_chain.py"] + short,
        "foreign-jax": [foreign[0], foreign[1] + "/jax_mlp.py"] + short,
    }


class Suite:

    def __init__(self, build, scratch, rounds):
        self.build = build
        self.scratch = scratch
        self.rounds = rounds
        self.heddle = str(build / "bin/heddle")

    def environment(self, mode, trace):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("HEDDLE_")}
        if mode == "plain":
            return env
        env["LD_PRELOAD"] = str(self.build / "lib/libheddle_preload.so")
        env["HEDDLE_TRACE"] = str(trace)
        env["HEDDLE_WINDOW"] = "steps"
        if mode == "armed":
            # A range that the program never enters: hooks set, nothing due.
            env["HEDDLE_RANGE"] = "heddle-never"
        return env

    def run(self, command, mode, trace):
        target = self.scratch / "result.json"
        begin = time.monotonic()
        done = subprocess.run(command + ["--json", str(target)],
                              env=self.environment(mode, trace), text=True,
                              capture_output=True, timeout=180)
        seconds = time.monotonic() - begin
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit {done.returncode}\n"
                               f"{done.stdout[-1000:]}{done.stderr[-2000:]}")
        with open(target, encoding="utf-8") as file:
            return json.load(file), seconds

    def replay(self, trace):
        done = subprocess.run(
            [self.heddle, "replay", str(trace), "--verify", "--json", "-q"],
            text=True, capture_output=True, timeout=240)
        if done.returncode == 2:
            return {"error": done.stderr.strip().splitlines()[-1:]}
        return json.loads(done.stdout)

    def measure(self, name, command, step_us):
        times = {"plain": [], "armed": [], "recorded": []}
        results = {"plain": [], "armed": [], "recorded": []}
        trace = self.scratch / f"{name}.htrace"
        for _ in range(self.rounds):
            for mode in times:
                result, _ = self.run(command, mode, trace)
                times[mode].append(step_us(result))
                results[mode].append(outputs(result))
        baseline = statistics.median(times["plain"])
        repeatable = all(r == results["plain"][0] for r in results["plain"])
        info = json.loads(subprocess.run(
            [self.heddle, "info", "--json", str(trace)], text=True,
            capture_output=True, check=True).stdout)
        replayed = self.replay(trace)
        rows = []
        for mode, note in (("armed", "recording armed but idle"),
                           ("recorded", "one step recorded")):
            value = statistics.median(times[mode])
            notes = (f"{note}; {self.rounds} interleaved processes each; "
                     f"plain {[round(t, 1) for t in times['plain']]}, "
                     f"{mode} {[round(t, 1) for t in times[mode]]}")
            if mode == "recorded":
                notes += "; replay: " + json.dumps(summary(replayed))
            rows.append({
                "workload": name, "against": "self", "level": "record",
                "baseline_us": round(baseline, 2),
                "value_us": round(value, 2),
                "ratio": round(baseline / value, 4),
                "spread": round(spread(times[mode]) / value, 4),
                "replays": self.rounds,
                "bit_identical": all(r == results["plain"][0]
                                     for r in results[mode]),
                "serial_repeatable": repeatable,
                "kernels": kernels(info), "patched": 0, "notes": notes})
        return rows

    def interleaved(self, name, command):
        """Modes in turn in one process. Several processes are run; the row is
        the one whose ratio is in the middle."""
        trace = self.scratch / f"interleave-{name}.htrace"
        runs = [self.run(command, "armed", trace)[0]["interleave"]
                for _ in range(self.rounds)]
        info = json.loads(subprocess.run(
            [self.heddle, "info", "--json", str(trace)], text=True,
            capture_output=True, check=True).stdout)
        rows = []
        for mode, note in (("attached", "recording armed but idle"),
                           ("writing", "every step written, memory not kept")):
            ratio = lambda run: run["modes"][mode]["paired_ratio"]
            run = sorted(runs, key=ratio)[len(runs) // 2]
            base = run["modes"]["detached"]
            value = run["modes"][mode]
            low, high = value["paired_ratio_bounds"]
            notes = (
                f"{note}; one process, {run['rounds']} blocks each of "
                f"{run['block_steps']} steps, against steps that go past the "
                f"recorder; ratio block by block {value['paired_ratio']:.4f}, "
                f"median within [{low:.4f}, {high:.4f}] at 95 %; of all "
                f"processes {[round(ratio(r), 4) for r in runs]}, detached "
                f"{[round(r['modes']['detached']['median_us'], 1) for r in runs]}"
                " us")
            rows.append({
                "workload": name, "against": "self", "level": "record",
                "baseline_us": round(base["median_us"], 2),
                "value_us": round(value["median_us"], 2),
                "ratio": round(base["median_us"] / value["median_us"], 4),
                "spread": round(value["spread_us"] / value["median_us"], 4),
                "replays": run["rounds"] * run["block_steps"],
                "bit_identical": value["same_outputs"],
                "serial_repeatable": base["same_outputs"],
                "kernels": kernels(info), "patched": 0, "notes": notes})
        return rows

    def launch_cost(self, threads):
        """Plain and recorded launches, batch by batch in one process."""
        batches, launches = 400, 256
        command = [str(self.build / "bin/launch_cost"), str(threads),
                   str(batches), str(launches)]
        trace = self.scratch / "launch_cost.htrace"
        modes = {
            "inert": {},
            "armed": {"HEDDLE_TRACE": str(trace), "HEDDLE_WINDOW": "steps",
                      "HEDDLE_RANGE": "heddle-never"},
            "recording": {"HEDDLE_TRACE": str(trace), "HEDDLE_STEP": "off"},
        }
        rows = []
        for mode, extra in modes.items():
            env = dict(os.environ, **extra)
            env["LD_PRELOAD"] = str(self.build / "lib/libheddle_preload.so")
            direct, called = [], []
            for _ in range(self.rounds + 2):
                done = subprocess.run(command, env=env, text=True,
                                      capture_output=True, check=True)
                result = json.loads(done.stdout)
                direct.append(result["direct_ns"])
                called.append(result["called_ns"])
            added = statistics.median(c - d for c, d in zip(called, direct))
            notes = (f"one launch, ten parameters, {threads} threads; {mode} "
                     f"adds {added:.0f} ns ({[round(t) for t in called]} "
                     f"against {[round(t) for t in direct]}, each pair from "
                     "one process)")
            if mode == "recording":
                size = trace.stat().st_size / (batches * launches * threads)
                notes += f"; {size:.0f} bytes of trace a launch"
            base, value = statistics.median(direct), statistics.median(called)
            rows.append({
                "workload": f"launch-cost-t{threads}", "against": "self",
                "level": "record", "baseline_us": round(base / 1e3, 4),
                "value_us": round(value / 1e3, 4),
                "ratio": round(base / value, 4),
                "spread": round(spread(called) / value, 4),
                "replays": self.rounds + 2, "bit_identical": True,
                "serial_repeatable": True, "kernels": 1, "patched": 0,
                "notes": notes})
        return rows


def kernels(info):
    launches = info["work"]["launches"] or info["graphs"]["kernels_run"]
    steps = info.get("steps", {})
    return steps.get("launches", launches) if isinstance(steps,
                                                         dict) else launches


def summary(replayed):
    if "error" in replayed:
        return replayed
    return {"conclusion": replayed["conclusion"],
            "launches": replayed["launches"],
            **{t["name"] + "_us": round(t["median_us"], 1)
               for t in replayed["timings"]}}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_arguments(parser, "record")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    file = ResultFile(args)
    wanted = set(filter(None, args.only.split(",")))
    with tempfile.TemporaryDirectory() as scratch:
        suite = Suite(args.build.resolve(), pathlib.Path(scratch), args.rounds)
        jobs = [(f"launch-cost-t{n}", lambda n=n: suite.launch_cost(n))
                for n in (1, 8)]
        jobs += [(workload, lambda w=workload, r=row: suite.measure(w, *r))
                 for workload, row in workloads(args.build.resolve()).items()]
        jobs += [(f"interleave-{workload}",
                  lambda w=workload, c=command: suite.interleaved(w, c))
                 for workload, command in interleaved_workloads().items()]
        for workload, job in jobs:
            if wanted and workload not in wanted:
                continue
            begin = time.monotonic()
            try:
                rows = job()
            except Exception as error:  # One workload must not cost the others.
                print(f"{workload}: {error}", file=sys.stderr, flush=True)
                continue
            file.add(rows)
            for row in rows:
                print(f"{row['workload']:20s} {row['baseline_us']:10.2f} us "
                      f"-> {row['value_us']:10.2f} us  x{row['ratio']:.3f}  "
                      f"identical {row['bit_identical']}  {row['notes'][:600]}",
                      flush=True)
            print(f"   ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
