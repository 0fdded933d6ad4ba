# Usage: sh tests/venv.sh wheel | cuobjdump | readers | torch [VERSION]
# Prints the path of a Python that has what tests need from PyPI. PNET_WHEEL_PYTHON gives it to test_wheel, PNET_READERS_PYTHON to
# test_readers and test_h5py, PNET_TORCH_PYTHON to the tests with PyTorch. PyTorch is of this VERSION, such as 2.4.1, or the newest;
# PNET_TORCH_INDEX is another index of packages for it, for example one of builds for the CPU alone, which are smaller.
# Makes a virtual environment once, in the folder pnet/wheel, pnet/cuobjdump, pnet/readers or pnet/torch-VERSION of the user's cache.
set -eu
cd "$(dirname "$0")/.."
index=
case ${1:-} in
wheel)
    name=wheel
    packages='numpy pip>=22.1 scikit-build-core>=0.10'
    ;;
cuobjdump)
    name=cuobjdump
    packages=nvidia-cuda-cuobjdump
    ;;
readers)
    name=readers
    packages='numpy laspy lazrs plyfile h5py'
    ;;
torch)
    name=torch-${2:-newest}
    packages="numpy torch${2:+==$2}"
    index=${PNET_TORCH_INDEX:-}
    ;;
*)
    sed -n '1s/^# //p' "$0" >&2
    exit 2
    ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pnet
venv=$cache/$name
mkdir -p "$cache"
exec 9>"$cache/$name.lock" # another run may be making it
flock 9
# the Python that made it may be gone, and the packages may have been others
if [ "$(cat "$venv/made" 2>/dev/null)" != "$packages" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
    # Debian has them in a package of their own
    python3 -c 'import ensurepip, venv' 2>/dev/null || sh setup.sh --packages python3-venv >&2 9>&-
    rm -rf "$venv"
    python3 -m venv "$venv" >&2
    echo "installing $packages into $venv" >&2
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${index:+--index-url "$index"} $packages >&2
    echo "$packages" >"$venv/made"
fi
echo "$venv/bin/python"
