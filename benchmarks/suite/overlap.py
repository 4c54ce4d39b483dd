#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures programs whose CUDA graphs heddle rewrites while they run.

Each program runs once under libheddle_preload.so with HEDDLE_OPT=--level. The Llama
programs then replay their graph in both forms in one process, with inputs that
change every time, compare what it leaves bit for bit, and time both forms in
turn. Of the other programs the rewriter's own trial is taken (both forms in
turn from the same memory), and their outputs are compared with a run without
heddle. Writes one file in the format of the project's results.

usage: overlap.py --build DIR --out DIR [--only WORKLOAD,...] [--replays N]
                  [--level 1|2]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from results import ROOT, ResultFile, add_arguments, outputs


def llama(model, mode, *more):
    return [sys.executable, str(ROOT / "benchmarks/pytorch/llama.py"),
            "--model", model, "--mode", mode, *more]


def llama_workloads():
    return {
        "llama-1b-eager-b1": llama("1b", "graph"),
        # cuDNN's attention, PyTorch's choice, is not repeatable; this one is.
        "llama-1b-eager-b1-math": llama("1b", "graph", "--attention", "math"),
        "llama-1b-compiled-b1": llama("1b", "compile-graph"),
        "llama-1b-eager-b16": llama("1b", "graph", "--batch", "16"),
        "llama-1b-prefill512": llama("1b", "prefill-graph", "--prompt", "512",
                                     "--cache", "1024", "--steps", "1"),
        "llama-8b-eager-b1": llama("8b", "graph"),
        "llama-8b-compiled-b1": llama("8b", "compile-graph"),
        "llama-1b-compiled-b1-math": llama("1b", "compile-graph",
                                           "--attention", "math"),
        "llama-8b-eager-b1-math": llama("8b", "graph", "--attention", "math"),
        "llama-8b-compiled-b1-math": llama("8b", "compile-graph",
                                           "--attention", "math"),
    }


def other_workloads(build):
    """Programs that know nothing of this comparison."""
    table = {
        "decode-graph": [str(build / "bin/decode"), "--graph", "--bench",
                         "1000", "--tokens", "32", "--max-seq", "4096"],
        "inception-b1": [str(build / "bin/inception"), "--graph", "--bench",
                         "200"],
        "foreign-cupy": [sys.executable,
                         str(ROOT / "benchmarks/foreign/cupy_chain.py"),
                         "--graph", "--steps", "200"],
        "foreign-jax": [sys.executable,
                        str(ROOT / "benchmarks/foreign/jax_mlp.py"),
                        "--steps", "200"],
    }
    return {name: command for name, command in table.items()
            if pathlib.Path(command[0]).exists()}


class Suite:

    def __init__(self, build, scratch, replays, level):
        self.build = build
        self.scratch = scratch
        self.replays = replays
        self.level = level

    def run(self, command, rewritten):
        """The program's result, what the rewriter reports, and its stderr."""
        target = self.scratch / "result.json"
        report = self.scratch / "report.jsonl"
        for file in (target, report):
            file.unlink(missing_ok=True)
        env = {k: v for k, v in os.environ.items()
               if k in ("HEDDLE_CACHE_DIR", "HEDDLE_STYLE", "HEDDLE_BRANCHES")
               or not k.startswith("HEDDLE_")}
        if rewritten:
            env.update(LD_PRELOAD=str(self.build / "lib/libheddle_preload.so"),
                       HEDDLE_OPT=str(self.level), HEDDLE_LOG="info",
                       HEDDLE_REPORT=str(report))
        done = subprocess.run(command + ["--json", str(target)], env=env,
                              text=True, capture_output=True, timeout=400)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit {done.returncode}\n"
                               f"{done.stdout[-1000:]}{done.stderr[-2000:]}")
        reports = []
        if report.exists():
            reports = [json.loads(line)
                       for line in report.read_text().splitlines()]
        log = [line for line in done.stderr.splitlines()
               if line.startswith("heddle:")]
        return json.loads(target.read_text()), reports, log

    def llama(self, name, command):
        result, reports, log = self.run(
            command + ["--compare-graphs", str(self.replays)], True)
        used = largest(reports)
        notes = describe(used, log)
        if result["unrepeatable"]:
            notes = (f"the program's own graph differed from itself in "
                     f"{result['unrepeatable']} of {result['replays']} "
                     f"replays, and was left out there; {notes}")
        return [{
            "workload": name, "against": "graph", "level": used["level"] or f"O{self.level}",
            "baseline_us": round(result["baseline_us"], 2),
            "value_us": round(result["value_us"], 2),
            "ratio": round(result["ratio"], 4),
            "spread": round(result["spread"], 4),
            "replays": result["replays"],
            "bit_identical": result["bit_identical"],
            "mismatches": result["mismatches"],
            "serial_repeatable": result["serial_repeatable"],
            "unrepeatable": result["unrepeatable"],
            "kernels": used["kernels"], "patched": used["patched"],
            "notes": notes}]

    def other(self, name, command):
        plain, _, _ = self.run(command, False)
        again, _, _ = self.run(command, False)
        result, reports, log = self.run(command, True)
        used = largest(reports)
        is_used = used["outcome"] == "rewritten"
        base = used["serial_us"]
        value = used["rewritten_us"] if is_used else base
        notes = describe(used, log)
        if not is_used:
            notes = "the program's own graph is kept; " + notes
        return [{
            "workload": name, "against": "graph", "level": used["level"] or f"O{self.level}",
            "baseline_us": round(base, 2), "value_us": round(value, 2),
            "ratio": round(base / value, 4) if value else 1.0,
            "spread": 0.0, "replays": 9,
            "bit_identical": outputs(result) == outputs(plain),
            "serial_repeatable":
                outputs(plain) == outputs(again),
            "kernels": used["kernels"], "patched": used["patched"],
            "notes": notes}]


def largest(reports):
    """The graph that matters: of those that were tried, the largest."""
    if not reports:
        raise RuntimeError("the program instantiated no graph")
    return max(reports, key=lambda r: (r["serial_us"] > 0, r["nodes"]))


def describe(used, log):
    loading = [line for line in log if "images were loaded" in line]
    return (f"{used['outcome']}, {used['style'] or 'no form'}: "
            f"{used['converted']} of {used['edges']} edges converted, "
            f"{used['launch_order']} to launch order; verified on "
            f"{used['verified_launches']} launches; built in "
            f"{used['build_ms']:.0f} ms, analysed in "
            f"{used['analysis_ms']:.0f} ms, tried in {used['trial_ms']:.0f} ms, "
            f"{used['saved_bytes'] >> 20} MiB kept aside; "
            + "; ".join(used["notes"] + loading))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_arguments(parser, "overlap")
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--level", type=int, default=1, choices=(1, 2))
    args = parser.parse_args()
    file = ResultFile(args)
    wanted = set(filter(None, args.only.split(",")))
    with tempfile.TemporaryDirectory() as scratch:
        suite = Suite(args.build.resolve(), pathlib.Path(scratch), args.replays,
                      args.level)
        jobs = [(name, suite.llama, command) for name, command
                in llama_workloads().items()]
        jobs += [(name, suite.other, command) for name, command
                 in other_workloads(args.build.resolve()).items()]
        for name, job, command in jobs:
            if wanted and name not in wanted:
                continue
            begin = time.monotonic()
            try:
                rows = job(name, command)
            except Exception as error:  # One workload must not cost the others.
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                continue
            file.add(rows)
            for row in rows:
                print(f"{row['workload']:22s} {row['baseline_us']:9.1f} us -> "
                      f"{row['value_us']:9.1f} us  x{row['ratio']:.3f}  "
                      f"identical {row['bit_identical']}  "
                      f"{row['patched']}/{row['kernels']}  "
                      f"{row['notes'][:700]}  "
                      f"({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"wrote {file.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
