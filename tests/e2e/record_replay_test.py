#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way, with the real programs: record, look, replay, verify.

Runs the sample program `decode` under heddle and checks what comes out: on the
host device, or with --gpu on the GPU (exit status 77 where there is none).
usage: record_replay_test.py BUILD_DIR [--gpu] [unittest arguments]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ON_GPU = "--gpu" in sys.argv
if ON_GPU:
    sys.argv.remove("--gpu")
HEDDLE = str(BUILD / "bin/heddle")
DECODE = str(BUILD / "bin/decode")
PRELOAD = str(BUILD / "lib/libheddle_preload.so")
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


class RecordReplay(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.trace = str(self.folder / "t.htrace")

    def tearDown(self):
        self._folder.cleanup()

    def record(self, *decode, flags=(), env=None):
        result = run(HEDDLE, "record", "-o", self.trace, *flags, "--", DECODE,
                     *decode, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def info(self, trace=None):
        result = run(HEDDLE, "info", "--json", trace or self.trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def replay(self, *flags, env=None):
        result = run(HEDDLE, "replay", self.trace, "--verify", "--loop", "3",
                     *flags, env=env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("verify: passed", result.stdout)
        return result

    def test_recording_changes_no_output_and_misses_no_launch(self):
        plain = run(DECODE, "--tokens", "6")
        recorded = self.record("--tokens", "6")
        tokens = [line for line in plain.stdout.splitlines()
                  if line.startswith("tokens:")]
        self.assertEqual(len(tokens), 1)
        self.assertIn(tokens[0], recorded.stdout)
        info = self.info()
        self.assertEqual(info["work"]["launches"], 6 * LAUNCHES_PER_TOKEN)
        self.assertFalse(info["trace"]["truncated"])
        self.assertEqual(info["modules"]["images"], 1)

    def test_stream_launches_replay_identically_in_both_modes(self):
        self.record("--tokens", "6", flags=("--memory", "full"))
        self.replay()

    def test_a_captured_graph_replays_identically_in_both_modes(self):
        self.record("--graph", "--tokens", "6", flags=("--memory", "full"))
        info = self.info()
        self.assertEqual(info["graphs"]["launches"], 6)
        self.assertEqual(info["graphs"]["kernels_run"],
                         6 * LAUNCHES_PER_TOKEN)
        # The end of the step is in the trace, too: the replay is held against
        # what the program itself computed.
        self.assertIn("recorded program: memory after the step is what it had",
                      self.replay().stdout)

    def test_any_legal_order_of_the_device_gives_the_same_memory(self):
        self.record("--graph", "--tokens", "4", flags=("--memory", "full"))
        for seed in (2, 3, 4):
            self.replay(env=environment(HEDDLE_HOSTDEVICE_SEED=seed))

    def test_the_rewritten_graph_gives_the_same_memory_in_any_order(self):
        self.record("--graph", "--tokens", "4", flags=("--memory", "full"))
        for seed in (1, 2, 3):
            result = self.replay("--opt", "1", "--compare", env=environment(
                HEDDLE_HOSTDEVICE_SEED=seed))
            self.assertRegex(result.stdout, "O1 programmatic: "
                             f"{LAUNCHES_PER_TOKEN} of {LAUNCHES_PER_TOKEN} "
                             "kernels patched, ([1-9][0-9]*) of ")
            self.assertRegex(result.stdout, r"O1 programmatic +[0-9.]+ .* x[0-9]"
                             r"\.[0-9]+ \+- [0-9]")
            self.assertIn("fastest: ", result.stdout)

    def test_every_style_of_rewriting_gives_the_same_memory(self):
        self.record("--tokens", "4", flags=("--memory", "full"))
        for style in ("programmatic", "programmatic-early", "launch-order"):
            with self.subTest(style=style):
                result = self.replay("--opt", "1", "--style", style)
                self.assertIn(f"O1 {style}: ", result.stdout)
                self.assertNotIn("not run", result.stdout)

    def test_a_missing_dependency_is_found_in_the_rewritten_graph(self):
        if ON_GPU:
            self.skipTest("a GPU may hide a missing dependency")
        self.record("--graph", "--tokens", "2", flags=("--memory", "full"))
        found = 0
        for edge in range(0, 40, 8):
            result = run(HEDDLE, "replay", self.trace, "--opt", "1", "--style",
                         "programmatic", "--verify", "--loop", "0",
                         "--drop-dependency", str(edge))
            self.assertIn(result.returncode, (0, 1), result.stderr)
            if result.returncode == 1:
                self.assertIn("verify: FAILED", result.stdout)
                found += "   O1 programmatic: DIFFERENT" in result.stdout
        self.assertGreater(found, 0)

    def test_every_route_to_the_driver_is_recorded(self):
        for route in ("direct", "dlsym", "procaddress"):
            with self.subTest(route=route):
                self.record("--load", route, "--tokens", "2")
                self.assertEqual(self.info()["work"]["launches"],
                                 2 * LAUNCHES_PER_TOKEN)

    def test_a_killed_program_leaves_a_trace_that_opens(self):
        process = subprocess.Popen(
            [DECODE, "--tokens", "4", "--bench", "1000000"],
            env=environment(LD_PRELOAD=PRELOAD, HEDDLE_TRACE=self.trace),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        seen = 0
        while seen < 500 and time.monotonic() < deadline:
            time.sleep(0.02)
            if process.poll() is not None:
                break
            if pathlib.Path(self.trace).exists():
                result = run(HEDDLE, "info", "--json", self.trace)
                if result.returncode == 0:
                    seen = json.loads(result.stdout)["work"]["launches"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(process.returncode, -signal.SIGKILL,
                         "the program ended before it could be killed")
        info = self.info()
        self.assertTrue(info["trace"]["truncated"])
        self.assertGreaterEqual(info["work"]["launches"], 500)

    def test_the_program_runs_on_when_the_trace_cannot_be_written(self):
        result = run(DECODE, "--tokens", "2", env=environment(
            LD_PRELOAD=PRELOAD, HEDDLE_TRACE="/nonexistent/folder/t.htrace"))
        self.assertEqual(result.returncode, 0)
        self.assertIn("tokens:", result.stdout)
        self.assertIn("not recording", result.stderr)

    def test_a_bad_setting_is_named_and_the_program_runs_on(self):
        result = run(DECODE, "--tokens", "2", env=environment(
            LD_PRELOAD=PRELOAD, HEDDLE_TRACE=self.trace,
            HEDDLE_MEMORY="everything"))
        self.assertEqual(result.returncode, 0)
        self.assertIn("HEDDLE_MEMORY=everything", result.stderr)

    def test_disabled_means_nothing_happens(self):
        result = run(DECODE, "--tokens", "2", env=environment(
            LD_PRELOAD=PRELOAD, HEDDLE_TRACE=self.trace, HEDDLE_DISABLE=1))
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_processes_of_one_command_write_their_own_files(self):
        script = f"{DECODE} --tokens 1; {DECODE} --tokens 2"
        result = run(HEDDLE, "record", "-o", self.trace, "--", "/bin/sh", "-c",
                     script)
        self.assertEqual(result.returncode, 0, result.stderr)
        launches = sorted(self.info(str(trace))["work"]["launches"]
                          for trace in self.folder.glob("*.htrace"))
        self.assertEqual(launches,
                         [LAUNCHES_PER_TOKEN, 2 * LAUNCHES_PER_TOKEN])

    def test_a_forked_child_has_a_trace_of_its_own_once_it_works(self):
        # The driver is used before and after the fork; on a GPU a forked child
        # cannot do that.
        if ON_GPU:
            self.skipTest("CUDA does not survive fork")
        program = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
def allocate(size):
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
allocate(4096)
for works in (False, True):
    child = os.fork()
    if child == 0:
        if works:
            allocate(8192)
        raise SystemExit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
        result = run(sys.executable, "-c", program, env=environment(
            LD_PRELOAD=PRELOAD, HEDDLE_TRACE=self.trace))
        self.assertEqual(result.returncode, 0, result.stderr)
        traces = sorted(self.folder.glob("*.htrace"))
        self.assertEqual(len(traces), 2, traces)
        peaks = sorted(
            self.info(str(trace))["memory"]["kinds"]["device"]["peak_bytes"]
            for trace in traces)
        self.assertEqual(peaks, [4096, 8192])

    def test_the_exit_status_is_the_programs(self):
        result = run(HEDDLE, "record", "-o", self.trace, "--", "/bin/sh", "-c",
                     "exit 7")
        self.assertEqual(result.returncode, 7)
        self.assertIn("doctor", result.stderr)

    def test_one_step_of_many_by_its_range(self):
        self.record("--steps-range", "--tokens", "6",
                    flags=("--range", "step", "--step", "3", "--window",
                           "steps", "--memory", "full"))
        info = self.info()
        self.assertEqual(info["work"]["launches"], LAUNCHES_PER_TOKEN)
        self.replay("--by", "recorded")


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
