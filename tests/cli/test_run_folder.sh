# A run folder reproduces its run, and its weights say how they were trained.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
rooms=$work/rooms
run 0 data synth rooms -o "$rooms" --count 10 --points 1200 --seed 4 -j 1
mkdir "$work/configs"
cat >"$work/configs/run.yaml" <<END
data: nowhere
epochs: 3
batch_size: 2
lr: 0.01
optimizer: {name: sgd, momentum: 0.8}
schedule: {name: onecycle, warmup: 20%}
class_weights: balanced
inputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255, shift: -0.5}}}
augment: {rotate: z, flip: [x], elastic: {granularity: 20cm, magnitude: 2cm}}
save_every: {steps: 2}
eval_every: {steps: 3}
set: {v: 6cm}
END

# Everything the command line says is in the config of the run folder; that file alone gives the same run, from anywhere.
begun=$work/begun
run 0 train $model --config "$work/configs/run.yaml" -o "$begun" --data "$rooms" --seed 7 --steps 6 --mode voxel \
    --set c=10 --set v=8cm --set-config lr=0.02 --set-config 'clip_grad=5' --device cpu --memory 2GiB --without-optimizer -q -j 1
for line in "data: $(realpath "$rooms")" 'steps: 6' 'seed: 7' 'mode: voxel' 'degrade: []' 'lr: 0.02' 'clip_grad: 5' 'device: cpu' \
    'memory: 2147483648' 'without_optimizer: yes' 'threads: 1' 'batch_size: 2' 'precision: fp32' 'workers: 1' \
    "version: $("$pnetc" --version | sed -n 's/^pnetc //p')"; do
    check "no '$line' in config.yaml" grep -qxF "$line" "$begun/config.yaml"
done
check "params" grep -qE '^set: \{(v: 8cm, c: 10|c: 10, v: 8cm)\}$' "$begun/config.yaml"
check "steps replace epochs" hides -q '^epochs' "$begun/config.yaml"
mkdir "$work/elsewhere"
case $pnetc in /*) program=$pnetc ;; *) program=$PWD/$pnetc ;; esac
here=$PWD
(cd "$work/elsewhere" && exec "$program" train "$here/$model" --config "$begun/config.yaml" -o again -q) >"$out" 2>"$err"
check "trained again" test $? = 0
same "$begun/config.yaml" "$work/elsewhere/again/config.yaml"
for f in last best; do same "$begun/$f/weights.safetensors" "$work/elsewhere/again/$f/weights.safetensors"; done
# The model of the folder has its includes in place: it needs no other file, and is the same model.
mkdir -p "$work/split/parts"
{ printf 'pnet 1 '; sed -n '/^block unit/,/^}/p' $model; printf '# the end'; } >"$work/split/parts/unit.pnet"
sed '/^block unit/,/^}/d; s|^net tiny|include "parts/unit.pnet" &|' $model >"$work/split/model.pnet"
run 0 train "$work/split/model.pnet" --config "$begun/config.yaml" -o "$work/alone" -q
rm -r "$work/split"
same "$begun/last/weights.safetensors" "$work/alone/last/weights.safetensors"
run 0 train "$work/alone/model.pnet" --config "$begun/config.yaml" -o "$work/once" -q
same "$begun/last/weights.safetensors" "$work/once/last/weights.safetensors"
run 0 train "$work/alone/model.pnet" --config "$begun/config.yaml" -o "$work/alone" --resume -q
run 0 eval "$work/alone/model.pnet" --config "$begun/config.yaml" --weights "$work/alone"
run 0 train $model --config "$begun/config.yaml" -o "$work/degraded" --degrade kernel,centre --steps 2 -q
check "degradations" grep -qxF 'degrade: [centre, kernel]' "$work/degraded/config.yaml"
check "and no voxel mode" grep -qxF 'mode: native' "$work/degraded/config.yaml"
run 0 train $model --config "$work/degraded/config.yaml" -o "$work/degraded2" -q
same "$work/degraded/last/weights.safetensors" "$work/degraded2/last/weights.safetensors"
run 0 compare $model --config "$begun/config.yaml" -o "$work/compare" --steps 2 -q
check "compare sets the mode" grep -qxF 'mode: native' "$work/compare/native/config.yaml"
check "compare keeps the config" grep -qxF 'mode: voxel' "$work/compare/voxel/config.yaml"
run 0 train $model --config "$work/compare/voxel/config.yaml" -o "$work/voxel" -q
same "$work/compare/voxel/last/weights.safetensors" "$work/voxel/last/weights.safetensors"

# The report says what the files do not: how the run was made, and the names of the classes.
for text in '<td>voxel</td>' "pnetc train $model --config" "--set-config" "$(realpath "$rooms")" 'c=10' 'lr: 0.02' 'seed: 7' \
    '<td>ceiling</td>' 'geometry version' '<th>parameters</th>' '<th>device</th>' "<td>$(date -u +%Y)-" ' UTC'; do
    check "no '$text' in the report" grep -qF -- "$text" "$begun/report.html"
done
check "one loss, once" hides -qE '<td>(loss|val)\.ce</td>' "$begun/report.html"
longest=$(grep -o '"time_s":[0-9.]*' "$begun/metrics.jsonl" | cut -d : -f 2 | sort -g | tail -n 1)
check "the time of $longest s" grep -qF "$(printf ', %.1f seconds of training' "$longest")" "$begun/report.html"

# Keys of the command line are checked like those of the file.
run 2 train $model --config "$begun/config.yaml" -o "$work/bad" --set-config lrr=1
says "did you mean"
run 2 train $model --config "$begun/config.yaml" -o "$work/bad" --set-config lr=fast
says "--set-config"
run 2 train $model --config "$begun/config.yaml" -o "$work/bad" --set-config lr
run 2 train $model --config "$begun/config.yaml" -o "$work/bad" --set-config 'lr=1: {'
run 2 train $model --config "$begun/config.yaml" -o "$work/bad" --set-config 'set={v: 1}'
for line in 'mode: vixel' 'degrade: centre' 'degrade: [edge]' 'device: gpu' 'algo: fastest' 'autotune: yes' 'threads: 0' \
    'memory: lots'; do
    printf 'data: %s\n%s\n' "$rooms" "$line" >"$work/wrong.yaml"
    run 2 train $model --config "$work/wrong.yaml" -o "$work/bad" -q
    says "wrong.yaml:2"
done
check "a mistake leaves nothing" test ! -e "$work/bad"
printf 'data: rooms\nalgo: mvmr-i\nautotune: 5\n' >"$work/wrong.yaml"
run 2 train $model --config "$work/wrong.yaml" -o "$work/bad" -q

# Params beyond what there is room for are refused, not left out.
awk 'BEGIN { print "data: rooms\nset:"; for (i = 0; i < 200; i++) printf "  p%d: 1\n", i }' >"$work/many.yaml"
# shellcheck disable=SC2046
run 2 train $model --config "$work/many.yaml" -o "$work/bad" -q $(seq -f '--set q%g=1' 100)
says "more than 256 params"

# Going on with another config: what cannot change is refused and touches nothing, what may is told.
run 0 train $model --config "$begun/config.yaml" -o "$work/on" -q --set-config without_optimizer=no --steps 4
cp -r "$work/on" "$work/kept"
for set in batch_size=1 'optimizer={name: sgd, momentum: 0.7}' optimizer=adam accumulate=2 class_weights=no drop_last=yes \
    'inputs={cloud: {rgb: {value: 1}}}'; do
    run 2 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --set-config "$set"
    says "another ${set%%=*}"
    check "refused $set leaves the run" diff -r "$work/on" "$work/kept"
done
run 2 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --mode native
says "was trained in mode voxel, and this is mode native"
run 2 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --seed 8
says "was trained with seed 7"
run 3 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --set c=12
says "was trained with other params"
check "a refused run is as it was" diff -r "$work/on" "$work/kept"
run 0 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume
check "nothing to tell" test ! -s "$err"
run 0 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --steps 6 --set-config lr=0.03 --set-config workers=0
says "steps has changed: 4 before, 6 now"
says "lr has changed: 0.02 before, 0.03 now"
says "workers has changed: 1 before, 0 now"
check "and nothing else" test "$(wc -l <"$err")" = 3
check "the config in force is kept" grep -qxF 'lr: 0.03' "$work/on/config.yaml"
check "the report says where it went on" grep -qF '<td>step 4</td>' "$work/on/report.html"
check "times go on" awk -F '"time_s":' '/gradient_norm/ { t = $2 + 0; if (t < last) exit 1; last = t }' "$work/on/metrics.jsonl"
cp "$work/on/last/weights.safetensors" "$work/six"
run 0 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --steps 5
says "on has made 6 steps, and 5 are asked for: nothing is trained"
check "fewer steps leave the weights" cmp "$work/on/last/weights.safetensors" "$work/six"
run 0 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --steps 6
# params in another order, and given twice, are the same
run 0 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --set c=3 --set v=8cm --set c=10

# A path that is not UTF-8 could not be named by config.yaml, and a run could not be resumed: it is refused before it begins.
latin=$work/$(printf 'r\344ume')
mkdir "$latin"
ln -s "$rooms" "$latin/rooms"
mkdir "$latin/copy"
cp -r "$rooms/." "$latin/copy"
printf 'data: copy\nsteps: 1\n' >"$latin/run.yaml"
run 2 train $model --config "$latin/run.yaml" -o "$work/unnamed" -q
says 'r\xe4ume/copy: the path is not UTF-8'
check "nothing is written" test ! -e "$work/unnamed"
run 2 train $model --config "$work/configs/run.yaml" --data "$latin/copy" -o "$work/unnamed" -q
says "--data: the path $work/r\\xe4ume/copy is not UTF-8"
# weights are evaluated there, and a run whose data have another name may itself lie there
run 0 eval $model --config "$latin/run.yaml" --weights "$work/on" -q
printf 'data: rooms\nsteps: 1\n' >"$latin/linked.yaml"
run 0 train $model --config "$latin/linked.yaml" -o "$latin/run" -q
run 0 train $model --config "$latin/linked.yaml" -o "$latin/run" -q --resume --steps 2

# A validation that gives what is not a number is told, and never the best: weights of 1e30 are finite, their products are not.
cp -r "$work/on" "$work/wild"
run 1 train $model --config "$work/on/config.yaml" -o "$work/wild" -q --resume --steps 12 --set-config lr=1e6 --set-config eval_every='{steps: 1}' \
    --set-config clip_grad=0
says 'the validation gives NaN; best/ is not replaced'
says 'the loss or its gradient is not finite'
check "a validation without a loss" grep -q '"val.loss":null' "$work/wild/metrics.jsonl"
run 0 infer $model --weights "$work/wild" --input "$rooms/test/000009.ply" -o "$work/wild.npy" -q
check "what is best is finite" test ! -s "$err"

# Weights run as they were trained: from the run folder, a checkpoint, or the file alone. iou differs between the modes.
value() { number "$1" "$out"; }
cp "$begun/best/weights.safetensors" "$work/alone.safetensors"
config="$work/configs/run.yaml"
evaluate() { run 0 eval $model --config "$config" --data "$rooms" --json "$@"; }
evaluate --weights "$begun"
voxel=$(value ce)
check "nothing to tell" test ! -s "$err"
logged=$(grep '"val.ce"' "$begun/metrics.jsonl" | sed 's/val\.//g' | grep -oE '"ce":[0-9.e-]*' | cut -d : -f 2)
check "as in training: $voxel of $logged" grep -qxF "$voxel" <(printf '%s\n' $logged)
for weights in "$begun/best" "$work/alone.safetensors"; do
    evaluate --weights "$weights"
    check "$weights runs in voxel mode" test "$(value ce)" = "$voxel"
done
evaluate --weights "$begun" --mode voxel
check "what agrees is not told" test ! -s "$err" -a "$(value ce)" = "$voxel"
evaluate --weights "$begun" --mode native
says "was trained in mode voxel; it runs in mode native"
check "the command line is obeyed" test "$(value ce)" != "$voxel"
# A config that says otherwise is not heard, and the command line is not left unheard without a word.
sed '/^set:/d' "$config" >"$work/configs/none.yaml"
run 0 train $model --config "$work/configs/none.yaml" --data "$rooms" -o "$work/plain" --steps 3 -q -j 1
evaluate --weights "$work/plain"
plain=$(value ce)
{ cat "$work/configs/none.yaml"; printf 'set: {v: 40cm}\nmode: voxel\n'; } >"$work/configs/says.yaml"
evaluate --weights "$work/plain" --config "$work/configs/says.yaml"
check "the config's params and mode do not count" test "$(value ce)" = "$plain" -a ! -s "$err"
evaluate --weights "$work/plain" --set v=40cm
check "those of the command line do" test "$(value ce)" != "$plain"
for set in mode=voxel 'degrade=[kernel]' precision=bf16 'set={v: 40cm}'; do
    run 2 eval $model --config "$config" --data "$rooms" --weights "$work/plain" --set-config "$set"
    says "--${set%%=*} changes it"
    run 2 compare $model --config "$config" --data "$rooms" --weights "$work/plain" --set-config "$set"
done
run 3 eval $model --config "$config" --data "$rooms" --weights "$begun" --set c=12
says "was trained with c=10; it runs with c=12"
run 0 info "$work/alone.safetensors"
prints "trained in mode voxel, in fp32, geometry version"
prints "c=10"
run 0 info --json "$work/alone.safetensors"
valid_json "$out"
prints '"trained":{"mode":"voxel","precision":"fp32"'
cloud=$rooms/test/000009.ply
run 0 infer $model --weights "$work/alone.safetensors" --input "$cloud" -o "$work/file.npy"
check "nothing to tell" test ! -s "$err"
run 0 infer $model --weights "$begun" --input "$cloud" -o "$work/folder.npy" --mode voxel
run 0 infer $model --weights "$begun" --input "$cloud" -o "$work/native.npy" --mode native
says "it runs in mode native"
differ "the mode does nothing" "$work/folder.npy" "$work/native.npy"
# the file alone has no input map: the colours are those of the map only with the checkpoint
run 0 infer $model --weights "$begun" --input "$cloud" -o "$work/plain.npy"
same "$work/folder.npy" "$work/plain.npy"
run 0 compare $model --config "$config" --data "$rooms" --weights "$begun" --json
check "compare takes its own modes" test ! -s "$err"
check "and evaluates in both" grep -qF "\"ce\":$voxel" "$out"

# Weights that tell nothing, or of other definitions of the geometry, or in a precision the device lacks. The header of a
# safetensors file is JSON behind its length: names of the same length are put in its place.
doctored() { # FROM TO
    sed "s/$1/$2/" "$work/alone.safetensors" >"$work/doctored.safetensors"
    differ "nothing is doctored" "$work/alone.safetensors" "$work/doctored.safetensors"
    run "${3:-0}" eval $model --config "$config" --data "$rooms" --json --weights "$work/doctored.safetensors" --set v=8cm --set c=10
}
doctored '"pnet.geometry":"[0-9]*"' '"pnet.geometry":"1"'
says "under version 1 of the geometry's definitions"
check "one sentence" test "$(wc -l <"$err")" = 1
check "in its mode" test "$(value ce)" = "$voxel"
doctored pnet.geometry pnet.geometri
says "does not record its version"
check "one sentence" test "$(wc -l <"$err")" = 1
doctored pnet.mode pnet.mood
says "does not record its mode"
check "one sentence" test "$(wc -l <"$err")" = 1
check "runs natively" test "$(value ce)" != "$voxel"
doctored '"pnet.precision":"fp32"' '"pnet.precision":"bf16"'
says "was trained in bf16; the CPU computes in fp32"
check "one sentence" test "$(wc -l <"$err")" = 1
check "in its mode" test "$(value ce)" = "$voxel"
doctored '"pnet.mode":"voxel"' '"pnet.mode":"vixel"' 4
says "pnet.mode"
printf 'data: %s\nprecision: bf16\ninputs: {cloud: {rgb: {field: [red, green, blue], scale: 1/255, shift: -0.5}}}\n' "$rooms" >"$work/bf16.yaml"
sed 's/pnet.mode/pnet.mood/' "$work/alone.safetensors" >"$work/doctored.safetensors"
run 0 eval $model --config "$work/bf16.yaml" --weights "$work/doctored.safetensors" --set v=8cm --set c=10
says "the CPU computes in fp32"

# A run whose geometry was another one is not gone on with, and says why.
sed -i 's/"pnet.geometry":"[0-9]*"/"pnet.geometry":"1"/' "$work/on/last/weights.safetensors"
crc() { gzip -c "$1" | tail -c 8 | od -An -tu4 -N4 | tr -d ' '; }
state=$work/on/last/state.json
sed -i -E "s/(\"weights.safetensors\":\{\"bytes\":[0-9]*,\"crc32\":)[0-9]*/\1$(crc "$work/on/last/weights.safetensors")/; s/\"plan\":-?[0-9]*/\"plan\":12345/; s/\"format\":2/\"format\":1/; s/,\"state_crc32\".*/}/" "$state"
rm -rf "$work/kept"
cp -r "$work/on" "$work/kept"
run 2 train $model --config "$work/on/config.yaml" -o "$work/on" -q --resume --steps 9
says "was trained under version 1 of the geometry's definitions"
check "a refused run is as it was" diff -r "$work/on" "$work/kept"
finish
