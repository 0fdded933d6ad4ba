# The tests of the Python package, with the library of this build, laid as a wheel has it.
set -u
build=$(dirname "$(realpath "${PNETC:?names the program}")")
[ -e "$build/libpnet.so" ] || { echo 'a static build has no shared library'; exit 77; }
if nm -D "$build/libpnet.so" | grep -q '__asan_\|__tsan_'; then
    echo 'under a sanitizer programs around the library need its flags'
    exit 77
fi
python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && { python=$one; break; }
done
[ "$python" ] || { echo 'there is no Python 3.9 or later with NumPy'; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-python-XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component python --prefix "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cp python/pnet/*.py "$work/pnet"
export PNETC PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2
cd python/tests || exit 1
"$python" -W error -m unittest >"$work/log" 2>&1
status=$?
cat "$work/log"
grep -q '^Ran [0-9][0-9]' "$work/log" || { echo 'few tests ran'; status=1; }
grep -q 'skipped' "$work/log" && { echo 'a test was skipped'; status=1; }
exit $status
