# For tests of the Python package: sets $python, a Python with NumPy, and lays the package into the folder $work as a wheel has it,
# with the library of this build. Ends the test where one of them is not there.
python_package() {
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
    cmake --install "$build" --component python --prefix "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    cp "${root:-.}"/python/pnet/*.py "$work/pnet"
    export PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2
}
