# Training, evaluation and inference from the command line, on synthetic rooms.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
rooms=$work/rooms
run 0 data synth rooms -o "$rooms" --count 10 --points 1500 --seed 3 -j 1
cat >"$work/run.yaml" <<END
data: rooms
steps: 6
batch_size: 2
lr: 0.01
save_every: {steps: 3}
eval_every: {steps: 2}
augment: {rotate: z, flip: [x]}
END

# Every model compiles in both modes.
for m in models/*.pnet tests/lang/models/*.pnet; do
    for mode in native voxel; do run 0 check "$m" --mode $mode; done
done

# The run folder holds what the design says, and all of it can be read.
runs=$work/runs
run 0 train $model --config "$work/run.yaml" -o "$runs/a" --json -j 1
valid_json "$out"
for key in parameters steps seconds points peak_bytes planned_bytes validation; do prints "\"$key\""; done
check "$(number steps "$out") steps" test "$(number steps "$out")" = 6
planned=$(number planned_bytes "$out") peak=$(number peak_bytes "$out")
check "peak of $peak bytes" test "$peak" -gt 100000
check "$planned bytes planned" test "$planned" -gt 100000
for f in config.yaml model.pnet metrics.jsonl report.html {last,best}/{weights.safetensors,optimizer.safetensors,state.json}; do
    check "run folder" test -s "$runs/a/$f"
done
check "unexpected: $(ls -A "$runs/a")" test "$(ls -A "$runs/a" | wc -l)" = 6
run 0 train $model --config "$runs/a/config.yaml" -o "$runs/again" -q -j 1
same "$runs/a/config.yaml" "$runs/again/config.yaml"
same "$runs/a/last/weights.safetensors" "$runs/again/last/weights.safetensors"
same $model "$runs/a/model.pnet"
valid_json "$runs/a/metrics.jsonl"
valid_json "$runs/a/last/state.json"
check "steps in metrics.jsonl" test "$(grep -c '"gradient_norm"' "$runs/a/metrics.jsonl")" = 6
check "evaluations in metrics.jsonl" test "$(grep -c '"val.iou"' "$runs/a/metrics.jsonl")" = 3
check "report has curves" grep -q '<svg' "$runs/a/report.html"
check "report.html loads nothing" hides -qE '(src|href)="?https?:' "$runs/a/report.html"
run 0 info "$runs/a"
prints "tiny.a.unit.out.conv.weight"
prints "step 6"
run 0 plan $model --input "$rooms/train/000000.ply" --train --json
valid_json "$out"

# Without --json people get text on standard output and progress on standard error; -q: silence.
run 0 train $model --config "$work/run.yaml" -o "$runs/text" -j 1
prints "6 steps"
says "validation loss"
run 0 train $model --config "$work/run.yaml" -o "$runs/quiet" -q -j 1
check "-q prints nothing" test ! -s "$out" -a ! -s "$err"
same "$runs/a/last/weights.safetensors" "$runs/quiet/last/weights.safetensors"
same "$runs/a/best/weights.safetensors" "$runs/quiet/best/weights.safetensors"

# Another seed gives other weights, another mode the same shapes; --steps and --set are heard.
run 0 train $model --config "$work/run.yaml" -o "$runs/seed" --seed 2 --steps 2 -q -j 1
differ "the seed does nothing" "$runs/a/last/weights.safetensors" "$runs/seed/last/weights.safetensors"
run 0 train $model --config "$work/run.yaml" -o "$runs/voxel" --mode voxel -q -j 1
tail -c 4000 "$runs/a/last/weights.safetensors" >"$work/native.numbers"
tail -c 4000 "$runs/voxel/last/weights.safetensors" >"$work/voxel.numbers"
differ "the mode does nothing" "$work/native.numbers" "$work/voxel.numbers"
run 0 train $model --config "$work/run.yaml" -o "$runs/wide" --set c=12 --steps 1 -q -j 1
run 0 info "$runs/wide"
prints "c=12"
run 0 infer $model --weights "$runs/wide" --input "$rooms/test/000009.ply" -o "$work/wide.npy"
run 0 infer $model --weights "$runs/a" --mode voxel --input "$rooms/test/000009.ply" -o "$work/mode.npy"

# Without evaluation the last weights are the best ones.
sed 's/eval_every:.*/eval_every: 0/' "$work/run.yaml" >"$work/blind.yaml"
run 0 train $model --config "$work/blind.yaml" -o "$runs/blind" -q -j 1
check "eval_every: 0 does not evaluate" hides -q '"val' "$runs/blind/metrics.jsonl"
same "$runs/blind/last/weights.safetensors" "$runs/blind/best/weights.safetensors"
same "$runs/blind/last/weights.safetensors" "$runs/a/last/weights.safetensors"

# A run is not written over.
cp -r "$runs/a" "$work/kept"
run 2 train $model --config "$work/run.yaml" -o "$runs/a" -q
says "holds a run already"
check "the old run is as it was" diff -r "$runs/a" "$work/kept"
run 0 train $model --config "$work/run.yaml" -o "$runs/a" --resume -q
same "$runs/a/last/weights.safetensors" "$work/kept/last/weights.safetensors"
same "$runs/a/metrics.jsonl" "$work/kept/metrics.jsonl"

# Evaluation: the last validation of the training, again.
run 0 eval $model --weights "$runs/a/last" --config "$work/run.yaml" --json
valid_json "$out"
check "eval and training disagree" test "$(number iou "$out")" = "$(grep '"val.iou"' "$runs/a/metrics.jsonl" | tail -n 1 | sed 's/val\.//g' >"$work/line" && number iou "$work/line")"
run 0 eval $model --weights "$runs/a" --config "$work/run.yaml" --split test
prints "ceiling"
prints "1 clouds"
run 0 eval $model --weights "$runs/a" --config "$work/run.yaml" --mode voxel --split train --json
valid_json "$out"

# Inference: a row for each point, the properties of the cloud kept.
cloud=$rooms/test/000009.ply
points=$(ply_rows "$cloud")
run 0 infer $model --weights "$runs/a" --input "$cloud" -o "$work/labelled.ply"
check "rows of the PLY" test "$(ply_rows "$work/labelled.ply")" = "$points"
for p in x y z red green blue label class score; do
    check "property $p" grep -aqE "^property [a-z0-9]+ $p\$" "$work/labelled.ply"
done
run 0 infer $model --weights "$runs/a/best/weights.safetensors" --input "$cloud" -o "$work/scores.npy"
check "shape $(npy_shape "$work/scores.npy")" test "$(npy_shape "$work/scores.npy")" = "$points 12"
run 0 infer $model --weights "$runs/a" --input "$cloud" -o "$work/features.npy" --value tiny.b
check "shape $(npy_shape "$work/features.npy")" test "$(npy_shape "$work/features.npy")" = "$points 16"
run 0 infer $model --weights "$runs/a" --input "$cloud" -o "$work/colour.pcd" --colour
run 0 info "$work/colour.pcd"
prints "$points points"
run 0 infer $model --weights "$runs/a" --input "$cloud" --input "$rooms/val/000008.ply" -o "$work/many" --format npy
check "an output for each input" test -s "$work/many/000009.npy" -a -s "$work/many/000008.npy"
same "$work/many/000009.npy" "$work/scores.npy"
check "unexpected: $(ls -A "$work/many")" test "$(ls -A "$work/many" | wc -l)" = 2
cp "$cloud" "$work/twin.ply"
mkdir "$work/twins" && cp "$cloud" "$work/twins/twin.ply"
run 2 infer $model --weights "$runs/a" --input "$work/twin.ply" --input "$work/twins/twin.ply" -o "$work/both"
nothing_left "$work/both"

# Comparison of the modes; what is there already is not trained again.
run 0 compare $model --config "$work/run.yaml" -o "$work/compare" --steps 2 -q -j 1
prints "native"
prints "voxel"
prints "peak memory"
run 0 compare $model --config "$work/run.yaml" --weights "$runs/a" --all --json -j 1
valid_json "$out"
for mode in native voxel centre neighbour kernel; do prints "\"$mode\""; done

# The model of the demonstration, with its own config.
run 0 train models/rooms.pnet --config models/rooms.yaml --data "$rooms" -o "$runs/rooms" --steps 2 --set c=8 -q

# Mistakes: exit code, one clear message, nothing left.
bad=$work/bad
run 2
run 2 trian
says "did you mean train"
run 2 train
run 2 train $model -o "$bad"
says "--config"
run 2 train $model --config "$work/run.yaml"
run 2 train $model --config "$work/run.yaml" -o "$bad" --moed voxel
says "did you mean --mode"
run 2 train $model --config "$work/run.yaml" -o "$bad" --mode vixel
run 2 train $model --config "$work/run.yaml" -o "$bad" --steps many
run 2 train $model --config "$work/run.yaml" -o "$bad" --memory lots
run 6 train $model --config "$work/run.yaml" -o "$bad" --device cuda
run 3 train $model --config "$work/run.yaml" -o "$bad" --set d=4
says "'d'"
run 3 train $model --config "$work/run.yaml" -o "$bad" --set v=wide
run 2 train $model --config "$work/run.yaml" -o "$bad" --set classes=5
run 1 train $model --config "$work/none.yaml" -o "$bad"
says "none.yaml"
run 1 train $model --config "$work/run.yaml" -o "$bad" --data "$work/nowhere"
says "nowhere"
run 3 train "$work/none.pnet" --config "$work/run.yaml" -o "$bad"
says "none.pnet"
config() { # line of the config; then what the message must hold
    printf 'data: rooms\n%s\n' "$1" >"$work/wrong.yaml"
    run 2 train $model --config "$work/wrong.yaml" -o "$bad"
    says "wrong.yaml:2"
    says "$2"
}
config 'bacth_size: 2' batch_size
config 'optimizer: {name: adamm}' adamw
config 'optimizer: {name: sgd, momentun: 0.9}' momentum
config 'lr: fast' lr
config 'augment: {rotat: z}' rotate
config 'batch_size: 0' batch_size
printf 'steps: 2\n' >"$work/wrong.yaml"
run 2 train $model --config "$work/wrong.yaml" -o "$bad"
says "data"
printf 'data: rooms\nprecision: bf16\n' >"$work/wrong.yaml"
run 2 train $model --config "$work/wrong.yaml" -o "$bad"
sed 's/-> relu/-> rleu/' $model >"$work/wrong.pnet"
run 3 train "$work/wrong.pnet" --config "$work/run.yaml" -o "$bad"
says "wrong.pnet:15"
says "relu"
check "a mistake leaves nothing" test ! -e "$bad"
run 5 train $model --config "$work/run.yaml" -o "$runs/over" --memory 1MiB -q
says "over the memory budget of 1.00 MiB"
check "a run that could not begin leaves nothing" test ! -e "$runs/over"
run 0 plan $model --input "$cloud" --train --json
# enough for the geometry of one batch and the weights, not for the features of any
budget=$(($(number geometry "$out") * 5 / 8 + $(number features "$out") * 5 / 8 + 160000))
printf 'data: rooms\nsteps: 1\n' >"$work/one.yaml"
run 5 train $model --config "$work/one.yaml" -o "$runs/over" --memory $budget -q -j 1
says "alive at the peak"
says "tiny."
check "a run that could not begin leaves nothing" test ! -e "$runs/over"
run 0 train $model --config "$work/one.yaml" -o "$runs/over" --memory $((4 * budget)) -q -j 1
run 5 infer $model --weights "$runs/a" --input "$cloud" -o "$work/b.ply" --memory 100KiB
check "no result beyond the budget" test ! -e "$work/b.ply"
run 5 plan $model --input "$cloud" --memory 100KiB -q

for command in check fmt plan graph train infer eval compare data ops info; do
    run 0 $command --help
    prints "usage: pnetc $command"
    run 2 $command --no-such-option
done
run 0 --version
prints "pnetc "
run 0 --help
finish
