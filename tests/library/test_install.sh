# The examples, built from an installed tree by pkg-config (shared and static) and by CMake, after the tree was moved; and the same
# bits as pnetc infer.
set -u
build=$(dirname "$(realpath "${PNETC:?names the program}")")
root=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
[ -e "$build/libpnet.so" ] || { echo 'a static build has no shared library'; exit 77; }
if nm -D "$build/libpnet.so" | grep -q '__asan_\|__tsan_'; then
    echo 'under a sanitizer programs around the library need its flags'
    exit 77
fi
cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { tail -5 "$work/log"; fail 'cmake --install'; }
mv "$work/first" "$work/tree"
PKG_CONFIG_PATH=$(dirname "$(find "$work/tree" -name pnet.pc)")
export PKG_CONFIG_PATH
libraries=$(pkg-config --variable=libdir pnet)
[ "$(pkg-config --modversion pnet)" = "$("$work/tree/bin/pnetc" --version | sed -n 's/^pnetc //p')" ] || fail 'pnet.pc has another version'
[ "$(readlink "$libraries/libpnet.so")" = libpnet.so.0 ] || fail 'libpnet.so does not lead to libpnet.so.0'
cd "$work" || exit 1
strict='-std=c11 -O2 -Wall -Wextra -Wconversion -Werror -pedantic'
for example in train segment own_loss; do
    # shellcheck disable=SC2046,SC2086
    cc $strict "$root/examples/$example.c" -o $example $(pkg-config --cflags --libs pnet) -lm -Wl,-rpath,"$libraries" ||
        fail "examples/$example.c does not build"
done
# shellcheck disable=SC2046,SC2086
cc $strict "$root/examples/segment.c" -o segment-static $(pkg-config --cflags pnet) "$libraries/libpnet.a" \
    $(pkg-config --static --libs pnet | sed 's/-lpnet//') || fail 'segment.c does not build with the static library'
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(pnet 0.1 REQUIRED)
add_executable(segment-cmake ${EXAMPLES}/segment.c)
target_link_libraries(segment-cmake pnet::pnet)
add_executable(segment-cmake-static ${EXAMPLES}/segment.c)
target_link_libraries(segment-cmake-static pnet::pnet_static)
END
{ cmake -S project -B project/build -G Ninja -DCMAKE_PREFIX_PATH="$work/tree" -DEXAMPLES="$root/examples" &&
    cmake --build project/build; } >log 2>&1 || { tail -20 log; fail 'a CMake project does not build'; }

export OMP_NUM_THREADS=2
model=$root/examples/scene.pnet
./train "$model" weights.safetensors cloud.bin >trained || fail 'train'
cat trained
awk '/^accuracy/ { exit !($2 > 0.9) }' trained || fail 'the training learns little'
./own_loss >quantile || fail 'own_loss'
cat quantile
awk '/^step 0:/ { first = $4 } /lie below$/ { exit !($2 + 0 < first / 10 && $3 > 0.85 && $3 < 0.95) }' quantile ||
    fail 'the loss of the caller trains little'
"$work/tree/bin/pnetc" infer "$model" --weights weights.safetensors --input cloud.bin --columns x,y,z,r,g,b -o scores.npy ||
    fail 'pnetc infer'
for program in ./segment ./segment-static project/build/segment-cmake project/build/segment-cmake-static; do
    rm -f scores.f32
    $program "$model" weights.safetensors cloud.bin scores.f32 >classes || fail "$program"
    [ "$(awk '{ sum += $3 } END { print sum }' classes)" = 1500 ] || fail "$program: not every point has a class"
    tail -c $((1500 * 3 * 4)) scores.npy | cmp - scores.f32 || fail "$program gives other scores than pnetc infer"
done
nm segment | grep -q ' U pnet_session_bind' || fail 'segment is not linked with the shared library'
nm segment-static | grep -q ' [tT] pnet_session_bind' || fail 'segment-static is not linked with the static library'
# what cannot be read is a message and a status, not a crash
./segment "$model" nothing.safetensors cloud.bin scores.f32 2>message
[ $? = 1 ] && grep -q 'nothing.safetensors' message || fail 'a missing file of weights is not reported'
echo done
