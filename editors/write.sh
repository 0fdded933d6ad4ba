#!/bin/sh
# Writes the layers, losses and metrics, and the functions of the language into the syntax files, from the op table and the
# compiler: sh editors/write.sh PNETC. Reserved words stand there by hand.
set -eu
cd "$(dirname "$0")/.."
pnetc=$1
ops=$("$pnetc" ops | awk '{ print $1 }')
functions=$(sed -n 's/^.*{{"\([a-z]*\)",.*/\1/p' compiler/function.c)
[ "$ops" ] && [ "$functions" ] || { echo 'editors/write.sh: no words found' >&2; exit 1; }

# lines PREFIX QUOTE WORDS: at most 118 columns, each beginning with PREFIX.
lines() {
    # shellcheck disable=SC2086
    printf '%s\n' $3 | awk -v prefix="$1" -v quote="$2" '
        { word = " " quote $1 quote }
        line == "" { line = prefix }
        length(line word) > 118 { print line; line = prefix }
        { line = line word }
        END { print line }'
}

# replace FILE PATTERN: standard input takes the place of the lines that match.
replace() {
    awk -v pattern="$2" -v words="$(cat)" '$0 ~ pattern { if (!n++) print words; next } { print }' "$1" >"$1.new"
    mv "$1.new" "$1"
}

vim=editors/vim/syntax/pnet.vim
lines 'syntax keyword pnetLayer' '' "$ops" | replace $vim '^syntax keyword pnetLayer'
lines 'syntax keyword pnetFunction' '' "$functions" | replace $vim '^syntax keyword pnetFunction'

# An alternation takes the first word that fits: the longest one comes first.
code=editors/vscode/syntaxes/pnet.tmLanguage.json
longest_first() { printf '%s\n' "$1" | awk '{ print length($1), NR, $1 }' | sort -k1,1nr -k2,2n | cut -d ' ' -f 3 | paste -sd '|' -; }
sed -i "/\"support.function.pnet\"/{n;s/(.*)/($(longest_first "$ops"))/;}" $code
sed -i "/\"support.function.builtin.pnet\"/{n;s/(\([a-z|]*\))/($(printf '%s\n' "$functions" | paste -sd '|' -))/;}" $code

query=editors/tree-sitter/queries/highlights.scm
awk -v ops="$(lines '   ' '"' "$ops")" -v functions="$(lines '   ' '"' "$functions")" '
    inside && /^ *"/ { next }
    { inside = 0; print }
    /#any-of\? @function.builtin/ { inside = 1; print (n++ ? ops : functions) "))" }' $query >$query.new
mv $query.new $query
