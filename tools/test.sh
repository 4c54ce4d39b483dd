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

say "running the tests"
if ! heddle_has_gpu; then echo "no GPU here: tests labelled gpu will skip"; fi
ctest --test-dir "$BUILD_DIR" --output-on-failure -j "$JOBS" "$@"
