#!/bin/sh
# Sets up and runs the tests that need nothing but this repository.
# sh tests/run.sh [options of ctest]
set -eu
cd "$(dirname "$0")/.."
sh setup.sh
ctest --preset release --label-exclude data -j2 "$@"
