# $nvcc and $gpu: the compiler, and whether there is a GPU to run what it compiles; empty where there is none.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null || true)
gpu=
if [ "$nvcc" ] && nvidia-smi > /dev/null 2>&1; then gpu=yes; fi

# For tests that do what a page says in a copy of the sources: added PAGE NAME PIECES puts the page's code there, builds pnetc
# and test_cases of it, and sets $work, $pnetc and $texts, the folder of the page's other pieces. Code blocks with a path behind
# ```c go to that path; those of a .def are added to it. With a GPU the CUDA
# backend is built too.
added() {
    work=${TMPDIR:-/tmp}/add-$2 # always the same, for the sake of compiler caches
    texts=$work/texts
    rm -rf "$work"
    mkdir -p "$work/tree" "$texts"
    trap 'rm -rf "$work"' EXIT
    tar -c --exclude='./build*' --exclude='./out*' --exclude='./runs' --exclude=./.git . | tar -x -C "$work/tree"
    awk -v page="$1" -v tree="$work/tree" -v texts="$texts" -v pieces="$3" '
        /^```/ && inside { inside = 0; close(file); next }
        /^```c / { file = tree "/" $2; if ($2 !~ /\.def$/) printf "" > file; inside = 1; files++; print "  " $2; next }
        /^``` .*\.pnet$/ || /^```text ./ { file = texts "/" $2; inside = 1; next }
        /^```/ { file = "/dev/null"; inside = 1; next }
        inside { print >> file }
        END { if (files != pieces) { print page ": expected " pieces " pieces of code, found " files > "/dev/stderr"; exit 1 } }
    ' "$1"
    generator=
    if command -v ninja > /dev/null; then generator='-G Ninja'; fi
    # shellcheck disable=SC2086
    cmake -S "$work/tree" -B "$work/build" $generator -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 \
        -DPNET_CUDA="$([ "$gpu" ] && echo ON || echo OFF)" > "$work/log" 2>&1 &&
        cmake --build "$work/build" --target pnetc test_cases -j2 >> "$work/log" 2>&1 || {
        tail -n 30 "$work/log" >&2
        exit 1
    }
    pnetc=$work/build/pnetc
}

# Compiles a .cu file of the page where nvcc is; with a GPU runs its cases there.
added_cuda() { # file, row
    [ "$nvcc" ] || return 0
    (cd "$work/tree" && "$nvcc" -std=c++17 -arch=sm_90a -I. -Werror=all-warnings -c "$1" -o "$work/device.o")
    echo 'nvcc: compiled'
    [ ! "$gpu" ] || (cd "$work/tree" && "$work/build/tests/test_cases" cuda "$2")
}
