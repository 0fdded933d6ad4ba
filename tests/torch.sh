# Usage: sh tests/torch.sh [VERSION]
# Runs the tests of pnet.torch and of pnet.convert, and the page docs/pytorch.md, with a PyTorch of this VERSION, such as 2.4.1,
# or the newest, which tests/venv.sh gets from PyPI. Takes the library of build/quick, or of the folder that PNET_BUILD names.
set -eu
cd "$(dirname "$0")/.."
build=${PNET_BUILD:-build/quick}
[ -e "$build/libpnet.so" ] || { echo "there is no $build/libpnet.so: sh tests/quick.sh builds one" >&2; exit 2; }
PNET_TORCH_PYTHON=$(sh tests/venv.sh torch "$@")
PNETC=$build/pnetc
export PNET_TORCH_PYTHON PNETC
for test in tests/library/test_torch.sh tests/library/test_torch_page.sh tests/exchange/test_convert.sh; do
    status=0
    bash "$test" || status=$?
    [ "$status" = 0 ] || { echo "$test: exit code $status" >&2; exit "$status"; }
done
