# Which folder may include which: lang and kernels themselves alone, runtime also kernels, compiler also lang and runtime, library
# also include, compiler, runtime and kernels; examples no header of ours in quotes; pnet.h its parts, and they each other. Within
# runtime and kernels what the README of each room names. No two rooms include each other, directly or not.
set -u
status=0
allow() { # folder, folders it may include as an alternation
    bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include "' "$1" --include='*.[chly]' --include='*.cu' --include='*.cuh' |
        grep -vE "#[[:space:]]*include \"($2)/" | grep -vE '#[[:space:]]*include "(parser|scanner)\.h"')
    if [ -n "$bad" ]; then
        printf '%s may include %s alone:\n%s\n' "$1" "$2" "$bad"
        status=1
    fi
}
allow lang lang
allow kernels kernels
allow runtime 'runtime|kernels'
allow compiler 'compiler|lang|runtime'
allow library 'library|include|compiler|runtime|kernels'
allow examples none
bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include "' include |
    grep -vE '^include/pnet\.h:[0-9]+:#include "pnet/[a-z]+\.h"$|^include/pnet/[a-z]+\.h:[0-9]+:#include "[a-z]+\.h"$')
if [ -n "$bad" ]; then
    printf 'headers for users may include each other alone:\n%s\n' "$bad"
    status=1
fi

# The language server looks at compilations through headers made for that; the compiler knows neither it nor the command line.
bad=$(grep -rnE '#[[:space:]]*include "compiler/(cli|lsp)/' compiler library --include='*.[ch]' | grep -vE '^compiler/(cli|lsp)/'
    grep -rn '#include "compiler/' compiler/lsp --include='*.[ch]' | grep -vE '"compiler/(lsp/[a-z_]+|inspect|compile|map|op_page)\.h"'
    grep -rnE '#include "compiler/lsp/' compiler/cli --include='*.[ch]' | grep -v '"compiler/lsp/lsp.h"')
if [ -n "$bad" ]; then
    printf 'beyond the walls of compiler/:\n%s\n' "$bad"
    status=1
fi

# Inner walls: a room is a folder of runtime or kernels with sources.
edges=$(mktemp)
trap 'rm -f "$edges" "$edges.loop" "$edges.cuda"' EXIT
for room in $(find runtime kernels -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | xargs -n1 dirname | sort -u); do
    if [ "$room" = kernels ]; then
        allowed=kernels
    elif [ -f "$room/README.md" ] && grep -q '^May include: ' "$room/README.md"; then
        allowed=$(sed -n 's/^May include: //p' "$room/README.md" | tr -d '`,.' | tr ' ' '|')
    else
        echo "$room has no README.md that says what it may include"
        status=1
        continue
    fi
    for other in $(echo "$allowed" | tr '|' ' '); do [ "$other" = "$room" ] || echo "$room $other"; done >>"$edges"
    bad=$(find "$room" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.cu' -o -maxdepth 1 -name '*.cuh' |
        xargs grep -HnE '^[[:space:]]*#[[:space:]]*include "' |
        grep -vE "#[[:space:]]*include \"($room|$allowed)/[^/]*\"")
    if [ -n "$bad" ]; then
        printf '%s may include %s alone:\n%s\n' "$room" "$allowed" "$bad"
        status=1
    fi
done
if ! tsort "$edges" >/dev/null 2>"$edges.loop"; then
    printf 'rooms include each other:\n%s\n' "$(cat "$edges.loop")"
    status=1
fi
[ "$(wc -l <"$edges")" -gt 20 ] || { echo 'few walls found: is the extraction broken?'; status=1; }

# A contract of both devices stands once, in kernels/*.h: no two headers of their rooms declare the same function for one
# device each. Convolution has two headers.
declared() { # device
    find "kernels/$1" -path "kernels/$1/conv" -prune -o -name '*.h' -exec grep -ohE "\bpnet_$1_[a-z0-9_]+\(" {} + |
        sed "s/pnet_$1_//" | sort -u
}
declared cuda >"$edges.cuda"
[ "$(wc -l <"$edges.cuda")" -gt 20 ] || { echo 'few functions found: is the extraction broken?'; status=1; }
twins=$(declared cpu | comm -12 - "$edges.cuda")
if [ -n "$twins" ]; then
    printf 'declared for either device apart; declare them by PNET_BOTH in kernels/:\n%s\n' "$twins"
    status=1
fi

# A folder of many files has sub-folders, or says why not.
for folder in $(find lang compiler runtime kernels library include examples tests bench docs -type d); do
    files=$(find "$folder" -maxdepth 1 -type f | wc -l)
    [ "$files" -le 16 ] || grep -qi 'sub-folders' "$folder/README.md" 2>/dev/null ||
        { case $folder in tests/fuzz/seeds/*) continue ;; esac
          echo "$folder has $files files, and no README.md that says why it has no sub-folders"
          status=1; }
done
# Numbers are read the same in every locale: runtime/base/number.h and lang/number.h alone know how.
bare=$(grep -rnwE 'strtod|strtof|strtold|atof|v?snprintf_l' lang compiler runtime library --include='*.[chly]' |
    grep -vE '^(runtime/base/number|lang/number|compiler/cli/)|^[^:]*:[0-9]*: *(/\*|\*)')
if [ -n "$bare" ]; then
    printf 'numbers that a locale may change:\n%s\n' "$bare"
    status=1
fi
exit $status
