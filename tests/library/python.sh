# For tests of the Python package: sets $python, a Python with NumPy; for `python_package torch` one that has PyTorch too, and if
# PNET_TORCH_PYTHON is set the one that it names. Lays the package into the folder $work as a wheel has it, with the library of this build.
# Ends the test where one of them is not there.
python_package() { # [torch]
    build=$(dirname "$(realpath "${PNETC:?names the program}")")
    [ -e "$build/libpnet.so" ] || { echo 'a static build has no shared library'; exit 77; }
    if nm -D "$build/libpnet.so" | grep -q '__asan_\|__tsan_'; then
        echo 'under a sanitizer programs around the library need its flags'
        exit 77
    fi
    needs='sys.version_info >= (3, 9)'
    what='Python 3.9 or later with NumPy'
    where='python3 /usr/bin/python3'
    if [ "${1-}" = torch ]; then
        needs="$needs and tuple(map(int, __import__('torch').__version__.split('.')[:2])) >= (2, 4)"
        what='Python 3.9 or later with NumPy and PyTorch 2.4 or later: sh tests/torch.sh gets one'
        where=${PNET_TORCH_PYTHON:-$where}
    fi
    python=
    for one in $where; do
        "$one" -c "import sys, numpy; sys.exit(not ($needs))" 2>/dev/null && { python=$one; break; }
    done
    [ "$python" ] || { echo "there is no $what"; exit 77; }
    cmake --install "$build" --component python --prefix "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    (cd "${root:-.}/python" && find pnet -name '*.py' | tar cf - -T -) | tar xf - -C "$work" || exit 1
    export PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2
}
