# pnetc register, and what eval says of registration. Clouds that are moved by whole cells have the same features,
# whatever the weights, so that even an untrained net must find their pose.
. tests/cli/common.sh
model=tests/register/pair.pnet

# points X Y Z: three walls of a corner and a box, moved, with 12 digits.
points() {
    awk -v x="$1" -v y="$2" -v z="$3" 'BEGIN {
        srand(7)
        for (i = 0; i < 4000; i++) {
            u = 5 * rand() + 0.1; v = 4 * rand() + 0.1; w = 3 * rand() + 0.1
            if (i % 4 == 0) w = 0.05
            else if (i % 4 == 1) u = 0.05
            else if (i % 4 == 2) v = 0.05
            else { u = 2 + u / 5; v = 1 + v / 4; w = w > 1.5 ? 1 : w / 3 }
            printf "%.4f %.4f %.4f\n", x + u, y + v, z + w
        }
    }'
}
points 0 0 0 >"$work/target.xyz"
points 2 4 -1 >"$work/source.xyz"
points 400002 5000004 -1 >"$work/far.xyz"
printf '1 0 0 -2\n0 1 0 -4\n0 0 1 1\n0 0 0 1\n' >"$work/pose.txt"
cat >"$work/dataset.yaml" <<EOF
pnet_dataset: 1
task: registration
train: [{source: source.xyz, target: target.xyz, pose: [1, 0, 0, -2, 0, 1, 0, -4, 0, 0, 1, 1]}]
val: [{source: source.xyz, target: target.xyz, pose: [1, 0, 0, -2, 0, 1, 0, -4, 0, 0, 1, 1]},
      {source: target.xyz, target: source.xyz, pose: [1, 0, 0, 2, 0, 1, 0, 4, 0, 0, 1, -1]}]
EOF
printf 'data: %s\nsteps: 1\nlr: 1e-12\neval_every: 0\n' "$work" >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q

# near KEY VALUE: the number of the JSON on standard output, within 1e-3.
near() {
    check "$1 is $(number "$1" "$out"), not $2" awk -v a="$(number "$1" "$out")" -v b="$2" 'BEGIN { exit !(a != "" && a - b < 1e-3 && b - a < 1e-3) }'
}
# translation X Y Z [LIMIT]: the last column of the pose of the JSON on standard output.
translation() {
    check "translation $*: $(cat "$out")" awk -v x="$1" -v y="$2" -v z="$3" -v limit="${4:-0.001}" '
        { sub(/.*"pose": *\[/, ""); split($0, t, ","); d = (t[4] - x) ^ 2 + (t[8] - y) ^ 2 + (t[12] - z) ^ 2; exit !(d < limit * limit) }' "$out"
}

# leads X Y Z TX TY TZ: the pose of the JSON takes the first point to the second.
leads() {
    check "pose takes $1 $2 $3 to $4 $5 $6: $(cat "$out")" awk -v p="$*" '
        { sub(/.*"pose": *\[/, ""); split($0, t, ","); split(p, v, " ")
          for (k = 0; k < 3; k++) d += (t[4 * k + 1] * v[1] + t[4 * k + 2] * v[2] + t[4 * k + 3] * v[3] + t[4 * k + 4] - v[4 + k]) ^ 2
          exit !(d < 1e-6) }' "$out"
}

pair="$work/source.xyz $work/target.xyz"
# shellcheck disable=SC2086
{
    run 0 register $pair --model $model --weights "$work/run" --json -o "$work/aligned.xyz" --picture "$work/pair.svg"
    valid_json "$out"
    translation -2 -4 1
    near angle_deg 0
    cp "$out" "$work/first"
    for threads in 1 3; do
        run 0 register $pair --model $model --weights "$work/run" --json -j $threads
        same "$work/first" "$out"
    done
    run 0 register $pair --model $model --weights "$work/run" --seed 5 --sample 4 --one-way --points 1000 --ransac 3000
    prints 'angle 0.00'
    prints 'correspondences, '
    # the known pose, with and without ICP
    run 0 register $pair --from "$work/pose.txt" --json
    translation -2 -4 1 1e-9
    printf '1 0 0 -2.04\n0 1 0 -3.97\n0 0 1 1.05\n' >"$work/near.txt"
    run 0 register $pair --from "$work/near.txt" --icp 20cm --planes --json
    translation -2 -4 1
    near icp_inliers 4000
    run 0 register $pair --from "$work/near.txt" --icp 0.2m
    prints 'ICP: '
}
paste -d ' ' "$work/aligned.xyz" "$work/target.xyz" >"$work/both"
check 'the aligned cloud lies on the target' awk '
    NF != 6 { bad = 1 }
    { for (k = 1; k <= 3; k++) if (($k - $(k + 3)) ^ 2 > 1e-5) bad = 1 }
    END { exit bad || NR != 4000 }' "$work/both"
check 'a picture' grep -q '<svg ' "$work/pair.svg"
check 'the picture ends' grep -q '</svg>' "$work/pair.svg"
check 'two clouds in two views, before and after' test "$(grep -c '<path ' "$work/pair.svg")" = 8
if command -v python3 >/dev/null; then
    check 'the picture is XML' python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$work/pair.svg"
fi

# The verdict: of a pair that fits, of clouds that have nothing in common, and of poses that ICP begins too far away from.
# shellcheck disable=SC2086
{
    run 0 register $pair --model $model --weights "$work/run" --json --strict --icp 10cm
    prints '"verdict":"registered"'
    check 'no warning' test ! -s "$err"
    run 0 register $pair --model $model --weights "$work/run"
    check 'the verdict is the last line' test "$(tail -n 1 "$out")" = registered
    run 0 register $pair --from "$work/pose.txt"
    check 'a pose that is given is not judged' hides -qE 'registered|doubtful|failed' "$out"
    run 2 register $pair --from "$work/pose.txt" --strict
    says '--strict judges a pose that is found'
    awk 'BEGIN { srand(3); for (i = 0; i < 1500; i++) print 6 * rand(), 6 * rand(), 6 * rand() }' >"$work/noise.xyz"
    run 0 register "$work/noise.xyz" "$work/target.xyz" --model $model --weights "$work/run" --json
    valid_json "$out"
    check "verdict of unrelated clouds: $(cat "$out")" grep -qE '"verdict":"(doubtful|failed)"' "$out"
    says 'correspondences agree with the pose'
    run 1 register "$work/noise.xyz" "$work/target.xyz" --model $model --weights "$work/run" --strict
    printf '1 0 0 500\n0 1 0 0\n0 0 1 0\n' >"$work/off.txt"
    run 0 register $pair --from "$work/off.txt" --icp 20cm
    check 'nothing matched' test "$(tail -n 1 "$out")" = failed
    says 'the pose is worth nothing: 0 of 4000 points, 0%, lie within 0.2 m'
    run 1 register $pair --from "$work/off.txt" --icp 20cm --strict --json
    prints '"verdict":"failed"'
}

# Poses that points do not determine: every motion along the shape fits as well. Another sampling of it, and the same points.
shape() { # NAME SEED
    awk -v shape="$1" -v seed="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < 3000; i++) {
            a = 6.283185307 * rand(); u = 2 * rand() - 1; r = sqrt(1 - u * u); v = rand()
            if (shape == "one" && i == 1 || shape == "two" && i == 2) break
            if (shape == "equal" || shape == "one") print 1, 2, 3
            if (shape == "two") print i, 2, 3
            if (shape == "line") print 1 + 2 * u, 2 + u, 3 - u
            if (shape == "plane") print 3 * v, 2 * u, 1
            if (shape == "sphere") print r * cos(a), r * sin(a), u
            if (shape == "cylinder") print 0.5 * cos(a), 0.5 * sin(a), 3 * v
        }
    }'
}
printf '1 0 0 0.001\n0 1 0 0.002\n0 0 1 -0.001\n' >"$work/begin.txt"
for name in one two equal line plane sphere cylinder; do
    shape $name 1 >"$work/shape.xyz"
    shape $name 2 >"$work/again.xyz"
    for target in again shape; do
        run 0 register "$work/shape.xyz" "$work/$target.xyz" --from "$work/begin.txt" --icp 30cm --json
        prints '"determined":false,"verdict":"doubtful"'
        says 'of 6 motions are free'
        run 1 register "$work/shape.xyz" "$work/$target.xyz" --from "$work/begin.txt" --icp 30cm --planes --strict
        check "$name: $(cat "$out")" test "$(tail -n 1 "$out")" = doubtful
    done
done
# shellcheck disable=SC2086
run 0 register $pair --from "$work/near.txt" --icp 20cm --strict --json
prints '"determined":true,"verdict":"registered"'

# Points without coordinates are no part of it, but keep their rows in what is written.
{ head -n 100 "$work/source.xyz"; echo 'nan 1 2'; tail -n +101 "$work/source.xyz"; } >"$work/gap.xyz"
run 0 register "$work/gap.xyz" "$work/target.xyz" --from "$work/near.txt" --icp 20cm --strict --json -o "$work/gap_moved.xyz"
near icp_inliers 4000
run 0 register "$work/source.xyz" "$work/target.xyz" --from "$work/near.txt" --icp 20cm -o "$work/moved.xyz"
same "$work/moved.xyz" <(sed 101d "$work/gap_moved.xyz")
check "the row of the file: $(sed -n 101p "$work/gap_moved.xyz")" grep -qx 'nan nan nan' <(sed -n 101p "$work/gap_moved.xyz")

# Bare records of five numbers are read by the names of their columns.
run 0 register "$work/source.xyz" "$work/source.xyz" --from <(printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n') -o "$work/five.pcd.bin"
mv "$work/five.pcd.bin" "$work/five.bin"
run 0 register "$work/five.bin" "$work/target.xyz" --from "$work/near.txt" --icp 20cm --json --columns x,y,z,intensity,ring
near icp_inliers 4000
run 2 register "$work/five.bin" "$work/target.xyz" --from "$work/near.txt" --columns intensity
says 'the first three x,y,z'

# File coordinates far from the origin, either way round.
run 0 register "$work/far.xyz" "$work/target.xyz" --model $model --weights "$work/run" --json -o "$work/back.xyz"
leads 400003 5000005 0 1 1 1
check 'back at the target' awk '$1 < -1 || $1 > 6 || $2 < -1 || $2 > 6 { bad = 1 } END { exit bad || NR != 4000 }' "$work/back.xyz"
run 0 register "$work/target.xyz" "$work/far.xyz" --model $model --weights "$work/run" --json
leads 1 1 1 400003 5000005 0

# The same by eval: a table, JSON, and a line for each pair.
run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --each "$work/each.jsonl"
prints 'reg          1.0000'
prints 'fmr          1.0000'
prints '  rre_all_deg '
prints '  strict_recall          1.0000'
valid_json "$work/each.jsonl"
check 'a line for each pair' test "$(wc -l <"$work/each.jsonl")" = 2
run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --json
valid_json "$out"
near reg 1
near rte_all_m 0
near inlier_ratio 1
run 0 compare $model --weights "$work/run" --config "$work/run.yaml"
prints '  rte_success_m '

# By the matrices of 3DMatch: the listed pose is 30 cm off along y, where the matrix hardly looks, then where it does.
cp "$work/target.xyz" "$work/c_0.xyz"
cp "$work/source.xyz" "$work/c_1.xyz"
printf '0 1 2\n1 0 0 -2\n0 1 0 -4.3\n0 0 1 1\n0 0 0 1\n' >"$work/gt.log"
cat >"$work/log.yaml" <<EOF
pnet_dataset: 1
task: registration
val: [{log: gt.log, info: gt.info, clouds: c_*.xyz}, {source: c_1.xyz, target: c_0.xyz, pose: pose.txt}]
EOF
# information WEIGHT: of y.
information() {
    printf '0 1 2\n100 0 0 0 0 0\n0 %s 0 0 0 0\n0 0 100 0 0 0\n0 0 0 1 0 0\n0 0 0 0 1 0\n0 0 0 0 0 1\n' "$1" >"$work/gt.info"
    run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --data "$work/log.yaml" --json --each "$work/info.jsonl"
    near reg 1 # the pair is within 2 m
    near info_pairs 1
    check 'one line has a matrix' test "$(grep -c info_rmse_m "$work/info.jsonl")" = 1
    head -n 1 "$work/info.jsonl" >"$out.first"
}
information 1
near info_recall 1
check 'an error of 3 cm' awk -v d="$(number info_rmse_m "$out.first")" 'BEGIN { exit !(d > 0.0299 && d < 0.0301) }'
near info_rte_success_m 0.3
information 100
near info_recall 0
check 'an error of 30 cm' awk -v d="$(number info_rmse_m "$out.first")" 'BEGIN { exit !(d > 0.299 && d < 0.301) }'
printf 'skip_empty: yes\n' | cat "$work/run.yaml" - >"$work/skip.yaml"
run 2 eval $model --weights "$work/run" --config "$work/skip.yaml" --data "$work/log.yaml"
says skip_empty

# Mistakes: the exit code, one message, nothing written.
refuse() { # exit code, text of the message, arguments
    local code=$1 text=$2
    shift 2
    run "$code" register "$@"
    says "$text"
}
rm -f "$work/aligned.xyz"
refuse 2 'which clouds?' "$work/source.xyz" --from "$work/pose.txt"
# shellcheck disable=SC2086
{
    refuse 2 'which model?' $pair
    refuse 2 'which weights?' $pair --model $model
    refuse 2 'either --model or --from' $pair --model $model --from "$work/pose.txt"
    refuse 2 'a length such as 20cm' $pair --from "$work/pose.txt" --icp 20deg
    refuse 2 'lengths have a unit' $pair --from "$work/pose.txt" --icp 0.2
    refuse 2 'lengths have a unit' $pair --from "$work/pose.txt" --distance 5
    refuse 2 '--sample is 3 or 4' $pair --from "$work/pose.txt" --sample 5
    refuse 1 missing.xyz "$work/missing.xyz" "$work/target.xyz" --from "$work/pose.txt"
}
awk '{ print 3 * $1, 3 * $2, 3 * $3 }' "$work/source.xyz" >"$work/large.xyz"
refuse 1 'no pose found' "$work/large.xyz" "$work/target.xyz" --model $model --weights "$work/run" --distance 1mm --ransac 2 -o "$work/aligned.xyz"
check 'no cloud without a pose' test ! -e "$work/aligned.xyz"
printf '1 0 0\n' >"$work/short.txt"
run 4 register "$work/source.xyz" "$work/target.xyz" --from "$work/short.txt"
says short.txt
run 3 register "$work/source.xyz" "$work/target.xyz" --model tests/cli/tiny.pnet --weights "$work/run"
finish
