#!/bin/sh
# Builds the Debian packages and tests them. sh tests/packages.sh quick: what they hold and depend on, and their use from a folder that
# they are unpacked in. sh tests/packages.sh also builds them once more, elsewhere and on another day, which must give the same bytes,
# and installs them in a system of its own (debootstrap, as root, in TMPDIR), uses them there and removes them.
set -eu
cd "$(dirname "$0")/.."
sh setup.sh --packages ccache dpkg-dev file man-db mandoc zsh fish python3-numpy
mode=${1:-all}
[ $mode = quick ] || sh setup.sh --packages debootstrap faketime lintian
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
umask 022
fail() { echo "packages.sh: $*" >&2; exit 1; }
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
export SOURCE_DATE_EPOCH=1700000000 DEBFULLNAME='the pnet authors' DEBEMAIL=pnet@example.org

# build FOLDER: the packages of the sources in it.
build() (
    cd "$1"
    { cmake --preset package -G Ninja && cmake --build --preset package && cd build/package && rm -f ./*.deb && cpack; } >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; exit 1; }
)
build . || fail 'the packages cannot be built'
packages=$PWD/build/package
version=$(build/package/pnetc --version | sed -n 's/^pnetc //p')-1
architecture=$(dpkg --print-architecture)
soname=$(readelf -d build/package/libpnet.so | sed -nE 's/.*SONAME.*\[libpnet\.so\.([0-9]+)\]/\1/p')
library=libpnet${soname}_${version}_$architecture.deb
program=pnet_${version}_$architecture.deb
development=libpnet-dev_${version}_$architecture.deb
python=python3-pnet_${version}_all.deb
[ "$(cd "$packages" && echo ./*.deb)" = "./$development ./$library ./$program ./$python" ] || fail "other packages: $(ls "$packages"/*.deb)"

# what they depend on: found by dpkg-shlibdeps, or said in cmake/package.cmake
depends() { # PACKAGE WORD ..
    package=$1
    shift
    given=$(dpkg-deb -f "$packages/$package" Depends)
    for one; do
        case ", $given," in *", $one,"* | *", $one ("*) ;; *) fail "$package does not depend on $one: $given" ;; esac
    done
}
depends "$program" libc6 libgomp1 libjansson4 libyaml-0-2 zlib1g
depends "$library" libc6 libgomp1 libjansson4 libyaml-0-2 zlib1g
depends "$development" "libpnet$soname (= $version)" libjansson-dev libyaml-dev zlib1g-dev
depends "$python" "libpnet$soname (= $version)" python3 python3-numpy
dpkg-deb -f "$packages/$program" Depends | grep -q libpnet && fail 'pnet does not need libpnet'
# a program that is linked with the library depends on this version of it
dpkg-deb -I "$packages/$library" shlibs | grep -qx "libpnet $soname libpnet$soname (= $version)" || fail 'the shlibs of the library'

# what they hold: no file twice, all below /usr, owned by root, with a licence, none with the folder of the build in it
for deb in "$packages"/*.deb; do
    dpkg-deb -c "$deb" >"$work/contents"
    awk '$2 != "root/root" || $6 !~ /^\.\/usr\//' "$work/contents" | grep . && fail "$deb holds these"
    awk '/^-/ && $1 !~ /^-rw-r--r--$/ && $6 !~ /^\.\/usr\/bin\// || /^d/ && $1 != "drwxr-xr-x"' "$work/contents" | grep . &&
        fail "$deb has other permissions"
    name=$(dpkg-deb -f "$deb" Package)
    grep -q " ./usr/share/doc/$name/copyright$" "$work/contents" || fail "$name has no copyright"
    awk '!/^d/ { print $6 }' "$work/contents" >>"$work/files"
    dpkg-deb -x "$deb" "$work/unpacked"
    mkdir -p "$work/control/$name"
    dpkg-deb -e "$deb" "$work/control/$name"
    (cd "$work/unpacked" && md5sum --quiet -c "$work/control/$name/md5sums") || fail "$name: md5sums"
done
sort "$work/files" | uniq -d | grep . && fail 'these are in two packages'
grep -rlF -- "$PWD" "$work/unpacked" && fail 'these name the folder of the build'
# the licences in full: every line of the project's own, and what the parser's skeleton asks for
licence() { tr -s ' \n.' ' ' <"$1"; }
case $(licence "$work/unpacked/usr/share/doc/pnet/copyright") in
*"$(sed 1,4d LICENSE >"$work/own" && licence "$work/own" | sed 's/^ *//; s/ *$//')"*'As a special exception, you may create a larger work'*) ;;
*) fail 'the licences are not whole' ;;
esac
# every command has a page, and the completions know it
for command in $(build/package/pnetc --help | sed -nE '/^exit codes/q; s/^  ([a-z]+)  +.*/\1/p'); do
    [ -e "$work/unpacked/usr/share/man/man1/pnetc-$command.1.gz" ] || fail "no page of pnetc $command"
    for file in bash-completion/completions/pnetc zsh/vendor-completions/_pnetc fish/vendor_completions.d/pnetc.fish; do
        grep -qw -- "$command" "$work/unpacked/usr/share/$file" || fail "$file does not know pnetc $command"
    done
done
if command -v lintian >/dev/null; then
    as_root=
    [ "$(id -u)" != 0 ] || as_root=--allow-root
    lintian $as_root --fail-on error "$packages"/*.deb || fail 'lintian'
else
    echo 'lintian is not there: not run'
fi
bash tests/packages/use.sh "$work/unpacked"
[ $mode != quick ] || exit 0

# the same bytes from another folder, another day, another time zone, without the cache
mkdir -p "$work/another/folder"
{ git ls-files -z 2>/dev/null || find . -path ./build -prune -o -type f -print0; } | xargs -0 cp --parents -t "$work/another/folder"
(
    export CCACHE_DISABLE=1 TZ=Asia/Tokyo
    unset CCACHE_BASEDIR CCACHE_NOHASHDIR
    cd "$work/another/folder"
    faketime '+400 days' sh -c 'cmake --preset package -G Ninja && cmake --build --preset package && cd build/package && cpack' \
        >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; exit 1; }
) || fail 'the packages cannot be built elsewhere'
for file in pnetc libpnet.so libpnet.a "$library" "$program" "$development" "$python"; do
    cmp "$packages/$file" "$work/another/folder/build/package/$file" || fail "$file is not the same"
done
echo 'the packages are the same bytes'
rm -rf "$work/another"

[ "$(id -u)" = 0 ] || fail 'debootstrap needs root'
sh tests/packages/root.sh "$work/root" "$packages"
