# Inputs that are no regular files: pipes that a shell makes, and standard input, are read; a pipe to which nothing writes, an endless
# device and a folder are refused, and nothing waits for ever.
. tests/cli/common.sh
needs timeout mkfifo
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 4 --points 700 --seed 3 -j 1
cloud=$work/rooms/train/000000.ply
printf 'data: rooms\nsteps: 1\nbatch_size: 2\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
pipe=$work/pipe
mkfifo "$pipe"

# ends CODE ARGUMENTS: as run, but fails where pnetc waits.
program=$pnetc
waiting() { timeout 20 "$program" "$@"; }
ends() {
    pnetc=waiting
    run "$@"
    pnetc=$program
}
wanted() { # ARGUMENTS of a command that reads $cloud: prints what it prints of the file
    "$pnetc" "$@" </dev/null 2>/dev/null | sed 's/^[^:]*: //'
}

# A pipe to which nothing writes: in the place of every input.
for words in "info $pipe" "data info $pipe" "plan $model --input $pipe" "register $pipe $cloud --from $pipe --icp 10cm" \
    "register $cloud $cloud --from $pipe --icp 10cm" "train $model --config $pipe -o $work/none" \
    "train $model --config $work/run.yaml --data $pipe -o $work/none" \
    "train $model --config $work/run.yaml --weights $pipe -o $work/none" \
    "eval $model --config $work/run.yaml --weights $pipe" "infer $model --weights $pipe --input $cloud -o $work/none.ply" \
    "infer $model --weights $work/run --input $pipe -o $work/none.ply" "import $model --weights $pipe --from torch -o $work/none" \
    "export $model --weights $pipe --to torch -o $work/none"; do
    ends 1 $words
    says "$pipe: a pipe, to which no process writes"
done
for words in "check $pipe" "plan $pipe --points 9" "fmt $pipe" "graph $pipe"; do
    ends 3 $words
    says "a named pipe"
done
# A file that a model or a data set names.
printf 'pnet 1\ninclude "pipe"\n' >"$work/part.pnet"
ends 3 check "$work/part.pnet"
says "not a regular file"
printf 'pnet 1\ninclude "/dev/zero"\n' >"$work/part.pnet"
ends 3 check "$work/part.pnet"
says "not a regular file"
mkdir "$work/piped"
mkfifo "$work/piped/a.ply"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a]\nlabel_field: label\ntrain: [a.ply]\n' >"$work/piped/dataset.yaml"
ends 4 train $model --config "$work/run.yaml" --data "$work/piped" -o "$work/none" --set classes=1
says "piped/a.ply: is not a file"

# What a shell makes, and writers that come late.
if [ -e /dev/stdin ]; then
    wanted info "$cloud" >"$work/want"
    check "facts of the cloud" grep -q points "$work/want"
    timeout 20 "$pnetc" info <(cat "$cloud") | sed 's/^[^:]*: //' >"$work/got"
    same "$work/got" "$work/want"
    for from in - /dev/stdin; do
        cat "$cloud" | timeout 20 "$pnetc" info $from | sed 's/^[^:]*: //' >"$work/got"
        same "$work/got" "$work/want"
        timeout 20 "$pnetc" info $from <"$cloud" | sed 's/^[^:]*: //' >"$work/got"
        same "$work/got" "$work/want"
    done
    check "a model in a pipe" timeout 20 "$pnetc" check <(cat $model)
    check "a model in standard input" timeout 20 "$pnetc" check - <$model
fi
for late in 0 0.3; do
    { sleep $late; cat "$cloud" >"$pipe"; } &
    timeout 20 "$pnetc" info "$pipe" | sed 's/^[^:]*: //' >"$work/got"
    same "$work/got" "$work/want"
    wait
done

for words in "info /dev/zero" "data info /dev/zero"; do
    ends 1 $words
    says "64 MiB"
done
ends 3 check /dev/zero
says "too large"
ends 3 check "$work"
ends 1 train $model --config "$work" -o "$work/none"
says "is a folder"
finish
