#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, and shows the main job on the sample program
# `decode`: record it, look at the trace, replay it as stream launches and as
# one CUDA graph, verify, report. Without a GPU all of it runs on the host
# device, a simulated CUDA device.
#
#   tools/demo.sh [-h] [--host]     (--host: the host device even with a GPU)
#
# Environment: BUILD_DIR (default build), JOBS (default: all cores).

set -euo pipefail
if [ "${1:-}" = "-h" ] || [ "${1:-}" = "--help" ]; then
  sed -n '3,14s/^# \{0,1\}//p' "$0"
  exit 0
fi
# shellcheck source=tools/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

heddle_find_toolkit
heddle_install_packages
heddle_build heddle heddle_preload heddle_runtime heddle_hostdevice decode \
  decode_host_kernels

OUT=$BUILD_DIR/demo
mkdir -p "$OUT"
rm -f "$OUT/graphs.jsonl"
if heddle_has_gpu && [ "${1:-}" != "--host" ]; then
  say "on the GPU: $(nvidia-smi -L | head -1)"
else
  say "on the host device (no GPU is used)"
  # The device is a libcuda.so.1 like any other: the loader's path selects it.
  export LD_LIBRARY_PATH=$BUILD_DIR/lib/hostdevice${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # Its kernels are host functions, which the sample program brings along.
  export HEDDLE_HOSTDEVICE_KERNELS=$BUILD_DIR/lib/libdecode_host_kernels.so
fi

run() {
  printf '\n$ %s\n' "${*//"$BUILD_DIR/"/}"
  "$@"
}
HEDDLE=$BUILD_DIR/bin/heddle
TRACE=$OUT/decode.htrace

say "record the program (it is not changed, nor relinked)"
run "$HEDDLE" record --memory full -o "$TRACE" -- "$BUILD_DIR/bin/decode" \
  --tokens 16 --check
say "what is in the trace"
run "$HEDDLE" info "$TRACE"
# All of it is read: a pipe that closes early would end the tool.
run "$HEDDLE" dump "$TRACE" --type launch --calls 0-400 | sed -n 1,12p
say "replay one step: as stream launches, as one graph; verify; report"
run "$HEDDLE" replay "$TRACE" --verify --report "$OUT/report.txt"
head -30 "$OUT/report.txt"
"$HEDDLE" replay "$TRACE" --loop 5 --report "$OUT/report.svg" >/dev/null 2>&1
say "which order its bytes force, and a plan with no other"
run "$HEDDLE" graph "$TRACE"
run "$HEDDLE" plan "$TRACE" -O2 --measure -q -o "$OUT/decode.hplan"
run "$HEDDLE" replay "$TRACE" --plan "$OUT/decode.hplan" --opt 1 --compare \
  --orders 5 -q
say "run the program with its CUDA graph rewritten: the same tokens"
run "$HEDDLE" run -O1 --report "$OUT/graphs.jsonl" -- "$BUILD_DIR/bin/decode" \
  --graph --tokens 16 --check
say "done: $OUT/report.txt, and as a picture $OUT/report.svg"
