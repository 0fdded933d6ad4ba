# A net that takes features of one cloud to the points of another one: train, eval and infer.
. tests/cli/common.sh
mkdir "$work/set"
# Coordinates are multiples of 1/64 m, f = x + y / 2; a query may lie where the cloud has no points.
cloud() { # seed, points, shift of x
    awk -v seed="$1" -v n="$2" -v shift="$3" 'BEGIN {
        srand(seed); print "x y z f"
        for (i = 0; i < n; i++) {
            x = int(rand() * 192) / 64; y = int(rand() * 128) / 64; z = int(rand() * 64) / 64
            printf "%.6f %.6f %.6f %.6f\n", x + shift, y, z, x + y / 2
        }
    }'
}
for i in 0 1 2 3; do
    cloud $((i + 1)) 500 0 | awk 'NR == 1 || $1 > 0.5' >"$work/set/p$i.csv"
    cloud $((i + 21)) 300 0 >"$work/set/q$i.csv"
done
cat >"$work/set/dataset.yaml" <<END
pnet_dataset: 1
task: completion
train: [{partial: p*.csv, full: q*.csv, drop_every: 4}]
val: [{partial: p*.csv, full: q*.csv, keep_every: 4}]
END
cat >"$work/net.pnet" <<END
pnet 1
input cloud { xyz : position  f : feature[1] }
input query { xyz : position  f : feature[1] }
net n(p: cloud, q: cloud) {
  g = grid(p, 25cm * [1, 2])
  x = p.f -> pool(mean, to=g[0]) -> linear(8)
  z = x -> pool(mean, to=g[1])
  return cat(x -> interpolate(to=level(q)), z -> interpolate(to=level(q), outside=nearest)) -> linear(1)
}
y = n(cloud, query)
loss l = mse(y, query.f)
END
cat >"$work/run.yaml" <<END
data: set
steps: 60
batch_size: 3
lr: 0.05
eval_every: {steps: 20}
END
run 0 train "$work/net.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
grep -o '"val.l":[0-9.e+-]*' "$work/run/metrics.jsonl" | cut -d : -f 2 >"$work/losses"
check "the loss of validation falls below a tenth of the variance: $(tr '\n' ' ' <"$work/losses")" \
    awk 'END { exit !($1 < 0.08) }' "$work/losses"
run 0 train "$work/net.pnet" --config "$work/run.yaml" -o "$work/again" -q -j 2
same "$work/run/last/weights.safetensors" "$work/again/last/weights.safetensors"

# Inference takes the query cloud as the second input; its result has a row for each query, in the order of the file, and is what
# eval measured.
infer() { # code, cloud, query, output, options
    run "$1" infer "$work/net.pnet" --weights "$work/run/last" --input "$2" --input query="$3" -o "$4" "${@:5}"
}
run 0 eval "$work/net.pnet" --weights "$work/run/last" --config "$work/run.yaml" --split val --json
evaluated=$(number l "$out")
infer 0 "$work/set/p0.csv" "$work/set/q0.csv" "$work/q0.csv"
check "a row for each query" test "$(wc -l <"$work/q0.csv")" = 301
paste -d ' ' "$work/set/q0.csv" <(tr ',' ' ' <"$work/q0.csv") >"$work/both"
check "the queries as they were" awk 'NR > 1 && ($1 != $5 || $2 != $6 || $3 != $7) { exit 1 }' "$work/both"
check "the error of eval, $evaluated" awk -v want="$evaluated" '
    NR > 1 { e += ($9 - $4) ^ 2; n++ } END { exit !(n == 300 && (e / n - want) ^ 2 < (1e-4 * want) ^ 2) }' "$work/both"

# Far from the origin each cloud is read with an offset of its own: 1000 m and 1100 m here. Both are brought into one frame.
cloud 1 500 1100 | awk 'NR == 1 || $1 > 1100.5' >"$work/p_far.csv"
{ cloud 21 300 1100; echo "1050 0 0 0"; } >"$work/q_far.csv"
infer 0 "$work/p_far.csv" "$work/q_far.csv" "$work/far.npy"
{ cloud 21 300 0; echo "-50 0 0 0"; } >"$work/q_near.csv"
infer 0 "$work/set/p0.csv" "$work/q_near.csv" "$work/near.npy"
same "$work/far.npy" "$work/near.npy"
infer 0 "$work/p_far.csv" "$work/q_far.csv" "$work/far.csv"
check "the coordinates of the file" test "$(sed -n 301p "$work/q_far.csv" | cut -d ' ' -f 1)" = "$(sed -n 301p "$work/far.csv" | tr , ' ' | cut -d ' ' -f 1)"
# A query cloud without fields.
cut -d ' ' -f 1-3 "$work/set/q0.csv" >"$work/bare.csv"
infer 0 "$work/set/p0.csv" "$work/bare.csv" "$work/bare.npy"
run 0 plan "$work/net.pnet" --points 5000 --train

# The clouds of a pair for registration have frames of their own.
sed 's/completion/registration/; s/partial:/source:/g; s/full:/target:/g; s/, [dk][a-z]*_every: 4}/, pose: t*.txt}/' \
    "$work/set/dataset.yaml" >"$work/set/pairs.yaml"
for i in 0 1 2 3; do echo "1 0 0 0  0 1 0 0  0 0 1 0" >"$work/set/t$i.txt"; done
for command in train eval; do
    options="-o $work/none"
    [ $command = train ] || options="--weights $work/run/last --split val"
    # shellcheck disable=SC2086
    run 2 $command "$work/net.pnet" --config "$work/run.yaml" --set-config data=set/pairs.yaml $options -q
    says 'frames of their own'
done
nothing_left "$work/none"
finish
