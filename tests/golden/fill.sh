#!/bin/sh
# Prints a golden file with the output of each command as it is now: sh tests/golden/fill.sh PNETC FILE. README.md has the format.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
PROGRAM=$(realpath "$1") file=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$root/models" "$work/models"
cd "$work"
export PROGRAM LC_ALL=C PNET_ISA=base OMP_NUM_THREADS=2
cat >functions <<'END'
pnetc() { "$PROGRAM" "$@"; }
section() { awk -v name="$1" '/^[^ ]/ { on = index($0, name) == 1 } on'; }
lines() { sed 's/},{/},\n{/g; s/\([]}]\),"/\1,\n"/g'; }
END
awk '
    /^\$ / { # a file before it is whole
        if (file) close(file)
        file = ""
        print
        fflush()
        command = ". ./functions; { " substr($0, 3) "; } 2>&1"
        while ((command | getline line) > 0) {
            if (line == "") line = "(an empty line)" # would end the output when the file is read again
            print line
        }
        code = close(command)
        if (code) print "exit code " (code > 255 ? code / 256 : code)
        output = 1
        next
    }
    /^--- / { file = $2; printf "" >file; print; next }
    /^$/ { if (file) close(file); file = ""; output = 0 }
    file { print >file }
    !output' "$file"
