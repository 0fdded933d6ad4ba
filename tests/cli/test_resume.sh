# A training that is killed, interrupted or run on another number of threads ends with the same bits.
# RESUME_KILLS: how many trainings are killed, each several times (4; 20 for the full test).
. tests/cli/common.sh
model=tests/cli/tiny.pnet
kills=${RESUME_KILLS:-4}
run 0 data synth rooms -o "$work/rooms" --count 10 --points 1500 --seed 5 -j 1
cat >"$work/run.yaml" <<END
data: rooms
steps: 90
batch_size: 3
accumulate: 2
lr: 0.01
clip_grad: 1
schedule: {name: onecycle, warmup: 20%}
save_every: {steps: 4}
eval_every: {steps: 9}
augment: {rotate: z, flip: [x], jitter: 1cm, drop_points: 10%}
max_points: 1200
workers: 1
END
files='last/weights.safetensors last/optimizer.safetensors best/weights.safetensors best/optimizer.safetensors'

# lines FOLDER: the log without what depends on the clock.
lines() {
    sed -E 's/"(val\.)?(time_s|points_per_s)": *[^,}]*//g' "$1/metrics.jsonl"
}

# equal FOLDER WHAT: a finished run is the one left alone.
equal() {
    for f in $files; do
        if cmp -s "$work/alone/$f" "$1/$f"; then pass; else fail "$2: $f differs"; fi
    done
    lines "$1" >"$work/lines"
    if cmp -s "$work/lines.alone" "$work/lines"; then pass; else
        fail "$2: metrics.jsonl differs: $(diff "$work/lines.alone" "$work/lines" | head -n 4)"
    fi
    check "$2: a report" test -s "$1/report.html"
}

# nap MILLISECONDS
nap() {
    sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
}

start() { # in the background, with its process in $pid
    "$pnetc" train $model --config "$work/run.yaml" -q "$@" 2>>"$err" </dev/null &
    pid=$!
}

# The run left alone, timed: kills fall anywhere in it.
begin=$(date +%s%N)
run 0 train $model --config "$work/run.yaml" -o "$work/alone" -q -j 1
span=$((($(date +%s%N) - begin) / 1000000))
lines "$work/alone" >"$work/lines.alone"
check "a line for each step and evaluation" test "$(wc -l <"$work/lines.alone")" = 100

# Threads do not matter.
for threads in 2 3; do
    run 0 train $model --config "$work/run.yaml" -o "$work/threads$threads" -q -j $threads
    equal "$work/threads$threads" "$threads threads"
done

# Killed at random moments until it comes through. RANDOM is seeded: what falls where still depends on
# the clock, and the bits must not.
RANDOM=${RESUME_SEED:-1}
killed=0
for ((i = 0; i < kills; i++)); do
    dir=$work/killed$i
    for ((k = 0; k < 40; k++)); do
        resume=--resume
        [ -e "$dir" ] || resume=
        start -o "$dir" $resume -j $((1 + RANDOM % 2))
        ms=$((10 + RANDOM % (span / 2 + 10)))
        nap $ms
        kill -KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
        code=$?
        [ "$code" = 137 ] || break
        killed=$((killed + 1))
    done
    [ "$code" = 137 ] && run 0 train $model --config "$work/run.yaml" -o "$dir" --resume -q && code=0
    check "run $i ended with $code" test "$code" = 0
    equal "$dir" "killed run $i"
    rm -rf "$dir"
done
check "$killed kills fell into a run" test "$killed" -ge "$kills"

# Interrupted: it saves, says so, and ends with 130.
dir=$work/interrupted
interrupts=0
for ((k = 0; k < 12; k++)); do
    resume=--resume
    [ -e "$dir" ] || resume=
    start -o "$dir" $resume -j 1
    ms=$((50 + RANDOM % (span / 2 + 10)))
    nap $ms
    kill -INT $pid 2>/dev/null
    wait $pid
    code=$?
    [ "$code" = 130 ] || break
    interrupts=$((interrupts + 1))
done
# a run to the end, which writes to the same file, may follow
says=$(grep -c -- "--resume goes on" "$err")
[ "$code" = 130 ] && run 0 train $model --config "$work/run.yaml" -o "$dir" --resume -q -j 1 && code=0
check "ended with $code" test "$code" = 0
equal "$dir" "interrupted run"
check "$interrupts interrupts" test $interrupts -ge 1
check "$says of $interrupts say how to go on" test "$says" -ge 1

# A run is gone on with as it was begun.
dir=$work/alone
cp -r "$dir" "$work/kept"
for wrong in '--mode voxel' '--seed 9' '--set c=10'; do
    code=2
    [ "${wrong#--set}" = "$wrong" ] || code=3
    # shellcheck disable=SC2086
    run $code train $model --config "$work/run.yaml" -o "$dir" --resume -q $wrong
    says "was trained"
done
sed 's/dropout(10%)/dropout(20%)/' $model >"$work/other.pnet"
run 3 train "$work/other.pnet" --config "$work/run.yaml" -o "$dir" --resume -q
says "another text of the model"
check "a refused run is as it was" diff -r "$dir" "$work/kept"

# In voxel mode too; and a run can be made longer, where the schedule does not depend on its length.
grep -v '^steps\|^schedule' "$work/run.yaml" >"$work/open.yaml"
voxel() {
    run 0 train $model --config "$work/open.yaml" -q -j 1 --mode voxel -o "$@"
}
voxel "$work/whole" --steps 9
voxel "$work/parts" --steps 4
voxel "$work/parts" --steps 9 --resume
for f in weights optimizer; do same "$work/whole/last/$f.safetensors" "$work/parts/last/$f.safetensors"; done

# Without the optimiser's state: parts go on, what is finished holds the same weights and nothing goes on from there.
voxel "$work/bare" --steps 4
voxel "$work/bare" --steps 9 --resume --without-optimizer
same "$work/whole/last/weights.safetensors" "$work/bare/last/weights.safetensors"
check "no state of the optimiser" test ! -e "$work/bare/last/optimizer.safetensors"
voxel "$work/bare" --steps 9 --resume
run 2 train $model --config "$work/open.yaml" -q -j 1 --mode voxel -o "$work/bare" --steps 12 --resume
says "without the optimiser's state"
finish
