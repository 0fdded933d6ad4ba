# No function of ours has the name of one of the C library: the library's own callers, drivers among them, would get ours.
set -u
folder=$(dirname "${PNETC:?names the program}")
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-symbols-XXXXXX")
trap 'rm -rf "$work"' EXIT
for library in libc.so.6 libm.so.6; do
    nm -D --defined-only "$(cc -print-file-name=$library)"
done | awk '{print $3}' | sed 's/@.*//' | LC_ALL=C sort -u >"$work/theirs"
nm -g --defined-only "$folder"/libpnet_*.a 2>/dev/null | awk '$2 ~ /[TDBR]/ {print $3}' | LC_ALL=C sort -u >"$work/ours"
if [ "$(wc -l <"$work/theirs")" -lt 1000 ] || [ "$(wc -l <"$work/ours")" -lt 300 ]; then
    echo "no symbols to compare"
    exit 1
fi
both=$(LC_ALL=C comm -12 "$work/theirs" "$work/ours")
if [ -n "$both" ]; then
    printf 'names of the C library are taken: %s\n' "$both"
    exit 1
fi
