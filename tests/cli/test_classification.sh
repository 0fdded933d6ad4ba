# infer on LAS: the result comes back in the file, as columns of its own or as codes of LAS in the field `classification`.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
mkdir "$work/set"
awk 'BEGIN {
    print "x y z red green blue classification label"
    for (i = 0; i < 400; i++)
        printf "%.2f %.2f %.2f %d %d %d %d %d\n", i % 20 / 4, int(i / 20) / 4, i % 7 / 10, i * 37 % 256, i % 11 * 20, i % 5 * 50, 200 + i % 9, i % 12
}' >"$work/set/a.txt"
cat >"$work/set/dataset.yaml" <<'YAML'
pnet_dataset: 1
task: segmentation
classes: [ground, Low Vegetation, building, car, pole, high-noise, "a=b", "7", h, i, j, k]
label_field: label
train: [a.txt]
YAML
printf 'data: set\nsteps: 12\nbatch_size: 1\neval_every: 0\nlr: 0.05\noptimizer: {name: adam}\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
infer() { # exit code, cloud, output, options
    local want=$1 cloud=$2 to=$3
    shift 3
    run "$want" infer $model --weights "$work/run" --input "$cloud" -o "$to" -q "$@"
}
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
convert() { run 0 register "$1" "$1" --from "$work/identity.txt" -o "$2" -q; }
# column NAME FILE: a column of a text with names
column() { awk -F '[, ]' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) k = i; if (!k) exit 1; next } { print $k }' "$2"; }
number_at() { od -An -t u"$3" -j "$2" -N "$3" "$1" | tr -d ' '; }
convert "$work/set/a.txt" "$work/in.las"
points=$(number_at "$work/in.las" 96 4) record=$(number_at "$work/in.las" 105 2)
# old_format IN.las OUT.las: LAS 1.4 of point format 7 or so as LAS 1.2 of format 2, without its records.
old_format() {
    local points record count at
    points=$(number_at "$1" 96 4) record=$(number_at "$1" 105 2) count=$(number_at "$1" 247 8)
    {
        head -c 24 "$1"
        printf '\1\2'
        tail -c +27 "$1" | head -c 68
        printf '\343\0\343\0\0\0\0\0\0\0\2\32\0'
        le32 "$count"
        le32 "$count"
        head -c 16 /dev/zero
        tail -c +132 "$1" | head -c 96
        for ((at = points; at < points + count * record; at += record)); do
            tail -c +$((at + 1)) "$1" | head -c 14
            printf '\11\1\0\0\0\0'
            tail -c +$((at + 31)) "$1" | head -c 6
        done
    } >"$2"
}
le32() { printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24)))"; }

# Columns of the result: those of the file stay as they are, in the place where they are.
infer 0 "$work/in.las" "$work/plain.las"
infer 0 "$work/in.las" "$work/plain.csv"
convert "$work/plain.las" "$work/back.csv"
for name in class score classification label red x y z; do
    column $name "$work/plain.csv" >"$work/one"
    column $name "$work/back.csv" >"$work/two"
    check "$name is there" test -s "$work/one"
    same "$work/one" "$work/two"
done
check "class and score are extra dimensions" test "$(number_at "$work/plain.las" 105 2)" = $((record + 8))
check "classes differ" test "$(column class "$work/plain.csv" | sort -u | wc -l)" -gt 2
infer 0 "$work/plain.las" "$work/again.las"
says 'written as input_NAME: class, score'
run 0 info "$work/again.las"
for name in class score input_class input_score; do prints $name; done

# Codes: nothing else in the file changes.
codes="ground=2,Low Vegetation=low_vegetation,building=6,car=64,a=b=255,7=7,8=0,4=1,5=18,9=40,10=41"
infer 0 "$work/in.las" "$work/coded.las" --classification "$codes,k=42"
check "the same length" test "$(wc -c <"$work/coded.las")" = "$(wc -c <"$work/in.las")"
cmp -l "$work/in.las" "$work/coded.las" >"$work/changed"
check "something changed" test -s "$work/changed"
check "only classes changed" awk -v points="$points" -v record="$record" '($1 - 1 - points) % record != 16 { exit 1 }' "$work/changed"
convert "$work/coded.las" "$work/coded.csv"
column class "$work/plain.csv" | awk 'BEGIN { split("2 3 6 64 1 18 255 7 0 40 41 42", code, " ") } { print code[$1 + 1] }' >"$work/want"
column classification "$work/coded.csv" >"$work/got"
same "$work/want" "$work/got"
for ending in ply pcd csv; do
    infer 0 "$work/in.las" "$work/coded.$ending" --classification "$codes,11=42"
    convert "$work/coded.$ending" "$work/of_$ending.csv"
    column classification "$work/of_$ending.csv" >"$work/got"
    same "$work/want" "$work/got"
    check "no column class in .$ending" test -z "$(column class "$work/of_$ending.csv")"
done

# Points of classes without a code keep that of the file, or are unclassified where the file has none.
infer 0 "$work/in.las" "$work/asprs.las" --classification asprs
convert "$work/asprs.las" "$work/asprs.csv"
paste <(column class "$work/plain.csv") <(column classification "$work/plain.csv") |
    awk 'BEGIN { code[0] = 2; code[1] = 3; code[2] = 6; code[5] = 18 } { print $1 in code ? code[$1] : $2 }' >"$work/want"
column classification "$work/asprs.csv" >"$work/got"
same "$work/want" "$work/got"
run 0 infer $model --weights "$work/run" --input "$work/in.las" -o "$work/asprs.las" --classification asprs
says 'keep the code that they have, or get 1, unclassified: car, pole, a=b, 7, h, i, j, k'
cut -d ' ' -f 1-6 "$work/set/a.txt" >"$work/bare.txt"
infer 0 "$work/bare.txt" "$work/bare.csv" --classification asprs
column class "$work/plain.csv" |
    awk 'BEGIN { code[0] = 2; code[1] = 3; code[2] = 6; code[5] = 18 } { print $1 in code ? code[$1] : 1 }' >"$work/want"
column classification "$work/bare.csv" >"$work/got"
same "$work/want" "$work/got"

# Colours of the class, of 16 bits, in the place of those of the file.
infer 0 "$work/in.las" "$work/coloured.las" --classification asprs --colour
convert "$work/coloured.las" "$work/coloured.csv"
check "the same length" test "$(wc -c <"$work/coloured.las")" = "$(wc -c <"$work/in.las")"
check "colours are multiples of 257" test "$(column red "$work/coloured.csv" | awk '$1 % 257 { bad = 1 } END { print bad + 0 }')" = 0
infer 0 "$work/in.las" "$work/coloured.ply" --colour
convert "$work/coloured.ply" "$work/coloured_ply.csv"
column red "$work/coloured.csv" | awk '{ print $1 / 257 }' >"$work/one"
column red "$work/coloured_ply.csv" >"$work/two"
same "$work/one" "$work/two"

# A folder of results.
infer 0 "$work/*n.las" "$work/all" --format las --classification "$codes,k=42"
same "$work/coded.las" "$work/all/in.las"

# LAS of point formats 0 to 5 has codes up to 31, whether or not a point gets one beyond. A class that no point has tells that this
# is found before the network runs.
{ echo "x y z red green blue classification"; awk 'BEGIN { for (i = 0; i < 20; i++) print 0, 0, i / 100, 9, 9, 9, 1 }'; } >"$work/flat.txt"
convert "$work/flat.txt" "$work/flat.las"
infer 0 "$work/flat.las" "$work/flat.csv"
class=$(column class "$work/flat.csv" | sort -u)
check "one class" test "$(echo "$class" | wc -l)" = 1
old_format "$work/flat.las" "$work/old.las"
infer 0 "$work/old.las" "$work/old_out.las" --classification "$class=31"
infer 2 "$work/old.las" "$work/none.las" --classification "$class=31,$(((class + 1) % 12))=32"
says 'old.las: its point format 2 has codes up to 31'
infer 0 "$work/old.las" "$work/old_out.ply" --classification "$class=31,$(((class + 1) % 12))=32"

# What does not fit.
none() { infer 2 "$work/in.las" "$work/none.las" --classification "$1"; says "$2"; }
none tree=5 'the model has no such class; it has ground, Low Vegetation, building, car, pole, high-noise, a=b, 7, h, i, j, k'
none 12=5 'the model has no such class'
none ground=2,building=6,ground=3 'gives class ground two codes'
none ground=2,0=3 'gives class 0 two codes'
none ground=256 'a code is a number from 0 to 255, or one of never_classified 0, unclassified 1, ground 2'
none ground=-1 'a code is a number'
none ground=grass 'a code is a number'
for text in '' ground = ground= =2 ground=2, ,ground=2 asprs,ground=2; do none "$text" 'takes one of asprs, semantickitti, nuscenes, scannet20, or CLASS=CODE'; done
infer 2 "$work/in.las" "$work/none.npy" --classification asprs
says 'none.npy: an .npy holds the scores alone'
infer 2 "$work/in.las" "$work/none.las" --classification asprs --value tiny.d.relu
says 'the result is no class for each point'
infer 2 "$work/in.las" "$work/none.foo"
says 'none.foo: expected a name ending in .ply, .pcd, .las'
check "nothing is left" test -z "$(find "$work" -name 'none*')"
sed 's/^classes: .*/classes: [a, b, c, d, e, f, g, h, i, j, k, l]/' "$work/set/dataset.yaml" >"$work/set/other.yaml"
printf 'data: set/other.yaml\nsteps: 1\nbatch_size: 1\neval_every: 0\n' >"$work/other.yaml"
run 0 train $model --config "$work/other.yaml" -o "$work/other" -q -j 1
run 2 infer $model --weights "$work/other" --input "$work/in.las" -o "$work/none.las" --classification asprs -q
says 'no class of the model (a, b, c, d, e, f, g, h, i, j, k, l) is called as one of ASPRS: never_classified 0'
finish
