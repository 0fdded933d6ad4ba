# What a killed program leaves is removed by the next one that writes there, and nothing of a program that still works.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 300 --seed 2 -j 1 -q
printf 'data: rooms\nsteps: 1\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1

run 0 data synth rooms -o "$work/many" --count 60 --points 5000 --seed 2 -j 1 -q

# An evaluation that is stopped while it holds the temporary file of its output.
to=$work/to
mkdir "$to"
parts() { find "$1" -maxdepth 1 -name '.pnet-*.part'; }
end() { # kills process $pid
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
}
# FOLDER NUMBER: begins such an evaluation, process $pid, and stops it where it holds its temporary file, $part; again where it
# has ended before, or has made the file and has not locked it yet
wait_in() {
    local found try k
    for ((try = 0; try < 50; try++)); do
        "$pnetc" eval $model --weights "$work/run" --config "$work/run.yaml" --data "$work/many" --split train \
            --each "$1/each$2.jsonl" -q -j 1 >/dev/null 2>"$err" </dev/null &
        pid=$!
        for ((k = 0; k < 100000; k++)); do
            found=("$1"/.pnet-*-$pid-*.part)
            [ -e "${found[0]}" ] && break
            kill -0 $pid 2>/dev/null || break
        done
        kill -STOP $pid 2>/dev/null
        until [ ! -e /proc/$pid/status ] || grep -q '^State:[[:space:]]*[TZ]' /proc/$pid/status 2>/dev/null; do :; done
        part=${found[0]}
        [ -e "$part" ] && ! flock --nonblock "$part" true && break
        end
        rm -f "$1/each$2.jsonl" "$part"
    done
    check "it holds a file: $(head -c 300 "$err")" test -e "$part"
}
wait_in "$to" 1
run 0 graph $model -o "$to/a.svg"
check "the file of a program that works stays" test -e "$part"
end
check "a killed program leaves its file" test -e "$part"
run 0 graph $model -o "$to/b.svg"
check "the next one removes it" test -z "$(parts "$to")"
check "and no other file" test "$(ls -A "$to" | tr '\n' ' ')" = 'a.svg b.svg '

# Two programs at once: the one that is killed loses its file.
wait_in "$to" 1
first=$pid kept=$part
wait_in "$to" 2
check "two files" test "$(parts "$to" | wc -l)" = 2
end
run 0 graph $model -o "$to/a.svg"
check "the file of the other one alone: $(parts "$to")" test "$(parts "$to")" = "$kept"
kill -CONT $first
code=0
wait $first || code=$?
check "the other one ends with $code" test $code = 0
check "with its output" test "$(wc -l <"$to/each1.jsonl")" = 48
check "and nothing else" test -z "$(parts "$to")"

# A file of another host, whose locks may not show here, must be a day old; a name of another kind is none.
echo >"$to/.pnet-00000000-1-0.part"
echo >"$to/.pnet-notes"
echo >"$to/pnet-1.part"
ln -s nowhere "$to/.pnet-00000000-1-1.part"
run 0 graph $model -o "$to/a.svg"
check "of another host" test -e "$to/.pnet-00000000-1-0.part"
touch -d '2 days ago' "$to/.pnet-00000000-1-0.part"
run 0 graph $model -o "$to/a.svg"
check "of another host, and old" test ! -e "$to/.pnet-00000000-1-0.part"
check "no others" test -e "$to/.pnet-notes" -a -e "$to/pnet-1.part" -a -L "$to/.pnet-00000000-1-1.part"

# In the folder of a run: the temporary file and the checkpoint that is half written, but not where the run is refused.
wait_in "$work/run" 1
end
cp -r "$work/run/last" "$work/run/last.tmp"
cp -r "$work/run/best" "$work/run/best.tmp"
cp -r "$work/run/best" "$work/run/best.old"
run 2 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
run 2 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1 --resume --seed 9
check "a training that is refused removes nothing" test -e "$part" -a -e "$work/run/last.tmp" -a -e "$work/run/best.old"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1 --resume
check "what is left: $(ls -A "$work/run" | tr '\n' ' ')" test "$(ls -A "$work/run" | tr '\n' ' ')" = \
    'best config.yaml last metrics.jsonl model.pnet report.html '

# data synth --force, killed while it makes its clouds: the older set is whole, and the next one leaves nothing of the killed one.
(cd "$work/rooms" && find . -type f | sort | xargs sha256sum) >"$work/sums"
synth="data synth rooms -o $work/rooms --count 40 --points 30000 --seed 3 -j 1 -q"
for ((i = 0; i < 3; i++)); do
    rm -rf "$work/rooms"/.pnet-set-*
    # shellcheck disable=SC2086
    "$pnetc" $synth --force 2>"$work/synth" </dev/null &
    pid=$!
    for ((k = 0; k < 600; k++)); do # until it has begun a cloud, or has changed the older set
        [ -n "$(find "$work/rooms" -path '*.pnet-set-*' -name '*.ply' | head -n 1)" ] && break
        (cd "$work/rooms" && sha256sum --quiet -c "$work/sums") >/dev/null 2>&1 || break
        sleep 0.02
    done
    # shellcheck disable=SC2086
    if [ $i = 1 ]; then
        run 1 $synth --force
        says 'another program makes a data set in this folder'
    fi
    end
    check "the older set is as it was" sh -c 'cd "$1" && sha256sum --quiet -c "$2"' sh "$work/rooms" "$work/sums"
    run 0 data info "$work/rooms"
done
check "a killed program leaves its folder" test -d "$work/rooms/.pnet-set-1"
run 0 data synth rooms -o "$work/rooms" --count 3 --points 300 --seed 2 -j 1 -q --force
check "what is left: $(ls -A "$work/rooms" | tr '\n' ' ')" test "$(ls -A "$work/rooms" | tr '\n' ' ')" = \
    'dataset.yaml test train val '
check "three clouds" test "$(find "$work/rooms" -name '*.ply' | wc -l)" = 3
finish
