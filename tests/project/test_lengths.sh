# Lengths of sources. C, CUDA and Python: files up to 800 lines, lines up to 130 characters (clang-format holds C to 100; the rest is
# comments and tables). C and CUDA: functions up to 65 lines, a screen, from their first line to their last; 75 in tests, where cases
# follow each other. tests/project/lengths.txt has the functions that may be longer, and why.
set -u
status=0
python=$(find python -name "*.py")
files=$(find lang compiler runtime kernels library include examples bench tests -name '*.[chly]' -o -name '*.cu' -o -name '*.cuh')
# shellcheck disable=SC2086
bad=$(wc -l $files $python | awk '$1 > 800 && $2 != "total"')
[ -z "$bad" ] || { printf 'files beyond 800 lines:\n%s\n' "$bad"; status=1; }
# shellcheck disable=SC2086
bad=$(LC_ALL=C.UTF-8 awk 'length($0) > 130 { print FILENAME ":" FNR ": " length($0) }' $files $python)
[ -z "$bad" ] || { printf 'lines beyond 130 characters:\n%s\n' "$bad"; status=1; }

functions=$(mktemp)
trap 'rm -f "$functions"' EXIT
# shellcheck disable=SC2086
awk -f tests/project/functions.awk $files >"$functions"
[ "$(wc -l <"$functions")" -gt 5000 ] || { echo 'few functions found: is the extraction broken?'; status=1; }
for kind in c h cu cuh; do
    grep -q "\.$kind " "$functions" || { echo "no functions in .$kind files: is the extraction broken?"; status=1; }
done
bad=$(awk '
    NR == FNR { if (/^[a-z]/) allowed[$1 " " $2] = $3; next }
    {
        most = $1 ~ /^tests\// ? 75 : 65
        if ($4 <= most) next
        key = $1 " " $3
        if (key in allowed) {
            used[key] = 1
            most = allowed[key]
        }
        if ($4 > most) print $1 ":" $2 ": " $3 " has " $4 " lines"
    }
    END { for (key in allowed) if (!(key in used)) print "tests/project/lengths.txt: " key " is short, or not there" }
' tests/project/lengths.txt "$functions")
[ -z "$bad" ] || { printf 'functions beyond 65 lines, or 75 in tests:\n%s\n' "$bad"; status=1; }
exit $status
