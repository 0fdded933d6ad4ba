# include/pnet.h and each of its parts are C11 and C++11, by themselves and without a warning; and what they share with the inside
# is the same there.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-header-XXXXXX")
trap 'rm -rf "$work"' EXIT
status=0
flags='-Wall -Wextra -Werror -pedantic -Wconversion -Wshadow -fsyntax-only -Iinclude'
printf '#include <pnet.h>\n#include <pnet.h>\n' >"$work/twice.c"
for part in include/pnet/*.h; do
    name=$(basename "$part" .h)
    grep -qx "#include \"pnet/$name.h\"" include/pnet.h || { echo "include/pnet.h does not include $part"; status=1; }
    printf '#include <pnet/%s.h>\n' "$name" >"$work/part_$name.c"
    cp "$work/part_$name.c" "$work/part_$name.cc"
done
# every struct that callers fill, as callers fill it
cat >"$work/use.c" <<'END'
#include <pnet.h>
enum pnet_status use(struct pnet_session *s, const float *xyz);
enum pnet_status use(struct pnet_session *s, const float *xyz)
{
    struct pnet_value values[] = {{"cloud.xyz", {xyz, PNET_DTYPE_F32, 10, 3, 0}}};
    struct pnet_error e;
    return pnet_session_bind(s, values, 1, &e);
}
END
cp "$work/twice.c" "$work/twice.cc"
cp "$work/use.c" "$work/use.cc"
# shellcheck disable=SC2086
cc -std=c11 $flags -Wstrict-prototypes "$work"/*.c || { echo 'not clean in C11'; status=1; }
if command -v c++ >/dev/null; then
    # shellcheck disable=SC2086
    c++ -std=c++11 $flags "$work"/*.cc || { echo 'not clean in C++11'; status=1; }
else
    echo 'there is no C++ compiler'
    [ $status = 1 ] || status=77
fi
# Both headers define the status and the error; without comments they are the same text.
shared() { # file
    sed 's|/\*.*\*/||' "$1" | awk '/^enum pnet_status \{|^struct pnet_error \{/ { on = 1 } on { gsub(/[ \t]+/, " "); print } /^\};/ { on = 0 }'
}
shared include/pnet/base.h >"$work/outside"
shared runtime/base/error.h >"$work/inside"
[ "$(wc -l <"$work/outside")" -gt 10 ] || { echo 'status and error are not found: is the extraction broken?'; status=1; }
diff "$work/outside" "$work/inside" || { echo 'include/pnet/base.h and runtime/base/error.h differ'; status=1; }
exit $status
