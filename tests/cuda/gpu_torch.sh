# pnet.torch on a GPU: python/tests/pytorch/gpu, which has the pages docs/pytorch.md and docs/python.md too, and the scripts of
# bench/ that time it, in a short form. No test may be skipped. Takes the Python that PNET_TORCH_PYTHON names, or another one that
# has PyTorch 2.4 or later, which must find the GPU. On a machine that has a GPU and PyTorch, but nothing that the build needs, in
# the working tree, with a folder that `cmake --install BUILD --component python --prefix FOLDER` filled on another machine:
#   PNET_PYTHON_PACKAGE=FOLDER bash tests/cuda/gpu_torch.sh
# LD_LIBRARY_PATH names the folder of libraries that libpnet.so needs (libyaml, Jansson), where the machine lacks them.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-gpu-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package torch
"$python" -c 'import sys, torch; sys.exit(0 if torch.cuda.is_available() else 77)' ||
    { echo 'skipped: PyTorch finds no GPU'; exit 77; }
"$python" -c 'import pnet, torch; print("PyTorch", torch.__version__, "on", torch.cuda.get_device_name(0))' || exit 1
export TORCHINDUCTOR_CACHE_DIR="$work/inductor"
status=0
"$python" bench/torch_calls.py --device cuda --layers 4 --repeat 5 || status=1
for net in minkunet18a spunet; do
    "$python" bench/spconv.py --device cuda --net $net --voxels 20000 --narrow 2 --repeat 3 || status=1
done
cd python/tests/pytorch/gpu || exit 1
"$python" -m unittest >"$work/log" 2>&1 || status=1
cat "$work/log"
grep -q '^Ran [0-9][0-9]' "$work/log" || { echo 'few tests ran'; status=1; }
grep -q 'skipped' "$work/log" && { echo 'a test was skipped'; status=1; }
exit $status
