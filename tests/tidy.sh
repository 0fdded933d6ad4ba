#!/bin/sh
# Runs clang-tidy on one file, unless it passed with the same text, headers and checks before: sh tests/tidy.sh BUILD FILE.
# Files that passed are noted in ~/.cache/pnet/tidy (XDG_CACHE_HOME), by a hash of the preprocessed text, comments included.
set -eu
build=$1 file=$2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pnet/tidy
key=
if text=$(clang -E -CC -w -fopenmp -D_GNU_SOURCE -DPNET_VERSION=0 -DPNET_ISA=base -I. -Iinclude -I"$build" "$file" 2>/dev/null); then
    key=$({ clang-tidy --version; cat .clang-tidy CMakeLists.txt cmake/*.cmake; echo "$file"; printf '%s' "$text"; } | sha256sum | cut -c1-64)
    [ ! -e "$cache/$key" ] || exit 0
fi
clang-tidy -p "$build" --quiet "$file"
if [ "$key" ]; then
    mkdir -p "$cache"
    : >"$cache/$key"
fi
