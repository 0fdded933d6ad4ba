#!/bin/sh
# Installs clang-format and clang-tidy and checks every source with both: sh tests/lint.sh [quick] [FILE ...]. Any finding
# fails. .clang-tidy says which checks are off, and why. `clang-format -i FILE ...` mends what is only format. `quick` keeps
# the tests from clang-tidy, which takes a third of the time for them. A file that passed is not checked again (tests/tidy.sh).
set -eu
cd "$(dirname "$0")/.."
sh setup.sh --packages clang-format clang-tidy clang libomp-dev
without='^$'
if [ "${1:-}" = quick ]; then
    shift
    without='^tests/'
fi
files=${*:-$(find bench compiler examples include kernels lang library runtime tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')}
status=0
# shellcheck disable=SC2086
clang-format --dry-run -Werror $files || status=1
# The debug build keeps the assertions, which tell the analyzer what holds. Only parser.h and scanner.h are made.
cmake --preset lint -G Ninja >/dev/null
cmake --build --preset lint >/dev/null
printf '%s\n' $files | grep '\.c$' | grep -v "$without" |
    xargs -r -P 2 -n 1 sh tests/tidy.sh build/lint 2>build/lint/said || status=1
[ $status = 0 ] || grep -vE '^[0-9]+ warnings? (generated|treated)' build/lint/said >&2 || true
exit $status
