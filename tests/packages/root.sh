#!/bin/sh
# Installs the packages in a system of its own, uses and removes them: sh root.sh FOLDER PACKAGES. FOLDER becomes the system, of this
# system's release and from its mirror; PACKAGES is the folder of the packages.
set -eu
root=$1
packages=$2
here=$(dirname "$0")
fail() { echo "root.sh: $*" >&2; exit 1; }
. "$here/system.sh"
root_make "$root"
inside() { root_run "$root" "$@"; }
# what the test itself needs, and what the packages depend on, comes first
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
cp "$here/use.sh" "$root/packages"
root_quietly "$root" apt-get update -q || fail 'apt-get update'
# shellcheck disable=SC2046
inside apt-get install -q -y --no-install-recommends gcc cmake make pkgconf man-db bash-completion zsh fish \
    $(for deb in "$packages"/*.deb; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' | sed 's/(.*//' | grep -v libpnet | sort -u) \
    >"$root.log" 2>&1 || { tail -n 20 "$root.log"; fail 'apt-get install of what the test needs'; }
# Files, without what dpkg, apt and man keep for themselves.
files() {
    (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./tmp \
        -o -path ./packages \) -prune -o -print | sort)
}
files >"$root.before"
# installed in one go
# shellcheck disable=SC2046
inside apt-get install -q -y --no-install-recommends $(cd "$packages" && for deb in *.deb; do echo "/packages/$deb"; done) \
    >"$root.log" 2>&1 || { tail -n 20 "$root.log"; fail 'apt-get install of the packages'; }
grep -q "$(set -- "$packages"/*.deb && echo " $# newly installed")" "$root.log" || fail "something else was installed: $(grep newly "$root.log")"
inside dpkg --verify | grep . && fail 'dpkg --verify'
files >"$root.with"
[ "$(comm -13 "$root.before" "$root.with" | wc -l)" -gt 50 ] || fail 'few files were installed'
inside bash /packages/use.sh
inside sh -c 'python3 -c "import pnet; print(pnet.__version__)"'
# libpnet-dev and python3-pnet go with the library that they belong to
inside dpkg --remove "$(dpkg-deb -f "$packages"/libpnet[0-9]*.deb Package)" 2>/dev/null && fail 'the library can be removed alone'
# shellcheck disable=SC2046
inside apt-get purge -q -y $(for deb in "$packages"/*.deb; do dpkg-deb -f "$deb" Package; done) >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log"; fail 'apt-get purge'; }
files | diff "$root.before" - || fail 'these differ after the packages were removed'
inside ldconfig -p | grep libpnet && fail 'the cache of the linker still names the library'
echo 'installed, used, removed: nothing is left'
