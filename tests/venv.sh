# Usage: sh tests/venv.sh wheel | cuobjdump | readers | laszip | torch [VERSION]
# Prints the path of a Python that has what tests need from PyPI. PNET_WHEEL_PYTHON gives it to test_wheel, PNET_READERS_PYTHON to
# test_readers, test_h5py and test_scans, PNET_TORCH_PYTHON to the tests with PyTorch. PyTorch is of this VERSION, such as 2.4.1, or
# the newest; PNET_TORCH_INDEX is another index of packages for it, for example one of builds for the CPU alone, which are smaller.
# Of `laszip` it prints the path of a liblaszip, LASzip 3.5.1, which it compiles from a package that has the sources:
# PNET_LASZIP_LIBRARY gives it to test_readers.
# Makes a virtual environment once, in the folder pnet/wheel, pnet/cuobjdump, pnet/readers, pnet/laszip or pnet/torch-VERSION of the
# user's cache.
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
    packages='numpy laspy lazrs plyfile pypcd4 h5py pye57'
    ;;
laszip)
    name=laszip
    packages=laszip==0.3.0
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
# The C interface as a library of its own. The Python module, which has it too, is none that another program can open.
make_laszip() { # FOLDER PYTHON
    command -v c++ >/dev/null || sh setup.sh --packages g++ >&2 9>&-
    "$2" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d "$1/source" "$packages" >&2
    tar -xzf "$1"/source/laszip-*.tar.gz -C "$1/source"
    (
        cd "$1"/source/laszip-*/src/vendor/LASzip-*
        rm src/laszipper.cpp src/lasunzipper.cpp # of an older interface
        c++ -std=c++17 -O2 -fPIC -shared -w -DUNORDERED -DHAVE_UNORDERED_MAP=1 -DLASZIPDLL_EXPORTS -Iinclude -Iinclude/laszip \
            src/*.cpp -o "$1/liblaszip.so" >&2
    )
    rm -rf "$1/source"
}
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
    if [ "$name" = laszip ]; then
        make_laszip "$venv" "$venv/bin/python"
    else
        # shellcheck disable=SC2086
        "$venv/bin/python" -m pip install -q --disable-pip-version-check ${index:+--index-url "$index"} $packages >&2
    fi
    echo "$packages" >"$venv/made"
fi
if [ "$name" = laszip ]; then echo "$venv/liblaszip.so"; else echo "$venv/bin/python"; fi
