# What pnetc writes is all there, or the exit code says that it is not: to standard output, to files, and when memory is short.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 300 --seed 2 -j 1
printf 'data: rooms\nsteps: 1\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
cloud=$work/rooms/test/000009.ply

# full ARGUMENTS...: a command that prints must notice that nothing could be written.
full() {
    local got=0
    "$pnetc" "$@" >/dev/full 2>"$err" </dev/null || got=$?
    check "exit code $got: pnetc $*" test "$got" = 1
    says "pnetc: standard output: cannot write: No space left on device"
}
sed 's/-> relu/-> rleu/' $model >"$work/wrong.pnet"
sed 's/  */  /g' $model >"$work/loose.pnet"
full --help
full help
full --version
for command in check fmt plan graph train infer eval compare register data ops info; do full $command --help; done
for pass in ast elaborate prune fold fuse schedule parameters geometry lifetimes hash; do full check --dump $pass $model; done
full check --json $model
full fmt --stdout $model
full fmt --check "$work/loose.pnet"
full plan $model --input "$cloud"
full plan $model --input "$cloud" --json
full graph $model
full graph --dot $model
full graph $model -o -
full ops
full ops conv
full ops --markdown
full info "$work/run"
full info "$cloud"
full eval $model --weights "$work/run" --config "$work/run.yaml" -q
full eval $model --weights "$work/run" --config "$work/run.yaml" --json
full train $model --config "$work/run.yaml" -o "$work/full" -j 1
full train $model --config "$work/run.yaml" -o "$work/full2" --json -q -j 1
"$pnetc" fmt - <"$work/loose.pnet" >/dev/full 2>"$err" && fail "fmt - to a full device"
says "No space left on device"
# a code of its own stays
"$pnetc" check --json "$work/wrong.pnet" >/dev/full 2>"$err"
check "the model's own exit code" test $? = 3

# Standard streams that the caller closed: no file gets their numbers, and with them what is printed.
printf 'data: rooms\nsteps: 2\nbatch_size: 2\n' >"$work/evaluated.yaml"
"$pnetc" train $model --config "$work/evaluated.yaml" -o "$work/closed" -j 1 >&- 2>&-
check "exit code $? with closed streams" test $? = 1
check "steps and their evaluation" test "$(grep -c '^{.*}$' "$work/closed/metrics.jsonl")" = 3
check "nothing else" test "$(wc -l <"$work/closed/metrics.jsonl")" = 3
"$pnetc" info - <&- >"$out" 2>"$err"
check "exit code $? without standard input" test $? = 1
says "pnetc: standard input: cannot read: Bad file descriptor"

# Drawings: the ending says what they are.
run 0 graph $model -o "$work/a.svg"
check "SVG" grep -q '^<svg' "$work/a.svg"
run 0 graph $model -o "$work/a.dot"
check "DOT" grep -q '^digraph' "$work/a.dot"
run 0 graph $model -o "$work/a.gv" --dot
same "$work/a.dot" "$work/a.gv"
run 0 graph $model --dot
same "$work/a.dot" "$out"
for name in a.png a.pdf; do
    run 2 graph $model -o "$work/$name"
    says ".svg"
    says ".dot"
    check "nothing is written" test ! -e "$work/$name"
done
run 2 graph $model -o "$work/b.svg" --dot
run 0 graph $model -o "$work/made/too/a.svg"
same "$work/a.svg" "$work/made/too/a.svg"
# Results for which there is no room in the format: nothing is computed and dropped.
for name in a.bin a.pcd.bin; do
    run 2 infer $model --weights "$work/run" --input "$cloud" -o "$work/$name"
    says 'have no room for results'
    check "nothing is written" test ! -e "$work/$name"
done
run 2 infer $model --weights "$work/run" --input "$work/rooms/test" -o "$work/bins" --format bin
check "no folder is made" test ! -e "$work/bins"
run 0 data synth shapes -o "$work/shapes" --count 3 --points 200 -j 1 -q
printf 'data: shapes\nsteps: 1\nbatch_size: 2\neval_every: 0\n' >"$work/shapes.yaml"
run 0 train models/shapes.pnet --config "$work/shapes.yaml" -o "$work/objects" -q -j 1
object=$work/shapes/train/000000.ply
run 2 infer models/shapes.pnet --weights "$work/objects" --input "$object" -o "$work/object.ply"
says 'is written as .npy'
check "nothing is written" test ! -e "$work/object.ply"
run 0 infer models/shapes.pnet --weights "$work/objects" --input "$object" -o "$work/object.npy" -q
run 0 infer models/shapes.pnet --weights "$work/objects" --input "$work/shapes/train" -o "$work/many" -q
same "$work/object.npy" "$work/many/000000.npy"

# A cloud's folder is not made: the message names it.
run 1 infer $model --weights "$work/run" --input "$cloud" -o "$work/missing/a.ply" -q
says "there is no folder $work/missing"
check "no folder is made" test ! -e "$work/missing"

# fmt keeps permissions and links, and leaves alone what it cannot replace.
"$pnetc" fmt --stdout "$work/loose.pnet" >"$work/canonical.pnet" || fail "fmt --stdout"
cp "$work/loose.pnet" "$work/file.pnet"
chmod 640 "$work/file.pnet"
ln -s file.pnet "$work/link.pnet"
run 0 fmt "$work/link.pnet"
same "$work/file.pnet" "$work/canonical.pnet"
check "the link stays" test -L "$work/link.pnet"
check "permissions stay" test "$(stat -c %a "$work/file.pnet")" = 640

# With little memory a file is formatted as a whole, or stays as it is. (A sanitizer needs more to begin.)
big=$work/big/big.pnet
mkdir "$work/big"
{
    echo 'pnet 1'
    seq 1 100000 | sed 's/.*/value_& =   [ &, 1 , 2 ]  # &/'
} >"$work/big.pnet"
"$pnetc" fmt --stdout "$work/big.pnet" >"$work/whole.pnet" || fail "the large model has a canonical form"
differ "the large model is canonical already" "$work/big.pnet" "$work/whole.pnet"
if (ulimit -v 60000 && "$pnetc" --version) >/dev/null 2>&1; then
    short=0 done=0
    for kilobytes in $(seq 60000 6000 260000); do
        cp "$work/big.pnet" "$big"
        code=0
        (ulimit -v "$kilobytes" && OMP_NUM_THREADS=1 "$pnetc" fmt "$big") 2>"$err" || code=$?
        case $code in
        0)
            same "$big" "$work/whole.pnet"
            done=$((done + 1))
            ;;
        5)
            same "$big" "$work/big.pnet"
            says "out of memory"
            short=$((short + 1))
            ;;
        *) fail "exit code $code with $kilobytes kB: $(head -c 300 "$err")" ;;
        esac
        check "nothing else in the folder" test "$(ls -A "$work/big")" = big.pnet
    done
    check "memory was short $short times, enough $done times" test "$short" -gt 3 -a "$done" -gt 3
fi

# Names are shown, and move no cursor.
escape=$(printf '\033[31m')
cp "$work/wrong.pnet" "$work/red$escape.pnet"
run 3 check "$work/red$escape.pnet"
says 'red\x1b[31m.pnet'
check "no escape reaches the terminal" hides -q "$escape" "$err"
run 3 check --json "$work/red$escape.pnet"
prints 'red\u001b[31m.pnet'
run 2 check "--$escape"
check "no escape reaches the terminal" hides -q "$escape" "$err"
run 3 check "$work/none$escape.pnet"
check "no escape reaches the terminal" hides -q "$escape" "$err"
printf 'pnet 1\n// %s\nx = "%s" -> conv(shape="%s", name="%s")\ninclude "%s"\n' "$escape" "$escape" "$escape" "$escape" "$escape" >"$work/text.pnet"
run 3 check "$work/text.pnet"
check "no escape reaches the terminal" hides -q "$escape" "$err"
run 3 check --dump ast "$work/text.pnet"
check "no escape reaches the terminal" hides -q "$escape" "$out"
run 3 check $model --set "v=$escape" --set "$escape=1"
check "no escape reaches the terminal" hides -q "$escape" "$err"

# A model without a loss: what it is for is listed, and not warned of.
cat >"$work/infer.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3] }
net small(p: cloud) { return p.rgb -> linear(8) -> relu -> linear(4) }
y = small(cloud)
END
run 0 check "$work/infer.pnet" --dump parameters
prints small.out.linear.weight
prints small.out.linear_2.weight
check "no warning: $(head -c 300 "$err")" test ! -s "$err"

# Evaluations print no key twice, and no loss or metric can be one of them.
run 0 eval $model --weights "$work/run" --config "$work/run.yaml" --json
keys=$(grep -oE '"[a-z_]+":' "$out" | tr -d '":' | sort)
check "keys: $keys" test "$(printf '%s\n' "$keys" | uniq -d)" = ""
own=$(grep -oE '^(loss|metric) +[a-z_]+' $model | awk '{ print $2 }')
for key in $(grep -oE '"evaluation":\{.*|^\{.*' "$out" | grep -oE '"[a-z_]+":' | tr -d '":'); do
    case " $(printf '%s ' $own)evaluation peak_bytes " in
    *" $key "*) continue ;;
    esac
    sed "s/^metric  *[a-z_]*/metric $key/" $model >"$work/clash.pnet"
    run 3 check "$work/clash.pnet"
done
finish
