#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recording is led past and back while a program runs: what is recorded then.

usage: measure_test.py BUILD_DIR [--gpu] [unittest arguments]
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
HERE = pathlib.Path(__file__).resolve().parent
IMAGE = BUILD / "benchmarks/apps/launch_cost/kernel.fatbin"
DONE, OFF, BUSY, BAD_MODE = 0, 1, 2, 3


def environment(**extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    if not ON_GPU:
        env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
        env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
            BUILD / "lib/liblaunch_cost_host_kernels.so")
    env["LD_PRELOAD"] = str(BUILD / "lib/libheddle_preload.so")
    # Nothing is left beside the scripts that are run.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.update(extra)
    return env


class Measure(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.trace = os.path.join(self._folder.name, "t.htrace")

    def tearDown(self):
        self._folder.cleanup()

    def run_scenario(self, scenario, **env):
        done = subprocess.run(
            [sys.executable, str(HERE / "measure_program.py"), str(IMAGE),
             scenario], env=environment(**env), text=True, capture_output=True,
            timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def records(self, kind=None):
        flags = ["--type", kind] if kind else []
        done = subprocess.run(
            [str(BUILD / "bin/heddle"), "dump", "--json", *flags, self.trace],
            text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def launches(self):
        """The numbers of the recorded launches, in their order."""
        return [int(record["params"][4]["value"], 16)
                for record in self.records("launch")]

    def check_blocks(self, result, recorded_modes):
        blocks = result["blocks"]
        self.assertEqual([b["result"] for b in blocks], [DONE] * len(blocks))
        recorded = [b for b in blocks if b["mode"] in recorded_modes]
        self.assertEqual(self.launches(),
                         [n for b in recorded for n in b["numbers"]])
        work = 3 * len(recorded)
        events = [r["op"] for r in self.records("event")]
        self.assertEqual(len(self.records("memset")), work)
        self.assertEqual(events.count("record"), work)
        self.assertEqual(events.count("wait"), work)
        self.assertEqual(len(self.records("sync")), len(recorded))
        # State is never missed: the buffer of each block, and the first one.
        self.assertEqual(len(self.records("alloc")), len(blocks) + 1)
        self.assertEqual(len(self.records("free")), len(blocks))
        self.assertEqual(len([r for r in self.records("note")
                              if "measurement" in r["text"]]), len(blocks))

    def test_all_work_but_that_of_detached_blocks_is_in_the_trace(self):
        result = self.run_scenario("switching", HEDDLE_TRACE=self.trace,
                                   HEDDLE_STEP="off")
        self.assertEqual(result["before_cuda"], OFF)
        self.assertEqual(result["bad_modes"], [BAD_MODE, BAD_MODE])
        self.check_blocks(result, ("attached", "writing"))

    def test_with_recording_armed_only_writing_blocks_are_in_the_trace(self):
        self.check_blocks(
            self.run_scenario("switching", HEDDLE_TRACE=self.trace,
                              HEDDLE_WINDOW="steps", HEDDLE_RANGE="never"),
            ("writing",))

    def test_a_step_and_a_capture_stay_whole(self):
        result = self.run_scenario("refused", HEDDLE_TRACE=self.trace,
                                   HEDDLE_STEP="1")
        self.assertEqual([result[k] for k in ("in_step", "still", "in_capture")],
                         [BUSY] * 3)
        self.assertEqual(
            [result[k] for k in ("after_step", "back", "after_capture")],
            [DONE] * 3)
        self.assertEqual(self.launches(),
                         list(range(1, result["launched"] + 1)))

    def test_without_a_recording_there_is_nothing_to_switch(self):
        self.assertEqual(self.run_scenario("off")["results"], [OFF] * 3)
        # The runtime is there, for another purpose.
        doctor = os.path.join(self._folder.name, "doctor.json")
        self.assertEqual(
            self.run_scenario("off", HEDDLE_DOCTOR=doctor)["results"],
            [OFF] * 3)

    def test_a_finished_recording_stays_finished(self):
        result = self.run_scenario(
            "refused", HEDDLE_TRACE=self.trace, HEDDLE_STEP="1",
            HEDDLE_WINDOW="steps")
        self.assertEqual(result["in_step"], BUSY)
        self.assertEqual([result[k] for k in ("after_step", "back",
                                              "in_capture", "after_capture")],
                         [OFF] * 4)
        self.assertEqual(self.launches(), list(range(11, 21)))

    def test_the_benchmarks_compare_three_modes(self):
        result = self.run_scenario("compared", HEDDLE_TRACE=self.trace,
                                   HEDDLE_WINDOW="steps",
                                   HEDDLE_RANGE="never")
        self.assertEqual(result["baseline"], "detached")
        self.assertEqual(set(result["modes"]),
                         {"detached", "attached", "writing"})
        for mode, values in result["modes"].items():
            self.assertTrue(values["same_outputs"], mode)
            self.assertEqual(len(values["block_us"]), 12)
            self.assertGreater(values["median_us"], 0)
        # 12 blocks of 1 + 4 steps of 10 launches each.
        self.assertEqual(len(self.launches()), 600)

    def test_the_benchmarks_run_without_heddle(self):
        env = environment()
        del env["LD_PRELOAD"]
        done = subprocess.run(
            [sys.executable, str(HERE / "measure_program.py"), str(IMAGE),
             "compared"], env=env, text=True, capture_output=True, timeout=120,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(json.loads(done.stdout)["modes"]), ["plain"])


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
