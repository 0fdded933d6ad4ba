# infer --tile and eval --tile: the results of the whole cloud, in the order of its rows; what is refused, and what is said.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 2500 --seed 2 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
infer() { # exit code, cloud, output, options
    local want=$1 cloud=$2 to=$3
    shift 3
    run "$want" infer $model --weights "$work/run" --input "$cloud" -o "$to" "$@"
}

# A cloud of several rooms far from the origin, as surveys have it, with rows at random and one without a place.
for i in 7 8 9; do
    run 0 infer $model --weights "$work/run" --input "$work/rooms/test/000009.ply" -o "$work/plain.csv" -q
    tail -n +2 "$work/plain.csv" | awk -F, -v OFS=, -v i=$i '{ printf "%.3f,%.3f,%.3f,%s,%s,%s\n", $1 + 345000 + 6 * i, $2 + 5400000.5 - 3 * i, $3 + 112, $4, $5, $6 }'
done | awk 'BEGIN { srand(4) } { print rand() "," $0 }' | sort | cut -d, -f2- >"$work/rows"
{
    echo x,y,z,red,green,blue
    head -n 500 "$work/rows"
    echo nan,nan,nan,1,2,3
    tail -n +501 "$work/rows"
} >"$work/survey.csv"

infer 0 "$work/survey.csv" "$work/whole.npy" -q
for tile in 1.3m 40cm 1km; do
    infer 0 "$work/survey.csv" "$work/tiled.npy" -q --tile $tile
    same "$work/whole.npy" "$work/tiled.npy"
done
infer 0 "$work/survey.csv" "$work/whole.ply" -q --mode voxel
infer 0 "$work/survey.csv" "$work/tiled.ply" -q --mode voxel --tile 1.1m
same "$work/whole.ply" "$work/tiled.ply"

# What is said: tiles end on cells of the coarsest level, which are 40 cm.
infer 0 "$work/survey.csv" "$work/tiled.npy" --tile 1.3m
says 'tiles of 1.2 m, with margins of'
says 'points in'
infer 0 "$work/survey.csv" "$work/near.npy" --tile 1.3m --margin 1cm
says 'beyond the margin of 0.01 m: they are not those of the whole cloud'
differ "a narrow margin gives other results" "$work/whole.npy" "$work/near.npy"
infer 0 "$work/survey.csv" "$work/blend.npy" -q --tile 2m --margin 1m --blend
differ "means have other bits" "$work/whole.npy" "$work/blend.npy"

# A folder of clouds.
mkdir "$work/many"
cp "$work/rooms/test/000009.ply" "$work/many/a.ply"
cp "$work/rooms/val/"*.ply "$work/many/"
infer 0 "$work/many" "$work/labels" -q
infer 0 "$work/many" "$work/labels_tiled" -q --tile 1m
for cloud in "$work/labels/"*; do same "$cloud" "$work/labels_tiled/${cloud##*/}"; done

# Metrics are counts and have the same digits; a loss is a sum of means in another order.
evaluate() { run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --split train --json -q "$@"; }
evaluate
grep -o '"iou".*"points":[0-9]*' "$out" >"$work/metrics"
grep -o '"ce":[0-9.]*' "$out" | cut -d: -f2 >"$work/loss"
evaluate --tile 1m
check "metrics of tiles" cmp "$work/metrics" <(grep -o '"iou".*"points":[0-9]*' "$out")
grep -o '"ce":[0-9.]*' "$out" | cut -d: -f2 >>"$work/loss"
check "the loss of tiles" awk '{ v[NR] = $1 } END { d = v[1] / v[2] - 1; exit !(NR == 2 && v[1] > 0 && d * d < 1e-12) }' "$work/loss"
evaluate --tile 1m --margin 1cm
differ "metrics of a narrow margin" "$work/metrics" <(grep -o '"iou".*"points":[0-9]*' "$out")
run 2 eval $model --weights "$work/run" --config "$work/run.yaml" --tile 1m --each "$work/each"
cat >"$work/colours.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net each(p: cloud) { return p.rgb -> linear(12) }
y = each(cloud)
loss ce = cross_entropy(y, cloud.label)
loss rest = mse(y -> linear(3), cloud.rgb)
END
run 0 train "$work/colours.pnet" --config "$work/run.yaml" -o "$work/colours" -q -j 1
run 2 eval "$work/colours.pnet" --weights "$work/colours" --config "$work/run.yaml" --tile 1m
says 'does not count points with labels'

# What is refused.
infer 2 "$work/survey.csv" "$work/none.npy" --margin 1m
says '--margin is for tiles'
infer 2 "$work/survey.csv" "$work/none.npy" --blend
says '--blend is for tiles'
infer 2 "$work/survey.csv" "$work/none.npy" --tile 0m
cat >"$work/shapes.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net far(p: cloud) {
  g = grid(p, 20cm)
  x = p.rgb -> pool(mean, to=g) -> conv(4, kernel=3, knn=5)
  return x -> upsample(to=level(p)) -> linear(12)
}
y = far(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 0 train "$work/shapes.pnet" --config "$work/run.yaml" -o "$work/far" -q -j 1
run 2 infer "$work/shapes.pnet" --weights "$work/far" --input "$work/survey.csv" -o "$work/none.npy" --tile 1m
says 'depends on all points of the cloud, behind far.x.conv'
says '--margin LENGTH'
check "nothing is written" test ! -e "$work/none.npy"
run 0 infer "$work/shapes.pnet" --weights "$work/far" --input "$work/survey.csv" -o "$work/far.npy" --tile 1m --margin 60cm --blend
says 'depend on points anywhere in the cloud'
cat >"$work/kinds.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net kind(p: cloud) {
  all = p.rgb -> pool(mean, to=sample) -> linear(3)
  return cat(p.rgb, all -> expand(to=level(p))) -> linear(12)
}
y = kind(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 0 train "$work/kinds.pnet" --config "$work/run.yaml" -o "$work/kinds" -q -j 1
run 2 infer "$work/kinds.pnet" --weights "$work/kinds" --input "$work/survey.csv" -o "$work/none.npy" --tile 1m --value kind.all
says 'no row for each point'
finish
