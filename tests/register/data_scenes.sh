# The indices that bench/registration.sh writes of real scans: what is in them, and a step of training on each.
. tests/cli/common.sh
data=${PNET_TEST_DATA:-../shared}/data
[ -d "$data/registration/3dmatch" ] || { echo "skipped: no clouds in $data"; exit 77; }
script=bench/registration.sh
export PNETC=$pnetc OMP_NUM_THREADS=2
# small synthetic parts in place of its own
run 0 data synth pairs -o "$work/all/rooms" --count 10 --points 800
run 0 data synth pairs -o "$work/all/streets" --scene street --beams 4 --count 10
for scenes in indoors streets; do
    bash $script index "$data" -o "$work/all" --scenes $scenes >"$out" 2>"$err" || fail "no index of $scenes: $(cat "$err")"
done
# pairs NAME SPLIT COUNT
pairs() {
    run 0 data info "$work/all/$1.yaml"
    check "$3 pairs in $1" grep -qE "^ +$2 +$3 pairs$" "$out"
}
pairs kitchen test 103
pairs low test 42
pairs views test 100
pairs indoors train 156
pairs drives test 2
pairs frames test 100
pairs streets train 42
check 'refined poses' test "$(grep -c 'pose: \[[0-9.,e-]*,0,0,0,1\]' "$work/all/drives.yaml")" = 2
check 'indoors' bash $script run -o "$work/all" --modes native --seeds 1 --cells 40cm --steps 1 --batch 1 --ransac 50 \
    --tests kitchen
check 'streets' bash $script run -o "$work/all" --scenes streets --modes voxel --seeds 1 --cells 2m --steps 1 --batch 1 --ransac 50 \
    --tests drives
check 'lines' test "$(cat "$work/all/runs/40cm-native-s1/kitchen.jsonl" "$work/all/runs/2m-voxel-s1/drives.jsonl" | wc -l)" = 105
check 'a matrix for each pair' grep -q '"info_pairs":103' "$work/all/runs/40cm-native-s1/kitchen.json"
# Poses refined by ICP, of the pairs of three clouds: as many entries as pairs that are no neighbours; 3-14 moves by 3.7 cm, as an
# independent implementation found.
few=$work/few/registration/3dmatch/7-scenes-redkitchen kitchen=$data/registration/3dmatch/7-scenes-redkitchen
mkdir -p "$few" "$work/fitted"
ln -s "$(cd "$data" && pwd)/segmentation" "$work/few/segmentation"
ln -s "$(cd "$data/registration/3dmatch" && pwd)/sun3d-hotel_umd-maryland_hotel3" "$work/few/registration/3dmatch/"
for f in 3DMatch_gt.log 3DMatch_gt.info 3DLoMatch_gt.log 3DLoMatch_gt.info cloud_bin_0.ply cloud_bin_3.ply cloud_bin_14.ply; do
    ln -s "$(cd "$kitchen" && pwd)/$f" "$few/"
done
mv "$work/all/rooms" "$work/fitted/"
bash $script index "$work/few" -o "$work/fitted" --tests fitted >"$out" 2>"$err" || fail "no index: $(cat "$err")"
listed=$(awk 'NF == 3 && $2 - $1 > 1 && ($1 == 0 || $1 == 3) && ($2 == 3 || $2 == 14)' "$few/3DMatch_gt.log" | wc -l)
check "$listed pairs" test "$(grep -c 'pose: \[' "$work/fitted/fitted.yaml")" = "$listed"
sed -n 's/.*cloud_bin_14.ply, target: .*cloud_bin_3.ply, pose: \[\(.*\)\].*/\1/p' "$work/fitted/fitted.yaml" | tr ',' ' ' |
    cat - "$work/fitted/fitted/3-14.txt" | tr '\n' ' ' >"$work/poses"
check 'moved as far' awk '{ d = sqrt(($4 - $20) ^ 2 + ($8 - $24) ^ 2 + ($12 - $28) ^ 2); exit !(NF == 32 && d > 0.03 && d < 0.045) }' "$work/poses"
finish
