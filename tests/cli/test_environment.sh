# What the environment asks of OpenMP and of stacks: more threads than libgomp can start, in every thread of a training; stacks that
# a computation would overflow.
. tests/cli/common.sh
unset OMP_NUM_THREADS OMP_STACKSIZE GOMP_STACKSIZE OMP_THREAD_LIMIT
run 0 data synth rooms -o "$work/rooms" --count 4 --points 1500 --seed 3 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\nworkers: 2\n' >"$work/run.yaml"

# trains CODE NAME=VALUE [OPTIONS]: a training of two steps in that environment.
trains() {
    local want=$1 set=$2 got=0
    shift 2
    rm -rf "$work/trained"
    env "$set" "$pnetc" train tests/cli/tiny.pnet --config "$work/run.yaml" -o "$work/trained" "$@" \
        >"$out" 2>"$err" </dev/null || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "$set: exit code $got: $(tail -n 3 "$err")"; fi
}

# Numbers that are possible are taken, and what OpenMP refuses is its default; the weights are the same.
trains 0 OMP_NUM_THREADS=2
cp "$work/trained/last/weights.safetensors" "$work/wanted"
# LLVM's runtime, which the build for ThreadSanitizer has, aborts the program at its first call for some of them.
values="3,2 100000 100000,100000 3,100000 abc 0 -3"
if ! ldd "$pnetc" | grep -q libomp; then values="$values 2147483647 99999999999999999999 EMPTY"; fi
for threads in $values; do
    if [ "$threads" = EMPTY ]; then threads=; fi
    trains 0 OMP_NUM_THREADS=$threads
    same "$work/trained/last/weights.safetensors" "$work/wanted"
    case $threads in 100000*)
        says "the environment asks for 100000 threads, at most 4096 are possible: "
    esac
done
# The threads that load and prepare have as many as --threads says.
trains 0 OMP_NUM_THREADS=4000 --threads 2
check "threads, not $(grep -c . "$err") lines" hides -q "Thread creation failed" "$err"
trains 0 OMP_NUM_THREADS=100000 --threads 2
for limit in 1 2 abc; do trains 0 OMP_THREAD_LIMIT=$limit; done

for size in 16k 64k '512 K' 1023 1000000b; do
    trains 1 "OMP_STACKSIZE=$size"
    says "OMP_STACKSIZE=$size: stacks of threads need 1M at least"
done
trains 1 GOMP_STACKSIZE=64
says "GOMP_STACKSIZE=64: "
for size in 1M 1024 2048k '1 g' abc ''; do trains 0 "OMP_STACKSIZE=$size"; done
trains 1 "OMP_STACKSIZE=$(printf '\n17k')"
says "OMP_STACKSIZE=\\x0a17k: "

for limit in 64 1023; do
    (failed=0 && ulimit -s $limit && trains 1 A=b && says "the stack is limited to $limit KiB" && [ "$failed" = 0 ])
    check "ulimit -s $limit" test $? = 0
done
(failed=0 && ulimit -s 1024 && trains 0 A=b && [ "$failed" = 0 ])
check "ulimit -s 1024" test $? = 0
finish
