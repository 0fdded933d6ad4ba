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

# cut FOLDER SIGNAL ARGUMENTS...: trains or resumes in the folder and sends the signal at a random moment, up to `reach`
# milliseconds from the start; sets `code`. The training begins with the default action for SIGINT, as in a terminal: the shell
# would have it ignored in a background process until the program installs its handler.
cut() {
    local dir=$1 signal=$2 resume=--resume
    shift 2
    [ -e "$dir" ] || resume=
    (
        trap - INT
        exec "$pnetc" train $model --config "$work/run.yaml" -q -o "$dir" $resume "$@"
    ) 2>"$err" </dev/null &
    pid=$!
    nap $((RANDOM % reach))
    kill -"$signal" $pid 2>/dev/null
    wait $pid 2>/dev/null
    code=$?
}

# The speed of the machine changes while the test runs, so `reach` follows it: later after a signal that came before the first
# step, earlier after a training that ended before the signal.
later() { reach=$((reach < 20000 ? reach * 3 / 2 : 30000)); }
earlier() { reach=$((reach / 2 + 10)); }

# The run left alone, timed: the first signals fall anywhere in its first half.
begin=$(date +%s%N)
run 0 train $model --config "$work/run.yaml" -o "$work/alone" -q -j 1
span=$((($(date +%s%N) - begin) / 1000000))
reach=$((span / 2 + 10))
lines "$work/alone" >"$work/lines.alone"
check "a line for each step and evaluation" test "$(wc -l <"$work/lines.alone")" = 100

# Threads do not matter.
for threads in 2 3; do
    run 0 train $model --config "$work/run.yaml" -o "$work/threads$threads" -q -j $threads
    equal "$work/threads$threads" "$threads threads"
done

# Killed at random moments until it ends by itself. RANDOM is seeded, but which step a signal interrupts depends on the clock, and
# the bits must not. A run that ends before any signal hits one of its steps is done again.
RANDOM=${RESUME_SEED:-1}
for ((i = 0; i < kills; i++)); do
    dir=$work/killed$i
    killed=0
    for ((k = 0; k < 60; k++)); do
        cut "$dir" KILL -j $((1 + RANDOM % 2))
        if [ "$code" = 137 ] && [ -s "$dir/metrics.jsonl" ]; then
            killed=$((killed + 1))
        elif [ "$code" = 137 ]; then
            later
        elif [ "$code" = 0 ] && [ $killed = 0 ]; then
            earlier
            rm -rf "$dir"
        else
            break
        fi
    done
    [ "$code" = 137 ] && run 0 train $model --config "$work/run.yaml" -o "$dir" --resume -q && code=0
    check "run $i ended with $code" test "$code" = 0
    check "run $i was killed $killed times" test $killed -ge 1
    equal "$dir" "killed run $i"
    rm -rf "$dir"
done

# Interrupted: it saves, says so, and ends with 130. An interrupt before the program has its handler ends it without a word.
dir=$work/interrupted
interrupts=0
for ((k = 0; k < 60; k++)); do
    cut "$dir" INT -j 1
    if [ "$code" = 130 ] && grep -q -- "continue with --resume" "$err"; then
        interrupts=$((interrupts + 1))
        check "a folder to resume in" test -s "$dir/config.yaml"
    elif [ "$code" = 130 ]; then
        check "silence before the handler is there" test ! -s "$err"
        later
    elif [ "$code" = 0 ] && [ $interrupts = 0 ]; then
        earlier
        rm -rf "$dir"
    else
        break
    fi
done
[ "$code" = 130 ] && run 0 train $model --config "$work/run.yaml" -o "$dir" --resume -q -j 1 && code=0
check "ended with $code" test "$code" = 0
check "$interrupts interrupts that it answers" test $interrupts -ge 1
equal "$dir" "interrupted run"

# A resumed run keeps the mode, seed, parameters and model text of its beginning.
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

# What cannot be read is an error that touches nothing, not a new run: neither the checkpoint, nor the log, nor the
# texts, although another config is given.
sed 's/^workers: 1/workers: 0/' "$work/run.yaml" >"$work/workers.yaml"
broken() { # CODE WHAT COMMAND...: with the run broken by the command, in its folder
    local code=$1 what=$2
    shift 2
    rm -rf "$work/broken" "$work/broken.kept"
    cp -r "$work/alone" "$work/broken"
    (cd "$work/broken" && "$@")
    cp -r "$work/broken" "$work/broken.kept"
    run "$code" train $model --config "$work/workers.yaml" -o "$work/broken" --resume -q
    says "$what"
    check "$what: nothing is touched" diff -r --no-dereference "$work/broken" "$work/broken.kept"
    run 2 train $model --config "$work/workers.yaml" -o "$work/broken" -q
    says "holds a run already"
    check "$what: nothing is overwritten" diff -r --no-dereference "$work/broken" "$work/broken.kept"
}
in_the_way() { rm -r "$1" && mkdir "$1"; }
broken 1 weights.safetensors rm last/weights.safetensors
broken 1 weights.safetensors in_the_way last/weights.safetensors
broken 1 state.json rm last/state.json
broken 1 state.json in_the_way last/state.json
broken 4 state.json truncate -s 100 last/state.json
broken 4 weights.safetensors truncate -s -1 last/weights.safetensors
broken 1 last in_the_way last
broken 1 last sh -c 'rm -r last; echo >last'
broken 1 'best exists' rm -r last
broken 1 metrics.jsonl in_the_way metrics.jsonl
broken 1 last sh -c 'rm -r best last; ln -s ../no/last last'
# as an ordinary user, who may not read it
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    rm -rf "$work/broken"
    cp -r "$work/alone" "$work/broken"
    chmod 755 "$work"
    chmod -R a+rwX "$work/broken"
    chmod 700 "$work/broken/last"
    cp -rp "$work/broken" "$work/broken.kept2"
    if setpriv --reuid 65534 --clear-groups "$pnetc" --version >/dev/null 2>&1; then
        code=0
        setpriv --reuid 65534 --clear-groups "$pnetc" train $model --config "$work/run.yaml" -o "$work/broken" \
            --resume -q >"$out" 2>"$err" </dev/null || code=$?
        check "a run that may not be read ends with $code" test $code = 1
        check "a run that may not be read is as it was" diff -r "$work/broken" "$work/broken.kept2"
    fi
fi

# A run that is killed after its first evaluation and before its first scheduled checkpoint can be resumed: best/ never stands
# alone. It is killed as soon as best/ is there.
sed 's/^save_every.*/save_every: 0/; s/^eval_every.*/eval_every: {steps: 2}/' "$work/run.yaml" >"$work/late.yaml"
"$pnetc" train $model --config "$work/late.yaml" -o "$work/late" -q -j 1 2>>"$err" </dev/null &
pid=$!
while [ ! -e "$work/late/best" ] && kill -0 $pid 2>/dev/null; do nap 5; done
kill -KILL $pid
wait $pid 2>/dev/null
check "last/ beside best/" test -s "$work/late/last/state.json"
run 0 train $model --config "$work/late.yaml" -o "$work/late" -q -j 1 --resume
same "$work/late/last/weights.safetensors" "$work/alone/last/weights.safetensors"
check "one line for each evaluation" test "$(grep -c '"val.loss"' "$work/late/metrics.jsonl")" = 45

# One process at a time: the second one names the first and changes nothing. A lock file of a dead process does not lock.
sed 's/^steps.*/steps: 5000/; s/^schedule.*//' "$work/run.yaml" >"$work/long.yaml"
started() { # FOLDER: waits until the training of process $pid has logged a step there, or has ended
    while ! grep -qs gradient_norm "$1/metrics.jsonl" && kill -0 $pid 2>/dev/null; do nap 5; done
}
"$pnetc" train $model --config "$work/long.yaml" -o "$work/locked" -q -j 1 2>>"$err" </dev/null &
pid=$!
started "$work/locked"
for resume in '' --resume; do
    # shellcheck disable=SC2086
    run 1 train $model --config "$work/workers.yaml" -o "$work/locked" -q $resume
    says "process $pid"
done
check "the config of the first one stays" hides -q '^workers: 0' "$work/locked/config.yaml"
kill -KILL $pid
wait $pid 2>/dev/null
check "a killed training leaves its lock file" test -e "$work/locked/lock"
run 0 train $model --config "$work/run.yaml" -o "$work/locked" -q -j 1 --resume --steps 2
check "a finished one does not" test ! -e "$work/locked/lock"
"$pnetc" compare $model --config "$work/long.yaml" -o "$work/both" -q -j 1 2>>"$err" </dev/null &
pid=$!
started "$work/both/native"
run 1 compare $model --config "$work/long.yaml" -o "$work/both" -q -j 1
says "process $pid"
run 1 train $model --config "$work/run.yaml" -o "$work/both/native" -q --resume
says "process $pid"
kill -KILL $pid
wait $pid 2>/dev/null

# A closed terminal, a closed pipe and SIGTERM: saved, with the exit code of the signal.
ended() { # CODE SIGNAL...: a training that gets these signals ends with that code and can be resumed
    local want=$1 code=0
    shift
    rm -rf "$work/ended"
    "$pnetc" train $model --config "$work/long.yaml" -o "$work/ended" -q -j 1 2>"$err" </dev/null &
    pid=$!
    started "$work/ended"
    for signal in "$@"; do kill -"$signal" $pid; done
    wait $pid || code=$?
    check "exit code $code of $*" test $code = "$want"
    says "continue with --resume"
    check "saved by $*" test -s "$work/ended/last/state.json"
}
ended 129 HUP
ended 129 HUP HUP
ended 143 TERM
ended 130 INT

# While a step waits for its batch, here from a pipe without a writer: saved at once; the training ends with the batch, or with
# the second signal.
mkdir "$work/slow"
cloud() { # POINTS
    awk -v n="$1" 'BEGIN { srand(3); for (i = 0; i < n; i++) print rand(), rand(), rand(), int(3 * rand()) }'
}
cloud 300 >"$work/slow/a.txt"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c]\nlabel_field: c3\ntrain: [a.txt]\n' >"$work/slow/dataset.yaml"
printf 'data: slow\nsteps: 1000000\nbatch_size: 1\ncache: 0\nworkers: 1\nsave_every: 0\neval_every: 0\n' >"$work/slow.yaml"
cat >"$work/slow.pnet" <<'END'
pnet 1
param n = 4
input cloud { xyz : position  label : class[3] per point }
net slow(p: cloud) { return p.xyz -> conv(4, kernel=3, knn=n) -> linear(3) }
y = slow(cloud)
loss l = cross_entropy(y, cloud.label)
END
for second in TERM INT; do
    rm -rf "$work/waits"
    "$pnetc" train "$work/slow.pnet" --config "$work/slow.yaml" -o "$work/waits" -q -j 1 2>"$err" </dev/null &
    pid=$!
    started "$work/waits"
    mkfifo "$work/slow/pipe"
    exec 9<>"$work/slow/pipe" # or else no process could write to it
    cp "$work/slow/a.txt" "$work/slow/kept"
    mv "$work/slow/pipe" "$work/slow/a.txt"
    steps=-1
    while [ $steps != "$(wc -l <"$work/waits/metrics.jsonl")" ]; do # until no step follows
        steps=$(wc -l <"$work/waits/metrics.jsonl")
        nap 300
    done
    check "no checkpoint yet" test ! -e "$work/waits/last"
    kill -TERM $pid
    for ((k = 0; k < 100; k++)); do
        [ -s "$work/waits/last/state.json" ] && break
        nap 100
    done
    check "saved while it waits" grep -q "\"step\":$steps[,}]" "$work/waits/last/state.json"
    check "it waits" kill -0 $pid
    code=0
    kill -$second $pid
    wait $pid || code=$?
    exec 9<&-
    check "exit code $code of the second signal, $second" test $code = $([ $second = TERM ] && echo 143 || echo 130)
    mv "$work/slow/kept" "$work/slow/a.txt"
    run 0 train "$work/slow.pnet" --config "$work/slow.yaml" -o "$work/waits" -q -j 1 --resume --steps $((steps + 1))
done
# Before the first batch there is nothing to save: the first signal ends the training, and not its batch.
cloud 60000 >"$work/slow/a.txt"
for signal in TERM INT; do
    rm -rf "$work/first"
    (
        trap - INT
        exec "$pnetc" train "$work/slow.pnet" --config "$work/slow.yaml" -o "$work/first" -q -j 1 --set n=1024
    ) 2>"$err" </dev/null &
    pid=$!
    code=0
    while [ ! -e "$work/first/metrics.jsonl" ] && kill -0 $pid 2>/dev/null; do nap 5; done
    kill -$signal $pid
    wait $pid || code=$?
    check "exit code $code of $signal" test $code = $([ $signal = TERM ] && echo 143 || echo 130)
    check "no step was made" test ! -s "$work/first/metrics.jsonl"
done
nohup "$pnetc" train $model --config "$work/long.yaml" -o "$work/nohup" -q -j 1 2>"$err" >/dev/null </dev/null &
pid=$!
started "$work/nohup"
kill -HUP $pid
nap 300
check "nohup keeps a training" kill -0 $pid
kill -INT $pid
wait $pid
# progress into a pipe whose reader has ended: the training continues to its end
mkfifo "$work/fifo"
sed 's/^eval_every.*/eval_every: {steps: 1}/; s/^steps.*/steps: 12/' "$work/run.yaml" >"$work/talk.yaml"
code=0
head -n 1 <"$work/fifo" >/dev/null &
"$pnetc" train $model --config "$work/talk.yaml" -o "$work/pipe" -j 1 >/dev/null 2>"$work/fifo" </dev/null || code=$?
check "exit code $code with a closed pipe" test $code = 0
check "it comes to its end" grep -q '"step":12' "$work/pipe/last/state.json"
code=0
"$pnetc" train $model --config "$work/talk.yaml" -o "$work/full" -j 1 --json -q >/dev/full 2>"$err" </dev/null || code=$?
check "exit code $code without room for the result" test $code = 1
says "standard output: cannot write"
check "saved all the same" grep -q '"step":12' "$work/full/last/state.json"

# In voxel mode too; and a run can be made longer, where the schedule does not depend on its length.
grep -v '^steps\|^schedule' "$work/run.yaml" >"$work/open.yaml"
voxel() {
    run 0 train $model --config "$work/open.yaml" -q -j 1 --mode voxel -o "$@"
}
voxel "$work/whole" --steps 9
voxel "$work/parts" --steps 4
voxel "$work/parts" --steps 9 --resume
for f in weights optimizer; do same "$work/whole/last/$f.safetensors" "$work/parts/last/$f.safetensors"; done

# Without the state of the optimiser: an unfinished run keeps that state and can be resumed; a finished run has the same weights as
# with it, and cannot be resumed.
voxel "$work/bare" --steps 4
voxel "$work/bare" --steps 9 --resume --without-optimizer
same "$work/whole/last/weights.safetensors" "$work/bare/last/weights.safetensors"
check "no state of the optimiser" test ! -e "$work/bare/last/optimizer.safetensors"
voxel "$work/bare" --steps 9 --resume
run 2 train $model --config "$work/open.yaml" -q -j 1 --mode voxel -o "$work/bare" --steps 12 --resume
says "without the optimiser's state"
finish
