# Numbers of options: every one is held to a range, which the message says; what is no number is refused.
. tests/cli/common.sh

# refuse TEXT COMMAND..: exit code 2, and one line that says what the option takes.
refuse() {
    local text=$1
    shift
    run 2 "$@"
    says "$text"
    check "one line: $(head -c 200 "$err")" test "$(wc -l <"$err")" = 1
}

# Every option of every command by its help.
numbers=0
for command in check fmt plan graph train infer eval compare register ops info lsp 'data synth' 'data info'; do
    # shellcheck disable=SC2086
    run 0 $command --help
    cp "$out" "$work/help"
    for option in $(sed -nE 's/^  (-[a-z], |    )(--[a-z-]+) N  .*/\2/p' "$work/help"); do
        numbers=$((numbers + 1))
        says="$option takes a whole number"
        [ "$option" != --sample ] || says='--sample is 3 or 4'
        for value in -1 1e40 9223372036854775808 0x10 12x 1.5 2kk nan inf '' M 1,000 ' '; do
            # shellcheck disable=SC2086
            refuse "$says" $command "$option" "$value"
        done
    done
    for option in $(sed -nE 's/^  (-[a-z], |    )(--[a-z-]+) SIZE .*/\2/p' "$work/help"); do
        for value in -1 0 8gigs nan 0x10 ''; do
            # shellcheck disable=SC2086
            refuse "$option takes a size such as 8GiB, one byte or more" $command "$option" "$value"
        done
    done
    for option in $(sed -nE 's/^  (-[a-z], |    )(--[a-z-]+) LENGTH .*/\2/p' "$work/help"); do
        for value in -1cm 0 5parsec nan ''; do
            # shellcheck disable=SC2086
            refuse "$option takes a length such as 20cm, more than 0" $command "$option" "$value"
        done
    done
done
check "$numbers options with numbers" test $numbers -ge 15
refuse "--autotune takes a number of seconds, not '-1': more than 0" train --autotune=-1
refuse '--points takes a whole number from 1 to 2147483647' plan models/rooms.pnet --points -5
refuse '--points takes a whole number from 1 to 2147483647' plan models/rooms.pnet --points 9223372036854775807
refuse '--steps takes a whole number from 1 to 4294967295, not '"'0'" train models/rooms.pnet --steps 0
refuse '--seed takes a whole number, 0 or more' eval models/rooms.pnet --seed -1
refuse '--beams takes a whole number from 1 to 128' data synth lidar --beams 129

# One number, written in several ways.
plan() { run 0 plan models/rooms.pnet --points "$1" -q; }
plan 2000000
cp "$out" "$work/plain"
for same in 2M 2e6 2000k 0.002G +2000000 2.0M 2E+6; do
    plan $same
    same "$work/plain" "$out"
done
plan 1500
cp "$out" "$work/plain"
plan 1.5k
same "$work/plain" "$out"
plan 2147483647
prints 'peak:'
for model in models/*.pnet; do
    run 0 plan "$model" --points 2147483647 --train -q
    check "$model: sizes are positive" hides -q -- ' -[0-9]' "$out"
done
run 0 data synth rooms -o "$work/a" --count 1 --points 1.5k -q
run 0 data synth rooms -o "$work/b" --count 1e0 --points 1500 --seed 1 -q
check "the same rooms" diff -r "$work/a" "$work/b"
finish
