# Which folder may include which: lang and kernels themselves alone, runtime also kernels, compiler also lang and runtime.
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
# Numbers are read the same in every locale: runtime/number.h and lang/number.h alone know how.
bare=$(grep -rnwE 'strtod|strtof|strtold|atof|v?snprintf_l' lang compiler runtime --include='*.[chly]' |
    grep -vE '^(runtime/number|lang/number|compiler/cli/)|^[^:]*:[0-9]*: *(/\*|\*)')
if [ -n "$bare" ]; then
    printf 'numbers that a locale may change:\n%s\n' "$bare"
    status=1
fi
long=$(find lang compiler runtime kernels bench -name '*.[chly]' -exec wc -l {} + | awk '$1 > 800 && $2 != "total"')
if [ -n "$long" ]; then
    printf 'files beyond 800 lines:\n%s\n' "$long"
    status=1
fi
exit $status
