# For tests of the Python package: sets $python, a Python with NumPy; for `python_package torch` one that has PyTorch too, for
# `python_package wheel` one that has pip and scikit-build-core too. Skips the test if one of them is not there. If PNET_TORCH_PYTHON
# or PNET_WHEEL_PYTHON is set, the Python that it names is taken, and the test fails if that one lacks something.
# Lays the package into the folder $work as a wheel has it: the Python of the working tree, with the library of this build; or, if
# PNET_PYTHON_PACKAGE names a folder, with the one that is there because `cmake --install BUILD --component python --prefix FOLDER`
# filled it, on another machine perhaps.
python_package() { # [torch | wheel]
    if [ "${PNET_PYTHON_PACKAGE-}" ]; then
        library=$(realpath "$PNET_PYTHON_PACKAGE/pnet/libpnet.so") && [ -e "$library" ] ||
            { echo "there is no $PNET_PYTHON_PACKAGE/pnet/libpnet.so"; exit 1; }
    else
        : "${PNETC:?names the program}"
        build=$(dirname "$(realpath "$PNETC")")
        library=$build/libpnet.so
        [ -e "$library" ] || { echo 'a static build has no shared library'; exit 77; }
    fi
    if grep -q '__asan_\|__tsan_' "$library"; then
        echo 'under a sanitizer programs around the library need its flags'
        exit 77
    fi
    needs='sys.version_info >= (3, 9)'
    what='Python 3.9 or later with NumPy'
    where='python3 /usr/bin/python3'
    named=
    case ${1-} in
    torch)
        named=${PNET_TORCH_PYTHON-}
        needs="$needs and tuple(map(int, __import__('torch').__version__.split('.')[:2])) >= (2, 4)"
        what='Python 3.9 or later with NumPy and PyTorch 2.4 or later: sh tests/venv.sh torch makes one'
        ;;
    wheel)
        named=${PNET_WHEEL_PYTHON-}
        needs="$needs and tuple(map(int, __import__('pip').__version__.split('.')[:2])) >= (22, 1)"
        needs="$needs and tuple(map(int, __import__('scikit_build_core').__version__.split('.')[:2])) >= (0, 10)"
        what='Python 3.9 or later with NumPy, pip 22.1 and scikit-build-core 0.10 or later: sh tests/venv.sh wheel makes one'
        ;;
    esac
    python=
    for one in ${named:-$where}; do
        "$one" -c "import sys, numpy; sys.exit(not ($needs))" 2>/dev/null && { python=$one; break; }
    done
    [ "$python" ] || [ -z "$named" ] || { echo "$named is no $what"; exit 1; }
    [ "$python" ] || { echo "there is no $what"; exit 77; }
    if [ "${PNET_PYTHON_PACKAGE-}" ]; then
        mkdir "$work/pnet" && ln -s "$library" "$work/pnet/libpnet.so" || exit 1
    else
        cmake --install "$build" --component python --prefix "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    fi
    (cd "${root:-.}/python" && find pnet -name '*.py' | tar cf - -T -) | tar xf - -C "$work" || exit 1
    export PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2
}
