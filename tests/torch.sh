# Usage: sh tests/torch.sh [VERSION]
# Runs the tests of pnet.torch and of pnet.convert, and the page docs/pytorch.md, with a PyTorch from PyPI: of this VERSION, such as
# 2.4.1, or the newest.
# Makes a virtual environment with it once, in the folder pnet/torch-VERSION of the user's cache; PNET_TORCH_INDEX is another index of
# packages, for example one of builds for the CPU alone, which are smaller. Takes the library of build/quick, or of the folder that
# PNET_BUILD names.
set -eu
cd "$(dirname "$0")/.."
version=${1:-newest}
build=${PNET_BUILD:-build/quick}
[ -e "$build/libpnet.so" ] || { echo "there is no $build/libpnet.so: sh tests/quick.sh builds one" >&2; exit 2; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pnet
venv=$cache/torch-$version
if [ ! -e "$venv/made" ]; then
    case $version in newest) wanted=torch ;; *) wanted=torch==$version ;; esac
    rm -rf "$venv"
    mkdir -p "$cache"
    python3 -m venv "$venv"
    echo "installing $wanted into $venv" >&2
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${PNET_TORCH_INDEX:+--index-url "$PNET_TORCH_INDEX"} "$wanted" numpy
    touch "$venv/made"
fi
PNET_TORCH_PYTHON=$venv/bin/python
PNETC=$build/pnetc
export PNET_TORCH_PYTHON PNETC
for test in tests/library/test_torch.sh tests/library/test_torch_page.sh tests/exchange/test_convert.sh; do
    status=0
    bash "$test" || status=$?
    [ "$status" = 0 ] || { echo "$test: exit code $status" >&2; exit "$status"; }
done
