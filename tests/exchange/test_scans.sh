# python -m pnet.convert on E57, where a Python has pye57 (PNET_READERS_PYTHON names it, else python3). Where none has, what it says
# is tested, and the rest is skipped. PTX needs no package: test_python has it.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-scans-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package
PNETC=$(realpath "$PNETC")
export PNETC
status=0
printf 'ASTM-E57' >"$work/a.e57"
"$python" -c '
import sys
sys.modules["pye57"] = None  # as where there is none
from pnet import convert
sys.exit(convert.main(sys.argv[1:]))' "$work/a.e57" -o "$work/a.ply" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q 'E57 needs pye57' "$work/err" && [ ! -s "$work/out" ] || { cat "$work/err"; status=1; }
[ $status = 0 ] || exit 1
reader=${PNET_READERS_PYTHON:-python3}
if ! "$reader" -c 'import pye57, numpy' 2>/dev/null; then
    [ -z "${PNET_READERS_PYTHON-}" ] || { echo "$reader has no pye57: sh tests/venv.sh readers makes one that has"; exit 1; }
    echo 'skipped: no Python with pye57; PNET_READERS_PYTHON may name one'
    exit 77
fi
"$reader" python/tests/e57_scans.py >"$work/log" 2>&1 || status=1
cat "$work/log"
grep -q '^Ran 4 tests' "$work/log" || { echo 'few tests ran'; status=1; }
exit $status
