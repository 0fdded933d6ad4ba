# The shared library exports the functions of include/pnet.h and its parts, as library/pnet.map lists them, sorted, and nothing
# else; and takes nothing from the C library that prints, exits, reads the environment, or sets a locale or a signal (a build
# without CUDA: the runtime of CUDA, which is linked in, takes some of these for itself).
set -u
folder=$(dirname "${PNETC:?names the program}")
library=$folder/libpnet.so
[ -e "$library" ] || { echo 'a static build has no shared library'; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-exports-XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
status=0
cat include/pnet.h include/pnet/*.h | grep -oE '^PNET_API .*' | grep -oE '\bpnet_[a-z_]+\(' | tr -d '(' | sort -u >"$work/header"
grep -oE '\bpnet_[a-z_]+;' library/pnet.map | tr -d ';' >"$work/map"
sort -cu "$work/map" || { echo 'library/pnet.map is not sorted'; status=1; }
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort -u >"$work/versioned"
sed 's/@@*.*//' "$work/versioned" | sort -u >"$work/exported"
[ "$(wc -l <"$work/header")" -gt 30 ] || { echo 'few functions found: is the extraction broken?'; status=1; }
diff "$work/header" "$work/map" || { echo 'the headers (<) and library/pnet.map (>) differ'; status=1; }
# a sanitizer adds symbols of its own
grep -E '^pnet_' "$work/exported" | diff "$work/map" - || { echo 'library/pnet.map (<) and the library (>) differ'; status=1; }
if ! nm -D "$library" | grep -q '__asan_\|__tsan_'; then
    grep -v '^pnet_' "$work/exported" && { echo 'the library exports these too'; status=1; }
    taken=
    nm "$folder/libpnet_kernels.a" 2>/dev/null | grep -q ' T pnet_cuda_alloc$' || taken=$(nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' |
        grep -xE '(secure_)?getenv|exit|_exit|quick_exit|setlocale|signal|sigaction|puts|printf|perror|stderr|pthread_create')
    [ -z "$taken" ] || { printf 'the library uses: %s\n' "$taken"; status=1; }
fi
grep -v '@@PNET_0$' "$work/versioned" | grep '^pnet_' && { echo 'these have no version'; status=1; }
readelf -d "$library" | grep -q 'SONAME.*\[libpnet\.so\.0\]' || { echo 'the soname is not libpnet.so.0'; status=1; }
exit $status
