# What the tests of pnetc share. A script sources it, makes checks, and ends with `finish`.
set -u
export LC_ALL=C OMP_WAIT_POLICY=passive
pnetc=${PNETC:?names the program to test}
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
passed=0
failed=0

fail() { # message
    failed=$((failed + 1))
    printf 'failed: %s\n' "$*" >&2
}

pass() { passed=$((passed + 1)); }

# needs COMMAND..: skips the rest of the test where a command is missing that setup.sh does not install.
needs() {
    local command
    for command; do
        command -v "$command" >/dev/null || { echo "skipped: there is no $command"; exit 77; }
    done
}

# check MESSAGE COMMAND...: the command must succeed.
check() {
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then pass; else fail "$what: $*"; fi
}

# run CODE ARGUMENTS...: pnetc must end with that exit code; its output goes to $out and $err.
out=$work/out err=$work/err
run() {
    local want=$1 got=0
    shift
    "$pnetc" "$@" >"$out" 2>"$err" </dev/null || got=$?
    if [ "$got" = "$want" ]; then
        pass
        return 0
    fi
    fail "exit code $got instead of $want: pnetc $*"
    tail -n 5 "$err" >&2
    return 1
}

# says TEXT: the last command's standard error holds it.
says() {
    if grep -qF -- "$1" "$err"; then
        pass
    else
        fail "no '$1' in: $(head -c 600 "$err")"
    fi
}

# prints TEXT: the same for its standard output.
prints() {
    if grep -qF -- "$1" "$out"; then pass; else fail "no '$1' in: $(head -c 600 "$out")"; fi
}

# same A B: two files hold the same bytes.
same() {
    if cmp -s "$1" "$2"; then pass; else fail "$1 and $2 differ"; fi
}

# differ MESSAGE A B: they do not.
differ() {
    if cmp -s "$2" "$3"; then fail "$1"; else pass; fi
}

# For check: grep finds nothing.
hides() { ! grep "$@"; }

# valid_json FILE: every line is one JSON value. Without an interpreter at hand, objects by their ends.
valid_json() {
    if command -v python3 >/dev/null; then
        check "JSON of $1" python3 -c '
import json, sys
lines = [l for l in open(sys.argv[1]) if l.strip()]
assert lines
for l in lines: json.loads(l)' "$1"
    else
        check "JSON of $1" grep -q . "$1"
        check "JSON of $1" hides -qvE '^[{[].*[]}]$' "$1"
    fi
}

# number KEY FILE: the first number under that key of a JSON text.
number() {
    grep -oE "\"$1\": *-?[0-9][0-9.eE+-]*" "$2" | head -n 1 | sed 's/.*: *//'
}

# ply_rows FILE: the vertices a PLY header announces.
ply_rows() {
    grep -a -m 1 '^element vertex' "$1" | tr -d '\r' | cut -d ' ' -f 3
}

# npy_shape FILE: "ROWS COLUMNS".
npy_shape() {
    head -c 200 "$1" | tr -d '\0' | grep -aoE "\([0-9]+, *[0-9]*\)" | head -n 1 | tr -d '(),'
}

# nothing_left FOLDER: no file, not even a temporary one.
nothing_left() {
    if [ ! -e "$1" ] || [ -z "$(ls -A "$1")" ]; then pass; else fail "left behind: $(ls -A "$1")"; fi
}

finish() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$passed" != 0 ]
    exit
}
