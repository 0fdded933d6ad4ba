# Every global of our libraries and programs begins with pnet_: names of C linkage and C++ functions outside of namespaces.
# PNET_PROGRAM_OBJECTS: the objects that programs have besides the libraries. The build system lists them, because a search in the
# build folder would also find objects of removed sources, and a statically linked program also holds globals of other libraries.
set -u
folder=$(dirname "${PNETC:?names the program}")
all=$(for file in "$folder"/libpnet_*.a ${PNET_PROGRAM_OBJECTS:?lists the objects of pnetc and pnet-bench}; do
    nm -g --defined-only "$file" || echo "cannot read $file" >&2
done 2>&1)
unread=$(printf '%s\n' "$all" | grep -E '^cannot read')
[ -z "$unread" ] || { printf '%s\n' "$unread"; exit 1; }
# Weak symbols are templates and inline functions. What begins with _ or . is the compiler's.
names=$(printf '%s\n' "$all" | awk '$2 ~ /^[TDBRCS]$/ { print $3 }' | sort -u)
# One global of each library and of each program: a library or program that is not asked fails the test.
for name in pnet_parse_text pnet_compile_text pnet_session_bind pnet_train pnet_cpu_mvmr pnet_command_plan pnet_bench_sweep; do
    printf '%s\n' "$names" | grep -qx "$name" || { echo "$name is not found: is the search broken?"; exit 1; }
done
ours=$(printf '%s\n' "$names" | grep -cE '^(pnet_|_Z[0-9]+pnet_)')
[ "$ours" -gt 300 ] || { echo 'few globals found: is the extraction broken?'; exit 1; }
bad=$(printf '%s\n' "$names" | grep -E '^([A-Za-z]|_Z[0-9])' | grep -vE '^(pnet_|_Z[0-9]+pnet_)|^main$')
if [ -n "$bad" ]; then
    printf 'globals without pnet_:\n%s\n' "$bad"
    exit 1
fi
