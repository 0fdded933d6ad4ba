# For scripts that test in a bare system: root_make FOLDER makes one (Debian's minimal one of this system's release, and git, as who
# clones the project has), root_run FOLDER COMMAND.. runs a command in it, root_quietly the same, printing the output only if the
# command fails. Needs root and debootstrap. What debootstrap makes is kept as an archive in the folder pnet of the user's cache, and
# made again after thirty days.
root_make() (
    set -eu
    root=$1
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/pnet
    archive=$cache/root-$suite.tar
    mkdir -p "$cache"
    exec 9>"$archive.lock" # another run may be making it
    flock 9
    if [ -z "$(find "$archive" -mtime -30 2>/dev/null)" ]; then
        mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
            awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }')
        [ "$mirror" ] || { echo "apt has no mirror of $suite" >&2; exit 1; }
        new=$(mktemp -d "$cache/root-XXXXXX")
        trap 'rm -rf --one-file-system "$new"' EXIT
        debootstrap --variant=minbase --include=git "$suite" "$new/root" "$mirror" >"$new/log" 2>&1 ||
            { tail -n 20 "$new/log" >&2; echo 'debootstrap failed' >&2; exit 1; }
        tar -C "$new/root" -cf "$new/archive" .
        mv "$new/archive" "$archive"
    fi
    mkdir "$root"
    tar -C "$root" -xpf "$archive"
    # how apt reaches its mirrors here, where that is told
    apt-config dump | grep -E '^Acquire::(http|https|ftp)' >"$root/etc/apt/apt.conf.d/99host" || true
)

# /proc is the command's own and ends with it.
root_run() {
    at=$1
    shift
    unshare --mount --pid --fork --mount-proc="$at/proc" chroot "$at" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

root_quietly() {
    root_run "$@" >"$1.log" 2>&1 || { tail -n 20 "$1.log" >&2; return 1; }
}
