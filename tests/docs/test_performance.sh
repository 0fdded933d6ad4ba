# The commands of docs/performance.md and docs/gpu.md that need no GPU work, in the order in which they stand there, on
# fewer points.
set -u
root=$PWD
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$root/models" "$work/models"
ln -s "$root/bench" "$work/bench"
mkdir "$work/build"
ln -s "$(dirname "$pnetc")" "$work/build/release"
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
cd "$work" || exit 1
for page in performance gpu; do
    awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 }
        inside && sub(/\\$/, "") { line = line $0; next }
        inside { print line $0; line = "" }' "$root/docs/$page.md" >commands
    # On a GPU: what computes there, and tests that are for one. Planning is not. What needs Python: tests/cli/test_autocast.sh and
    # tests/cli/test_bench_tiles.sh.
    grep -vE '(pnet-bench|losses.sh) .*--device cuda|^ncu |test_cuda|^python3 ' commands >here
    [ "$(wc -l <here)" -ge 2 ] || { echo "docs/$page.md: hardly any commands found: is the extraction broken?" >&2; exit 1; }
    while read -r line; do
        small=$(printf '%s\n' "$line" | sed 's/--points 700000/--points 3000/; s/--points 100000/--points 2000/
            s/--most [0-9]*/--most 2048/')
        if ! sh -c "$small" >output 2>&1 </dev/null; then
            printf 'docs/%s.md: %s\n' "$page" "$line" >&2
            tail -n 20 output >&2
            exit 1
        fi
    done <here
    # Scenes of commands that need a GPU are there too.
    for scene in $(grep -oE '(--scene|--like) [^ ]+' commands | cut -d ' ' -f 2 | sort -u); do
        case $scene in
        sphere:*) continue ;;
        esac
        [ -s "$scene" ] || { echo "docs/$page.md: nothing makes $scene" >&2; exit 1; }
    done
    wc -l <here
done
