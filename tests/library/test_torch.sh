# The tests of pnet.torch, with the Python that PNET_TORCH_PYTHON names, or another one that has PyTorch 2.4 or later.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package torch
"$python" -c 'import torch; print("PyTorch", torch.__version__)'
PNETC=$(realpath "$PNETC")
export PNETC TORCHINDUCTOR_CACHE_DIR="$work/inductor"
cd python/tests/pytorch || exit 1
"$python" -m unittest >"$work/log" 2>&1
status=$?
cat "$work/log"
grep -q '^Ran [0-9][0-9]' "$work/log" || { echo 'few tests ran'; status=1; }
grep -q 'skipped' "$work/log" && { echo 'a test was skipped'; status=1; }
exit $status
