#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What heddle says about the order that a real program's bytes need.

Records the sample program `decode` on the host device and holds `heddle graph`,
`explain` and `info --access` against what its source says: which of its kernels
read what another one wrote, and which have nothing to do with each other.
usage: graph_test.py BUILD_DIR [unittest arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
HEDDLE = str(BUILD / "bin/heddle")
DECODE = str(BUILD / "bin/decode")
LAYERS = 4
LAUNCHES = 78
LAYER = 18  # launches, from launch 1 on
# In a layer, what reads what an earlier launch of it wrote.
READS = [(0, 1), (0, 2), (0, 3),  # queries, keys, values of the normed row
         (1, 4), (2, 5),  # rotated in place
         (3, 6), (5, 6),  # into the cache
         (4, 7), (6, 7), (7, 8), (8, 9), (6, 9),  # scores, softmax, values
         (9, 10), (10, 11), (11, 12), (12, 13), (12, 14), (13, 15), (14, 15),
         (15, 16), (16, 17)]
# Launches of one layer that touch nothing that the other one writes.
APART = [(1, 2), (1, 3), (2, 3), (4, 5), (1, 5), (2, 4), (13, 14)]


def run(*command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
    env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
        BUILD / "lib/libdecode_host_kernels.so")
    result = subprocess.run(command, env=env, timeout=240, check=False,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def closure(count, pairs):
    """By operation: all that come before it."""
    direct = [[] for _ in range(count)]
    for first, then in pairs:
        direct[then].append(first)
    before = []
    for i in range(count):
        before.append(set(direct[i]).union(*(before[j] for j in direct[i])))
    return before


class Graph(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.traces = {}
        cls.graphs = {}
        for form, flags in (("stream", []), ("graph", ["--graph"])):
            trace = str(pathlib.Path(cls.folder.name) / (form + ".htrace"))
            run(HEDDLE, "record", "--memory", "full", "-o", trace, "--",
                DECODE, "--tokens", "4", *flags)
            cls.traces[form] = trace
            cls.graphs[form] = json.loads(run(HEDDLE, "graph", "--json", trace))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def pairs(self, form):
        return [(e["from"], e["to"]) for e in self.graphs[form]["edges"]]

    def test_whatever_the_program_reads_is_written_before(self):
        for form in self.graphs:
            before = closure(LAUNCHES, self.pairs(form))
            needed = [(0, 1)]
            for layer in range(LAYERS):
                base = 1 + layer * LAYER
                needed += [(base + a, base + b) for a, b in READS]
                needed.append((base + LAYER - 1, base + LAYER))
            for first, then in needed:
                self.assertIn(first, before[then], (form, first, then))

    def test_what_has_nothing_in_common_is_not_ordered(self):
        for form in self.graphs:
            before = closure(LAUNCHES, self.pairs(form))
            for layer in range(LAYERS):
                base = 1 + layer * LAYER
                for a, b in APART:
                    self.assertNotIn(base + a, before[base + b], (form, a, b))

    def test_streams_and_graphs_of_the_same_program_need_the_same(self):
        def shape(form):
            return [(e["from"], e["to"], [r["hazard"] for r in e["reasons"]])
                    for e in self.graphs[form]["edges"]]
        self.assertEqual(shape("stream"), shape("graph"))

    def test_the_program_orders_all_that_has_to_be(self):
        for graph in self.graphs.values():
            edges = graph["summary"]["edges"]
            self.assertEqual(edges["needed_only"], 0)
            self.assertEqual(edges["recorded"], LAUNCHES - 1)
            self.assertGreaterEqual(edges["recorded_only"], 3 * LAYERS)
            self.assertLess(graph["summary"]["chain"], LAUNCHES)

    def test_no_edge_follows_from_others(self):
        for form in self.graphs:
            pairs = self.pairs(form)
            whole = closure(LAUNCHES, pairs)
            for i in range(len(pairs)):
                self.assertNotEqual(
                    closure(LAUNCHES, pairs[:i] + pairs[i + 1:]), whole,
                    pairs[i])

    def test_every_operation_can_be_explained(self):
        graph = self.graphs["graph"]
        record = graph["operations"][0]["record"]
        for i in range(0, LAUNCHES, 7):
            one = json.loads(run(HEDDLE, "explain", "--json", "--launch",
                                 str(i), self.traces["graph"]))
            self.assertEqual(
                [c["operation"] for c in one["waits_for"] if c["needed"]],
                [e["from"] for e in graph["edges"] if e["to"] == i])
            self.assertEqual(
                [c["operation"] for c in one["waited_for_by"] if c["needed"]],
                [e["to"] for e in graph["edges"] if e["from"] == i])
            by_call = json.loads(run(HEDDLE, "explain", "--json", "--call",
                                     f"{record}.{i}", self.traces["graph"]))
            self.assertEqual(one, by_call)
            for access in one["accesses"]:
                total = sum(e["size"] for e in access["extents"])
                self.assertEqual(total, access["bytes"])

    def test_info_has_the_numbers_of_the_graph(self):
        info = json.loads(run(HEDDLE, "info", "--access", "--json",
                              self.traces["graph"]))
        numbers = dict(info["access"])
        del numbers["step"]
        self.assertEqual(numbers, self.graphs["graph"]["summary"])

    def test_pictures_show_one_layer_or_everything(self):
        svg = "{http://www.w3.org/2000/svg}"
        path = str(pathlib.Path(self.folder.name) / "graph.svg")
        outside = LAUNCHES - LAYERS * LAYER
        for flags, boxes in (([], outside + LAYER), (["--all"], LAUNCHES)):
            run(HEDDLE, "graph", "--svg", path, *flags, self.traces["graph"])
            root = xml.etree.ElementTree.parse(path).getroot()
            self.assertEqual(len(root.findall(svg + "g")), boxes)
        dot = run(HEDDLE, "graph", "--dot", self.traces["graph"])
        self.assertIn(f"x{LAYERS}, {LAYER} operations each", dot)


if __name__ == "__main__":
    unittest.main(verbosity=2)
