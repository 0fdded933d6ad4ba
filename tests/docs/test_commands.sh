# The commands of docs/training.md work, in the order in which they stand there.
set -u
root=$PWD
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/training.md > "$work/commands"
count=$(wc -l < "$work/commands")
[ "$count" -ge 15 ] || { echo "only $count commands found: is the extraction broken?" >&2; exit 1; }
ln -s "$root/models" "$work/models"
mkdir "$work/bin"
ln -s "$pnetc" "$work/bin/pnetc"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2 XDG_CACHE_HOME=$work/cache
cd "$work" || exit 1
while read -r line; do
    if ! sh -c "$line" > output 2>&1 < /dev/null; then
        printf 'docs/training.md: %s\n' "$line" >&2
        tail -n 20 output >&2
        exit 1
    fi
done < commands
# What the text says is there, is there.
for file in out/training/short/config.yaml out/training/short/model.pnet out/training/short/metrics.jsonl out/training/short/last/state.json \
    out/training/short/best/weights.safetensors out/training/short/report.html out/training/labelled.ply out/training/scores.npy out/training/both/000009.ply \
    out/training/both/000019.ply out/training/features.npy out/training/compare/native/report.html out/training/compare/voxel/report.html \
    out/training/tuned/kernels.yaml out/training/rooms.svg; do
    [ -s "$file" ] || { echo "docs/training.md: $file was not made" >&2; exit 1; }
done
[ "$(grep -c gradient_norm out/training/short/metrics.jsonl)" = 12 ] || { echo 'metrics.jsonl does not hold 12 steps' >&2; exit 1; }
echo "$count commands"
