#!/bin/sh
# Makes the pages of the manual and the completions of shells: sh make.sh PNETC FOLDER DATE. PNETC is a command that prints the table
# of what pnetc takes, with --help=table. FOLDER gets man1/*.1, man1/*.1.gz, bash/pnetc, zsh/_pnetc, fish/pnetc.fish.
set -eu
here=$(dirname "$0")
LC_ALL=C
export LC_ALL
rm -rf "$2"
mkdir -p "$2/man1" "$2/bash" "$2/zsh" "$2/fish"
$1 --help=table >"$2/table"
awk -v folder="$2/man1" -v date="$3" -f "$here/man.awk" "$2/table"
for page in "$2"/man1/*.1; do gzip -9n <"$page" >"$page.gz"; done
awk -f "$here/bash.awk" "$2/table" >"$2/bash/pnetc"
cat "$here/bash.tail" >>"$2/bash/pnetc"
awk -f "$here/zsh.awk" "$2/table" >"$2/zsh/_pnetc"
awk -f "$here/fish.awk" "$2/table" >"$2/fish/pnetc.fish"
