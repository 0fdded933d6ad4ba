# Allocations that fail, one at a time and with all behind it, in every command: no crash and no hang. A command either does
# without, and leaves what it leaves on any other day, or ends with exit code 5 and one sentence; then every file is as it was
# or as it would have become. PNET_FAIL_ALLOC names the library of tests/faults/fail_alloc.c.
# Commands with thousands of allocations let some of them fail; with PNET_TEST_LONG=1 every one. PNET_TEST_ONLY=NAME: that
# command alone. A finding is looked into with PNET_FAIL_TRACE=1, which prints the calls that led to the allocation.
library=${PNET_FAIL_ALLOC:-}
if [ ! -f "$library" ]; then
    echo 'skipped: PNET_FAIL_ALLOC names no library (none is built with a sanitizer or static libraries)'
    exit 77
fi
. tests/cli/common.sh
in=$work/in model=$PWD/tests/cli/tiny.pnet pair=$PWD/tests/register/pair.pnet shapes=$PWD/models/shapes.pnet
input=/dev/null # of a command
jobs=2 # at once, each in a folder of its own
shopt -s globstar nullglob dotglob

# ---- what the commands work on ----

mkdir "$in"
run 0 data synth rooms -o "$in/rooms" --count 4 --points 300 --seed 2 -j 1 -q
run 0 data synth pairs -o "$in/pairs" --count 3 --points 300 --seed 2 -j 1 -q
printf 'data: rooms\nsteps: 2\nbatch_size: 1\nworkers: 1\neval_every: {steps: 1}\nsave_every: {steps: 1}\n' >"$in/run.yaml"
printf 'data: pairs\nsteps: 1\nbatch_size: 1\nworkers: 0\neval_every: 0\n' >"$in/pairs.yaml"
run 0 data synth shapes -o "$in/shapes" --count 3 --points 100 --seed 2 -j 1 -q
printf 'data: shapes\nset: {c: 4, v: 30cm}\nsteps: 1\nworkers: 0\neval_every: 0\ninputs: {cloud: {normal: {value: 0}}}\n' >"$in/shapes.yaml"
run 0 train "$shapes" --config "$in/shapes.yaml" -o "$in/shapes.run" -q -j 1
run 0 train "$model" --config "$in/run.yaml" -o "$in/run" -q -j 1
run 0 train "$model" --config "$in/run.yaml" -o "$in/half" --steps 1 -q -j 1
run 0 train "$pair" --config "$in/pairs.yaml" -o "$in/pairs.run" -q -j 1
mkdir "$in/words" # colours that are no bytes, so that a scan reads them
awk 'BEGIN { for (i = 0; i < 90; i++) print i % 9 / 4, int(i / 9) / 4, 0, i * 700, 5 * i, 9, i % 12 }' | tee "$in/words/a.txt" >"$in/words/b.txt"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c, d, e, f, g, h, i, j, k, l]\ncolumns: [x, y, z, red, green, blue, label]\ntrain: [a.txt, b.txt]\n' >"$in/words/dataset.yaml"
printf 'data: words\nsteps: 1\nworkers: 0\neval_every: 0\n' >"$in/words.yaml"
sed 's/-> relu/-> rleu/' "$model" >"$in/wrong.pnet"
sed 's/  */  /g' "$model" >"$in/loose.pnet"
cp "$(ls "$in"/rooms/test/*.ply "$in"/rooms/*/*.ply | head -n 1)" "$in/cloud.ply"
cp "$(ls "$in"/pairs/train/*.ply | head -n 1)" "$in/source.ply"
cp "$(ls "$in"/pairs/train/*.ply | tail -n 1)" "$in/target.ply"
printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n' >"$in/pose.txt"
printf 'net.*: tiny.*\n' >"$in/map.yaml"
run 0 export "$model" --weights "$in/run" --to minkowski --map "$in/map.yaml" -o "$in/theirs.safetensors" -q
mkdir "$in/meshes"
printf 'OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n' >"$in/meshes/a.off"
printf 'v 0 0 0\nv 3 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n' >"$in/meshes/b.obj"
printf '0 0 0\n1 0 0\n1 1 0\n' | tee "$in/meshes/p1.txt" "$in/meshes/f1.txt" >"$in/meshes/p2.txt"
cp "$in/meshes/p2.txt" "$in/meshes/f2.txt"
cat >"$in/meshes/dataset.yaml" <<END
pnet_dataset: 1
task: completion
classes: [a, b]
train:
  - {mesh: a.off, points: 200, views: {count: 2, points: 100}, label: a}
  - {mesh: b.obj, points: 200, views: {points: 100, kind: cut}}
  - {partial: p*.txt, full: f*.txt, points: 8, full_points: 2, label: b}
END
cat >"$in/two.pnet" <<END
pnet 1
input partial { xyz : position
  at : feature[3] }
input full { xyz : position
  at : feature[3] }
net small(p: cloud, q: cloud) {
  a = p.at -> linear(4) -> pool(max, to=sample) -> linear(3)
  b = q.at -> linear(4) -> pool(max, to=sample) -> linear(3)
  return a + b
}
y = small(partial, full)
loss l = mse(y, full.at -> pool(mean, to=sample))
END
printf 'data: meshes\nsteps: 3\nbatch_size: 2\nworkers: 0\neval_every: 0\naugment: {flip: [x, z], jitter: 1mm}\ninputs: {partial: {at: [x, y, z]}, full: {at: [x, y, z]}}\n' >"$in/meshes.yaml"
run 0 train "$in/two.pnet" --config "$in/meshes.yaml" -o "$in/meshes.run" -q -j 1
# Points that a network generates, compared with others; attention.
cat >"$in/generate.pnet" <<END
pnet 1
input partial { xyz : position }
input full { xyz : position }
net few(p: cloud) {
  return p.xyz -> linear(8) -> relu -> pool(max, to=sample) -> linear(48) -> split(to=points(sample, 16))
}
y = few(partial)
loss near = chamfer(y, full.xyz)
loss all  = apml(y, full.xyz)
END
cat >"$in/attend.pnet" <<END
pnet 1
input cloud { xyz : position
  rgb : feature[3]
  label : class[12] per point }
net near(p: cloud) {
  x = p.rgb -> pool(mean, to=grid(p, 20cm)) -> linear(24)
  return x -> attend(1, order="hilbert", bucket=16, scope=2, shift=1) -> upsample(to=level(p)) -> linear(12)
}
y = near(cloud)
loss l = cross_entropy(y, cloud.label)
END
printf 'data: meshes\nsteps: 2\nbatch_size: 2\nworkers: 0\neval_every: 0\n' >"$in/generate.yaml"
printf 'data: rooms\nsteps: 2\nbatch_size: 1\nworkers: 0\neval_every: 0\n' >"$in/attend.yaml"
run 0 train "$in/generate.pnet" --config "$in/generate.yaml" -o "$in/generate.run" -q -j 1
run 0 train "$in/attend.pnet" --config "$in/attend.yaml" -o "$in/attend.run" -q -j 1

# A session with the language server: each request, an include, an edit and a syntax error; texts out of step, and in step again.
say() { printf 'Content-Length: %d\r\n\r\n%s' ${#1} "$1"; }
note() { say "{\"jsonrpc\":\"2.0\",\"method\":\"$1\",\"params\":{\"textDocument\":{\"uri\":\"$uri\"$2}}"; }
request() { say "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"textDocument/$1\",\"params\":{\"textDocument\":{\"uri\":\"$uri\"}$2}}"; }
printf 'pnet 1\nparam width = 3\n' >"$in/part.pnet"
uri=file://$in/unsaved.pnet
{
    say '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}'
    note textDocument/didOpen ',"version":1,"text":"pnet 1\ninclude \"part.pnet\"\ninput c { xyz : position }\nnet n(p: cloud) { return ones(grid(p, 5cm)) -> linear(width) }\ny = n(c)\n"}'
    for ask in hover completion definition references prepareRename; do request $ask ',"position":{"line":3,"character":55}'; done
    request rename ',"position":{"line":3,"character":55},"newName":"wide"'
    request formatting ''
    request documentSymbol ''
    note textDocument/didChange ',"version":2},"contentChanges":[{"range":{"start":{"line":4,"character":4},"end":{"line":4,"character":5}},"text":")"}]'
    note textDocument/didChange ',"version":3},"contentChanges":[{"text":"pnet 1\n# \ud800\u0000\n"},{"text":7}]'
    request hover ',"position":{"line":0,"character":0}'
    note textDocument/didSave '},"text":"pnet 1\nx=1\n"'
    say '{'
    (uri=file://$in/unknown.pnet && note textDocument/didChange '},"contentChanges":[]')
    note textDocument/didChange ',"version":4},"contentChanges":[{"text":"pnet 1\nx=1 # \ud800\n"}]'
    request formatting ''
    request rename ',"position":{"line":1,"character":0},"newName":"wide"'
    note textDocument/didClose '}'
    say '{"jsonrpc":"2.0","id":2,"method":"shutdown"}'
    say '{"jsonrpc":"2.0","method":"exit"}'
} >"$in/session"

# ---- one run ----

# Times are different every day, and so is the peak, where two threads share memory; the plan of it is the first batch's for
# which there was memory to make one.
plain() { # FILE
    sed -E -e 's/"([a-z_.]*seconds|[a-z_.]*time_s|points_per_s|p[a-z]*_bytes)":[^,}]*/"\1":0/g' \
        -e 's/[0-9.]+ s,/s,/g; s/[0-9]+ points\/s/points\/s/; s/peak memory.*//' \
        -e 's/^((training|evaluation), [a-z/]+) .*/\1/' "$1"
}

# What lies in the current folder, a line a file that begins with its name, in order. What tells times is compared without
# them, or by its last line.
look() {
    local f files=()
    for f in **; do
        if [ -L "$f" ]; then
            echo "$f -> $(readlink "$f")"
        elif [ -d "$f" ]; then
            echo "$f/"
        else
            case $f in
            *.html) echo "$f $(tail -n 1 "$f")" ;;
            *.jsonl) echo "$f $(plain "$f" | cksum)" ;;
            *) files+=("$f") ;;
            esac
        fi
    done
    [ ${#files[@]} = 0 ] || cksum "${files[@]}" | awk '{ print $3, $1, $2 }'
}

# What a command finds in its folder.
prepare() { # NAME
    local files=(*)
    [ ${#files[@]} = 0 ] || rm -r "${files[@]}"
    case $1 in
    fmt | fmt-check) cp "$in/loose.pnet" a.pnet ;;
    graph | infer | register) echo old | tee a.svg b.ply >old.txt ;;
    resume) cp -r "$in/half" out ;;
    force) cp -r "$in/rooms" out ;;
    esac
}

# attempt FAIL_AT FAIL_ALL ARGUMENTS...: in the current folder; its output goes beside that folder.
attempt() {
    local at=$1 all=$2
    shift 2
    rm -rf "$PWD.cache"
    XDG_CACHE_HOME=$PWD.cache timeout 60 env LD_PRELOAD="$library" PNET_FAIL_AT="$at" ${all:+PNET_FAIL_ALL=1} PNET_FAIL_COUNT="$PWD.count" \
        "$pnetc" "$@" >"$PWD.out" 2>"$PWD.err" <"$input"
}

# sentence REFERENCE: standard error is one line that tells of memory, beside what is said on any other day. With --json,
# check tells on standard output.
sentence() {
    grep -vxFf "$1" "$PWD.err" >"$PWD.said"
    grep -q '"message": "out of memory"' "$PWD.out" && [ ! -s "$PWD.said" ] && return
    [ "$(grep -c . "$PWD.said")" = 1 ] && grep -qi 'memory' "$PWD.said" && return
    echo "not one sentence about memory: $(head -c 300 "$PWD.said")"
}

# unfinished NAME: prints what is wrong with the files of a command that has ended with 5.
unfinished() {
    local reference=$work/$1.reference last
    case $1 in
    train* | resume | finetune | compare) # may end behind any step, with what can be read and gone on with
        cut -d ' ' -f 1 "$PWD.look" | grep -vxFf "$reference.names"
        for last in **/last; do
            "$pnetc" info "$last" >"$PWD.info" 2>&1 || echo "$last cannot be read: $(head -c 300 "$PWD.info")"
        done
        [ "$1" != resume ] || [ -e out/last ] || echo 'the checkpoint is lost'
        ;;
    *) cat "$reference.before" "$reference.look" | grep -vxFf - "$PWD.look" | grep -v '/$' ;;
    esac
}

# verify NAME WANT CODE: prints what is wrong.
verify() {
    local name=$1 want=$2 code=$3 reference=$work/$1.reference
    look >"$PWD.look"
    case $code in
    5)
        sentence "$reference.err"
        unfinished "$name"
        ;;
    "$want")
        cmp -s "$PWD.out" "$reference.stdout" || plain "$PWD.out" | cmp -s - "$reference.out" ||
            echo "another output: $(head -c 300 "$PWD.out")"
        cmp -s "$reference.look" "$PWD.look" || diff "$reference.look" "$PWD.look"
        ;;
    *) echo "exit code $code: $(head -c 300 "$PWD.err")" ;;
    esac
}

# ---- all of a command ----

# shard K NAME WANT ALL FROM STRIDE COUNT ARGUMENTS...: every second of the runs, in a folder of its own.
shard() {
    local k=$1 name=$2 want=$3 all=$4 from=$5 stride=$6 count=$7 code wrong
    shift 7
    mkdir -p "$work/$k"
    cd "$work/$k" || exit
    for ((n = from + k * stride; n <= count; n += jobs * stride)); do
        prepare "$name"
        code=0
        attempt "$n" "$all" "$@" || code=$?
        wrong=$(verify "$name" "$want" $code)
        if [ "$wrong" ]; then
            echo "$name, allocation $n of $count${all:+ and all behind it}: $wrong"
        else
            echo passed
        fi
    done >"$work/$k.results"
}

# all NAME WANT MOST ARGUMENTS...: of its allocations, at most some MOST fail: spread evenly, and as many again together with
# all behind them.
all() {
    local name=$1 want=$2 most=$3 count code stride k
    shift 3
    [ "${PNET_TEST_ONLY:-$name}" = "$name" ] || return
    mkdir -p "$work/0"
    cd "$work/0" || exit
    prepare "$name"
    look >"$work/$name.reference.before"
    code=0
    attempt 0 '' "$@" || code=$?
    count=$(cat "$work/0.count")
    if [ $code != "$want" ] || ! [ "$count" -gt 0 ]; then
        fail "$name: exit code $code, $count allocations: $(head -c 300 "$work/0.err")"
        return
    fi
    cp "$work/0.out" "$work/$name.reference.stdout"
    plain "$work/0.out" >"$work/$name.reference.out"
    look >"$work/$name.reference.look"
    cut -d ' ' -f 1 "$work/$name.reference.look" >"$work/$name.reference.names"
    { echo ' '; cat "$work/0.err"; } >"$work/$name.reference.err"
    [ -z "${PNET_TEST_LONG:-}" ] || most=$count
    stride=$(((count + most - 1) / most))
    local begin=$SECONDS
    for every in '' 1; do
        for ((k = 0; k < jobs; k++)); do
            (shard $k "$name" "$want" "$every" $((1 + (stride - 1) / 2)) $((every ? 5 * stride : stride)) "$count" "$@") &
        done
        wait
        for ((k = 0; k < jobs; k++)); do
            passed=$((passed + $(grep -cx passed "$work/$k.results")))
            failed=$((failed + $(grep -c ', allocation ' "$work/$k.results")))
            grep -vx passed "$work/$k.results" >&2
        done
    done
    echo "$name: $count allocations, every ${stride}th, $((SECONDS - begin)) s"
}

# check and its kind have few allocations: the compiler's memory is an arena.
all check 0 1000 check "$model"
all check-json 0 1000 check --json "$model"
all check-wrong 3 1000 check "$in/wrong.pnet"
all check-dump 0 1000 check --dump geometry "$model"
all fmt 0 1000 fmt a.pnet
all fmt-check 1 1000 fmt --check a.pnet
all fmt-print 0 1000 fmt --stdout "$in/loose.pnet"
all graph 0 1000 graph "$model" -o a.svg
all graph-dot 0 1000 graph --dot "$model"
all plan 0 1000 plan "$model" --input "$in/cloud.ply" -j 2
all plan-points 0 1000 plan "$model" --points 2k --like "$in/cloud.ply" --mode voxel
all plan-json 0 1000 plan "$model" --input "$in/cloud.ply" --json --train
all ops 0 1000 ops
all ops-markdown 0 1000 ops --markdown
input=$in/session
all lsp 0 1000 lsp
input=/dev/null
all info 0 100 info "$in/run"
all info-json 0 1000 info "$in/cloud.ply" --json
all data-info 0 100 data info "$in/rooms"
all data-info-pairs 0 40 data info "$in/pairs"
all data-info-completion 0 100 data info "$in/meshes"
all data-synth-partial 0 40 data synth partial -o out --count 2 --points 200 -j 2 -q
all data-synth 0 1000 data synth rooms -o out --count 2 --points 200 -j 1 -q
all data-synth-pairs 0 40 data synth pairs -o out --count 2 --points 200 -j 2 -q
all data-synth-lidar 0 40 data synth lidar -o out --count 2 --points 200 -j 1 -q
all force 0 40 data synth shapes -o out --count 2 --points 200 -j 1 -q --force
all infer 0 4000 infer "$model" --weights "$in/run" --input "$in/cloud.ply" -o b.ply -q -j 2
all infer-json 0 40 infer "$shapes" --weights "$in/shapes.run" --input "$in"/shapes/val/*.ply --json -q -j 1
all infer-two 0 40 infer "$in/two.pnet" --weights "$in/meshes.run" --input "partial=$in/meshes/p1.txt" --input "full=$in/meshes/f2.txt" --json -q -j 1
all infer-generated 0 40 infer "$in/generate.pnet" --weights "$in/generate.run" --input "$in/meshes/p1.txt" -o b.ply -q -j 2
all infer-attend 0 40 infer "$in/attend.pnet" --weights "$in/attend.run" --input "$in/cloud.ply" -o b.ply -q -j 2
all infer-many 0 40 infer "$model" --weights "$in/run/last/weights.safetensors" --input "$in/rooms/train" -o many --format npy -j 1
all infer-labels 0 40 infer "$model" --weights "$in/run/last/weights.safetensors" --input "$in/rooms/train" -o many --format label --classification 0=10,1=11 -j 1
all eval 0 40 eval "$model" --weights "$in/run" --config "$in/run.yaml" -q -j 2
all eval-json 0 40 eval "$model" --weights "$in/run" --config "$in/run.yaml" --json --each each.json -q -j 1
all train 0 40 train "$model" --config "$in/run.yaml" -o out -q -j 2
all train-json 0 40 train "$model" --config "$in/run.yaml" -o out --json -q -j 1
all train-scan 0 40 train "$model" --config "$in/words.yaml" -o out -q -j 1
all data-info-scan 0 1000 data info "$in/words"
all infer-scan 0 40 infer "$model" --weights "$in/run" --input "$in/words/*.txt" --columns x,y,z,red,green,blue -o many --format npy -q -j 1
all train-completion 0 40 train "$in/two.pnet" --config "$in/meshes.yaml" -o out -q -j 1
all train-generated 0 40 train "$in/generate.pnet" --config "$in/generate.yaml" -o out -q -j 2
all train-attend 0 40 train "$in/attend.pnet" --config "$in/attend.yaml" -o out -q -j 2
all resume 0 40 train "$model" --config "$in/run.yaml" -o out --resume -q -j 1
all finetune 0 40 train "$model" --config "$in/run.yaml" -o out --weights "$in/run" --set c=4 --steps 1 -q -j 1
all compare 0 40 compare "$model" --config "$in/run.yaml" -o out -q -j 1
all compare-weights 0 40 compare "$model" --config "$in/run.yaml" --weights "$in/run" --json -q -j 1
all export 0 100 export "$model" --weights "$in/run" --to spconv -o a.safetensors
all export-json 0 100 export "$model" --weights "$in/run" --to torch --map "$in/map.yaml" -o a.safetensors --json
all import 0 100 import "$model" --weights "$in/theirs.safetensors" --from minkowski --map "$in/map.yaml" -o b.safetensors
all import-wrong 3 100 import "$model" --weights "$in/theirs.safetensors" --from minkowski --json -o b.safetensors
all import-propose 0 100 import "$model" --weights "$in/theirs.safetensors" --from minkowski --propose c.yaml
all register 0 40 register "$in/source.ply" "$in/target.ply" --model "$pair" --weights "$in/pairs.run" -o b.ply \
    --picture a.svg --ransac 500 -q -j 2
all register-pose 0 40 register "$in/source.ply" "$in/target.ply" --from "$in/pose.txt" --icp 20cm --planes --json -q -j 1
cd "$work" && finish
