#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures level O2: what is known of a step's accesses, and what that is worth.

For every workload a step of its CUDA graph is recorded. Then, from that trace:
  accesses   how many launches and bytes are known and how, the edges before and
             after, what the analysis takes cold and from the cache;
  probe      what the launches write on the device against what was predicted;
  plan       O2 with durations measured here, for each number of branches;
  replay     the program's graph, O1 and O2 in turn in one process, verified on
             two inputs, and random orders of the plan one operation at a time.
Writes one file in the format of the project's results.

usage: branches.py --build DIR --out DIR [--only WORKLOAD,...] [--orders N]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from overlap import llama
from results import ResultFile, add_arguments


def workloads(build):
    """name -> command of a program that launches a CUDA graph."""
    table = {
        "llama-1b-eager-b1": llama("1b", "graph", "--steps", "6"),
        "llama-1b-eager-b1-math": llama("1b", "graph", "--steps", "6",
                                        "--attention", "math"),
        "llama-1b-compiled-b1": llama("1b", "compile-graph", "--steps", "6"),
        "llama-8b-eager-b1": llama("8b", "graph", "--steps", "6"),
        "llama-8b-compiled-b1": llama("8b", "compile-graph", "--steps", "6"),
        "llama-1b-eager-b16": llama("1b", "graph", "--batch", "16", "--steps",
                                    "6"),
        "llama-1b-prefill512": llama("1b", "prefill-graph", "--prompt", "512",
                                     "--cache", "1024", "--steps", "1"),
        "inception-b1": [str(build / "bin/inception"), "--graph"],
        "decode-graph": [str(build / "bin/decode"), "--graph", "--tokens", "24",
                         "--max-seq", "4096"],
    }
    return {name: command for name, command in table.items()
            if pathlib.Path(command[0]).exists()}


class Suite:

    def __init__(self, args, scratch):
        self.heddle = str(args.build.resolve() / "bin/heddle")
        self.scratch = scratch
        self.args = args
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("HEDDLE_")
                    or k.startswith("HEDDLE_HOSTDEVICE")}
        self.env["HEDDLE_CACHE_DIR"] = str(scratch / "cache")

    def tool(self, *arguments, may_fail=False):
        """stdout of a heddle verb, and its seconds."""
        begin = time.monotonic()
        done = subprocess.run([self.heddle, *map(str, arguments)], env=self.env,
                              text=True, capture_output=True, timeout=550)
        seconds = time.monotonic() - begin
        if done.returncode > (1 if may_fail else 0):
            raise RuntimeError(f"heddle {' '.join(map(str, arguments))}: exit "
                               f"{done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout, seconds

    def record(self, name, command):
        trace = self.scratch / f"{name}.htrace"
        done = subprocess.run(
            [self.heddle, "record", "-o", str(trace), "--", *command],
            env=self.env, text=True, capture_output=True, timeout=400)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit {done.returncode}\n"
                               f"{done.stderr[-2000:]}")
        return trace

    def accesses(self, trace):
        text, cold = self.tool("graph", trace, "--json")
        _, warm = self.tool("graph", trace, "--json")
        summary = json.loads(text)["summary"]
        known = summary["known"]
        launches = max(1, summary["launches"])
        writes_known = known["both"] + known["writes_only"]
        return {
            "launches": summary["launches"],
            "known": known["both"] / launches,
            "writes_known": writes_known / launches,
            "unknown": summary["unknown"],
            "bytes": summary["bytes"],
            "edges": summary["edges"],
            "longest_chain": summary["chain"],
            "analysis_s": {"cold": round(cold, 3), "cached": round(warm, 3)},
        }

    def probe(self, trace):
        try:
            text, seconds = self.tool("probe", trace, "--json", may_fail=True)
        except RuntimeError as error:
            return {"error": str(error)[-300:]}
        result = json.loads(text)
        return {"seconds": round(seconds, 1),
                **{key: value for key, value in result.items()
                   if not isinstance(value, list)}}

    def branches(self, trace, count):
        plan = self.scratch / f"{trace.stem}.{count}.hplan"
        text, _ = self.tool("plan", trace, "-O2", "--measure", "--branches",
                            count, "-o", plan, "--json", "-q")
        planned = json.loads(text)
        text, _ = self.tool(
            "replay", trace, "--plan", plan, "--opt", "1", "--style",
            "programmatic", "--compare", "--orders", self.args.orders,
            "--loop", self.args.replays, "--json", "-q", may_fail=True)
        return planned, json.loads(text)

    def rows(self, name, command):
        trace = self.record(name, command)
        accesses = self.accesses(trace)
        probe = self.probe(trace)
        rows = []
        for count in self.args.branches:
            planned, replay = self.branches(trace, count)
            times = {t["name"]: t for t in replay["timings"]}
            base = times["graph"]
            forms = {f["name"]: f
                     for f in replay["verify"]["inputs"][0]["forms"]}
            repeatable = all(i["serial_repeatable"]
                             for i in replay["verify"]["inputs"])
            for form, timed in times.items():
                level = "O2" if form.startswith("plan") else form.split(" ")[0]
                if level not in ("O1", "O2"):
                    continue
                verdicts = [f["verdict"]
                            for i in replay["verify"]["inputs"]
                            for f in i["forms"] if f["name"] == form]
                against = timed["against_graph"]
                notes = {"accesses": accesses, "probe": probe,
                         "plan": {k: planned[k]
                                  for k in ("branches", "edges", "graph_us",
                                            "estimate_us", "patched")},
                         "random orders":
                             forms.get("random orders", {}).get("runs", 0),
                         "conclusion": replay["conclusion"]}
                rows.append({
                    "workload": name, "against": "graph", "level": level,
                    "baseline_us": round(base["median_us"], 2),
                    "value_us": round(timed["median_us"], 2),
                    "ratio": round(against["ratio"], 4),
                    "spread": round(against["spread"], 4),
                    "replays": timed["runs"],
                    "bit_identical": all(v == "identical" for v in verdicts),
                    "serial_repeatable": repeatable,
                    "kernels": planned["kernels"],
                    "patched": planned["patched"],
                    "branches": count,
                    "notes": json.dumps(notes)})
        return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_arguments(parser, "branches")
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="leave traces and plans there")
    parser.add_argument("--branches", type=lambda text: [
        int(n) for n in text.split(",")], default=[2, 3])
    args = parser.parse_args()
    file = ResultFile(args)
    wanted = set(filter(None, args.only.split(",")))
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
        suite = Suite(args, args.keep or pathlib.Path(scratch))
        for name, command in workloads(args.build.resolve()).items():
            if wanted and name not in wanted:
                continue
            begin = time.monotonic()
            try:
                rows = suite.rows(name, command)
            except Exception as error:  # One workload must not cost the others.
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                failed = True
                continue
            file.add(rows)
            for row in rows:
                print(f"{row['workload']:22s} {row['level']} "
                      f"{row['branches']} branches "
                      f"{row['baseline_us']:9.1f} us -> "
                      f"{row['value_us']:9.1f} us  x{row['ratio']:.3f}  "
                      f"identical {row['bit_identical']}  "
                      f"{row['notes'][:900]}", flush=True)
            print(f"   ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"wrote {file.path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
