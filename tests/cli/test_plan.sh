# pnetc plan: the keys of --json are those of docs/training.md, the numbers are those of the text and of what runs take; errors.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 1 --points 1500 --seed 3 -j 1
run 0 data synth pairs -o "$work/pairs" --count 3 --points 1500 --seed 3 -j 1
cloud=$work/rooms/train/000000.ply
model=tests/cli/tiny.pnet
export OMP_NUM_THREADS=2
cat >"$work/kinds.pnet" <<'END'
pnet 1
input cloud { xyz : position  f : feature[3] }
net n(p: cloud) {
  g = grid(p, 20cm * [1, 2, 4])
  x = p.f -> pool(mean, to=g[0]) -> conv(8, knn=6) -> conv(8, shape=cube, radius=50cm)
  return x -> conv(4, kernel=2, to=g[1]) -> conv(4) -> interpolate(to=g[0])
}
y = n(cloud)
END

# flat FILE: a line "path=value" for each number and text of a JSON object, elements of arrays as "[]".
flat() {
    awk 'BEGIN { RS = "\001" } {
        n = length($0)
        for (i = 1; i <= n; i++) {
            c = substr($0, i, 1)
            if (c == "\"") {
                end = index(substr($0, i + 1), "\"")
                word = substr($0, i + 1, end - 1)
                i += end
                if (substr($0, i + 1, 1) == ":") { key = word; i++ } else put(word)
            } else if (c == "{" || c == "[") {
                kind[++depth] = c
                name[depth] = key
                key = ""
            } else if (c == "}" || c == "]") key = name[depth--] = ""
            else if (c ~ /[-0-9]/) {
                match(substr($0, i), /^[-0-9.eE+]+/)
                put(substr($0, i, RLENGTH))
                i += RLENGTH - 1
            }
        }
    }
    function put(word) {
        print path(key) "=" word
        key = ""
    }
    function path(last, d, text) {
        for (d = 2; d <= depth; d++) {
            if (name[d] != "") text = text (text == "" ? "" : ".") name[d]
            if (kind[d] == "[") text = text "[]"
        }
        return text (text == "" ? "" : ".") last
    }' "$1"
}

value() { sed -n "s/^$1=//p" "$work/flat"; } # of flat's output

# Keys: the table's, each once, its unit in the name where it is a length.
documented=$(sed -n '/^`plan --json` prints/,/^## /p' docs/training.md | grep '^| `')
echo "$documented" | cut -d '|' -f 2 | grep -oE '`[^`]+`' | tr -d '`' | sort >"$work/documented"
check "keys are documented" test "$(wc -l <"$work/documented")" -ge 25
check "no key twice" test -z "$(uniq -d "$work/documented")"
echo "$documented" | while IFS='|' read -r _ keys unit _; do
    for key in $(echo "$keys" | tr -d '`,'); do
        case "$key$unit" in
        *"_m metres "* | bytes.*" bytes "*) ;;
        *metres* | *"_m "* | *bytes*) echo "$key:$unit" ;;
        esac
    done
done >"$work/units"
check "units: $(cat "$work/units")" test ! -s "$work/units"
: >"$work/printed"
for of in "$model --input $cloud --train" "$model --input $cloud" "$work/kinds.pnet --input $cloud" "models/fcgf_3dmatch.pnet --points 5000 --train --device cuda --architecture 90"; do
    # shellcheck disable=SC2086
    run 0 plan $of --json
    valid_json "$out"
    flat "$out" | sed 's/=.*//' >>"$work/printed"
done
sort -u "$work/printed" -o "$work/printed"
check "keys: $(diff "$work/documented" "$work/printed")" cmp "$work/documented" "$work/printed"

# Numbers: what --json tells is what the text tells, and the parts add up.
agree() { # options
    # shellcheck disable=SC2086
    run 0 plan $1
    cp "$out" "$work/text"
    # shellcheck disable=SC2086
    run 0 plan $1 --json
    flat "$out" >"$work/flat"
    local batches=1 part total=0
    case $1 in *--train*) batches=2 ;; esac
    check "$1: parameters" grep -q "^parameters: *$(value parameters) numbers$" "$work/text"
    check "$1: peak" grep -q "^peak: .* $(value bytes.peak) bytes, for " "$work/text"
    for part in parameters gradients optimizer geometry features counts; do total=$((total + $(value bytes.$part))); done
    check "$1: $total in all" test $total = "$(value bytes.peak)"
    total=$(value bytes.building)
    for part in inputs levels maps triplets tiles; do total=$((total + batches * $(value bytes.${part}_of_a_batch))); done
    check "$1: $total of geometry" test $total = "$(value bytes.geometry)"
    # sizes in the text are those of --json in units; what is 0 has no line
    while read -r bytes what; do
        [ "$bytes" -gt 0 ] || continue
        size=$(awk -v b="$bytes" 'BEGIN { split("B KiB MiB GiB", u); for (i = 1; b >= 1024; i++) b /= 1024
            printf((i > 1 ? "%.2f %s" : "%d %s"), b, u[i]) }')
        check "$1: $bytes bytes are $size $what" grep -qE "^(memory:)? +$size $what( of two batches)?$" "$work/text"
    done <<END
$(value bytes.parameters) parameters
$(value bytes.gradients) gradients
$(value bytes.optimizer) optimiser state
$((batches * $(value bytes.inputs_of_a_batch))) inputs
$((batches * $(value bytes.levels_of_a_batch))) levels
$((batches * $(value bytes.maps_of_a_batch))) maps between levels
$((batches * $(value bytes.triplets_of_a_batch))) triplets
$((batches * $(value bytes.tiles_of_a_batch))) triplets as tiles
$(value bytes.building) to build the geometry
$(value bytes.features) feature stage
$(value bytes.counts) counts that kernels read
END
    # levels, sets and matches in their order
    paste -d ' ' <(value 'levels\[\].name') <(value 'levels\[\].points') <(value 'levels\[\].cell_m') >"$work/a"
    sed -n '/^levels:/,/^[^ ]/s/^  \([^ ]*\) *\([0-9]*\) points\( *cell \([0-9.e-]*\) m\)*\( *chunks of .*\)*$/\1 \2 \4/p' \
        "$work/text" |
        awk '{ print $1, $2, $3 + 0 }' >"$work/b"
    check "$1: levels $(diff "$work/a" "$work/b")" cmp "$work/a" "$work/b"
    check "$1: there are levels" test -s "$work/a"
    cp "$work/a" "$work/levels"
    paste -d ' ' <(value 'triplet_sets\[\].centres') <(value 'triplet_sets\[\].neighbours') \
        <(value 'triplet_sets\[\].kernel') <(value 'triplet_sets\[\].radius_m') <(value 'triplet_sets\[\].knn') \
        <(value 'triplet_sets\[\].triplets') <(value 'triplet_sets\[\].layers') |
        awk '{ printf "%s <- %s, K=%d, %s: %d triplets, %d layers\n", $1, $2, $3,
            $5 ? "knn " $5 : sprintf("radius %.6g m", $4), $6, $7 }' >"$work/a"
    sed -n '/^triplet sets:/,/^[^ ]/s/^  \(.*: [0-9]* triplets\), .* a point; layers:\(.*\)$/\1,\2/p' "$work/text" |
        awk -F, '{ n = split($NF, layer, " "); sub(/,[^,]*$/, ""); print $0 ", " n " layers" }' >"$work/b"
    check "$1: sets $(diff "$work/a" "$work/b")" cmp "$work/a" "$work/b"
    check "$1: there are sets" test -s "$work/a"
    paste -d ' ' <(value 'matches\[\].source') <(value 'matches\[\].target') <(value 'matches\[\].radius_m') \
        <(value 'matches\[\].matches') | awk 'NF { printf "matches: %s to %s, radius %.6g m: %d\n", $1, $2, $3, $4 }' >"$work/a"
    sed -n 's/^\(matches: .*\), .* a point$/\1/p' "$work/text" >"$work/b"
    check "$1: matches $(diff "$work/a" "$work/b")" cmp "$work/a" "$work/b"
}
agree "$model --input $cloud"
agree "$model --input $cloud --train --optimizer sgd"
agree "$model --points 3000 --like $cloud --train"
agree "$work/kinds.pnet --input $cloud --mode native"
agree "models/fcgf_3dmatch.pnet --input $cloud --train"
check "there are matches" test "$(value 'matches\[\].matches')" -gt 0
agree "models/rooms.pnet --points 20000 --train --device cuda --precision bf16"
agree "models/minkunet18a.pnet --points 20000 --mode voxel"
# Chunks follow from the rows of their finer level, however these are counted.
for counted in "--points 20001" "--input $cloud" "--points 9001 --like $cloud"; do
    agree "tests/models/chunks.pnet $counted --train"
    check "chunks, $counted" grep -q '^  c\[1\] .* points   chunks of 4 rows of c\[0\]$' "$work/text"
    check "chunks, $counted: sizes" awk '{ n[$1] = $2 }
        function chunks(rows, size) { return int((rows + size - 1) / size) }
        END { exit !(n["c[1]"] > 9 && n["c[0]"] == chunks(n["g"], 2) && n["c[1]"] == chunks(n["c[0]"], 4) &&
            n["f"] == chunks(n["cloud"], 4)) }' "$work/levels"
done

# What a run takes is what was planned: a training on two clouds that are the same, and an inference that has this much memory,
# which cannot do with a byte less.
cp "$cloud" "$work/rooms/train/000001.ply"
sed -i 's/^train:$/&\n  - {cloud: train\/000001.ply}/' "$work/rooms/dataset.yaml"
printf 'data: rooms\nsteps: 3\nbatch_size: 1\n' >"$work/run.yaml"
for mode in native voxel; do
    run 0 plan $model --input "$cloud" --train --mode $mode --json
    planned=$(number peak "$out")
    run 0 train $model --config "$work/run.yaml" --data "$work/rooms" -o "$work/run-$mode" --mode $mode --json
    check "$mode: $(number peak_bytes "$out") taken, $planned planned" test "$(number peak_bytes "$out")" = "$planned"
    run 0 plan $model --input "$cloud" --mode $mode --json
    planned=$(number peak "$out")
    run 0 infer $model --weights "$work/run-$mode" --input "$cloud" -o "$work/out.ply" --memory "$planned" -q
    run 5 infer $model --weights "$work/run-$mode" --input "$cloud" -o "$work/out.ply" --memory $((planned - 1)) -q
done
# On clouds of different sizes, planned_bytes is the largest of their plans, whichever cloud comes first.
mkdir -p "$work/sizes/clouds"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: %s\nlabel_field: label\ntrain:\n' \
    "$(sed -n 's/^classes: //p' "$work/rooms/dataset.yaml")" >"$work/sizes/dataset.yaml"
most=0
for points in 300 900 1500; do
    run 0 data synth rooms -o "$work/sized" --count 1 --points $points --seed $points -j 1
    mv "$work/sized/train/000000.ply" "$work/sizes/clouds/$points.ply"
    rm -r "$work/sized"
    echo "  - {cloud: clouds/$points.ply}" >>"$work/sizes/dataset.yaml"
    run 0 plan $model --input "$work/sizes/clouds/$points.ply" --train --json
    peak=$(number peak "$out")
    check "more memory for $points points: $peak" test "$peak" -gt "$most"
    most=$peak
done
for seed in 1 2 3 4; do
    run 0 train $model --config "$work/run.yaml" --data "$work/sizes" -o "$work/sizes-$seed" --seed $seed --json
    check "seed $seed: $(number planned_bytes "$out") planned, $most for the largest cloud" \
        test "$(number planned_bytes "$out")" = "$most"
    check "seed $seed: $(number peak_bytes "$out") taken" test "$(number peak_bytes "$out")" -le "$most"
    check "seed $seed: the report has the peak" grep -q 'planned for the largest batch' "$work/sizes-$seed/report.html"
done
# The counts of a cloud are those of the same cloud scaled to its own number of points.
run 0 plan $model --input "$cloud" --json
cp "$out" "$work/own"
run 0 plan $model --points "$(ply_rows "$cloud")" --like "$cloud" --json
same "$work/own" "$out"
# Beside each number adamw keeps one more than sgd.
run 0 plan $model --input "$cloud" --train --json
one=$(number gradients "$out") adamw=$(number optimizer "$out")
run 0 plan $model --input "$cloud" --train --optimizer sgd --json
check "adamw keeps more than sgd" test $((adamw - $(number optimizer "$out"))) = "$one"

# Errors: code and sentence; with --json nothing else is printed.
run 2 plan
says "which model?"
run 2 plan $model --json
says "for which cloud? --input CLOUD or --points N"
check "nothing printed" test ! -s "$out"
run 2 plan $model --points 0
run 2 plan $model --points many
run 2 plan $model --points 100 --optimizer lion
says "--optimizer is sgd, adam or adamw, not 'lion'"
run 2 plan $model --points 100 --mode square
run 1 plan $model --input "$work/none.ply" --json
says "none.ply: cannot open"
check "nothing printed" test ! -s "$out"
run 3 plan "$work/none.pnet" --points 100 --json
says "none.pnet"
sed 's/-> relu/-> rleu/' $model >"$work/wrong.pnet"
run 3 plan "$work/wrong.pnet" --points 100 --json
says "wrong.pnet:15"
check "nothing printed" test ! -s "$out"
printf 'x y z\n1 2\n' >"$work/wrong.xyz"
run 4 plan $model --input "$work/wrong.xyz" --json
# over the budget the plan is told too
run 5 plan $model --input "$cloud" --memory 100KiB --json
says "is over the budget of 100.00 KiB"
valid_json "$out"
# sizes whose sum is beyond 64 bits are no small ones
cat >"$work/deep.pnet" <<'END'
pnet 1
input cloud {
  xyz   : position
  f     : feature[3]
  label : class[65536] per point
}
net deep(p: cloud) {
  x = p.f -> linear(65536)
  for i = 1..17000 { x = x -> gelu }
  return x
}
y = deep(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 5 plan "$work/deep.pnet" --points 2147483647 --train
says "the batch needs more than an exabyte of memory"
# a level with more rows than an index counts: refused, as a batch is
cat >"$work/many.pnet" <<'END'
pnet 1
input cloud { xyz : position }
net many(p: cloud) {
  D = points(points(p, 65536), 32767)
  return p.xyz -> expand(to=points(p, 65536)) -> pool(max, to=level(p)) -> expand(to=D) -> pool(max, to=sample)
}
y = many(cloud)
END
run 0 plan "$work/many.pnet" --points 1
for points in 2 2147483647; do
    run 4 plan "$work/many.pnet" --points $points
    says "has $([ $points = 2 ] && echo 4294836224 || echo 140737488289792) rows: at most 2147483647"
done
run 2 check $model --infer --train
says "--infer or --train, not both"
# Estimates that no integer holds: a radius of 1e8 cells.
run 0 plan models/fcgf_kitti.pnet --points 2000000000 --train --set v=0.01mm --set match=1e8
prints "radius 1000 m: 1000000000000000, "

finish
