# What GPU code is in a program that was built with CUDA, read by NVIDIA's cuobjdump: for each architecture that --version names,
# as many pieces of machine code or PTX as there are source files; and the size of the program. PNET_CUOBJDUMP: which cuobjdump.
set -u
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
code=$("$pnetc" --version | sed -n 's/^code for GPUs: //p')
[ -n "$code" ] || { echo 'skipped: no code for GPUs in this program'; exit 77; }
tool=${PNET_CUOBJDUMP:-cuobjdump}
command -v "$tool" >/dev/null || { echo "skipped: no cuobjdump, of the CUDA Toolkit's package cuda-cuobjdump"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "$*"; status=1; }
sources=$(find kernels/cuda -name '*.cu' | wc -l)
[ "$sources" -gt 50 ] || fail 'few sources found: is the extraction broken?'
"$tool" --list-elf "$pnetc" | sed -n 's/.*\.sm_\([0-9a-z]*\)\.cubin.*/\1/p' | sort >"$work/elf"
"$tool" --list-ptx "$pnetc" 2>/dev/null | sed -n 's/.*\.sm_\([0-9a-z]*\)\.ptx.*/\1/p' | sort >"$work/ptx"
# a few sources are host code alone; the others have code for every architecture
all=$sources
sources=$({ uniq -c "$work/elf"; uniq -c "$work/ptx"; } | sort -n | awk 'END { print $1 + 0 }')
[ "$sources" -gt $((all * 9 / 10)) ] || fail "$sources of $all sources have code for one GPU"
for item in $(echo "$code" | tr ',' ' '); do
    of=${item%-*}
    elf=$(grep -cx "$of" "$work/elf") ptx=$(grep -cx "$of" "$work/ptx")
    case $item in
    *-virtual) [ "$elf" = 0 ] || fail "$item: $elf pieces of machine code" ;;
    *) [ "$elf" = "$sources" ] || fail "$item: $elf pieces of machine code of $sources sources" ;;
    esac
    case $item in
    *-real) [ "$ptx" = 0 ] || fail "$item: $ptx pieces of PTX" ;;
    *) [ "$ptx" = "$sources" ] || fail "$item: $ptx pieces of PTX of $sources sources" ;;
    esac
done
echo "$code" | tr ',' '\n' | sed 's/-.*//' | sort -u >"$work/named"
others=$(sort -u "$work/elf" "$work/ptx" | comm -13 "$work/named" -)
[ -z "$others" ] || fail "code for GPUs that --version does not name: $others"
most=60000000
size=$(wc -c <"$pnetc")
[ "$size" -le $most ] || fail "the program has $size bytes, more than $most"
echo "$code: $sources sources, $size bytes"
exit $status
