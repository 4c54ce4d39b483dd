#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sample program's kernels write, measured, against what is predicted.

Records `decode` on the host device, or with --gpu on the GPU (exit status 77
where there is none), and holds `heddle probe` against `heddle graph`.
usage: probe_test.py BUILD_DIR [--gpu] [unittest arguments]
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
LAUNCHES = 78
# Kernels that write every byte of a buffer and read none of it.
FILLING = {"decode_embed_f32", "decode_rmsnorm", "decode_gemv_f32",
           "decode_values", "decode_silu_mul"}


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    if not ON_GPU:
        env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
        env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
            BUILD / "lib/libdecode_host_kernels.so")
    return env


def run(*command, code=0):
    result = subprocess.run(command, env=environment(), timeout=240,
                            check=False, capture_output=True, text=True)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout


class Probe(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        cls.traces = {}
        for form, flags in (("stream", []), ("graph", ["--graph"])):
            cls.traces[form] = str(cls.folder / f"{form}.htrace")
            run(HEDDLE, "record", "--memory", "full", "-o", cls.traces[form],
                "--", DECODE, "--tokens", "4", *flags)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def probe(self, form, *flags):
        return json.loads(run(HEDDLE, "probe", "--json", "--quiet", *flags,
                              self.traces[form]))

    def test_the_analysis_is_right_about_every_kernel(self):
        for form in self.traces:
            for flags in ([], ["--watch=all", "--invert=all"]):
                result = self.probe(form, *flags)
                self.assertTrue(result["confirmed"])
                self.assertEqual(len(result["operations"]), LAUNCHES)
                self.assertEqual(result["matches"]["outside"], 0)
                self.assertEqual(result["matches"]["reads more"], 0)
                self.assertEqual(result["unwatched"], [])
                for operation in result["operations"]:
                    if operation["predicted"] is not None:
                        self.assertLessEqual(operation["observed"],
                                             operation["predicted"])

    def test_kernels_that_fill_their_output_are_seen_to_write_all_of_it(self):
        seen = set()
        for operation in self.probe("graph")["operations"]:
            if operation["name"] in FILLING:
                self.assertEqual(operation["observed"], operation["predicted"])
                self.assertEqual(operation["inverted"], operation["predicted"])
                seen.add(operation["name"])
        self.assertEqual(seen, FILLING)

    def test_it_predicts_what_graph_and_explain_show(self):
        graph = json.loads(run(HEDDLE, "graph", "--json", self.traces["graph"]))
        probe = self.probe("graph", "--use-observed")
        for one, other in zip(graph["operations"], probe["operations"]):
            self.assertEqual(one["name"], other["name"])
            self.assertEqual(one["record"], other["record"])
            self.assertEqual(one["writes"]["known"],
                             other["predicted"] is not None)
            if other["predicted"] is not None:
                self.assertEqual(one["writes"]["bytes"], other["predicted"])
        edges = probe["edges"]
        self.assertEqual(edges["predicted"], len(graph["edges"]))
        self.assertLessEqual(edges["combined"], edges["predicted"])

    def test_two_probes_see_the_same(self):
        first, second = (self.probe("graph") for _ in range(2))
        del first["seconds"], second["seconds"]
        self.assertEqual(first, second)

    def test_the_text_names_what_is_remarkable(self):
        text = run(HEDDLE, "probe", self.traces["stream"], "--limit", "10")
        self.assertIn("10 operations, each by itself", text)
        self.assertIn("nothing contradicts the prediction", text)
        everything = run(HEDDLE, "probe", self.traces["stream"], "--all")
        self.assertGreaterEqual(everything.count("(record "), LAUNCHES)


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
