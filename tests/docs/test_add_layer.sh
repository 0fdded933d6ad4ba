# A layer added to a copy of the sources, exactly as docs/adding-a-layer.md says, works: its documentation, its cases, a
# model that uses it, and what its rule refuses.
set -eu
work=${TMPDIR:-/tmp}/add-layer # always the same, for the sake of compiler caches
rm -rf "$work"
mkdir -p "$work/tree" "$work/texts"
trap 'rm -rf "$work"' EXIT
tar -c --exclude='./build*' --exclude='./out*' --exclude='./runs' --exclude=./.git . | tar -x -C "$work/tree"

# Code blocks with a path behind ```c go to that path; those of ops.def are added to it.
awk -v tree="$work/tree" -v texts="$work/texts" '
    /^```/ && inside { inside = 0; close(file); next }
    /^```c / { file = tree "/" $2; if ($2 !~ /\.def$/) printf "" > file; inside = 1; files++; next }
    /^``` .*\.pnet$/ || /^```text ./ { file = texts "/" $2; inside = 1; next }
    /^```/ { file = "/dev/null"; inside = 1; next }
    inside { print >> file }
    END { if (files != 4) { print "docs/adding-a-layer.md: expected 4 pieces of code, found " files > "/dev/stderr"; exit 1 } }
' docs/adding-a-layer.md
tail -n 1 "$work/tree/runtime/ops.def" | grep -qx 'PNET_OP(clamp)'

launcher=
if command -v ccache > /dev/null; then launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache; fi
generator=
if command -v ninja > /dev/null; then generator='-G Ninja'; fi
# shellcheck disable=SC2086
cmake -S "$work/tree" -B "$work/build" $generator $launcher -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DPNET_CUDA=OFF > "$work/log" 2>&1 &&
    cmake --build "$work/build" --target pnetc test_cases -j2 >> "$work/log" 2>&1 || {
    tail -n 30 "$work/log" >&2
    exit 1
}

pnetc=$work/build/pnetc
"$pnetc" ops clamp | diff -u "$work/texts/ops" -
"$pnetc" ops --markdown | grep -qx '### clamp'
(cd "$work/tree" && "$work/build/tests/test_cases" clamp)
cd "$work/texts"
"$pnetc" check clamped.pnet
sed -i 's/clamp(0, 1)/clamp(1, 0)/' clamped.pnet
code=0
"$pnetc" check clamped.pnet 2> message || code=$?
[ $code = 3 ] || { echo "exit code $code where the rule refuses" >&2; exit 1; }
head -n 1 message | diff -u mistake -
cd / # the folder goes
