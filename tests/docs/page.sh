# For tests of the pages that show commands: runs the commands of $page, at least $least of them, in the order in which they stand
# there, in a folder of their own, and checks that the page shows what they print. Then the test runs in that folder; it ends with
# `finish`. A function `prepare` of the test, if there is one, adds to the folder $work before the commands run.
set -u
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
bench=$(dirname "$pnetc")/bench/pnet-bench
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' "$page" >"$work/commands"
awk '/^```text/ { inside = 1; next } /^```/ { inside = 0 } inside && !/^ *\.\.\.$/' "$page" >"$work/shown"
count=$(wc -l <"$work/commands")
[ "$count" -ge "$least" ] || { echo "only $count commands found: is the extraction broken?" >&2; exit 1; }
[ -s "$work/shown" ] || { echo "$page shows no output" >&2; exit 1; }
ln -s "$root/models" "$work/models"
mkdir "$work/bin"
ln -s "$pnetc" "$work/bin/pnetc"
ln -s "$bench" "$work/bin/pnet-bench"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2
! command -v prepare >/dev/null || prepare
cd "$work" || exit 1
while read -r line; do
    if ! sh -c "$line" >>output 2>&1 </dev/null; then
        printf '%s: %s\n' "$page" "$line" >&2
        tail -n 20 output >&2
        exit 1
    fi
done <commands
# Last digits may be others with another compiler: a line without its numbers must be there.
status=0
while IFS= read -r line; do
    sed 's/[0-9.]\+/N/g; s/  */ /g' output | grep -qxF -- "$(printf '%s\n' "$line" | sed 's/[0-9.]\+/N/g; s/  */ /g')" ||
        { printf '%s shows a line that is not printed: %s\n' "$page" "$line" >&2; status=1; }
done <shown
# What the text says is there, is there.
says() { # message, command...
    what=$1
    shift
    "$@" >/dev/null 2>&1 || { echo "$page: $what" >&2; status=1; }
}
finish() {
    echo "$count commands"
    exit "$status"
}
