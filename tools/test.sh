#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, and runs every test that this machine can
# run. Tests that need a GPU skip, and say so, where there is none.
#
#   tools/test.sh [-h] [ctest arguments]
#
# Environment: BUILD_DIR (default build), JOBS (default: all cores).

set -euo pipefail
if [ "${1:-}" = "-h" ] || [ "${1:-}" = "--help" ]; then
  sed -n '3,10s/^# \{0,1\}//p' "$0"
  exit 0
fi
# shellcheck source=tools/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

heddle_find_toolkit
heddle_install_packages
heddle_build

# An independent reader of machine code, for tests of ours alone. Optional.
if ! command -v nvdisasm >/dev/null; then
  folder=$BUILD_DIR/python
  if [ ! -d "$folder/nvidia" ]; then
    say "getting nvdisasm from PyPI"
    python3 -m pip install --quiet --target "$folder" \
      nvidia-cuda-nvdisasm >/dev/null 2>&1 ||
      echo "not available: tests that compare with nvdisasm will skip"
  fi
  for candidate in "$folder"/nvidia/*/bin; do
    if [ -x "$candidate/nvdisasm" ]; then PATH=$candidate:$PATH; fi
  done
fi

say "running the tests"
if ! heddle_has_gpu; then echo "no GPU here: tests labelled gpu will skip"; fi
ctest --test-dir "$BUILD_DIR" --output-on-failure -j "$JOBS" "$@"
