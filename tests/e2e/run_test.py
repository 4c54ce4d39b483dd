#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`heddle run`: a program whose CUDA graph is rewritten while it runs.

Runs the sample program `decode` on the host device, which executes blocks in
any order that the graph's edges allow, so that a dependency that is lost gives
other tokens for some seed. With --gpu on the GPU (exit status 77 where there is
none).
usage: run_test.py BUILD_DIR [--gpu] [unittest arguments]
"""

import json
import os
import pathlib
import re
import signal
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
PRELOAD = str(BUILD / "lib/libheddle_preload.so")
LAUNCHES_PER_TOKEN = 78
TOKENS = 8
VERIFIED = 3


class Run(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.report = self.folder / "r.jsonl"
        self.cache = self.folder / "cache"

    def tearDown(self):
        self._folder.cleanup()

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("HEDDLE_") and k != "LD_PRELOAD"}
        if not ON_GPU:
            env["LD_LIBRARY_PATH"] = str(BUILD / "lib/hostdevice")
            env["HEDDLE_HOSTDEVICE_KERNELS"] = str(
                BUILD / "lib/libdecode_host_kernels.so")
        env["HEDDLE_CACHE_DIR"] = str(self.cache)
        # So that the rewritten graph is used on a device of any speed.
        env["HEDDLE_LEAST_GAIN"] = "0"
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def run_command(self, *command, **env):
        return subprocess.run([str(word) for word in command],
                              env=self.environment(**env), timeout=240,
                              capture_output=True, text=True, check=False)

    def heddle_run(self, *flags, program=None, **env):
        program = program or (DECODE, "--graph", "--tokens", TOKENS)
        return self.run_command(HEDDLE, "run", "-O1", "--report", self.report,
                                *flags, "--", *program, **env)

    def preloaded(self, *decode, **env):
        """Without the tool."""
        return self.run_command(DECODE, *(decode or ("--graph", "--tokens",
                                                     TOKENS)),
                                LD_PRELOAD=PRELOAD, **env)

    def tokens(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = [line for line in result.stdout.splitlines()
                 if line.startswith("tokens:")]
        self.assertEqual(len(lines), 1, result.stdout)
        return lines[0]

    def reports(self, path=None):
        """What `heddle report --json` makes of the file."""
        result = self.run_command(HEDDLE, "report", "--json",
                                  path or self.report)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def check_rewritten(self, report, verified=VERIFIED):
        self.assertEqual(report["outcome"], "rewritten", report)
        self.assertEqual(report["nodes"], LAUNCHES_PER_TOKEN)
        self.assertEqual(report["kernels"], LAUNCHES_PER_TOKEN)
        self.assertEqual(report["edges"], LAUNCHES_PER_TOKEN - 1)
        self.assertEqual(report["converted"], LAUNCHES_PER_TOKEN - 1)
        # Nothing waits in front of the first kernel of a launch-order chain.
        self.assertGreaterEqual(report["patched"], LAUNCHES_PER_TOKEN - 1)
        self.assertEqual(report["verified_launches"], verified)
        self.assertGreater(report["written_chunks"], 0)
        self.assertGreater(report["serial_us"], 0)
        self.assertGreater(report["rewritten_us"], 0)

    # ---- what the program computes ----

    def test_the_tokens_stay_for_any_legal_order_of_the_device(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        seeds = (1,) if ON_GPU else range(1, 9)
        for seed in seeds:
            with self.subTest(seed=seed):
                self.report.unlink(missing_ok=True)
                result = self.heddle_run(HEDDLE_HOSTDEVICE_SEED=seed)
                self.assertEqual(self.tokens(result), plain)
                reports = self.reports()
                self.assertEqual(len(reports), 1)
                self.check_rewritten(reports[0])
                self.assertEqual(reports[0]["unrepeatable_chunks"], 0)

    def test_every_style_gives_the_tokens(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        for style in ("programmatic", "programmatic-early", "launch-order"):
            for seed in ((1,) if ON_GPU else (1, 2, 3)):
                with self.subTest(style=style, seed=seed):
                    self.report.unlink(missing_ok=True)
                    result = self.heddle_run("--style", style,
                                             HEDDLE_HOSTDEVICE_SEED=seed)
                    self.assertEqual(self.tokens(result), plain)
                    (report,) = self.reports()
                    self.check_rewritten(report)
                    self.assertEqual(report["style"], style)

    def test_the_rewritten_graph_is_what_runs_after_the_trials(self):
        # Seen from outside: in the device's simulated time a step takes as
        # long as the trials said.
        if ON_GPU:
            self.skipTest("times differ from run to run")
        times = {}
        tokens = {}
        for level in (0, 1):
            result = self.heddle_run(f"-O{level}", program=(
                DECODE, "--graph", "--tokens", TOKENS, "--bench", 20, "--json",
                "-"))
            self.assertEqual(result.returncode, 0, result.stderr)
            # Notes to people are on the lines before.
            shown = json.loads(result.stdout[result.stdout.index("{"):])
            times[level] = shown["bench"]["median_us"]
            tokens[level] = shown["tokens"]
        self.assertEqual(tokens[0], tokens[1])
        (report,) = self.reports()
        self.check_rewritten(report)
        self.assertLess(report["rewritten_us"], 0.9 * report["serial_us"])
        self.assertAlmostEqual(times[0] / report["serial_us"], 1, delta=0.05)
        self.assertAlmostEqual(times[1] / report["rewritten_us"], 1,
                               delta=0.05)

    def test_a_graph_that_is_launched_too_seldom_keeps_its_form(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens", 2))
        result = self.heddle_run(program=(DECODE, "--graph", "--tokens", 2))
        self.assertEqual(self.tokens(result), plain)
        (report,) = self.reports()
        self.assertEqual(report["outcome"], "launched too seldom to be tried")
        self.assertEqual(report["verified_launches"], 2)

    def test_a_graph_that_is_not_faster_keeps_its_form(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        self.assertEqual(self.tokens(self.heddle_run(HEDDLE_LEAST_GAIN=100)),
                         plain)
        (report,) = self.reports()
        self.assertEqual(report["outcome"], "not faster")
        self.assertEqual(report["style"], "")

    def test_without_memory_to_keep_aside_nothing_is_rewritten(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        result = self.heddle_run("--verify-bytes", "1K")
        self.assertEqual(self.tokens(result), plain)
        (report,) = self.reports()
        self.assertTrue(report["outcome"].startswith("not verified: "), report)

    def test_a_program_without_graphs_is_left_alone(self):
        plain = self.tokens(self.run_command(DECODE, "--tokens", TOKENS))
        result = self.heddle_run(program=(DECODE, "--tokens", TOKENS))
        self.assertEqual(self.tokens(result), plain)
        self.assertIn("no CUDA graph of the program was seen", result.stderr)
        self.assertFalse(self.report.exists())

    # ---- what the tool says ----

    def test_the_summary_is_that_of_the_report_verb(self):
        result = self.heddle_run()
        self.tokens(result)
        shown = self.run_command(HEDDLE, "report", self.report)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(result.stderr, "heddle: " + shown.stdout)
        self.assertRegex(
            shown.stdout,
            rf"\n +1 +{LAUNCHES_PER_TOKEN} +7[78]/{LAUNCHES_PER_TOKEN} +"
            r"77/77 +[0-9.]+ +[0-9.]+ +x[0-9]+\.[0-9]{3} +3  rewritten \(")
        # Once more into the same file: the summary is of this run alone.
        again = self.heddle_run()
        self.assertEqual(re.findall("rewritten", again.stderr), ["rewritten"])
        self.assertEqual(len(self.reports()), 2)

    def test_quiet_is_quiet_and_level_0_does_nothing(self):
        self.assertEqual(self.heddle_run("--quiet").stderr, "")
        self.assertEqual(len(self.reports()), 1)
        self.report.unlink()
        result = self.heddle_run("-O0")
        self.tokens(result)
        self.assertEqual(result.stderr, "")
        self.assertFalse(self.report.exists())

    def test_the_log_has_a_line_a_graph(self):
        result = self.heddle_run("--log", "info")
        self.tokens(result)
        self.assertRegex(
            result.stderr,
            r"heddle: graph 1: 78 nodes, 7[78] of 78 kernels patched, 77 of 77 "
            r"edges converted, [a-z-]+, verified 3 times, .*: rewritten\n")

    def test_the_exit_status_is_the_programs(self):
        for program, status in ((("/bin/sh", "-c", "exit 7"), 7),
                                (("/bin/sh", "-c", "kill -TERM $$"),
                                 128 + signal.SIGTERM)):
            with self.subTest(program=program):
                self.assertEqual(
                    self.heddle_run(program=program).returncode, status)
        self.assertEqual(
            self.heddle_run(program=(DECODE, "--nonsense")).returncode, 2)
        missing = self.heddle_run(program=(self.folder / "missing",))
        self.assertEqual(missing.returncode, 2)
        self.assertIn("heddle run: cannot run", missing.stderr)

    def test_flags_reach_the_runtime_through_the_environment(self):
        def settings(*flags):
            result = self.run_command(
                HEDDLE, "run", *flags, "--", "/usr/bin/env",
                LD_PRELOAD="", HEDDLE_DISABLE="1")
            self.assertEqual(result.returncode, 0, result.stderr)
            return dict(line.split("=", 1)
                        for line in result.stdout.splitlines() if "=" in line)
        default = settings()
        self.assertEqual(default["HEDDLE_OPT"], "1")
        self.assertEqual(default["HEDDLE_VERIFY"], "3")
        self.assertEqual(default["HEDDLE_STYLE"], "auto")
        self.assertNotIn("HEDDLE_BRANCHES", default)
        self.assertNotIn("HEDDLE_PLAN", default)
        self.assertNotIn("HEDDLE_DISABLE", default)
        self.assertEqual(default["LD_PRELOAD"].rstrip(":"), PRELOAD)
        # For the summary alone, and gone with it.
        self.assertFalse(pathlib.Path(default["HEDDLE_REPORT"]).exists())
        chosen = settings("-O0", "--verify", 5, "--verify-bytes", "8G",
                          "--style", "launch-order,programmatic", "--log",
                          "debug", "--report", "r-%p.jsonl")
        self.assertEqual(chosen["HEDDLE_OPT"], "0")
        self.assertEqual(chosen["HEDDLE_VERIFY"], "5")
        self.assertEqual(chosen["HEDDLE_VERIFY_BYTES"], str(8 << 30))
        self.assertEqual(chosen["HEDDLE_STYLE"], "launch-order,programmatic")
        self.assertEqual(chosen["HEDDLE_LOG"], "debug")
        self.assertEqual(settings("-O2")["HEDDLE_OPT"], "2")
        self.assertEqual(settings("-O2", "--branches", "2,4", "--branches",
                                  "3")["HEDDLE_BRANCHES"], "2,4,3")
        # The program may change its folder.
        self.assertEqual(chosen["HEDDLE_REPORT"],
                         str(pathlib.Path("r-%p.jsonl").absolute()))

    def test_wrong_flags_run_nothing(self):
        marker = self.folder / "ran"
        no_plan = self.folder / "no.hplan"
        no_plan.write_text("this is no plan")
        for flags in (("-O3",), ("--verify", "0"), ("--verify-bytes", "-1"),
                      ("--log", "loud"), ("--branches", "2"),
                      ("-O2", "--branches", "0"), ("-O2", "--branches", "65"),
                      ("-O2", "--branches", "2,x"),
                      ("--plan", self.folder / "missing"),
                      ("--plan", no_plan), ("-O0", "--plan", no_plan)):
            with self.subTest(flags=flags):
                result = self.heddle_run(*flags, program=("touch", marker))
                self.assertEqual(result.returncode, 2)
                self.assertIn("heddle help run", result.stderr)
        self.assertFalse(marker.exists())

    def test_processes_write_reports_of_their_own_or_share_one(self):
        script = (f"{DECODE} --graph --tokens {TOKENS} & "
                  f"{DECODE} --graph --tokens {TOKENS} & wait")
        result = self.heddle_run(program=("/bin/sh", "-c", script))
        self.assertEqual(result.returncode, 0, result.stderr)
        reports = self.reports()
        self.assertEqual(len({report["pid"] for report in reports}), 2)
        for report in reports:
            self.check_rewritten(report)
        self.report = self.folder / "own-%p.jsonl"
        result = self.heddle_run(program=("/bin/sh", "-c", script))
        self.assertEqual(result.returncode, 0, result.stderr)
        own = sorted(self.folder.glob("own-*.jsonl"))
        self.assertEqual(len(own), 2)
        shown = self.run_command(HEDDLE, "report", *own)
        self.assertEqual(shown.stdout.count("rewritten ("), 2)

    def test_a_foreign_report_is_refused_and_a_torn_line_is_left_out(self):
        self.tokens(self.heddle_run())
        line = self.report.read_text()
        torn = self.folder / "torn"
        torn.write_text(line + line[:len(line) // 2])
        self.assertEqual(len(self.reports(torn)), 1)
        for name, content in (("text", "hello\n"),
                              ("half", line[:len(line) // 2]),
                              ("middle", line + "{}\n" + line),
                              ("other", '{"graph": 1}\n'),
                              ("array", "[" + line.strip() + "]\n")):
            with self.subTest(name=name):
                path = self.folder / name
                path.write_text(content)
                result = self.run_command(HEDDLE, "report", path)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr,
                                 rf"^heddle report: {path}: line [12] is no "
                                 r"report of a graph .*\n$")
        for path in (self.folder, self.folder / "missing"):
            result = self.run_command(HEDDLE, "report", path)
            self.assertEqual(result.returncode, 2)
            self.assertIn(str(path), result.stderr)

    # ---- level 2 and plans ----

    def check_branched(self, report, branches):
        self.assertEqual(report["outcome"], "rewritten", report)
        self.assertEqual(report["level"], "O2", report)
        self.assertEqual(report["verified_launches"], VERIFIED)
        self.assertEqual(report["nodes"], LAUNCHES_PER_TOKEN)
        self.assertGreater(report["branches"], 1)
        self.assertLessEqual(report["branches"], branches)
        # A branch has order of its own in place of the program's.
        self.assertNotEqual(report["edges"], LAUNCHES_PER_TOKEN - 1)
        self.assertGreater(report["analysis_ms"], 0)
        self.assertEqual(report["unrepeatable_chunks"], 0)

    def test_level_2_gives_the_tokens_in_any_legal_order(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        seeds = (1,) if ON_GPU else range(1, 7)
        for seed in seeds:
            with self.subTest(seed=seed):
                self.report.unlink(missing_ok=True)
                result = self.heddle_run("-O2", HEDDLE_HOSTDEVICE_SEED=seed)
                self.assertEqual(self.tokens(result), plain)
                (report,) = self.reports()
                if ON_GPU:  # what is fastest is the device's to say
                    self.assertEqual(report["outcome"], "rewritten", report)
                    continue
                self.check_branched(report, 3)
                self.assertRegex(report["style"],
                                 r"^O2 [a-z-]+, [23] branches$")
                self.assertIn("O2 us", result.stderr)
                self.assertIn(f"rewritten ({report['style']})", result.stderr)

    def test_more_branches_give_the_tokens(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        for branches in (1, 2, 4):
            with self.subTest(branches=branches):
                self.report.unlink(missing_ok=True)
                result = self.heddle_run("-O2", "--branches", branches)
                self.assertEqual(self.tokens(result), plain)
                (report,) = self.reports()
                self.assertLessEqual(report["branches"], branches)
                # One branch is the program's order: level 1 has that already.
                if branches == 1:
                    self.assertEqual(report["level"], "O1", report)

    def make_plan(self, name, *flags, decode=("--graph",), memory="full"):
        trace = self.folder / f"{name}.htrace"
        plan = self.folder / f"{name}.hplan"
        result = self.run_command(HEDDLE, "record", "--memory", memory, "-o",
                                  trace, "--", DECODE, *decode, "--tokens",
                                  "4")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_command(HEDDLE, "plan", trace, "-o", plan, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return plan

    def test_a_plan_of_a_recording_runs_in_the_program(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        plan = self.make_plan("d", "-O2", "--measure", "--branches", "3")
        for seed in ((1,) if ON_GPU else (1, 2, 3)):
            with self.subTest(seed=seed):
                self.report.unlink(missing_ok=True)
                result = self.heddle_run("--plan", plan,
                                         HEDDLE_HOSTDEVICE_SEED=seed)
                self.assertEqual(self.tokens(result), plain)
                (report,) = self.reports()
                self.assertNotIn(f"{plan}: ", json.dumps(report["notes"]))
                if ON_GPU:
                    self.assertEqual(report["outcome"], "rewritten", report)
                    continue
                self.check_branched(report, 3)
                self.assertEqual(report["style"], f"plan {plan}")
                self.assertIn(
                    f"rewritten (plan {plan}: O2, {report['branches']} "
                    "branches)", result.stderr)

    def test_a_plan_of_streams_fits_the_graph_of_the_same_launches(self):
        # Recorded as stream launches, used where the program has a graph.
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        plan = self.make_plan("s", "-O2", decode=())
        result = self.heddle_run("--plan", plan)
        self.assertEqual(self.tokens(result), plain)
        (report,) = self.reports()
        self.assertEqual(report["outcome"], "rewritten", report)
        self.assertNotIn(f"{plan}: ", json.dumps(report["notes"]))

    def test_a_plan_that_does_not_fit_says_why_and_changes_nothing(self):
        plain = self.tokens(self.run_command(
            DECODE, "--graph", "--tokens", TOKENS, "--layers", "3"))
        plan = self.make_plan("d", "-O2")
        result = self.heddle_run(
            "--plan", plan, "--log", "debug", program=(
                DECODE, "--graph", "--tokens", TOKENS, "--layers", "3"))
        self.assertEqual(self.tokens(result), plain)
        (report,) = self.reports()
        self.assertEqual(report["outcome"], "rewritten", report)
        self.assertEqual(report["level"], "O1", report)
        self.assertRegex(result.stderr, rf"graph 1: plan {plan}: .*\d+ ")

    def test_a_plan_alone_means_level_1_and_the_plan(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        plan = self.make_plan("d", "-O2", "--branches", "2")
        result = self.preloaded(HEDDLE_PLAN=plan, HEDDLE_REPORT=self.report)
        self.assertEqual(self.tokens(result), plain)
        (report,) = self.reports()
        self.assertEqual(report["outcome"], "rewritten", report)
        # Off is off.
        self.report.unlink()
        result = self.preloaded(HEDDLE_PLAN=plan, HEDDLE_OPT=0,
                                HEDDLE_REPORT=self.report)
        self.assertEqual(self.tokens(result), plain)
        self.assertFalse(self.report.exists())
        # A plan that cannot be read is named, and the program runs on.
        result = self.preloaded(HEDDLE_PLAN=self.folder / "missing",
                                HEDDLE_REPORT=self.report)
        self.assertEqual(self.tokens(result), plain)
        self.assertIn(str(self.folder / "missing"), result.stderr)

    # ---- the environment ----

    def test_a_bad_setting_is_named_and_the_program_runs_on(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        for name, value in (("HEDDLE_OPT", "3"), ("HEDDLE_OPT", "yes"),
                            ("HEDDLE_BRANCHES", "0"),
                            ("HEDDLE_BRANCHES", "2,"),
                            ("HEDDLE_STYLE", "nonsense"),
                            ("HEDDLE_STYLE", "programmatic,"),
                            ("HEDDLE_VERIFY", "0"),
                            ("HEDDLE_VERIFY_BYTES", "8X"),
                            ("HEDDLE_LEAST_GAIN", "fast")):
            with self.subTest(name=name, value=value):
                env = {"HEDDLE_OPT": "1", "HEDDLE_REPORT": self.report}
                env[name] = value
                result = self.preloaded(**env)
                self.assertEqual(self.tokens(result), plain)
                self.assertIn(f"heddle: {name}={value}: must be ",
                              result.stderr)
                self.assertFalse(self.report.exists())

    def test_the_variables_do_it_without_the_tool(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        result = self.preloaded(HEDDLE_OPT=1, HEDDLE_REPORT=self.report)
        self.assertEqual(self.tokens(result), plain)
        self.assertEqual(result.stderr, "")
        (report,) = self.reports()
        self.check_rewritten(report)

    def test_disabled_means_nothing_happens(self):
        result = self.preloaded(HEDDLE_OPT=1, HEDDLE_REPORT=self.report,
                                HEDDLE_DISABLE=1)
        self.tokens(result)
        self.assertEqual(result.stderr, "")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_every_route_to_the_driver_is_rewritten(self):
        for route in ("direct", "dlsym", "procaddress"):
            with self.subTest(route=route):
                self.report.unlink(missing_ok=True)
                self.tokens(self.heddle_run(program=(
                    DECODE, "--load", route, "--graph", "--tokens", TOKENS)))
                (report,) = self.reports()
                self.check_rewritten(report)

    def test_a_report_that_cannot_be_written_stops_nothing(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        self.report = self.folder / "no" / "such" / "folder" / "r.jsonl"
        self.assertEqual(self.tokens(self.heddle_run()), plain)

    # ---- recording and rewriting together ----

    def test_a_trace_holds_the_programs_own_graph(self):
        plain = self.folder / "plain.htrace"
        both = self.folder / "both.htrace"
        tokens = {}
        for trace, level in ((plain, 0), (both, 1)):
            result = self.preloaded(
                HEDDLE_OPT=level, HEDDLE_TRACE=trace, HEDDLE_MEMORY="full",
                HEDDLE_REPORT=self.report)
            tokens[trace] = self.tokens(result)
        self.assertEqual(tokens[plain], tokens[both])
        (report,) = self.reports()
        self.check_rewritten(report)
        infos = {}
        for trace in (plain, both):
            result = self.run_command(HEDDLE, "info", "--json", trace)
            self.assertEqual(result.returncode, 0, result.stderr)
            infos[trace] = json.loads(result.stdout)
        # Trials launch the graph dozens of times and load images: none of that
        # is the program's.
        for section in ("work", "graphs", "modules"):
            self.assertEqual(infos[plain][section], infos[both][section])
        self.assertEqual(infos[both]["graphs"]["launches"], TOKENS)
        same = self.run_command(HEDDLE, "diff", plain, both)
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        result = self.run_command(HEDDLE, "replay", both, "--verify", "--opt",
                                  1, "--loop", 2)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("verify: passed", result.stdout)
        # What the program computed with the rewritten graph, too.
        self.assertIn("recorded program: memory after the step is what it had",
                      result.stdout)

    # ---- patched images are kept ----

    def cached(self):
        return {path.name: (path.stat().st_ino, path.read_bytes())
                for path in self.cache.glob("*")}

    def test_the_next_run_finds_the_patched_images(self):
        plain = self.tokens(self.heddle_run())
        first = self.cached()
        self.assertGreater(len(first), 0)
        self.assertEqual(self.cache.stat().st_mode & 0o077, 0)
        self.assertEqual(self.tokens(self.heddle_run()), plain)
        self.assertEqual(self.cached(), first)
        # A damaged entry counts as missing.
        for name in first:
            path = self.cache / name
            path.write_bytes(path.read_bytes()[:-1000])
        self.report.unlink()
        self.assertEqual(self.tokens(self.heddle_run()), plain)
        (report,) = self.reports()
        self.check_rewritten(report)
        self.assertEqual({name: content for name, (_, content)
                          in self.cached().items()},
                         {name: content for name, (_, content)
                          in first.items()})

    def test_a_cache_that_cannot_be_used_is_no_error(self):
        plain = self.tokens(self.run_command(DECODE, "--graph", "--tokens",
                                             TOKENS))
        file = self.folder / "file"
        file.write_text("")
        others = self.folder / "others"
        others.mkdir()
        others.chmod(0o777)
        for folder in (file, file / "below", "/proc/heddle", others):
            with self.subTest(folder=folder):
                self.report.unlink(missing_ok=True)
                result = self.heddle_run(HEDDLE_CACHE_DIR=folder)
                self.assertEqual(self.tokens(result), plain)
                self.assertNotIn("error", result.stderr)
                (report,) = self.reports()
                self.check_rewritten(report)
        self.assertEqual(list(others.iterdir()), [])


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
