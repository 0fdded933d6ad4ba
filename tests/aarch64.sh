#!/bin/sh
# Builds pnet for AArch64 with a cross compiler and runs tests under qemu-user: sh tests/aarch64.sh [options of ctest]. The libraries of
# Debian's arm64 are unpacked in build/aarch64-root; nothing of this system changes but the packages that are installed by name.
# sh tests/aarch64.sh quick compiles pnetc and the library, with all warnings, and runs nothing.
set -eu
cd "$(dirname "$0")/.."
sh setup.sh --packages ccache gcc-aarch64-linux-gnu libc6-dev-arm64-cross
root=$PWD/build/aarch64-root
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
# fetches what programs are linked with; apt keeps a state of its own for it
fetch() {
    rm -rf "$root"
    mkdir -p "$root/apt/lists/partial" "$root/cache/archives/partial" "$root/packages"
    : >"$root/status"
    cat >"$root/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Sandbox::User "root";
Dir::State "$root/apt";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
END
    (
        cd "$root/packages"
        export APT_CONFIG="$root/apt.conf"
        apt-get update -q
        apt-get download -q libyaml-dev libyaml-0-2 libjansson-dev libjansson4 zlib1g-dev zlib1g
    ) >"$root/log" 2>&1 || { tail -n 5 "$root/log"; exit 1; }
    for package in "$root"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done
    # /lib is a part of /usr in the system, not in packages
    cp -a "$root/lib/." "$root/usr/lib/"
    for library in "$root"/usr/lib/aarch64-linux-gnu/*.so; do
        case $(readlink "$library") in /*) ln -sf "$(basename "$(readlink "$library")")" "$library" ;; esac
    done
    (cd "$root" && rm -rf lib apt cache packages)
    : >"$root/whole"
}
quick=
emulator=
tests=ON
if [ "${1:-}" = quick ]; then
    quick=yes
    tests=OFF
else
    sh setup.sh --packages qemu-user-static
    emulator="$(command -v qemu-aarch64-static);-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu"
fi
[ -e "$root/whole" ] || fetch
export PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
build=$PWD/build/aarch64${quick:+-quick}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPNET_CUDA=OFF -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
    -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator" -DPNET_TESTS=$tests >/dev/null
# shellcheck disable=SC2086
cmake --build "$build" ${quick:+--target pnetc pnet}
for file in pnetc libpnet.so; do
    readelf -h "$build/$file" | grep -q 'Machine: *AArch64' || { echo "$file is for another processor" >&2; exit 1; }
done
[ -z "$quick" ] || exit 0
# Left out: what compiles, looks into objects, or is no matter of the processor; real clouds, a GPU; and what takes minutes under an
# emulator.
host='bench.*|autocast|attention_py|man|shell_completion|memory_faults|add_.*|examples|exports|header|install|globals|includes|lengths|symbols'
pages='.*_page|commands|demo|performance|readme|registration|table|where|python|wheel'
long='emd|sinkhorn|folding'
cd "$build"
ctest --output-on-failure --no-tests=error -j2 --label-exclude 'gpu|data|slow' -E "^test_($host|$pages|$long)$" "$@"
