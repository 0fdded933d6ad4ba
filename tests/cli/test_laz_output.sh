# LAZ where liblaszip is missing, is no such library, or fails: refused before anything is computed, and nothing is left. What the
# library writes is compared in test_readers.
. tests/cli/common.sh
model=tests/cli/tiny.pnet seeds=tests/fuzz/seeds/las
run 0 data synth rooms -o "$work/rooms" --count 3 --points 300 --seed 2 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 1\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
echo nothing >"$work/broken.ply" # refused with another exit code when it is read
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
none() { # what it says
    run 2 infer $model --weights "$work/run" --input "$work/broken.ply" -o "$work/none.laz" -q
    says "none.laz: liblaszip writes LAZ: $1"
    says '; or write .las'
}

export PNET_LASZIP_LIBRARY=$work/none.so
none "PNET_LASZIP_LIBRARY: $work/none.so: "
run 2 infer $model --weights "$work/run" --input "$work/*.ply" -o "$work/none" --format laz -q
says 'liblaszip writes LAZ: PNET_LASZIP_LIBRARY: '
run 2 register "$work/broken.ply" "$work/broken.ply" --from "$work/identity.txt" -o "$work/none.laz" -q
says 'liblaszip writes LAZ: PNET_LASZIP_LIBRARY: '
run 0 register $seeds/format3.laz $seeds/format3.laz --from "$work/identity.txt" -o "$work/read.las" -q
export PNET_LASZIP_LIBRARY=libz.so.1
none 'the library has no laszip_get_version'
unset PNET_LASZIP_LIBRARY
run 2 infer $model --weights "$work/run" --input "$work/broken.ply" -o "$work/none.laz" -q || true
grep -q 'expected a point cloud' "$err" || says 'install LASzip 3 (liblaszip.so.8; conda-forge: laszip), or name it by PNET_LASZIP_LIBRARY; or write .las'

# The library itself: what it says of its failures is passed on.
[ "${PNET_FAKE_LASZIP_LIBRARY-}" ] || finish
export PNET_LASZIP_LIBRARY=$PNET_FAKE_LASZIP_LIBRARY
PNET_FAKE_LASZIP=old none 'version 3 is needed, here is 2.9'
PNET_FAKE_LASZIP=version none 'the library says no version: name liblaszip.so, not liblaszip_api.so'
fails() { # CODE FILE WAY MESSAGE
    PNET_FAKE_LASZIP=$3 run "$1" register "$2" "$2" --from "$work/identity.txt" -o "$work/none.laz" -q
    says "$4"
}
for way in header point native open write close; do fails 1 $seeds/format6.las $way 'none.laz: LASzip 3.9.1: the disk is made of cheese'; done
fails 5 $seeds/format6.las create 'out of memory'
fails 1 $seeds/format6.las none 'none.laz: LASzip 3.9.1 wrote no whole file'
fails 1 $seeds/extra7.laz none 'none.laz: LASzip 3.9.1 has other structures than 3.4'
for format in 4 5 9 10; do
    fails 2 $seeds/format$format.las none "none.laz: points with waveforms (format $format) are not written as LAZ: write .las"
done
check "nothing is left" test -z "$(find "$work" -name 'none*' -o -name '.pnet-*')"
finish
