# What bash, zsh and fish offer: every command and option of the help texts and nothing else, the values of options that have names,
# files by their endings. A shell that is not there is named.
. tests/cli/common.sh
pages=$(dirname "$(realpath "$pnetc")")/pages
[ -f "$pages/table" ] || { echo 'this build has no pages'; exit 77; }
scripts=$(realpath tests/cli)

# options COMMAND..: the long options of its help text.
options() { "$pnetc" "$@" --help | sed -nE 's/^  (-[a-z], |    )?(--[a-z-]+).*/\2/p' | sort -u; }
# listed COMMAND..: the commands of its help text.
listed() { "$pnetc" "$@" --help | sed -nE '/^exit codes/q; s/^  ([a-z]+)  +.*/\1/p'; }

mkdir "$work/at" "$work/at/folder" "$work/want"
touch "$work/at/"{net.pnet,run.yaml,room.ply,ROOM.LAS,best.safetensors,picture.svg,'of two.pnet',pose.txt}
number=0
# expect LINE WORDS: what is offered for a command line, in any order.
expect() {
    number=$((number + 1))
    printf '%s\n' "$1" >>"$work/lines"
    # shellcheck disable=SC2086
    if [ $# = 2 ]; then printf '%s\n' $2; else shift && printf '%s\n' "$@"; fi | grep . | sort -u >"$work/want/$number"
}

commands=$(listed)
expect 'pnetc ' "$commands"
expect 'pnetc --' '--help --version'
expect 'pnetc c' 'check compare'
expect 'pnetc data ' "$(listed data)"
all=
for command in $commands; do
    if [ "$(listed "$command")" ]; then
        for one in $(listed "$command"); do all="$all$command $one
"; done
    else
        all="$all$command
"
    fi
done
[ "$(echo "$all" | grep -c .)" -ge 13 ] || fail 'few commands found: is the extraction broken?'
while IFS= read -r command; do
    [ "$command" ] || continue
    # shellcheck disable=SC2086
    expect "pnetc $command --" "$(options $command)"
done <<<"$all"

expect 'pnetc check --mode ' 'native voxel'
expect 'pnetc check --mode v' voxel
expect 'pnetc train --precision ' 'fp32 tf32 bf16 fp16'
expect 'pnetc plan --optimizer ' 'sgd adam adamw'
expect 'pnetc plan --architecture ' '80 86 89 90 100 120'
expect 'pnetc eval --split ' 'train val test'
expect 'pnetc eval net.pnet --split t' 'train test'
expect 'pnetc infer --device ' 'cpu cuda'
expect 'pnetc data synth --scene ' 'room street'
expect 'pnetc import --from ' 'minkowski spconv torchsparse torch'
expect 'pnetc data synth ' 'shapes rooms lidar pairs partial'
expect 'pnetc ops ' "$("$pnetc" ops | sed -nE 's/^  ([a-z0-9_]+) .*/\1/p')"
expect 'pnetc train --seed ' ''
expect 'pnetc check --set ' ''
# files by their endings, in small letters and capitals; folders lead to others
expect 'pnetc check ' net.pnet 'of two.pnet' folder
expect 'pnetc check --json ' net.pnet 'of two.pnet' folder
expect 'pnetc fmt net.pnet ' net.pnet 'of two.pnet' folder
expect 'pnetc train net.pnet --config ' 'run.yaml folder'
expect 'pnetc train net.pnet -c ' 'run.yaml folder'
expect 'pnetc train -o ' folder
expect 'pnetc infer -w ' 'best.safetensors folder'
expect 'pnetc infer --input ' 'room.ply ROOM.LAS pose.txt folder'
expect 'pnetc register room.ply ' 'room.ply ROOM.LAS pose.txt folder'
expect 'pnetc register --picture ' 'picture.svg folder'
expect 'pnetc register --from ' net.pnet run.yaml room.ply ROOM.LAS best.safetensors picture.svg 'of two.pnet' pose.txt folder
expect 'pnetc data info ' 'run.yaml folder'

offered() { # SHELL COMMAND..: compares what is offered with what is expected
    local shell=$1 i=0 line
    shift
    (cd "$work/at" && timeout 240 "$@" <"$work/lines") >"$work/$shell" 2>"$err" || { fail "$shell: $(head -c 300 "$err")"; return; }
    awk -v folder="$work" -v shell="$shell" '/^= / { if (file) close(file); file = folder "/got." shell "." ++n; printf "" >file; next }
        { sub(/[\/=]$/, ""); if ($0 != "") print >file }' "$work/$shell"
    while IFS= read -r line; do
        i=$((i + 1))
        if [ -f "$work/got.$shell.$i" ] && sort -u "$work/got.$shell.$i" | cmp -s - "$work/want/$i"; then
            pass
        else
            fail "$shell, '$line': $(sort -u "$work/got.$shell.$i" | diff "$work/want/$i" - | tr '\n' ' ' | head -c 300)"
        fi
    done <"$work/lines"
    echo "$shell: $i command lines"
}
offered bash bash "$scripts/complete.bash" "$pages/bash/pnetc"
if command -v zsh >/dev/null; then offered zsh zsh -f "$scripts/complete.zsh" "$pages/zsh"; else echo 'zsh is not there: not tested'; fi
if command -v fish >/dev/null; then
    HOME=$work offered fish fish --no-config "$scripts/complete.fish" "$pages/fish/pnetc.fish"
else
    echo 'fish is not there: not tested'
fi

# a value behind =, and several with commas between, where shells agree on what is a word
lines() { printf '%s\n' "$1" | (cd "$work/at" && bash "$scripts/complete.bash" "$pages/bash/pnetc") | tail -n +2 | tr '\n' ' '; }
check 'a value behind =' test "$(lines 'pnetc check --mode=v')" = 'voxel '
check 'the second of a list' test "$(lines 'pnetc check --degrade centre,k')" = 'centre,kernel '
check 'files behind =' test "$(lines 'pnetc train --config=r')" = 'run.yaml '
check 'a file behind --' test "$(lines 'pnetc check -- n')" = 'net.pnet '

# A name that is offered is one that pnetc takes; it stops at what is missing behind it.
while IFS=$'\t' read -r what name _ _ _ _ kind names _; do
    [ "$what" != command ] || command=$name
    if [ "$what" = option ] && [ "$kind" = words ]; then
        for one in $names; do
            # shellcheck disable=SC2086
            run 2 $command "--$name" "$one"
            check "$command --$name $one: $(cat "$err")" hides -q -- "--$name is" "$err"
        done
    fi
done < <(awk -F '\t' -v OFS='\t' '{ for (i = 1; i <= 9; i++) if ($i == "") $i = "-" } 1' "$pages/table")
finish
