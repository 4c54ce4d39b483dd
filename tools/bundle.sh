#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies a build with the shared libraries it needs into one folder that runs on
# another machine without installing anything.
#
#   tools/bundle.sh DIR [extra files of the build, relative to it]
#
# Environment: BUILD_DIR (default build).

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=${BUILD_DIR:-"$ROOT/build"}
DIR=${1:?usage: tools/bundle.sh DIR [files]}
shift

rm -rf "$DIR"
mkdir -p "$DIR/bin" "$DIR/lib"
files=(bin/heddle lib/libheddle_preload.so lib/libheddle_runtime.so "$@")
for file in "${files[@]}"; do
  mkdir -p "$DIR/$(dirname "$file")"
  cp -a "$BUILD_DIR/$file" "$DIR/$file"
  strip --strip-debug "$DIR/$file" 2>/dev/null || true
done
# Everything but the C and C++ libraries, which every machine has.
for file in "${files[@]}"; do
  ldd "$BUILD_DIR/$file" 2>/dev/null | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -E '/lib(absl|zstd|xxhash|benchmark|gtest|gmock)' |
  while read -r library; do cp -L "$library" "$DIR/lib/"; done
du -sh "$DIR"
