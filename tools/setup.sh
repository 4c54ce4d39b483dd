#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Set-up shared by demo.sh and test.sh: installs what is missing, configures,
# builds. Meant to be sourced; idempotent.
#
# Environment: BUILD_DIR (default build), BUILD_TYPE (RelWithDebInfo), JOBS.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=${BUILD_DIR:-"$ROOT/build"}
BUILD_TYPE=${BUILD_TYPE:-RelWithDebInfo}
JOBS=${JOBS:-$(nproc)}

say() { printf '\n==> %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# Debian and Ubuntu name these packages alike.
PACKAGES=(
  cmake ninja-build g++ pkg-config python3
  libabsl-dev libflatbuffers-dev flatbuffers-compiler libzstd-dev libxxhash-dev
  nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev
)

heddle_find_toolkit() {
  if command -v nvcc >/dev/null; then return; fi
  local candidate
  for candidate in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda \
    /usr/local/cuda-1[2-9].*; do
    if [ -n "$candidate" ] && [ -x "$candidate/bin/nvcc" ]; then
      export PATH="$candidate/bin:$PATH"
      return
    fi
  done
  fail "no CUDA Toolkit: nvcc is neither on PATH nor in /usr/local/cuda." \
    "Install CUDA Toolkit 12.4 or newer, or set CUDA_HOME."
}

heddle_install_packages() {
  command -v dpkg-query >/dev/null ||
    fail "this set-up knows Debian and Ubuntu alone; install by hand: ${PACKAGES[*]}"
  local missing=() package
  for package in "${PACKAGES[@]}" "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
      grep -q 'install ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  say "installing: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "not root and no sudo; install by hand: ${missing[*]}"
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# heddle_build [target...]: all targets by default. Without debug information,
# which takes a sixth of the time; the presets have it.
heddle_build() {
  say "building in $BUILD_DIR ($BUILD_TYPE, $JOBS jobs)"
  mkdir -p "$BUILD_DIR"
  cmake -G Ninja -S "$ROOT" -B "$BUILD_DIR" \
    -DCMAKE_BUILD_TYPE="$BUILD_TYPE" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG" \
    >"$BUILD_DIR/configure.log" 2>&1 || {
    cat "$BUILD_DIR/configure.log" >&2
    fail "configuring failed"
  }
  ninja -C "$BUILD_DIR" -j "$JOBS" "$@"
}

heddle_has_gpu() {
  command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'
}
