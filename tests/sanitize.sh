#!/bin/sh
# The tests under AddressSanitizer and UndefinedBehaviorSanitizer, behind setup.sh: sh tests/sanitize.sh [options of ctest]
set -eu
cd "$(dirname "$0")/.."
cmake --preset asan -G Ninja >/dev/null
cmake --build --preset asan
ctest --preset asan --label-exclude data -j2 "$@"
