# pnet.torch on a GPU (python/tests/pytorch/gpu), with the Python that PNET_TORCH_PYTHON names, or another one that has PyTorch 2.4 or
# later, which must find the GPU. By hand, without a build folder of its own:
#   cd python/tests/pytorch/gpu && PYTHONPATH=REPOSITORY/python LD_LIBRARY_PATH=FOLDER_OF_libpnet.so.0 python3 -m unittest
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-gpu-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package torch
"$python" -c 'import sys, torch; sys.exit(0 if torch.cuda.is_available() else 77)' || { echo 'skipped: PyTorch finds no GPU'; exit 77; }
export TORCHINDUCTOR_CACHE_DIR="$work/inductor"
"$python" bench/torch_calls.py --device cuda --layers 4 --repeat 5 || exit 1
for net in minkunet18a spunet; do
    "$python" bench/spconv.py --device cuda --net $net --voxels 20000 --narrow 2 --repeat 3 || exit 1
done
cd python/tests/pytorch/gpu || exit 1
"$python" -m unittest >"$work/log" 2>&1
status=$?
cat "$work/log"
grep -q 'skipped' "$work/log" && { echo 'a test was skipped'; status=1; }
exit $status
