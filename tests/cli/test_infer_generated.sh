# infer writes points that a net generates: as clouds in every format, in the order of their rows, where the net puts them.
. tests/cli/common.sh

cat >"$work/two.pnet" <<'END_MODEL'
pnet 1
input partial { xyz : position }
input full { xyz : position }
net up(p: cloud) { return p.xyz -> linear(6) -> split(to=points(p, 2)) }
net two(p: cloud) {
  C = points(sample, 4)
  F = points(C, 4)
  c = p.xyz -> pool(max, to=sample) -> linear(12) -> split(to=C)
  wide = cat(c -> expand(to=F), lattice(F, 0.5)) -> linear(5)
  return [c, (c -> expand(to=F)) + (lattice(F, 0.5) -> linear(3)), wide]
}
y = two(partial)
more = up(partial)
parts = [y, 3]
loss rough = chamfer(y[0], full.xyz)
loss fine  = chamfer(y[1], full.xyz)
loss twice = chamfer(more, full.xyz)
loss w     = mse(y[2] -> pool(mean, to=sample) -> linear(1), y[2] -> pool(max, to=sample) -> linear(1))
END_MODEL
mkdir "$work/set"
for k in 0 1 2 3; do
    awk -v seed=$k 'BEGIN { srand(seed + 1); for (i = 0; i < 200; i++) print 2 * rand() - 1, rand(), rand() - 0.5 }' >"$work/set/f$k.txt"
    head -n 90 "$work/set/f$k.txt" >"$work/set/p$k.txt"
done
printf 'pnet_dataset: 1\ntask: completion\ntrain: [{partial: p*.txt, full: f*.txt}]\n' >"$work/set/dataset.yaml"
printf 'data: set\nsteps: 3\nbatch_size: 2\nlr: 0.01\neval_every: 0\n' >"$work/run.yaml"
run 0 train "$work/two.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1
# One point for each row of a level: as many points as the cloud has, in its order.
cat >"$work/one.pnet" <<'END_MODEL'
pnet 1
input partial { xyz : position }
input full { xyz : position }
net one(p: cloud) { return p.xyz -> scale(2) -> expand(to=points(points(p, 1), 1)) }
net back(p: cloud) {
  return p.xyz -> scale(-1) -> expand(to=points(p, 1)) -> pool(sum, to=level(p)) -> expand(to=points(p, 1))
}
y = one(partial)
z = back(partial)
loss l = chamfer(y -> linear(3), full.xyz)
loss k = chamfer(z -> linear(3), full.xyz)
END_MODEL
run 0 train "$work/one.pnet" --config "$work/run.yaml" -o "$work/ones" -q -j 1
for net in one back; do
    run 0 infer "$work/one.pnet" --net $net --weights "$work/ones" --input "$work/set/p1.txt" -o "$work/$net.xyz"
done
check "twice each point, in its order" awk 'NR == FNR { for (k = 1; k < 4; k++) p[FNR, k] = $k; n = FNR; next }
    { for (k = 1; k < 4; k++) if (($k - 2 * p[FNR, k]) ^ 2 > 1e-10) exit 1 } END { exit FNR != n }' \
    "$work/set/p1.txt" "$work/one.xyz"
check "minus each point, in its order" awk 'NR == FNR { for (k = 1; k < 4; k++) p[FNR, k] = $k; n = FNR; next }
    { for (k = 1; k < 4; k++) if (($k + p[FNR, k]) ^ 2 > 1e-10) exit 1 } END { exit FNR != n }' \
    "$work/set/p1.txt" "$work/back.xyz"
run 0 train models/pcn.pnet --config "$work/run.yaml" -o "$work/fold" -q -j 1 --set coarse=8 --set fold=1
# More rows than an index counts: an error of the batch, before any memory is taken.
sed 's/points(points(p, 1), 1)/points(points(p, 16777216), 2)/' "$work/one.pnet" >"$work/many.pnet"
run 4 train "$work/many.pnet" --config "$work/run.yaml" -o "$work/many" -q -j 1
says "rows in this batch: at most 2147483647"
cloud=$work/set/p1.txt
infer() { # exit code, options
    local want=$1
    shift
    run "$want" infer "$work/two.pnet" --weights "$work/run" "$@"
}

# What the net computes, from the numbers in the file of weights.
weights=$work/run/best/weights.safetensors
tensor() { # name: its numbers, one a line
    local head begin end
    head=$(od -An -v -tu8 -N8 "$weights" | tr -d ' ')
    read -r begin end <<<"$(head -c $((8 + head)) "$weights" | tail -c "$head" | grep -oE "\"$1\":\{[^}]*\}" |
        sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/')"
    od -An -v -tf4 -w4 -j $((8 + head + begin)) -N $((end - begin)) "$weights"
}
forward() { # up|rough|fine, cloud: its points, one a line
    {
        for name in two.c.linear.weight two.c.linear.bias two.out.linear.weight two.out.linear.bias up.out.linear.weight up.out.linear.bias; do
            tensor "$name" | sed "s/^/$name /"
        done
        sed 's/^/point /' "$2"
    } | awk -v what="$1" '
        $1 != "point" { w[$1, n[$1]++] = $2; next }
        {
            for (k = 0; k < 6; k++) {
                u = w["up.out.linear.bias", k]
                for (c = 0; c < 3; c++) u += w["up.out.linear.weight", 3 * k + c] * $(2 + c)
                if (what == "up") printf "%.9g%s", u, k % 3 == 2 ? "\n" : " "
            }
            for (c = 0; c < 3; c++) if (!seen || $(2 + c) > most[c]) most[c] = $(2 + c)
            seen = 1
        }
        END {
            for (k = 0; k < 12; k++) {
                rough[k] = w["two.c.linear.bias", k]
                for (c = 0; c < 3; c++) rough[k] += w["two.c.linear.weight", 3 * k + c] * most[c]
                if (what == "rough") printf "%.9g%s", rough[k], k % 3 == 2 ? "\n" : " "
            }
            if (what != "fine") exit
            for (r = 0; r < 16; r++)
                for (c = 0; c < 3; c++) {
                    at = w["two.out.linear.bias", c] + w["two.out.linear.weight", 2 * c] * (r % 2 - 0.5) \
                        + w["two.out.linear.weight", 2 * c + 1] * (int(r / 2) % 2 - 0.5)
                    printf "%.9g%s", rough[3 * int(r / 4) + c] + at, c == 2 ? "\n" : " "
                }
        }'
}
near() { # message, file of points, file of points: no number differs by more than rounding, or as said
    local lines
    lines=$(wc -l <"$2")
    check "$1: $lines points" test "$lines" = "$(wc -l <"$3")" -a "$lines" -gt 0
    paste -d ' ' "$2" "$3" >"$work/beside"
    check "$1: the places" awk -v most="${4:-2e-6}" 'function off(a, b) { return a > b ? a - b : b - a }
        NF != 6 { exit 1 }
        { for (c = 1; c <= 3; c++) if (!(off($c, $(c + 3)) < most)) exit 1 }' "$work/beside"
}
ply_points() { # the vertices of a binary PLY of three floats
    local header
    header=$(LC_ALL=C awk '{ n += length($0) + 1 } /^end_header/ { print n; exit }' "$1")
    tail -c +$((header + 1)) "$1" | od -An -v -tf4 -w12
}
npy_points() { tail -c +129 "$1" | od -An -v -tf4 -w12; } # the header of so small a matrix has 128 bytes

forward fine "$cloud" >"$work/fine"
forward rough "$cloud" >"$work/rough"
forward up "$cloud" >"$work/up"
infer 0 --input "$cloud" --value 'y[1]' -o "$work/fine.ply"
check "16 vertices" test "$(ply_rows "$work/fine.ply")" = 16
check "x, y and z alone" test "$(grep -ac '^property float [xyz]$' "$work/fine.ply")$(grep -ac ^property "$work/fine.ply")" = 33
ply_points "$work/fine.ply" >"$work/got"
near "y[1]" "$work/got" "$work/fine"
infer 0 --input "$cloud" --value 'y[0]' -o "$work/rough.ply"
ply_points "$work/rough.ply" >"$work/got"
near "y[0]" "$work/got" "$work/rough"
for format in npy xyz txt csv pts pcd; do infer 0 --input "$cloud" --value 'y[1]' -o "$work/fine.$format"; done
npy_points "$work/fine.npy" >"$work/got"
near npy "$work/got" "$work/fine"
near xyz "$work/fine.xyz" "$work/fine"
tail -n +2 "$work/fine.csv" | tr , ' ' >"$work/got"
near csv "$work/got" "$work/fine"
LC_ALL=C sed '1,/^DATA binary/d' "$work/fine.pcd" | od -An -v -tf4 -w12 >"$work/got"
near pcd "$work/got" "$work/fine"
run 0 info "$work/fine.pcd" --json
check "a cloud of 16 points" test "$(number points "$out")" = 16

# Generated points keep the order of the points of the file that they belong to.
infer 0 --input "$cloud" --net up -o "$work/up.npy"
npy_points "$work/up.npy" >"$work/got"
near "two for each point" "$work/got" "$work/up"
# Points far away: the net sees them from the lower corner of their box, in hundreds of metres, and the file has them where they are.
awk '{ printf "%.10f %.10f %.10f\n", $1 + 500000, $2 + 4000000, $3 }' "$cloud" >"$work/far.txt"
awk '{ printf "%.10f %.10f %.10f\n", $1 + 100, $2, $3 + 100 }' "$cloud" >"$work/local.txt"
forward up "$work/local.txt" | awk '{ printf "%.10f %.10f %.10f\n", $1 + 499900, $2 + 4000000, $3 - 100 }' >"$work/up_far"
infer 0 --input "$work/far.txt" --net up -o "$work/far.csv"
tail -n +2 "$work/far.csv" | tr , ' ' >"$work/got"
near "far away" "$work/got" "$work/up_far" 1e-4
# In another unit: the net sees metres, and its points are written in the unit of the file.
awk '{ printf "%.10f %.10f %.10f\n", 100 * $1, 100 * $2, 100 * $3 }' "$cloud" >"$work/cm.txt"
awk '{ printf "%.10f %.10f %.10f\n", 100 * $1, 100 * $2, 100 * $3 }' "$work/fine" >"$work/fine_cm"
infer 0 --input "$work/cm.txt" --unit cm --value 'y[1]' -o "$work/cm.xyz"
near "in centimetres" "$work/cm.xyz" "$work/fine_cm" 2e-4

# Which value: names of the file and of the net, lists in lists.
for name in 'two[1]' 'parts[0][1]' two.out.add; do
    infer 0 --input "$cloud" --value "$name" -o "$work/other.ply"
    same "$work/fine.ply" "$work/other.ply"
done
infer 0 --input "$cloud" --net up --value more -o "$work/other.npy"
same "$work/up.npy" "$work/other.npy"
# A list without an index is its last value, and that is said; --value y names none of them.
infer 0 --input "$cloud" --net two -o "$work/last.npy"
says 'the net gives a list, and two[2], its last value, is the result'
check "the last value" test "$(npy_shape "$work/last.npy")" = "16 5"
infer 0 --input "$cloud" --net two -o "$work/last.npy" -q
check "quiet" test ! -s "$err"
infer 3 --input "$cloud" --value y -o "$work/none.ply"
says 'y is a list of 3 values'
says 'choose one of them, y[0] to y[2]'
infer 3 --input "$cloud" --value 'y[3]' -o "$work/none.ply"
says "there is no value 'y[3]'"
says 'y has 3, from 0 to 2'
infer 3 --input "$cloud" --value 'more[0]' -o "$work/none.ply"
says ', not a list'
infer 3 --input "$cloud" --value 'partial' -o "$work/none.ply"
says 'partial is '
says 'a result is features'
infer 3 --input "$cloud" --value 'parts[1]' -o "$work/none.ply"
says 'parts[1] is a plain number: a result is features'
for wrong in 'y[' 'y[1' 'y[a]' 'y[-1]' 'y[1]x'; do
    infer 3 --input "$cloud" --value "$wrong" -o "$work/none.ply"
    says "'$wrong' is no name of a value"
done
infer 3 --input "$cloud" --value 'yy[1]' -o "$work/none.ply"
says "there is no value 'yy[1]'"

# What a file can hold.
infer 2 --input "$cloud" --value 'y[2]' -o "$work/none.ply"
says 'the result has 5 channels for each generated point; 3 channels are places, and are written as a cloud, others as .npy'
infer 2 --input "$cloud" --value 'y[1]' -o "$work/none.bin"
says 'have an intensity, which generated points lack'
infer 2 --input "$cloud" --value 'y[1]'
says 'the result has a row for each generated point: give a file for it'
check "nothing is made" test ! -e "$work/none.ply" -a ! -e "$work/none.bin"

# Folders.
infer 0 --input "$work/set/p*.txt" --value 'y[1]' -o "$work/many"
check "a cloud for each" test "$(cd "$work/many" && echo *)" = 'p0.ply p1.ply p2.ply p3.ply'
same "$work/fine.ply" "$work/many/p1.ply"
differ "other clouds, other points" "$work/many/p0.ply" "$work/many/p1.ply"
infer 0 --input "$work/set/p*.txt" --value 'y[1]' -o "$work/many_npy" --format npy
same "$work/fine.npy" "$work/many_npy/p1.npy"
infer 2 --input "$work/set/p*.txt" --value 'y[2]' -o "$work/none"
says 'others as .npy'
infer 0 --input "$work/set/p*.txt" --value 'y[2]' -o "$work/wide" --format npy
check "rows of five" test "$(npy_shape "$work/wide/p0.npy")" = "16 5"
finish
