#!/bin/sh
# Installs what the build needs (Debian and Ubuntu, as root or through sudo) and builds build/release. Nothing is
# installed where everything is there already. sh setup.sh --packages NAME ... installs these too, and builds nothing.
set -eu
cd "$(dirname "$0")"
packages="gcc libc6-dev cmake ninja-build flex bison pkgconf libyaml-dev libjansson-dev zlib1g-dev"
build=yes
if [ "${1:-}" = --packages ]; then
    shift
    packages="$packages $*"
    build=
fi
missing=
for p in $packages; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
if [ -n "$missing" ]; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    if ! command -v apt-get >/dev/null; then
        echo "setup.sh: these are needed, by their Debian names:$missing" >&2
        exit 1
    fi
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    $as_root apt-get update -q >/dev/null
    # shellcheck disable=SC2086
    $as_root apt-get install -q -y --no-install-recommends $missing >/dev/null
fi
[ "$build" ] || exit 0
cmake --preset release -G Ninja >/dev/null
cmake --build --preset release
