#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a recording to a plan and to its replay, with the sample program.

On the host device, or with --gpu on the GPU (exit status 77 where there is
none). usage: plan_test.py BUILD_DIR [--gpu] [unittest arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ON_GPU = "--gpu" in sys.argv
if ON_GPU:
    sys.argv.remove("--gpu")
HEDDLE = str(BUILD / "bin/heddle")
DECODE = str(BUILD / "bin/decode")
LAUNCHES_PER_TOKEN = 78


def environment(**extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    if not ON_GPU:
        env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
        env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
            BUILD / "lib/libdecode_host_kernels.so")
    env.update({k: str(v) for k, v in extra.items()})
    return env


def run(*command, env=None, timeout=240):
    return subprocess.run(command, env=env or environment(), timeout=timeout,
                          capture_output=True, text=True)


class Plan(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        cls.trace = cls.record("t", "--graph", "--tokens", "4")

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @classmethod
    def record(cls, name, *decode):
        path = str(cls.folder / f"{name}.htrace")
        result = run(HEDDLE, "record", "-o", path, "--memory", "full", "--",
                     DECODE, *decode)
        assert result.returncode == 0, result.stderr
        return path

    def plan(self, name, *flags, trace=None):
        """Makes a plan; returns its path and what the tool says of it."""
        path = str(self.folder / f"{name}.hplan")
        result = run(HEDDLE, "plan", trace or self.trace, "--json", "-o", path,
                     *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path, json.loads(result.stdout)

    def replay(self, plan, *flags, code=0, env=None, trace=None):
        result = run(HEDDLE, "replay", trace or self.trace, "--plan", plan,
                     "--json", *flags, env=env)
        self.assertEqual(result.returncode, code,
                         result.stdout + result.stderr)
        return json.loads(result.stdout) if code == 0 else result

    def test_every_style_of_a_plan_leaves_the_same_memory_in_any_order(self):
        for style in ("programmatic", "programmatic-early", "launch-order"):
            for level in ("-O1", "-O2"):
                plan, said = self.plan(f"{style}{level}", level, "--style",
                                       style)
                self.assertEqual(said["kernels"], LAUNCHES_PER_TOKEN)
                self.assertEqual(said["style"], style)
                for seed in (1, 2):
                    result = self.replay(
                        plan, "--verify", "--compare", "--loop", "3",
                        env=environment(HEDDLE_HOSTDEVICE_SEED=seed))
                    self.assertTrue(result["verify"]["passed"])
                    name = f"plan {said['level']} {style}"
                    form = result["rewriting"]["forms"][-1]
                    self.assertEqual(form["name"], name)
                    self.assertEqual(form["converted"], said["edges"]["early"])
                    self.assertIn(name, [t["name"] for t in result["timings"]])

    def test_random_orders_of_the_plan_leave_the_same_memory(self):
        plan, _ = self.plan("orders", "-O2", "--branches", "4")
        result = self.replay(plan, "--orders", "12", "--seed", "3", "--loop",
                             "0")
        for verdict in result["verify"]["inputs"]:
            form = verdict["forms"][-1]
            self.assertEqual(form["name"], "random orders")
            self.assertEqual(form["runs"], 12)
            self.assertEqual(form["verdict"], "identical")

    def test_durations_come_from_the_device_a_report_or_a_plan(self):
        report = str(self.folder / "serial.json")
        result = run(HEDDLE, "replay", self.trace, "--mode", "serial",
                     "--loop", "1", "--report", report)
        self.assertEqual(result.returncode, 0, result.stderr)
        first, said = self.plan("reported", "--durations", report)
        self.assertEqual(said["durations_from"], report)
        _, again = self.plan("again", "--durations", first)
        self.assertAlmostEqual(said["estimate_us"], again["estimate_us"])
        _, measured = self.plan("measured", "--measure")
        self.assertIn("measured on", measured["durations_from"])
        self.assertGreater(measured["graph_us"], 0)
        _, here = self.plan("here", "--device", "0")
        self.assertIn("all equal", here["durations_from"])
        _, equal = self.plan("equal")
        self.assertIn("all equal", equal["durations_from"])

    def test_explain_has_a_line_for_every_boundary(self):
        _, said = self.plan("explained", "--explain")
        self.assertEqual(len(said["boundaries"]), said["operations"] - 1)
        for at, boundary in enumerate(said["boundaries"]):
            self.assertEqual(boundary["later"], at + 1)
            self.assertEqual("mechanism" in boundary,
                             boundary["relation"] == "edge")

    def test_a_plan_of_another_trace_or_step_is_refused(self):
        other = self.record("other", "--graph", "--tokens", "2")
        plan, _ = self.plan("other", trace=other)
        result = self.replay(plan, "--loop", "0", code=2)
        self.assertIn("was made for the trace with id", result.stderr)
        plan, _ = self.plan("step1", "--step", "1")
        result = self.replay(plan, "--loop", "0", "--step", "2", code=2)
        self.assertIn("--step", result.stderr)

    def test_a_damaged_plan_is_refused(self):
        plan, _ = self.plan("damaged")
        data = bytearray(pathlib.Path(plan).read_bytes())
        data[len(data) // 2] ^= 4
        pathlib.Path(plan).write_bytes(data)
        result = self.replay(plan, "--loop", "0", code=2)
        self.assertIn("is damaged", result.stderr)


def has_gpu():
    try:
        found = subprocess.run(["nvidia-smi", "-L"], capture_output=True,
                               text=True, timeout=60, check=False)
    except OSError:
        return False
    return found.stdout.startswith("GPU")


if __name__ == "__main__":
    if ON_GPU and not has_gpu():
        print("skipped: no GPU here (nvidia-smi lists none)")
        sys.exit(77)
    unittest.main(verbosity=2)
