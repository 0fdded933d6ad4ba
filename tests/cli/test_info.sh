# pnetc info and data info: the same facts for people and for machines, nothing out of a file that moves the cursor, and
# names of columns that fix what bare records hold.
. tests/cli/common.sh
model=tests/cli/tiny.pnet

# clean FILE: no control characters but line ends.
clean() { check "control characters in $1" test "$(LC_ALL=C tr -d '\n' <"$1" | LC_ALL=C tr -cd '\001-\037\177' | wc -c)" = 0; }

cloud=$work/cloud.csv
printf 'x,y,z,heat\n0,1,2,0.25\n10,-1,2,7\nnan,0,0,1\n' >"$cloud"
run 0 info "$cloud"
prints ': 2 points'
prints 'x  float64  from 0 to 10 m'
prints 'heat  float64 from 0.25 to 7'
prints 'dropped 1 of 3 points'
run 0 info --json "$cloud"
check 'one line' test "$(wc -l <"$out")" = 1
prints '"kind":"cloud","points":2,"file_points":3,"warning":"'
prints '{"name":"x","type":"float64","unit":"m","from":0,"to":10}'
valid_json "$out"
prints '"fields":[{"name":"heat","type":"float64","from":0.25,"to":7'
printf 'x,y,z,heat\n0,1,2,\n10,-1,2,\n' >"$work/gaps.csv"
run 0 info "$work/gaps.csv"
prints 'heat  float64 without a number'
printf 'x,y,z,heat\n' >"$work/empty.csv"
run 0 info --json "$work/empty.csv" "$cloud"
check 'a line a file' test "$(wc -l <"$out")" = 2
prints '"from":null,"to":null'
run 1 info --json "$work/none.csv" "$cloud"
says none.csv
check 'the other file' test "$(wc -l <"$out")" = 1

# The array of an archive that holds the coordinates.
archive=tests/fuzz/seeds/npy/archive0.npz
run 0 info $archive
prints 'coordinates from the array points'
run 0 info --json $archive --coordinates rgb
prints '"array":"rgb","coordinates":[{"name":"x","type":"uint8","unit":"m","from":3,"to":6}'
run 4 info $archive --coordinates normals
says 'no array "normals"'
says 'points [2, 3]'

# Names that would colour the terminal, ring, or end the line.
esc=$(printf '\033')
{
    printf 'ply\nformat ascii 1.0\nelement vertex 1\n'
    printf 'property float %s\n' x y z "red${esc}[31m" "bell$(printf '\a')"
    printf 'end_header\n1 2 3 4 5\n'
} >"$work/named.ply"
run 0 info "$work/named.ply"
clean "$out"
prints 'red\x1b[31m'
run 0 info --json "$work/named.ply"
clean "$out"
prints 'red\u001b[31m'
cp "$work/named.ply" "$work/na${esc}[1mme.ply"
run 0 info "$work/na${esc}[1mme.ply"
clean "$out"
head -c 60 "$work/named.ply" >"$work/cut${esc}[1m.ply"
run 4 info "$work/cut${esc}[1m.ply"
clean "$err"
says 'cut\x1b[1m.ply'

# Weights and checkpoints.
run 0 data synth rooms -o "$work/rooms" --count 10 --points 600 --seed 2 -j 1 -q
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
run 0 info "$work/run"
numbers=$(sed -n 's/^\([0-9]*\) tensors, \([0-9]*\) numbers$/\1 \2/p' "$out")
check 'numbers of a run' test -n "$numbers"
run 0 info --json "$work/run"
prints '"kind":"checkpoint","tensors":[{"name":"'
prints "],\"numbers\":${numbers#* },\"checkpoint\":{\"epoch\":"
prints '"step":2,"seed":"1"'
check 'as many tensors' test "$(grep -o '"shape":' "$out" | wc -l)" = "${numbers% *}"
run 0 info --json "$work/run/last/weights.safetensors"
prints '"kind":"weights"'

# Records of another width.
awk 'BEGIN { for (i = 0; i < 960; i++) printf "%.3f %.3f %.3f %d %d %d\n", 5 * cos(i / 50), 5 * sin(i / 50), i / 400, i % 256, 7, 9 }' >"$work/six.xyz"
printf 'x,y,z,red,green,blue' >"$work/names"
PERL=$(command -v perl || true)
if [ -n "$PERL" ]; then
    perl -ane 'print pack("f<*", @F)' "$work/six.xyz" >"$work/six.bin"
    run 0 info "$work/six.bin"
    prints 'looks like 6 numbers a point, not 4'
    run 0 info "$work/six.bin" --columns "$(cat "$work/names")"
    prints ': 960 points'
    prints 'blue  float32 from 9 to 9'
    check 'no warning' test "$(grep -c looks "$out")" = 0
    run 2 info "$work/six.bin" --columns red,green,blue
    says 'the first three x,y,z'
    run 4 info "$work/six.bin" --columns x,y,z,a,b,c,d
    says '28 bytes'
    # Records of three numbers repeat with every sixth too.
    awk 'BEGIN { for (i = 0; i < 4000; i++) printf "%.4f %.4f 0\n", 20 + 5 * cos(2.325 * i), 5 * sin(2.325 * i) - 20 }' |
        perl -ane 'print pack("f<*", @F)' >"$work/three.bin"
    run 0 info "$work/three.bin"
    prints 'looks like 3 numbers a point, not 4'
    # Colours of 0 to 255 as floats are divided by 255.
    run 4 infer $model --weights "$work/run" --input "$work/six.bin" -o "$work/six.ply"
    says 'looks like 6 numbers'
    run 0 infer $model --weights "$work/run" --input "$work/six.bin" -o "$work/six.npy" --columns "$(cat "$work/names")"
    run 0 infer $model --weights "$work/run" --input "$work/six.xyz" -o "$work/text.npy" --columns "$(cat "$work/names")"
    same "$work/six.npy" "$work/text.npy"
    perl -ane 'print pack("f<*", @F[0..2], map { $_ / 255 } @F[3..5])' "$work/six.xyz" >"$work/six.bin"
    run 0 infer $model --weights "$work/run" --input "$work/six.bin" -o "$work/six.ply" --columns "$(cat "$work/names")"
    run 0 info --json "$work/six.ply"
    prints '"points":960'
fi

# Points without coordinates keep the colours they had.
{
    printf 'x,y,z,red,green,blue\n'
    awk 'BEGIN { for (i = 0; i < 300; i++) printf "%s,%.2f,1,%d,20,30\n", i == 100 ? "nan" : i / 100, i % 7, i == 100 ? 250 : i % 200 }'
} >"$work/gap.csv"
run 0 infer $model --weights "$work/run" --input "$work/gap.csv" -o "$work/labelled.csv" -q
check 'the rows of the file' test "$(wc -l <"$work/labelled.csv")" = 301
check "the row dropped: $(sed -n 102p "$work/labelled.csv")" grep -q '^nan,nan,nan,250,20,30,-1,nan$' "$work/labelled.csv"
check 'the row behind' grep -q '^1[.]0[01][0-9]*,3,1,101,20,30,' "$work/labelled.csv"

# A field of labels that is not there.
sed 's/^label_field:.*//' "$work/rooms/dataset.yaml" >"$work/rooms/other.yaml"
printf 'label_field: klass\n' >>"$work/rooms/other.yaml"
run 0 data info "$work/rooms"
run 4 data info "$work/rooms/other.yaml"
says 000000.ply
says klass
says 'x, y, z, red, green, blue, label'

# Results that cannot be written are no success.
if [ -w /dev/full ]; then
    code=0
    "$pnetc" info "$cloud" >/dev/full 2>"$err" || code=$?
    check "standard output is full: exit code $code" test "$code" = 1
    says 'standard output'
fi
# a thread sanitizer keeps its own memory in files, and dies of this limit
if [ ! "${TSAN_OPTIONS:-}" ]; then
    code=0
    (ulimit -f 16 && "$pnetc" data synth rooms -o "$work/limited" --count 10 --points 5000 -q) >/dev/null 2>"$err" || code=$?
    check "a limit on files: exit code $code" test "$code" = 1
    says 'File too large'
fi

# libhdf5 is opened when the first HDF5 file is read; a library that is named is the only one that is tried.
printf '\211HDF\r\n\032\n' >"$work/a.h5"
PNET_HDF5_LIBRARY=$work/none.so run 4 info "$work/a.h5"
says "a.h5: an HDF5 file, which libhdf5 reads: PNET_HDF5_LIBRARY: $work/none.so: "
PNET_HDF5_LIBRARY=libz.so.1 run 4 info "$work/a.h5"
says 'which libhdf5 reads: the library has no H5get_libversion'
run 4 info "$work/a.h5"
grep -q 'a.h5: libhdf5 [0-9.]*: ' "$err" || says 'which libhdf5 reads: install libhdf5'
PNET_HDF5_LIBRARY=$work/none.so run 0 info "$work/six.xyz"
finish
