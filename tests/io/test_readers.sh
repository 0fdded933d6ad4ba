# What pnetc writes holds the same for independent readers, in each format. PNET_READERS_PYTHON names a Python with laspy, lazrs,
# plyfile and pypcd4, which `sh tests/venv.sh readers` makes; without it the test is skipped. LAZ is compared where
# PNET_LASZIP_LIBRARY names a liblaszip, as `sh tests/venv.sh laszip` does.
. tests/cli/common.sh
[ "${PNET_READERS_PYTHON-}" ] || { echo 'skipped: PNET_READERS_PYTHON names no Python'; exit 77; }
readers() { # ARGUMENTS of readers.py
    if "$PNET_READERS_PYTHON" tests/io/readers.py "$@" >"$out" 2>"$err"; then
        pass
    else
        fail "readers.py $*"
        tail -n 3 "$err" >&2
    fi
}
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
convert() { run 0 register "$1" "$1" --from "$work/identity.txt" -o "$2" -q; }

# Files of LAS and LAZ, as they are: records, and values.
count=0
for file in tests/fuzz/seeds/las/*; do
    case $file in */empty* | */old3.laz) continue ;; esac # register needs points; lazrs ends in old3.laz
    convert "$file" "$work/out.las"
    readers kept "$file" "$work/out.las"
    count=$((count + 1))
done
check "$count files" test $count -gt 15

# The same as LAZ, and files of several chunks and with records behind the points. What is read back is what was compressed.
packed() { # IN
    convert "$1" "$work/plain.las"
    convert "$1" "$work/packed.laz"
    readers packed "$work/plain.las" "$work/packed.laz"
    convert "$work/packed.laz" "$work/unpacked.las"
    same "$work/plain.las" "$work/unpacked.las"
    count=$((count + 1))
}
if [ "${PNET_LASZIP_LIBRARY-}" ]; then
    count=0
    for file in tests/fuzz/seeds/las/*; do
        case $file in
        */empty* | */old3.laz) ;;
        */format4.* | */format5.* | */format9.* | */format10.*)
            run 2 register "$file" "$file" --from "$work/identity.txt" -o "$work/none.laz" -q
            says 'are not written as LAZ: write .las'
            check "nothing is left" test ! -e "$work/none.laz"
            ;;
        *) packed "$file" ;;
        esac
    done
    check "$count files" test $count -gt 15
    readers make "$work/many.las"
    packed "$work/many.las"
    same "$work/many.las" "$work/plain.las"
    check "it is smaller" test "$(wc -c <"$work/packed.laz")" -lt "$(wc -c <"$work/many.las")"
else
    echo 'LAZ is not compared: PNET_LASZIP_LIBRARY names no liblaszip'
fi

# The other formats, with the values of NumPy's own files. plyfile reads no integers of 64 bits, and a .bin has no doubles.
for kind in near far stamps; do
    readers table $kind "$work/$kind.npy"
    for ending in pcd ply npy csv txt xyz pts bin pcd.bin; do
        case $kind.$ending in stamps.ply | far.*bin | stamps.*bin) continue ;; esac
        convert "$work/$kind.npy" "$work/table_$kind.$ending"
        readers holds $kind "$work/$kind.npy" "$work/table_$kind.$ending"
    done
done

# Text with all types of numbers, as LAS and PLY. These have the values that are written as text again. plyfile reads no integers of
# 64 bits, which PLY has where double does not hold them.
make_text() { # LAST_INTEGER FILE
    awk -v last="$1" 'BEGIN {
        print "x y z red green blue nir intensity return_number scan_angle classification gps_time small large stamp real label"
        for (i = 0; i < 300; i++)
            printf "%.3f %.3f %.3f %d %d %d %d %d %d %.3f %d %.6f %d %d %.0f %.9g %d\n", 154000 + i / 7, 463000 - i / 3, i % 17 / 10,
                i * 200, i * 3, i, 65535 - i, i * 7, 1 + i % 15, (i - 150) * 0.006, i % 256, 3e8 + i / 8, i % 100 - 50, i * 1e6,
                last - 1024 * i, i / 3, i % 12
    }' >"$2"
}
make_text 9007199254740000 "$work/ply.txt"
make_text 9223372036854774784 "$work/las.txt"
for ending in las ply; do
    convert "$work/$ending.txt" "$work/all.$ending"
    convert "$work/all.$ending" "$work/all_$ending.csv"
    readers $ending "$work/all.$ending" "$work/all_$ending.csv"
done
convert "$work/all.ply" "$work/of_ply.las"
convert "$work/of_ply.las" "$work/of_ply.csv"
readers las "$work/of_ply.las" "$work/of_ply.csv"

# Results of a net: new extra dimensions, and classes in their place.
mkdir "$work/set"
cp "$work/ply.txt" "$work/set/a.txt"
cat >"$work/set/dataset.yaml" <<'YAML'
pnet_dataset: 1
task: segmentation
classes: [a, b, c, d, e, f, g, h, i, j, k, l]
label_field: label
train: [a.txt]
YAML
printf 'data: set\nsteps: 3\nbatch_size: 1\neval_every: 0\n' >"$work/run.yaml"
run 0 train tests/cli/tiny.pnet --config "$work/run.yaml" -o "$work/run" -q -j 1
infer() { # INPUT OUTPUT OPTIONS
    run 0 infer tests/cli/tiny.pnet --weights "$work/run" --input "$1" -o "$2" -q "${@:3}"
}
for ending in las ply; do
    for to in $ending csv; do infer "$work/all.$ending" "$work/result_$ending.$to"; done
    readers $ending "$work/result_$ending.$ending" "$work/result_$ending.csv"
done
for to in las csv; do infer "$work/all.las" "$work/coded.$to" --classification a=2,b=3,c=4,d=5,e=6; done
readers las "$work/coded.las" "$work/coded.csv"
if [ "${PNET_LASZIP_LIBRARY-}" ]; then
    infer "$work/all.las" "$work/coded.laz" --classification a=2,b=3,c=4,d=5,e=6
    readers packed "$work/coded.las" "$work/coded.laz"
    infer "$work/all.ply" "$work/result.laz" # of a cloud that was no LAS
    infer "$work/all.ply" "$work/result.las"
    readers packed "$work/result.las" "$work/result.laz"
fi

# Points with waveforms are refused before the net runs, for which there is too little memory here.
if [ "${PNET_LASZIP_LIBRARY-}" ]; then
    run 5 infer tests/cli/tiny.pnet --weights "$work/run" --input tests/fuzz/seeds/las/format5.las -o "$work/none.las" \
        --map rgb=intensity*1/65535 -q --memory 100kB
    for format in 4 5 9 10; do
        file=tests/fuzz/seeds/las/format$format.las
        for how in '--memory 100kB' '--tile 1m'; do
            # shellcheck disable=SC2086
            run 2 infer tests/cli/tiny.pnet --weights "$work/run" --input $file -o "$work/none.laz" --map rgb=intensity*1/65535 $how
            says 'are not written as LAZ: write .las'
            check "no tile was computed" hides -E 'points and results|tiles that are done' "$err"
            check "nothing is left" test ! -e "$work/none.laz" -a ! -e "$work/none.laz.tiles"
        done
    done
fi

# A LAZ of several chunks, labelled tile by tile as LAS, has the labels of the whole cloud as PLY.
readers make "$work/walk.laz"
run 0 infer tests/cli/tiny.pnet --weights "$work/run" --input "$work/walk.laz" -o "$work/walk.las" --map rgb=intensity*1/65535 --tile 1m
says 'points and results in'
infer "$work/walk.laz" "$work/walk.ply" --map rgb=intensity*1/65535
readers same "$work/walk.las" "$work/walk.ply"
if [ "${PNET_LASZIP_LIBRARY-}" ]; then
    infer "$work/walk.laz" "$work/walk_tiled.laz" --map rgb=intensity*1/65535 --tile 1m
    readers packed "$work/walk.las" "$work/walk_tiled.laz"
fi

# Labels alone.
infer "$work/all.ply" "$work/scores.npy"
for output in a.label a_lidarseg.bin; do
    infer "$work/all.ply" "$work/$output" --classification a=10,b=252,c=11,d=15,e=18,f=20,g=30,h=31,i=32,j=40,k=44,l=48
    readers labels "$work/scores.npy" "$work/$output" 10,252,11,15,18,20,30,31,32,40,44,48
done
infer "$work/all.ply" "$work/a.txt" --format scannet
readers labels "$work/scores.npy" "$work/a.txt" 0,1,2,3,4,5,6,7,8,9,10,11
finish
