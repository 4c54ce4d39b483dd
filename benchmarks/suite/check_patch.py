#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patches every kernel of installed libraries and checks each patched image.

For every library: all cubins of one chip, with every prologue, with and without
a hidden parameter. The checker (tests/unit/cubin/patch_checker.cc) compares
each result with its original: layout, code, attributes, symbols, program
headers. No GPU is needed. Prints and writes JSON:

  checked_kernels   kernels x variants that were checked
  patched_kernels   of those, the ones that were patched
  failed_kernels    complaints of the checker and images that were refused
  reasons           why kernels were left as they are, with counts

usage: check_patch.py --build DIR [--arch 90] [--stride N] [--out FILE]
                      LIBRARY_OR_DIR...

Libraries come from the CUDA toolkit or from PyPI:
  pip install --no-deps --target DIR nvidia-cublas nvidia-cudnn-cu13
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("libcublas.so*", "libcublasLt.so*", "libcudnn_*.so*")
SUMS = ("cubins", "kernels", "checked_kernels", "patched_kernels",
        "failed_kernels", "patched_bytes", "patch_seconds")


def libraries(paths):
    """The files named, and those of NAMES below the folders named."""
    for path in map(pathlib.Path, paths):
        if path.is_file():
            yield path
            continue
        found = {file.resolve() for name in NAMES for file in path.rglob(name)}
        yield from sorted(found)


def survey(program, arch, stride, library):
    """One library's row; None if it holds no device code."""
    done = subprocess.run([program, str(arch), str(stride), str(library)],
                          capture_output=True, text=True, check=False)
    if not done.stdout:
        print(f"{library.name}: {done.stderr.strip()}", file=sys.stderr)
        return None
    row = json.loads(done.stdout)
    row["library"] = library.name
    row["kernels"] = row["checked_kernels"] // row["variants"]
    return row if row["cubins"] else None


def add(total, counts):
    for key, count in counts.items():
        total[key] = total.get(key, 0) + count


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="LIBRARY_OR_DIR")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--stride", type=int, default=1,
                        help="take every how-many-th cubin")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()

    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"],
                            capture_output=True, text=True, check=False)
    result = {"schema": 1, "name": "check_patch",
              "date": datetime.date.today().isoformat(),
              "commit": commit.stdout.strip(), "arch": arguments.arch,
              "stride": arguments.stride, "reasons": {}, "failures": {},
              "rows": []}
    result.update({key: 0 for key in SUMS})
    for library in libraries(arguments.paths):
        row = survey(arguments.build / "bin/patch_survey", arguments.arch,
                     arguments.stride, library)
        if row is None:
            continue
        print(f"{row['library']}: {row['kernels']} kernels, "
              f"{row['patched_kernels']} of {row['checked_kernels']} patched, "
              f"{row['failed_kernels']} failed", file=sys.stderr)
        result["rows"].append(row)
        add(result["reasons"], row["reasons"])
        add(result["failures"], row["failures"])
        for key in SUMS:
            result[key] += row[key]
    result["patch_seconds"] = round(result["patch_seconds"], 3)
    text = json.dumps(result, indent=1)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    print(text)
    return 0 if result["checked_kernels"] and not result["failed_kernels"] else 1


if __name__ == "__main__":
    sys.exit(main())
