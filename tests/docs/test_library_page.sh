# The commands of docs/library.md work, in the order in which they stand there, and its C, as one program; they print what the page
# shows. tests/cuda/test_cuda_library_page.c has the blocks for a GPU in that program, too.
page=docs/library.md
least=6
build=$(dirname "$(realpath "${PNETC:?names the program}")")
[ -e "$build/libpnet.so" ] || { echo 'a static build has no shared library'; exit 77; }
if nm -D "$build/libpnet.so" | grep -q '__asan_\|__tsan_'; then
    echo 'under a sanitizer programs around the library need its flags'
    exit 77
fi
prepare() {
    ln -s "$root/examples" "$work/examples"
    mkdir "$work/build" && ln -s "$build" "$work/build/release"
    cat >"$work/page.c" <<'END'
#include <pnet.h>
#include <stdio.h>
#include <stdlib.h>
static struct pnet_error error;
static void check(enum pnet_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", error.message);
    exit((int)status);
}
int main(void)
{
END
    awk -v kinds=c -f "$root/tests/library/blocks.awk" "$root/$page" >>"$work/page.c" || exit 1
    printf '(void)accuracy;\n}\n' >>"$work/page.c"
    # the last command, whose output the page shows too
    echo 'cc -std=c11 -Wall -Wextra -Werror page.c -o page $(PKG_CONFIG_PATH=out/library/tree/lib/pkgconfig pkg-config --cflags --libs pnet) -Wl,-rpath,$PWD/out/library/tree/lib && ./page' >>"$work/commands"
}
. tests/docs/page.sh
[ "$(grep -c 'check(' page.c)" -gt 20 ] || { echo 'little C found: is the extraction broken?' >&2; status=1; }
# No code of the page is forgotten.
for code in '```c CUDA\nf();\n```' '```\nf();\n```' 'Text:\n\n    f();' '```c\nf();'; do
    printf "$code\n" >code.md
    awk -v kinds=c -f "$root/tests/library/blocks.awk" code.md >/dev/null 2>message && { echo "blocks.awk takes $code" >&2; status=1; }
    grep -q '^code.md:[13]: ' message || { echo "blocks.awk says of $code: $(cat message)" >&2; status=1; }
done
tail -c $((1500 * 3 * 4)) out/library/scores.npy >scores
says 'pnetc infer gives the same bits' cmp scores out/library/scores.f32
for name in $(grep -oE '\bpnet_[a-z]+_[a-z_]+\b' "$root/$page" | sort -u); do
    case $name in pnet_static) continue ;; esac
    says "$name is in the header" grep -rqw "$name" "$root/include"
done
finish
