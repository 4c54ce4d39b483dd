# SPDX-License-Identifier: Apache-2.0
"""The files of benchmarks/results: written row by row, with what made them."""

import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def device_facts():
    """Name and driver of the GPU; of the host device where there is none."""
    try:
        query = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version",
             "--format=csv,noheader"], text=True, capture_output=True,
            check=True)
    except (OSError, subprocess.CalledProcessError):
        return "heddle host device", "none"
    name, driver = query.stdout.splitlines()[0].split(", ")
    return name, driver


def spread(values):
    """Half the range of the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    middle = ordered[quarter:len(ordered) - quarter]
    return (middle[-1] - middle[0]) / 2


def outputs(result):
    """What a program computed, without what it measured."""
    return {key: result[key] for key in ("digest", "tokens", "checksums")
            if key in result}


def add_arguments(parser, name):
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="",
                        help="workloads, separated by commas")
    parser.add_argument("--commit", default="",
                        help="of what was built; default: of this checkout")
    parser.add_argument("--name", default=name)


class ResultFile:
    """After every row the file is whole: a run cut short keeps what it has."""

    def __init__(self, args):
        commit = args.commit or subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True,
            capture_output=True, check=False).stdout.strip()
        gpu, driver = device_facts()
        self.content = {
            "schema": 1, "gpu": gpu, "driver": driver, "cuda": "13.0",
            "commit": commit,
            "command": "benchmarks/suite/" + " ".join(
                [pathlib.Path(sys.argv[0]).name] + sys.argv[1:]),
            "rows": []}
        args.out.mkdir(parents=True, exist_ok=True)
        stamp = datetime.date.today().isoformat()
        self.path = args.out / f"{stamp}-{args.name}.json"

    def add(self, rows):
        self.content["rows"] += rows
        self.path.write_text(json.dumps(self.content, indent=1) + "\n",
                             encoding="utf-8")
