# Coordinates that come out: those of the input, to the last digit, in every format; those that register computes, in double. And
# columns of the input whose names a result takes.
. tests/cli/common.sh

# national [STRAY]: 400 points of a national grid with 4 digits, in metres; the eighth at the origin if STRAY is given.
national() {
    awk -v stray="${1:-}" 'BEGIN {
        srand(11)
        for (i = 0; i < 400; i++) {
            point = sprintf("%.4f %.4f %.4f", 154321 + 90 * rand(), 463210 + 70 * rand(), 20 * rand())
            print stray != "" && i == 7 ? "0 0 0" : point
        }
    }'
}
printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n' >"$work/still.txt"
# as_text CLOUD TEXT: any cloud as text with all digits, by the identity.
as_text() { run 0 register "$1" "$1" --from "$work/still.txt" -o "$2"; }

# register: by a quarter turn and a shift, of which awk knows the result to 1e-10 m.
awk 'BEGIN { srand(4); for (i = 0; i < 300; i++) printf "%.3f %.3f %.3f\n", 80 * rand(), 60 * rand(), 5 * rand() }' >"$work/local.xyz"
printf '0 -1 0 154000.2503\n1 0 0 463000.5007\n0 0 1 3.0009\n' >"$work/turn.txt"
awk '{ printf "%.10f %.10f %.10f\n", 154000.2503 - $2, 463000.5007 + $1, $3 + 3.0009 }' "$work/local.xyz" >"$work/expected"
national >"$work/target.xyz"
# single.ply: the same source in float32, whose coordinates are not those of the text to 1e-10 m.
{
    printf 'ply\nformat ascii 1.0\nelement vertex 300\nproperty float x\nproperty float y\nproperty float z\nend_header\n'
    cat "$work/local.xyz"
} >"$work/single.ply"
# close FILE EXPECTED LIMIT
close() {
    check "$1 is $2 within $3 m" awk -v limit="$3" '
        NR == FNR { want[FNR] = $0; rows = FNR; next }
        { split(want[FNR], w, " "); for (k = 1; k <= 3; k++) { d = $k - w[k]; if (!(d < limit && d > -limit)) bad = 1 } }
        END { exit bad || FNR != rows || !rows }' "$2" "$1"
}
for format in npy ply pcd xyz txt pts csv; do
    for source in local.xyz single.ply; do
        run 0 register "$work/$source" "$work/target.xyz" --from "$work/turn.txt" -o "$work/moved.$format"
        as_text "$work/moved.$format" "$work/as_text.xyz"
        limit=1e-8
        [ $source = single.ply ] && limit=1e-5
        close "$work/as_text.xyz" "$work/expected" $limit
    done
done
run 2 register "$work/local.xyz" "$work/target.xyz" --from "$work/turn.txt" -o "$work/moved.bin"
says 'in which these coordinates would be off by up to 0.016 m'
check 'no .bin' test ! -e "$work/moved.bin"
run 0 register "$work/local.xyz" "$work/local.xyz" --from "$work/still.txt" -o "$work/near.bin"

# infer: every row as it was, a stray or not.
cat >"$work/model.pnet" <<'END'
pnet 1
param classes = 3
input cloud {
  xyz   : position
  label : class[classes] per point
}
net flat(p: cloud) {
  g = grid(p, 1m)
  a = ones(level(p)) -> pool(sum, to=g) -> linear(4) -> relu
  return a -> linear(classes)
}
y = flat(cloud)
loss ce = cross_entropy(y, cloud.label)
END
national >"$work/whole.xyz"
national stray >"$work/stray.xyz"
for name in whole stray; do
    { echo x,y,z,label,class,score; awk '{ print $1 "," $2 "," $3 "," NR % 3 "," NR % 5 ",0.5" }' "$work/$name.xyz"; } >"$work/$name.csv"
done
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c]\ntrain: [whole.csv]\n' >"$work/dataset.yaml"
printf 'data: .\nsteps: 1\neval_every: 0\n' >"$work/run.yaml"
run 0 train "$work/model.pnet" --config "$work/run.yaml" -o "$work/run" -q
for name in whole stray; do
    run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/$name.csv" -o "$work/out.csv" -q
    [ $name = whole ] || says 'row 7 lies 488 km away from the other points'
    check 'names of the columns' test "$(head -n 1 "$work/out.csv")" = x,y,z,label,input_class,input_score,class,score
    says 'written as input_NAME: class, score'
    cut -d, -f1-6 "$work/out.csv" | tail -n +2 >"$work/columns"
    tail -n +2 "$work/$name.csv" | sed 's/\.\([0-9]*[1-9]\)0*,/.\1,/g; s/\.0*,/,/g' >"$work/wanted" # 1.50 is written as 1.5
    same "$work/columns" "$work/wanted"
    for format in ply pcd; do
        run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/$name.csv" -o "$work/out.$format" -q
        as_text "$work/out.$format" "$work/again.csv"
        cut -d, -f1-6 "$work/again.csv" | tail -n +2 >"$work/columns"
        same "$work/columns" "$work/wanted"
    done
done
# The stray costs the others nothing: they have the same result, but for the stray's own cell.
run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/whole.csv" -o "$work/a.csv" -q
run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/stray.csv" -o "$work/b.csv" -q
check 'results beside a stray' test "$(diff "$work/a.csv" "$work/b.csv" | grep -c '^>')" -lt 8
# Features have names of their own too, and a second inference keeps the first one's.
run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/whole.csv" -o "$work/f.csv" --value flat.a.relu -q
run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/f.csv" -o "$work/ff.csv" --value flat.a.relu -q
says 'feature_0, feature_1, feature_2, feature_3'
check 'both features' grep -q '^x,y,z,label,class,score,input_feature_0,.*,feature_0' "$work/ff.csv"
run 0 infer "$work/model.pnet" --weights "$work/run" --input "$work/b.csv" -o "$work/c.csv" -q
check 'a third class' test "$(head -n 1 "$work/c.csv")" = x,y,z,label,input_class,input_score,input_class_2,input_score_2,class,score
finish
