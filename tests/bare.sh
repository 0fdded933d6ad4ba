#!/bin/sh
# Runs a command in a bare Debian system that holds a clone of HEAD and nothing else that the project needs: what a machine with
# everything installed hides is missing there. Needs root; the system lies in TMPDIR (3 GB) and is removed afterwards.
# sh tests/bare.sh [COMMAND ..]    without a command: sh tests/run.sh
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo 'bare.sh: debootstrap needs root' >&2; exit 1; }
sh setup.sh --packages debootstrap git
. tests/packages/system.sh
[ $# != 0 ] || set -- sh tests/run.sh
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM
root_make "$work/root"
git -c safe.directory='*' clone -q --no-hardlinks . "$work/root/pnet"
[ -z "$(git status --porcelain)" ] || echo 'bare.sh: changes that are not committed are not in the clone' >&2
# shellcheck disable=SC2016
root_run "$work/root" sh -c 'cd /pnet && exec "$@"' sh "$@"
