# The tests of the Python package.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-python-XXXXXX")
trap 'rm -rf "$work"' EXIT
python_package
PNETC=$(realpath "$PNETC")
export PNETC
cd python/tests || exit 1
"$python" -W error -m unittest >"$work/log" 2>&1
status=$?
cat "$work/log"
grep -q '^Ran [0-9][0-9]' "$work/log" || { echo 'few tests ran'; status=1; }
grep -q 'skipped' "$work/log" && { echo 'a test was skipped'; status=1; }
exit $status
