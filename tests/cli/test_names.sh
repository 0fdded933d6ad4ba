# Names of files that would move the cursor, colour the terminal, end the line, or turn the direction of text: no command prints
# them as they are, on either stream; JSON has them as escapes.
. tests/cli/common.sh
bad=$(printf 'q\033[31mr\001s\177t\302\205u\342\200\256v\351w\nINJECTED')
hard=$work/$bad
mkdir "$hard" || { echo "skipped: the file system has no such names"; exit 77; }
# a run config is UTF-8, and so are the paths that it gets
bad8=$(printf 'q\033[31mr\001s\177t\302\205u\342\200\256v\nINJECTED')
soft=$work/$bad8
mkdir "$soft"

# shows CODE ARGUMENTS: pnetc ends with that code, and prints some part of the name, as escapes alone.
raw=$(printf '[\001-\010\013-\037\177]')
look() { # STREAM ARGUMENTS
    local file=$1
    shift
    check "control characters of: $*" hides -qa "$raw" "$file"
    check "an injected line of: $*" hides -qa '^INJECTED' "$file"
    check "C1 or direction of: $*" hides -qaF -e "$(printf '\302\205')" -e "$(printf '\342\200\256')" "$file"
    check "bytes of: $*" hides -qaF "$(printf '\351w')" "$file"
}
shows() {
    run "$@"
    shift
    look "$out" "$@"
    look "$err" "$@"
    if grep -qaF -e 'q\x1b[31mr\x01' -e 'q\u001b[31mr\u0001' "$out" "$err"; then
        pass
    else
        fail "the name is not shown: pnetc $*"
    fi
}

model=tests/cli/tiny.pnet
shows 0 data synth rooms -o "$soft/rooms" --count 4 --points 1500 --seed 3 -j 1
shows 2 data synth rooms -o "$soft/rooms" --count 4 --points 1500 --seed 3 -j 1
shows 0 data synth rooms -o "$hard/rooms" --count 4 --points 1500 --seed 3 -j 1
shows 0 data info "$hard/rooms"
shows 1 data info "$hard/none"
cloud=$hard/rooms/train/000000.ply
shows 0 info "$cloud"
shows 0 info "$cloud" --json
valid_json "$out"
shows 1 info "$hard/none.ply"
printf '1 2 3\nnan 1 1\n4 5 x\n' >"$hard/broken.xyz"
shows 4 info "$hard/broken.xyz"
printf '1 2 3\nnan 1 1\n4 5 6\n' >"$hard/nan.xyz"
run 0 plan $model --input "$hard/nan.xyz"
look "$err" plan

# models
cp $model "$hard/model.pnet"
printf 'pnet 1\nparam x = \n' >"$hard/wrong.pnet"
sed 's/ = /   =   /' $model >"$hard/loose.pnet"
shows 3 check "$hard/wrong.pnet"
shows 3 plan "$hard/wrong.pnet" --points 9
shows 3 graph "$hard/wrong.pnet"
shows 1 fmt --check "$hard/loose.pnet"
shows 3 check "$hard/none.pnet"

# runs
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: {steps: 1}\n' >"$soft/run.yaml"
printf 'data: rooms\nstep: 2\n' >"$soft/wrong.yaml"
shows 2 train $model --config "$soft/wrong.yaml" -o "$soft/none"
shows 1 train $model --config "$soft/none.yaml" -o "$soft/none"
shows 0 train "$hard/model.pnet" --config "$soft/run.yaml" -o "$soft/run" -j 1
shows 2 train "$hard/model.pnet" --config "$soft/run.yaml" -o "$soft/run" -j 1
shows 2 train $model --config "$soft/run.yaml" --data "$hard/rooms" -o "$soft/other"
cp -r "$soft/run" "$hard/run"
run 0 eval $model --config "$soft/run.yaml" --weights "$hard/run" --origin file
look "$err" eval
shows 1 eval $model --config "$soft/run.yaml" --weights "$hard/none"
run 0 infer $model --weights "$hard/run" --input "$cloud" -o "$hard/out.ply" -v
look "$err" infer
shows 4 infer $model --weights "$hard/run" --input "$hard/none.ply" -o "$hard/out.ply"
shows 4 infer $model --weights "$hard/run" --input "$hard/nan.xyz" -o "$hard/out.ply"
run 0 info "$hard/run"
look "$out" info
shows 2 infer $model --weights "$hard/run" --input "$cloud" -o "$hard/none/x/y.ply/"
printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n' >"$hard/pose.txt"
run 0 register "$cloud" "$cloud" --from "$hard/pose.txt" --icp 20cm
look "$err" register
printf '1 0 0 500\n0 1 0 0\n0 0 1 0\n' >"$hard/off.txt"
shows 0 register "$cloud" "$cloud" --from "$hard/off.txt" --icp 20cm
shows 0 register "$cloud" "$cloud" --from "$hard/pose.txt" --json
valid_json "$out"
printf '1 0 0\n' >"$hard/short.txt"
shows 4 register "$cloud" "$cloud" --from "$hard/short.txt"
run 0 compare $model --config "$soft/run.yaml" --weights "$hard/run"
look "$out" compare
look "$err" compare
run 0 export $model --weights "$hard/run" --to spconv -o "$hard/spconv.safetensors"
look "$out" export
look "$err" export
run 0 info "$hard/spconv.safetensors"
look "$out" info
run 0 import $model --weights "$hard/spconv.safetensors" --from spconv -o "$hard/back.safetensors"
look "$out" import
look "$err" import
shows 0 import $model --weights "$hard/spconv.safetensors" --from spconv --propose "$hard/map.txt"
shows 1 import $model --weights "$hard/none.safetensors" --from spconv -o "$hard/back.safetensors"
shows 2 "$bad"
shows 2 train "--$bad"
shows 3 train $model --config "$soft/run.yaml" -o "$soft/x" --set "$bad"
shows 2 train $model --config "$soft/run.yaml" -o "$soft/x" --set-config "$bad"

# Names in files: of classes and fields of a data set, and of keys.
sed 's/^classes: .*/classes: ["c\\x1b[31m\\nINJECTED", wall, chair, table, shelf, door, window, board, sofa, lamp, box, "k\\u202e"]/' \
    "$soft/rooms/dataset.yaml" >"$soft/rooms/named.yaml"
printf 'data: rooms/named.yaml\nsteps: 2\nbatch_size: 2\n' >"$soft/named-run.yaml"
run 0 train $model --config "$soft/named-run.yaml" -o "$soft/named" -j 1
look "$out" train
look "$err" train
run 0 eval $model --config "$soft/named-run.yaml" --weights "$soft/named"
look "$out" eval
printf '"k\\x1b[31m\\nINJECTED": 1\n' >"$soft/keys.yaml"
run 2 train $model --config "$soft/keys.yaml" -o "$soft/none"
look "$err" train
finish
