# `pip wheel ./python` makes one wheel for all versions of Python, of the project's version, that carries the library; installed,
# it compiles a model. The build is one of its own, in TMPDIR: if that is inside the clone, as in ctest, ccache finds the objects
# of earlier runs. Takes the Python that PNET_WHEEL_PYTHON names, or another one that has pip and scikit-build-core.
set -u
. tests/library/python.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
python_package wheel
unset PYTHONPATH
CMAKE_BUILD_PARALLEL_LEVEL=2 "$python" -m pip wheel -q --no-deps --no-build-isolation \
    --config-settings cmake.define.PNET_CUDA=OFF -w "$work/wheels" ./python >"$work/log" 2>&1 ||
    { tail -n 30 "$work/log"; fail 'pip wheel'; }
version=$("$PNETC" --version | sed -n 's/^pnetc //p')
case $(ls "$work/wheels") in
pnet-"$version"-py3-none-linux_*.whl) ;;
*) fail "the wheel is called $(ls "$work/wheels")" ;;
esac
"$python" -m pip install -q --no-deps --no-index --target "$work/installed" "$work/wheels"/*.whl || fail 'pip install'
files() { (cd "$1" && find . -name '*.py' -o -name py.typed -o -name '*.so' | sort); }
[ "$(files "$work/installed/pnet")" = "$( (files python/pnet; echo ./libpnet.so) | sort)" ] ||
    fail "the wheel has $(files "$work/installed/pnet")"
PYTHONPATH=$work/installed "$python" -c 'import pnet; print(len(pnet.Model("examples/scene.pnet").weights), pnet.__file__)' |
    grep -q "^[1-9][0-9]* $work/installed/pnet" || fail 'the installed package does not work'
echo "pnet $version"
