#!/bin/sh
# Writes the outputs in all golden files anew, and shows what is different from the last commit: sh tests/golden/write.sh [PNETC].
# Without a program that of build/quick is built.
set -eu
cd "$(dirname "$0")/../.."
pnetc=${1:-build/quick/pnetc}
if [ $# = 0 ]; then
    cmake --preset quick -G Ninja >/dev/null
    cmake --build --preset quick --target pnetc >/dev/null
fi
for file in tests/golden/*/*.txt; do
    sh tests/golden/fill.sh "$pnetc" "$file" >"$file.now"
    cmp -s "$file" "$file.now" || cat "$file.now" >"$file"
    rm "$file.now"
done
git --no-pager diff --stat HEAD -- tests/golden
git --no-pager diff HEAD -- tests/golden
