# Uses what the packages install, as somebody does who has nothing else of pnet: bash use.sh [UNPACKED]. UNPACKED is a folder with the
# packages' files; without it they are installed in this system.
set -eu
at=${1:-}
export LC_ALL=C.UTF-8 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
fail() { echo "use.sh: $*" >&2; exit 1; }
libraries=$at/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
models=$at/usr/share/pnet/models
examples=$at/usr/share/doc/libpnet-dev/examples
if [ "$at" ]; then
    export PATH=$at/usr/bin:$PATH PKG_CONFIG_PATH=$libraries/pkgconfig PYTHONPATH=$at/usr/lib/python3/dist-packages
    export LD_LIBRARY_PATH=$libraries MANPATH=$at/usr/share/man CMAKE_PREFIX_PATH=$at/usr PYTHONDONTWRITEBYTECODE=1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
[ "$(command -v pnetc)" = "$at/usr/bin/pnetc" ] || fail "pnetc is $(command -v pnetc)"

# the program: check, plan, train, infer
for model in "$models"/*.pnet; do pnetc check "$model" || fail "check $model"; done
pnetc data synth rooms -o rooms --count 10 --points 400 -q
printf 'data: rooms\nsteps: 2\nbatch_size: 1\nworkers: 0\ninputs: {cloud: {height: z}}\n' >run.yaml
pnetc train "$models/rooms.pnet" --config run.yaml -o run -q
cloud=$(ls rooms/test/*.ply)
pnetc infer "$models/rooms.pnet" --weights run --input "$cloud" -o labelled.ply -q
[ "$(grep -a -m 1 '^element vertex' labelled.ply)" = "$(grep -a -m 1 '^element vertex' "$cloud")" ] || fail 'infer labels other points'

# the library: the examples by pkg-config, shared and static, and the same bits as the program
flags=$(pkg-config --cflags --libs pnet)
# shellcheck disable=SC2086
gcc "$examples/train.c" -o train $flags -lm
# shellcheck disable=SC2086
gcc "$examples/own_loss.c" -o own_loss $flags -lm
# shellcheck disable=SC2086
gcc "$examples/segment.c" -o segment $flags
# shellcheck disable=SC2046
gcc "$examples/segment.c" -o segment-static $(pkg-config --cflags pnet) "$libraries/libpnet.a" $(pkg-config --static --libs pnet |
    sed 's/-lpnet//')
linked=$(ldd segment | sed -n 's/.*libpnet\.so\.[0-9]* => \([^ ]*\) .*/\1/p')
[ "$linked" ] && [ "$(realpath "$linked")" = "$(realpath "$libraries/libpnet.so")" ] || fail "segment is linked so: $(ldd segment)"
./own_loss | tail -1 | grep "of the values lie below" || fail "own_loss"
./train "$examples/scene.pnet" weights.safetensors cloud.bin
pnetc infer "$examples/scene.pnet" --weights weights.safetensors --input cloud.bin --columns x,y,z,r,g,b -o scores.npy -q
for program in ./segment ./segment-static; do
    $program "$examples/scene.pnet" weights.safetensors cloud.bin scores.f32
    tail -c $((1500 * 3 * 4)) scores.npy | cmp - scores.f32 || fail "$program gives other scores than pnetc"
done
if command -v cmake >/dev/null; then
    printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(user C)' 'find_package(pnet 0.1 REQUIRED)' \
        "add_executable(user $examples/segment.c)" 'target_link_libraries(user pnet::pnet)' >CMakeLists.txt
    { cmake -S . -B build && cmake --build build; } >log 2>&1 || { cat log; fail 'a CMake project does not build'; }
    ./build/user "$examples/scene.pnet" weights.safetensors cloud.bin scores.f32 >/dev/null
fi

# Python: the package of the system finds the library of the system
cat >use.py <<'END'
import sys
from importlib.metadata import version
import numpy
import pnet
assert pnet.__file__.startswith(sys.argv[1] + "/usr/lib/python3/dist-packages/pnet/"), pnet.__file__
assert version("pnet") == pnet.__version__, (version("pnet"), pnet.__version__)
library = [line.split()[-1] for line in open("/proc/self/maps") if "libpnet" in line] if len(sys.argv) > 2 else [sys.argv[1]]
assert library and all(name.startswith(sys.argv[1]) for name in library), library
model = pnet.Model(sys.argv[1] + "/usr/share/doc/libpnet-dev/examples/scene.pnet")
print("python:", len(model.weights), "weights,", model.peak(1000), "bytes")
assert len(model.weights) > 3 and model.peak(1000) > 0
END
maps=
[ -e /proc/self/maps ] && maps=maps
/usr/bin/python3 use.py "$at" $maps

# the manual and completion
for page in pnetc pnetc-train pnetc-data-synth; do
    man "$page" >page 2>/dev/null || fail "man $page"
    grep -q -i '^NAME' page || fail "man $page: $(head -n 3 page)"
done
bash -c '. "$1"; COMP_WORDS=(pnetc tr); COMP_CWORD=1; _pnetc; echo "${COMPREPLY[*]}"' bash \
    "$at/usr/share/bash-completion/completions/pnetc" | grep -qx train || fail 'bash does not complete tr'
if [ -z "$at" ] && [ -e /usr/share/bash-completion/bash_completion ]; then # it loads completions by the name of the program
    bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader pnetc; complete -p pnetc' | grep -q _pnetc ||
        fail 'bash-completion does not find the completion'
fi
if [ -z "$at" ] && command -v zsh >/dev/null; then
    zsh -f -c 'autoload -Uz compinit; compinit -D; print $_comps[pnetc]' | grep -qx _pnetc || fail 'zsh does not find the completion'
fi
if [ -z "$at" ] && command -v fish >/dev/null; then
    HOME=$work fish -c 'complete -C "pnetc tr"' | grep -q '^train' || fail 'fish does not find the completion'
fi
echo "use.sh: $(pnetc --version | head -n 1) works"
