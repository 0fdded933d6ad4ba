# python -m pnet.convert. Where a Python has PyTorch (PNET_TORCH_PYTHON names it, else python3), with PyTorch too; where none has,
# what it says is tested, and the rest is skipped.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-convert-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package
PNETC=$(realpath "$PNETC")
export PNETC
status=0
"$python" -c '
import sys
sys.modules["torch"] = None  # as where there is none
from pnet import convert
sys.exit(convert.main(["a.pth", "-o", "b.safetensors"]))' >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q 'needs PyTorch' "$work/err" && [ ! -s "$work/out" ] || { echo 'without PyTorch:'; cat "$work/err"; status=1; }
"$python" -m pnet.convert --help | grep -q -- 'FILE.safetensors; of scans OUT.ply' || { echo 'no help'; status=1; }
[ $status = 0 ] || exit 1
torch=
for one in "${PNET_TORCH_PYTHON:-python3}" "$python"; do
    "$one" -c 'import torch, numpy' 2>/dev/null && { torch=$one; break; }
done
[ "$torch" ] || { echo 'skipped: no Python with PyTorch; PNET_TORCH_PYTHON may name one'; exit 77; }
"$torch" -W error::DeprecationWarning python/tests/pytorch_convert.py >"$work/log" 2>&1 || status=1
cat "$work/log"
grep -q '^Ran [89] tests' "$work/log" || { echo 'few tests ran'; status=1; }
exit $status
