# A training for completion: its best checkpoint is that of the least error, its report shows what it makes of validation samples.
. tests/cli/common.sh
mkdir "$work/set"
for i in 0 1 2 3 4 5; do
    awk -v seed=$i 'BEGIN { srand(seed + 1); for (i = 0; i < 300; i++) print rand() - 0.5, rand() - 0.5, 2 * rand() - 1 }' >"$work/set/f$i.txt"
    awk '$1 < 0' "$work/set/f$i.txt" >"$work/set/p$i.txt"
done
cat >"$work/set/dataset.yaml" <<END
pnet_dataset: 1
task: completion
train: [{partial: p*.txt, full: f*.txt, drop_every: 2}]
val: [{partial: p*.txt, full: f*.txt, keep_every: 2}]
END
cat >"$work/small.pnet" <<END
pnet 1
input partial { xyz : position }
input full { xyz : position }
net small(p: cloud) {
  C = points(sample, 40)
  return p.xyz -> linear(16) -> relu -> pool(max, to=sample) -> linear(120) -> split(to=C)
}
y = small(partial)
loss   cd    = chamfer(y, full.xyz)
metric shape = completion(y, full.xyz)
END
cat >"$work/run.yaml" <<END
data: set
steps: 12
batch_size: 2
lr: 0.05
eval_every: {steps: 1}
END
run 0 train "$work/small.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
grep -o '"val.shape":[0-9.e+-]*' "$work/run/metrics.jsonl" | cut -d : -f 2 | sort -g >"$work/values"
check "validations" test "$(wc -l <"$work/values")" = 12
check "that differ" test "$(head -n 1 "$work/values")" != "$(tail -n 1 "$work/values")"
best=$(number shape "$work/run/best/state.json")
check "the best of $(tr '\n' ' ' <"$work/values") is $best" awk -v a="$best" -v b="$(head -n 1 "$work/values")" 'BEGIN { exit !(a - b < 1e-6 * b && b - a < 1e-6 * b) }'

# The report: partial, prediction and truth of each of the three samples. The dots of a prediction are what infer writes with the
# last weights, seen by the camera, at the scale and around the middle of the partial and the true cloud.
report=$work/run/report.html
check "a picture a sample" test "$(grep -c '^<svg viewBox="0 0 640 228">' "$report")" = 3
for text in 'partial, 1[0-9][0-9] points<' 'prediction, 40 points' 'truth, 300 points<'; do
    check "three times $text" test "$(grep -oE ">$text" "$report" | wc -l)" = 3
done
for i in 0 2 4; do
    run 0 infer "$work/small.pnet" --weights "$work/run/last" --input "$work/set/p$i.txt" -o "$work/predicted$i.xyz"
    value=$(run 0 eval "$work/small.pnet" --weights "$work/run/last" --config "$work/run.yaml" --json --each "$work/each" && sed -n "$((i / 2 + 1))p" "$work/each" | grep -o '"shape":[0-9.]*' | cut -d : -f 2)
    check "the caption of $i" grep -qF "<figure><figcaption>p$i.txt, shape $(printf %.4g "$value")</figcaption>" "$report"
    grep -A 2 "<figcaption>p$i.txt" "$report" | tr M '\n' | sed -n 's/^\([0-9.]*\) \([0-9.]*\)h0.*/\1 \2/p' |
        awk '$1 >= 215 && $1 <= 425' >"$work/dots"
    { sed 's/^/shape /' "$work/set/p$i.txt" "$work/set/f$i.txt"; sed 's/^/point /' "$work/predicted$i.xyz"; } | awk '
        {
            x = $2 * 0.5 - $3 * sqrt(0.75); u = $2 * sqrt(0.75) + $3 * 0.5
            v = $4 * 0.9063077870366499 - x * 0.42261826174069944
        }
        $1 == "shape" {
            if (!n++ || u < l) l = u; if (n == 1 || u > r) r = u
            if (n == 1 || v < b) b = v; if (n == 1 || v > t) t = v
        }
        $1 == "point" {
            s = 182 / (r - l > t - b ? r - l : t - b)
            x = 320 + s * (u - (l + r) / 2); y = 123 - s * (v - (b + t) / 2)
            if (x >= 215 && x <= 425 && y >= 18 && y <= 228) printf "%.4f %.4f\n", x, y
        }' >"$work/wanted"
    check "dots of $i" test "$(wc -l <"$work/dots")" = "$(wc -l <"$work/wanted")" -a "$(wc -l <"$work/dots")" -ge 20
    check "their places" awk 'FNR == NR { x[++n] = $1; y[n] = $2; next }
        { for (k = 1; k <= n; k++) if ((x[k] - $1) ^ 2 + (y[k] - $2) ^ 2 < 0.02) next; exit 1 }' "$work/dots" "$work/wanted"
done
# The recipe models/partial.yaml: 150 epochs, of which each 50 have half the learning rate of those before, a validation each tenth.
run 0 train "$work/small.pnet" --config models/partial.yaml --data "$work/set" -o "$work/recipe" -q -j 1 --set-config batch_size=3
check "rates of the recipe" awk -F '[:,]' '
    /"lr":/ {
        for (i = 1; i < NF; i++) {
            if ($i ~ /"epoch"/) epoch = $(i + 1)
            if ($i == "\"lr\"") rate = $(i + 1)
        }
        want = epoch < 50 ? 1e-4 : epoch < 100 ? 5e-5 : 2.5e-5
        if (rate < 0.99999 * want || rate > 1.00001 * want) exit 1
        steps++
    }
    END { exit steps != 150 || epoch != 149 }' "$work/recipe/metrics.jsonl"
check "validations of the recipe" test "$(grep -c '"val.shape"' "$work/recipe/metrics.jsonl")" = 15
for line in 'batch_size: 32' 'optimizer: adam' 'clip_grad: 10' 'augment: {flip: \[x, y\]}'; do
    check "$line" grep -qx "$line" models/partial.yaml
done
check "mirrored clouds" grep -q 'flip: \[x, y\]' "$work/recipe/config.yaml"

# No validation, no pictures.
run 0 train "$work/small.pnet" --config "$work/run.yaml" -o "$work/bare" -q -j 1 --set-config eval_every=0
check "no picture" hides -q '>truth, ' "$work/bare/report.html"

# A cloud that lies elsewhere than those of the training, or has another size, is told, by infer and eval.
run 0 infer "$work/small.pnet" --weights "$work/run/last" --input "$work/set/p0.txt" -o "$work/there.xyz"
check "no warning about a cloud of the training" test ! -s "$err"
awk '{ print $1 + 40, $2, $3 }' "$work/set/p0.txt" >"$work/away.txt"
run 0 infer "$work/small.pnet" --weights "$work/run/last" --input "$work/away.txt" -o "$work/away.xyz"
says 'away.txt: lies outside of the clouds that the model was trained on: its middle is (39.'
awk '{ print 1000 * $1 + 250, 1000 * $2, 1000 * $3 }' "$work/set/p0.txt" >"$work/large.txt"
run 0 infer "$work/small.pnet" --weights "$work/run/last" --input "$work/large.txt" -o "$work/large.xyz"
says 'large.txt: '
awk '{ print $1 / 10 - 0.2, $2 / 10, $3 / 10 }' "$work/set/p0.txt" >"$work/tiny.txt"
run 0 infer "$work/small.pnet" --weights "$work/run/last" --input "$work/tiny.txt" -o "$work/tiny.xyz"
says 'tiny.txt: is 0.'
for name in away p0; do
    file=$work/set/p0.txt
    [ $name = away ] && file=$work/away.txt
    printf 'pnet_dataset: 1\ntask: completion\nval: [{partial: %s, full: %s}]\n' "$file" "$file" >"$work/$name.yaml"
    run 0 eval "$work/small.pnet" --weights "$work/run/last" --config "$work/run.yaml" --data "$work/$name.yaml"
    [ $name = p0 ] || says 'away.txt: lies outside of the clouds'
done
check "no warning about a set like that of the training" test ! -s "$err"
# A run that goes on records what a run without a break does; a checkpoint without a record says nothing.
printf 'data: set\nsteps: 6\nbatch_size: 2\nlr: 0.05\neval_every: {steps: 1}\n' >"$work/half.yaml"
run 0 train "$work/small.pnet" --config "$work/half.yaml" -o "$work/halves" -q -j 1
run 0 train "$work/small.pnet" --config "$work/run.yaml" -o "$work/halves" -q -j 1 --resume
frame() { grep -o 'frame: {[^}]*}' "$1/last/state.json"; }
check "the frame: $(frame "$work/run")" test "$(frame "$work/run")" = "$(frame "$work/halves")" -a -n "$(frame "$work/run")"
run 0 infer "$work/small.pnet" --weights "$work/run/last/weights.safetensors" --input "$work/away.txt" -o "$work/away.xyz" -q
check "no record, no doubt" hides -q 'lies outside' "$err"
finish
