# bench/cards.sh, on the CPU and on few points: each cell of its tables is a number.
set -u
build=$(realpath "$(dirname "${PNETC:-build/release/pnetc}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive PNET_BUILD=$build
status=0
fail() { echo "$*"; status=1; }
sh bench/cards.sh --device cpu --points 3000 --most 2000 --repeat 1 --nets 'fcgf' >"$work/table" || fail "exit code $?"
cat "$work/table"
grep -cE '^\| fp32 \|( [0-9.e+-]+ \([0-9.e+-]+\) \|){6}$' "$work/table" | grep -qx 1 || fail 'no times of the layer'
grep -cE '^\| fcgf \| fp32 \|( [0-9.e+-]+ \|){3}$' "$work/table" | grep -qx 1 || fail 'no times of the network'
grep -q "^- pnetc [0-9]" "$work/table" || fail 'no version'
sh bench/cards.sh --device cpu --depth 3 >"$work/out" 2>&1
[ $? -eq 2 ] || fail 'an option that is none'
exit $status
