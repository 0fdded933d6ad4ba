# Every global of our objects begins with pnet_: names of C linkage and C++ functions outside of namespaces. Members of programs
# count like those of libraries, but for main and the tests.
set -u
folder=$(dirname "${PNETC:?names the program}")
objects=$(find "$folder" -name '*.c.o' -o -name '*.cu.o' | grep -v "^$folder/tests/" || true)
[ "$(printf '%s\n' "$objects" | wc -l)" -gt 200 ] || { echo 'few objects found: is the search broken?'; exit 1; }
# Weak symbols are templates and inline functions. What begins with _ or . is the compiler's.
names=$(printf '%s\n' "$objects" | xargs nm -g --defined-only 2>/dev/null | awk '$2 ~ /^[TDBRCS]$/ { print $3 }' | sort -u)
ours=$(printf '%s\n' "$names" | grep -cE '^(pnet_|_Z[0-9]+pnet_)')
[ "$ours" -gt 300 ] || { echo 'few globals found: is the extraction broken?'; exit 1; }
bad=$(printf '%s\n' "$names" | grep -E '^([A-Za-z]|_Z[0-9])' | grep -vE '^(pnet_|_Z[0-9]+pnet_)|^main$')
if [ -n "$bad" ]; then
    printf 'globals without pnet_:\n%s\n' "$bad"
    exit 1
fi
