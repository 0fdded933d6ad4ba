# The commands of docs/completion.md work, in the order in which they stand there, and print what the page shows.
set -u
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/completion.md >"$work/commands"
awk '/^```text/ { inside = 1; next } /^```/ { inside = 0 } inside && !/^ *\.\.\.$/' docs/completion.md >"$work/shown"
count=$(wc -l <"$work/commands")
[ "$count" -ge 2 ] || { echo "only $count commands found: is the extraction broken?" >&2; exit 1; }
[ -s "$work/shown" ] || { echo 'docs/completion.md shows no output' >&2; exit 1; }
ln -s "$root/models" "$work/models"
mkdir "$work/bin"
ln -s "$pnetc" "$work/bin/pnetc"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2
cd "$work" || exit 1
while read -r line; do
    if ! sh -c "$line" >>output 2>&1 </dev/null; then
        printf 'docs/completion.md: %s\n' "$line" >&2
        tail -n 20 output >&2
        exit 1
    fi
done <commands
# Last digits may be others with another compiler: a line without its numbers must be there.
status=0
while IFS= read -r line; do
    sed 's/[0-9.]\+/N/g; s/  */ /g' output | grep -qxF -- "$(printf '%s\n' "$line" | sed 's/[0-9.]\+/N/g; s/  */ /g')" ||
        { printf 'docs/completion.md shows a line that is not printed: %s\n' "$line" >&2; status=1; }
done <shown
echo "$count commands"
exit $status
