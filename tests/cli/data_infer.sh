# A network that reads coordinates alone, on every real cloud there is: each one that `pnetc info` reads
# gets a row for each of its points, each other one a message, and nothing crashes.
data=${PNET_TEST_DATA:-}/data
if [ ! -f "$data/MANIFEST.md" ]; then
    echo 'skipped: PNET_TEST_DATA names no folder with data/'
    exit 77
fi
. tests/cli/common.sh

# Random weights, of one step at a learning rate of next to nothing. The cells are large: it is the
# clouds that are tested here.
run 0 data synth rooms -o "$work/rooms" --count 10 --points 600 --seed 1 -j 1
printf 'data: rooms\nsteps: 1\nlr: 1e-12\neval_every: 0\nset: {v: 2m, classes: 12, first: 3}\n' >"$work/run.yaml"
run 0 train models/fcgf.pnet --config "$work/run.yaml" -o "$work/fcgf" -q

# What can be read, and its points: those `info` counts, and those it says were dropped.
find "$data" -type f | sort >"$work/files"
xargs -d '\n' -n 200 "$pnetc" info <"$work/files" >"$work/info" 2>"$work/refused"
check "info does not crash" test $? -lt 126
awk '/^[^ ].*: [0-9]+ points$/ { points = $(NF - 1); sub(/: [0-9]+ points$/, ""); path = $0; rows[path] = points; far[path] = 0 }
    /^  .*: dropped [0-9]+ of [0-9]+ points/ { for (i = 1; i < NF; i++) if ($i == "of") rows[path] = $(i + 1) }
    /^  [xyz] .* from .* to / { for (i = 1; i < NF; i++) if ($i == "to" && $(i + 1) - $(i - 1) > 2000000) far[path] = 1 }
    END { for (p in rows) print far[p] "\t" rows[p] "\t" p }' "$work/info" | sort -k 3 >"$work/all"
grep '^0' "$work/all" | cut -f 2,3 >"$work/readable"
grep '^1' "$work/all" | cut -f 3 >"$work/far"
cut -f 3 "$work/all" | sort | comm -13 - "$work/files" >"$work/unreadable"
readable=$(wc -l <"$work/readable") unreadable=$(wc -l <"$work/unreadable")
check "$readable readable files" test "$readable" -ge 1000
check "$unreadable unreadable files" test "$unreadable" -ge 50
check "few reach beyond 2^20 cells" test "$(wc -l <"$work/far")" -le 10

# Folder by folder, so that one process has many clouds; names within a folder and ending differ.
infer() { # output folder, inputs
    local to=$1 list=()
    shift
    for f in "$@"; do list+=(--input "$f"); done
    [ $# = 1 ] && to=$1.npy && to=$work/one/$(basename "${1%.*}").npy
    "$pnetc" infer models/fcgf.pnet --net fcgf --weights "$work/fcgf" "${list[@]}" -o "$to" --format npy -q >"$out" 2>"$err"
}

# group FILES: all of them must be inferred; where that fails, one by one to say which.
group() {
    local to=$work/many code=0 rows shape f
    mkdir -p "$work/one"
    rm -rf "$to"
    infer "$to" "$@" || code=$?
    [ $# = 1 ] && to=$work/one
    for f in "$@"; do
        rows=$(awk -F '\t' -v f="$f" '$2 == f { print $1 }' "$work/readable")
        if [ "$code" != 0 ]; then
            infer "$to" "$f" || fail "exit code $? for $f: $(tail -n 1 "$err")"
            to=$work/one
        fi
        shape=$(npy_shape "$to/$(basename "${f%.*}").npy")
        if [ "$shape" = "$rows 32" ]; then pass; else fail "$f has $rows points, the result $shape"; fi
    done
    rm -rf "$work/many" "$work/one"
}

files=() last=
while IFS=$'\t' read -r _ path; do
    key=${path%/*}/${path##*.}
    if [ "$key" != "$last" ] || [ ${#files[@]} = 100 ]; then
        [ ${#files[@]} = 0 ] || group "${files[@]}"
        files=()
    fi
    files+=("$path")
    last=$key
done < <(awk -F '\t' '{ n = split($2, part, "."); print part[n] "\t" $1 "\t" $2 }' "$work/readable" | sort -s -k 1,1 | cut -f 2,3)
[ ${#files[@]} = 0 ] || group "${files[@]}"

# The others, and those too wide for a grid: said in words, and no output, whole or half.
mkdir "$work/empty"
while IFS= read -r path; do
    code=0
    infer "$work/empty" "$path" || code=$?
    case $code in
    4) pass ;;
    *) fail "exit code $code for $path" ;;
    esac
    if grep -q "$(basename "$path" | sed 's/[][\.*^$]/./g')" "$err"; then pass; else fail "no message for $path: $(cat "$err")"; fi
    nothing_left "$work/one"
done < <(cat "$work/far" "$work/unreadable")
finish
