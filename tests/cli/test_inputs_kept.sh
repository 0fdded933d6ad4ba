# No output replaces an input: every command, every input, every way to name it. The exit code is 2, before anything is written.
. tests/cli/common.sh
bench=$(dirname "$pnetc")/bench/pnet-bench
case $pnetc in /*) ;; *) pnetc=$PWD/$pnetc bench=$PWD/$bench ;; esac
root=$PWD
kept=$work/kept
mkdir "$kept" && cd "$kept" || exit 1

# What commands read: models with an include, run configs, sets with files of labels, poses and matrices, weights, maps.
{
    printf 'pnet 1\ninclude "part.pnet"\n'
    sed '1d; /^block/,/^}/d' "$root/tests/cli/tiny.pnet"
} >model.pnet
{
    printf 'pnet 1\n'
    sed -n '/^block/,/^}/p' "$root/tests/cli/tiny.pnet"
} >part.pnet
sed 's/part.pnet/drawn_part.svg/' model.pnet >drawn.svg
cp part.pnet drawn_part.svg
cp "$root/tests/register/pair.pnet" pair.pnet
run 0 data synth rooms -o rooms --count 10 --points 300 --seed 2 -j 1 -q
run 0 data synth pairs -o pairs --count 3 --points 300 -j 1 -q
printf '# mine\ndata: rooms\nsteps: 1\nbatch_size: 2\neval_every: 0\n' >config.yaml
printf 'data: pairs.yaml\nsteps: 1\nbatch_size: 1\neval_every: 0\n' >pairs_config.yaml
printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n' >pose.txt
cat >pairs.yaml <<'PAIRS'
pnet_dataset: 1
task: registration
train:
  - {source: pairs/train/000000_source.ply, target: pairs/train/000000_target.ply, pose: pose.txt}
val:
  - {source: pairs/val/000001_source.ply, target: pairs/val/000001_target.ply, pose: pose.txt}
test: []
PAIRS
for i in 0 1 2; do
    awk -v s=$i 'BEGIN { srand(s); for (i = 0; i < 200; i++) print rand(), rand(), rand(), rand(), rand(), rand() }' >cloud$i.txt
    awk -v s=$i 'BEGIN { srand(s); for (i = 0; i < 200; i++) print int(12 * rand()) }' >labels$i.txt
done
cat >texts.yaml <<'TEXTS'
pnet_dataset: 1
task: segmentation
classes: [a, b, c, d, e, f, g, h, i, j, k, l]
columns: [x, y, z, red, green, blue]
train: [{cloud: cloud0.txt, labels: labels0.txt}]
val: [{cloud: cloud1.txt, labels: labels1.txt}]
test: [{cloud: cloud2.txt, labels: labels2.txt}]
TEXTS
run 0 train model.pnet --config config.yaml --data texts.yaml -o run -q -j 1
run 0 train pair.pnet --config pairs_config.yaml -o pairs_run -q -j 1
run 0 export model.pnet --weights run --to torch -o theirs.safetensors -q
cp run/best/weights.safetensors weights.safetensors
run 0 import model.pnet --weights theirs.safetensors --from torch --propose map.yaml -q
[ -s map.yaml ] || printf '{}\n' >map.yaml
mkdir clouds && cp rooms/train/*0.ply rooms/train/*1.ply clouds
cp -a "$kept" "$work/pristine"

# state FOLDER: all that it holds: names, permissions, bytes.
state() {
    (cd "$1" && find . -printf '%P %M %y %l\n' | sort && find . -type f | sort | xargs sha256sum)
}
state . >"$work/state"

# unchanged WHAT: nothing in the folder differs, or the folder is made anew.
unchanged() {
    state . >"$work/now"
    if cmp -s "$work/state" "$work/now"; then
        pass
        return
    fi
    fail "$1: $(diff "$work/state" "$work/now" | head -n 4 | tr '\n' ' ')"
    find . -mindepth 1 -delete
    cp -a "$work/pristine/." .
    state . >"$work/state" # a hard link of a kind that cp -a keeps
}

# refused OUTPUT INPUT ARGUMENTS..: exit code 2 with both names, and nothing is written.
refused() {
    local output=$1 input=$2
    shift 2
    run 2 "$@"
    says "$output"
    says "$input"
    unchanged "pnetc $* ($output, $input)"
}

# keeps INPUT.. -- COMMAND.. OPTION: the command with OPTION OUTPUT at its end, where OUTPUT is each of the inputs, named in
# each way.
keeps() {
    local inputs=() input name way
    while [ "$1" != -- ]; do
        inputs+=("$1")
        shift
    done
    shift
    for input in "${inputs[@]}"; do
        name=${input##*/}
        mkdir "$work/links"
        ln -s "$kept/$input" "$work/links/symbolic-$name"
        ln "$kept/$input" "$work/links/hard-$name"
        ln -s "$kept/${input%"$name"}" "$work/links/folder"
        for way in "$input" "./$input" "$kept/$input" "$work/links/symbolic-$name" "$work/links/hard-$name" \
            "$work/links/folder/$name"; do
            refused "$way" "$name" "$@" "$way"
        done
        check "no part file beside the links" test "$(find "$work/links" -name '.pnet-*')" = ''
        rm -r "$work/links"
    done
}

model='model.pnet part.pnet'
trained='run/best/state.json run/best/weights.safetensors run/best/optimizer.safetensors run/last/state.json
    run/last/weights.safetensors run/last/optimizer.safetensors run/config.yaml run/model.pnet run/metrics.jsonl run/report.html'
texts='texts.yaml cloud0.txt cloud1.txt cloud2.txt labels0.txt labels1.txt labels2.txt'
# shellcheck disable=SC2086
{
    keeps drawn.svg drawn_part.svg -- graph drawn.svg -o
    keeps $model config.yaml $texts $trained -- \
        eval model.pnet --weights run --config config.yaml --data texts.yaml -q --each
    keeps weights.safetensors -- eval model.pnet --weights weights.safetensors --config config.yaml --data texts.yaml -q --each
    keeps pair.pnet pairs_config.yaml pairs.yaml pose.txt pairs/train/000000_source.ply pairs/val/000001_target.ply -- \
        eval pair.pnet --weights pairs_run --config pairs_config.yaml -q --each
    keeps $model $trained cloud0.txt config.yaml -- infer model.pnet --weights run --input cloud0.txt --config config.yaml -q -o
    keeps weights.safetensors -- infer model.pnet --weights weights.safetensors --input cloud0.txt -q -o
    for option in -o --picture; do
        keeps rooms/train/000000.ply pose.txt rooms/train/000001.ply -- \
            register rooms/train/000000.ply rooms/train/000001.ply --from pose.txt -q $option
        keeps pair.pnet pairs_run/best/weights.safetensors pairs_config.yaml -- register pairs/train/000000_source.ply \
            pairs/train/000000_target.ply --model pair.pnet --weights pairs_run --config pairs_config.yaml -q $option
    done
    keeps $model map.yaml theirs.safetensors -- import model.pnet --weights theirs.safetensors --from torch --map map.yaml -q -o
    keeps $model theirs.safetensors -- import model.pnet --weights theirs.safetensors --from torch -q --propose
    keeps $model map.yaml $trained -- export model.pnet --weights run --to torch --map map.yaml -q -o
    keeps weights.safetensors -- export model.pnet --weights weights.safetensors --to torch -q -o
}
# Outputs whose names begin with what is given: PREFIX.json.
cp rooms/train/000000.ply scene.json
cp -a scene.json "$work/pristine"
state . >"$work/state"
for study in sort map; do
    got=0
    "$bench" ablate $study --scene scene.json --output scene >"$out" 2>"$err" || got=$?
    check "pnet-bench ablate $study ends with $got" test $got = 2
    says 'would replace the input scene.json'
    unchanged "pnet-bench ablate $study"
done

# Every option that names a file or a folder is an output above or below, or one of these inputs; a new option belongs into this
# test.
"$pnetc" --help=table | awk -F '\t' '
    $1 == "command" { command = $2 }
    $1 == "option" && ($7 == "files" || $7 == "folders") && $4 != "UNIT" && $4 != "X,Y,Z" { print command ":" $2 }' |
    sort >"$work/options"
sort >"$work/known" <<'OPTIONS'
compare:config
compare:data
compare:output
compare:weights
data synth:output
eval:config
eval:data
eval:each
eval:weights
export:map
export:output
export:weights
graph:output
import:map
import:output
import:propose
import:weights
infer:config
infer:input
infer:output
infer:weights
plan:input
plan:like
register:config
register:from
register:model
register:output
register:picture
register:weights
train:config
train:data
train:output
train:weights
OPTIONS
check "options: $(diff "$work/options" "$work/known" | tr '\n' ' ')" cmp "$work/options" "$work/known"

# Many clouds into their own folder, under its name and another one: nothing of it is written, whichever cloud comes first.
ln -s clouds linked
cp -a linked "$work/pristine"
state . >"$work/state"
for folder in clouds ./clouds linked "$kept/rooms/../clouds"; do
    refused "$folder/000000.ply" clouds/000000.ply infer model.pnet --weights run --input clouds -o "$folder" -q
done
mkdir results && ln -s ../clouds/000001.ply results/000001.ply
cp -a results "$work/pristine"
state . >"$work/state"
refused results/000001.ply clouds/000001.ply infer model.pnet --weights run --input clouds -o results -q
# Two outputs that are one file.
rm results/* && ln -s 000001.ply results/000000.ply
rm -r "$work/pristine/results" && cp -a results "$work/pristine"
state . >"$work/state"
refused results/000000.ply results/000001.ply infer model.pnet --weights run --input clouds -o results -q
refused both.svg ./both.svg \
    register rooms/train/000000.ply rooms/train/000001.ply --from pose.txt -q -o both.svg --picture ./both.svg

# Standard input and output that are files. What the shell empties before the program begins is lost.
"$pnetc" graph - -o drawn.svg <drawn.svg >"$out" 2>"$err"
check "a model from standard input: $?" test $? = 2
says 'the output drawn.svg would replace the input on standard input'
unchanged "graph -"
"$pnetc" infer model.pnet --weights run --input - -o cloud0.txt -q <cloud0.txt >"$out" 2>"$err"
check "a cloud from standard input: $?" test $? = 2
unchanged "infer -"
got=0
"$pnetc" graph model.pnet -o - >>model.pnet 2>"$err" || got=$?
check "a drawing after the model: $got" test $got = 2
says 'the output on standard output would replace the input model.pnet'
unchanged "graph -o -"

# A run folder takes only what a run made.
mine() { # NAME: a folder of that name with files of the user, in a folder of its own
    rm -rf "$work/mine"
    mkdir -p "$work/mine/$1"
}
train="train model.pnet --config config.yaml --data $kept/texts.yaml -q -j 1"
# shellcheck disable=SC2086
{
    for folder in . "$kept" clouds rooms run/best; do
        run 2 $train -o "$folder"
        says 'choose a new or an empty folder'
        unchanged "train -o $folder"
    done
    for file in config.yaml model.pnet kernels.yaml report.html metrics.jsonl lock notes.txt .hidden last.txt; do
        mine run
        echo mine >"$work/mine/run/$file"
        for resume in '' --resume; do
            run 2 $train -o "$work/mine/run" $resume
            says "$file"
            check "$file stays" test "$(cat "$work/mine/run/$file")" = mine
            check "nothing beside $file" test "$(ls -A "$work/mine/run")" = "$file"
        done
    done
    mine compared/voxel
    echo mine >"$work/mine/compared/voxel/notes.txt"
    run 2 compare model.pnet --config config.yaml --data texts.yaml -o "$work/mine/compared" -q
    says notes.txt
    check "no variant is trained before" test ! -e "$work/mine/compared/native"
    # new; of a training that was killed before its first checkpoint; with the file that the shell made for the messages
    mine run
    run 0 $train -o "$work/mine/run"
    rm -r "$work/mine/run/last" "$work/mine/run/best"
    echo 12345 >"$work/mine/run/lock"
    run 0 $train -o "$work/mine/run"
    mine run
    "$pnetc" $train -o "$work/mine/run" >"$work/mine/run/log.txt" 2>&1
    check "messages go into the folder of the run: $?" test $? = 0
    # A run resumes with its own model and config, and with files of the user beside them.
    echo mine >"$work/mine/run/notes.txt"
    cp "$root/tests/cli/tiny.pnet" tiny.pnet
    mine whole
    run 0 train tiny.pnet --config config.yaml -o "$work/mine/whole" -q -j 1
    echo mine >"$work/mine/whole/notes.txt"
    cp "$work/mine/whole/model.pnet" "$work/whole.pnet"
    sed 's/^save_every.*/save_every: {steps: 7}/' "$work/mine/whole/config.yaml" >"$work/changed"
    differ "another config" "$work/changed" "$work/mine/whole/config.yaml"
    cat "$work/changed" >"$work/mine/whole/config.yaml"
    run 0 train "$work/mine/whole/model.pnet" --config "$work/mine/whole/config.yaml" -o "$work/mine/whole" -q -j 1 --resume \
        --steps 2
    same "$work/mine/whole/model.pnet" "$work/whole.pnet"
    check "the effective config" grep -q '^steps: 2' "$work/mine/whole/config.yaml"
    check "a file of the user stays" test "$(cat "$work/mine/whole/notes.txt")" = mine
    # what is no file of its own is not written through
    rm -r "$work/mine/whole/last" "$work/mine/whole/best" "$work/mine/whole/report.html" "$work/mine/whole/notes.txt"
    ln -s "$kept/config.yaml" "$work/mine/whole/report.html"
    cp "$kept/config.yaml" "$work/config"
    run 2 train tiny.pnet --config config.yaml -o "$work/mine/whole" -q -j 1
    says config.yaml
    same "$kept/config.yaml" "$work/config"
}

# An output keeps the permissions of what it replaces, and the link that leads there; a new file has those of any new file.
cd "$root" || exit 1
infer="infer tests/cli/tiny.pnet --weights $kept/weights.safetensors --input $kept/cloud0.txt
    --columns x,y,z,red,green,blue -q"
mode() { stat -c %a "$1"; }
umask 027
# shellcheck disable=SC2086
for mode in 600 640 664 444; do
    echo old >"$work/result.ply"
    chmod $mode "$work/result.ply"
    ln -sf result.ply "$work/link.ply"
    run 0 $infer -o "$work/link.ply"
    check "permissions $mode became $(mode "$work/result.ply")" test "$(mode "$work/result.ply")" = $mode
    check "it was replaced" test "$(ply_rows "$work/result.ply")" = 200
    check "the link stays" test -L "$work/link.ply"
    rm -f "$work/result.ply"
done
# shellcheck disable=SC2086
run 0 $infer -o "$work/new.ply"
check "permissions of a new file: $(mode "$work/new.ply")" test "$(mode "$work/new.ply")" = 640
if [ "$(id -u)" = 0 ] && chown 65534:65534 "$work/new.ply" 2>/dev/null; then
    # shellcheck disable=SC2086
    run 0 $infer -o "$work/new.ply"
    check "owner and group" test "$(stat -c %u:%g "$work/new.ply")" = 65534:65534
fi
chmod 700 "$kept/run/last"
chmod 600 "$kept/run/last/state.json" "$kept/run/config.yaml"
# shellcheck disable=SC2086
(cd "$kept" && run 0 $train -o run --resume --steps 2 && run 0 $train -o run --resume --steps 3)
check "permissions of the checkpoint's folder: $(mode "$kept/run/last")" test "$(mode "$kept/run/last")" = 700
check "permissions of its files: $(mode "$kept/run/last/state.json")" test "$(mode "$kept/run/last/state.json")" = 600
check "permissions of the config: $(mode "$kept/run/config.yaml")" test "$(mode "$kept/run/config.yaml")" = 600
umask 022

# Devices and pipes are written as they are.
mkfifo "$work/pipe.ply"
timeout 60 cat "$work/pipe.ply" >"$work/piped.ply" &
# shellcheck disable=SC2086
{
    run 0 graph tests/cli/tiny.pnet -o /dev/null
    run 0 graph tests/cli/tiny.pnet -o /dev/stdout
    prints '<svg'
    run 0 $infer -o -
    same "$out" "$work/new.ply"
    run 0 $infer -o "$work/pipe.ply"
}
wait
same "$work/piped.ply" "$work/new.ply"
check "a pipe stays" test -p "$work/pipe.ply"
check "no part files" test "$(find "$work" -name '.pnet-*.part')" = ''
finish
