# Units of clouds: what a file states is printed and, on request, converted; what a net reads is metres, and what is written is
# in the unit of the file.
. tests/cli/common.sh
model=tests/cli/tiny.pnet

# little BYTES VALUE: an integer, its low byte first.
little() {
    local i v=$2
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o $((v & 255)))"
        v=$((v >> 8))
    done
}
# las COUNT KEY=VALUE ...: a LAS 1.2 of that many points by its header, with GeoTIFF keys, steps of 0.01, and three points.
las() {
    local count=$1 key i
    shift
    printf 'LASF'
    little 20 0
    little 1 1
    little 1 2
    little 68 0
    little 2 227
    little 4 $((227 + 54 + 8 + 8 * $#))
    little 4 1
    little 1 0
    little 2 20
    little 4 "$count"
    little 20 0
    for i in x y z; do printf '\173\024\256\107\341\172\204\077'; done
    little 72 0
    little 2 0
    printf 'LASF_Projection\0'
    little 2 34735
    little 2 $((8 + 8 * $#))
    little 32 0
    little 2 1
    little 2 1
    little 2 0
    little 2 $#
    for key; do
        little 2 "${key%=*}"
        little 2 0
        little 2 1
        little 2 "${key#*=}"
    done
    for i in 0 1 2; do # at 100 i, 200 i, 1000 i, of class 2: withheld, a key point, synthetic
        little 4 $((10000 * i))
        little 4 $((20000 * i))
        little 4 $((100000 * i))
        little 3 0
        little 1 $((2 + (128 >> i)))
        little 4 0
    done
}
las 3 1024=1 3076=9002 4099=9003 >"$work/feet.las"
las 3 1024=1 3072=32632 3076=9001 4099=9001 >"$work/metres.las"
las 3 1024=2 2048=4326 >"$work/degrees.las"
las 3 1024=1 3072=2994 >"$work/code.las"
las 3 >"$work/none.las"
las 0 1024=1 3076=9001 >"$work/zero.las"

run 0 info "$work/feet.las"
prints 'x and y are feet, z is US survey feet, taken as metres: --unit file converts them'
prints 'x  float64  from 0 to 200 ft'
prints 'z  float64  from 0 to 2000 us-ft'
prints 'withheld  uint8 from 0 to 1'
prints 'key_point  uint8 from 0 to 1'
prints 'synthetic  uint8 from 0 to 1'
prints 'classification  uint8 from 2 to 2'
run 0 info --unit file "$work/feet.las"
prints 'x  float64  from 0 to 60.96 m'
prints 'z  float64  from 0 to 609.601 m'
check 'nothing to tell' hides 'are feet' "$out"
run 0 info --json "$work/feet.las" "$work/metres.las" "$work/none.las"
valid_json "$out"
prints '{"name":"x","type":"float64","unit":"ft","from":0,"to":200,"unit_stated":true}'
prints '{"name":"z","type":"float64","unit":"us-ft","from":0,"to":2000,"unit_stated":true}'
prints '{"name":"z","type":"float64","unit":"m","from":0,"to":2000,"unit_stated":true}'
prints '{"name":"z","type":"float64","unit":"m","from":0,"to":2000,"unit_stated":false}'
run 0 info "$work/metres.las" "$work/none.las"
prints 'from 0 to 2000 m'
prints 'from 0 to 2000 m, not stated'
check 'no warning' hides -E 'feet|taken|degrees' "$out"
run 0 info "$work/degrees.las"
prints 'x and y are degrees, where metres are expected'
run 0 info "$work/code.las"
prints 'x and y are unclear (EPSG:2994, without its unit)'
run 0 info --unit ft "$work/none.las"
prints 'x  float64  from 0 to 60.96 m'
run 0 info --unit m,ft "$work/none.las"
prints 'y  float64  from 0 to 400 m'
prints 'z  float64  from 0 to 609.6 m'
for file in degrees code none; do
    run 4 info --unit file "$work/$file.las"
    says "$file.las: "
done
run 2 info --unit furlong "$work/none.las"
says 'expected file, m, km, cm, mm, in, ft, us-ft or yd'
run 4 info "$work/zero.las"
says 'the header says 0 points, but 3 records follow'

# A set of pairs tells as much of its clouds as other sets do.
for kind in registration completion; do
    entry='{source: feet.las, target: feet.las, pose: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}'
    [ $kind = registration ] || entry='{partial: feet.las, full: feet.las}'
    printf 'pnet_dataset: 1\ntask: %s\ntrain: [%s]\n' $kind "$entry" >"$work/$kind.yaml"
    run 0 data info "$work/$kind.yaml"
    says 'feet.las: x and y are feet, z is US survey feet, taken as metres: --unit file converts them'
done

# The same clouds in metres and in centimetres: the same weights, and the same labels.
for unit in m cm; do
    mkdir "$work/$unit"
    for cloud in a b; do
        awk -v f="$([ $unit = m ] && echo 0.25 || echo 25)" -v s=$cloud 'BEGIN {
            print "x,y,z,red,green,blue,label"
            for (i = 0; i < 400; i++) {
                k = s == "a" ? i : 7 * i + 3
                printf "%.2f,%.2f,%.2f,%.3f,0.5,0.25,%d\n", k % 7 * f, int(k / 7) % 9 * f, int(k / 63) * f, i % 255 / 255, i % 12
            }
        }' >"$work/$unit/$cloud.csv"
    done
    {
        printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c, d, e, f, g, h, i, j, k, l]\n'
        [ $unit = m ] || printf 'unit: cm\n'
        printf 'train: [a.csv, b.csv]\n'
    } >"$work/$unit/dataset.yaml"
    printf 'data: %s\nsteps: 2\neval_every: 0\n' $unit >"$work/$unit.yaml"
    run 0 train $model --config "$work/$unit.yaml" -o "$work/run-$unit" -q -j 1
done
same "$work/run-m/best/weights.safetensors" "$work/run-cm/best/weights.safetensors"
run 0 data info "$work/cm"
prints 'unit   cm'
infer() { run "$1" infer $model --weights "$work/run-$2" --input "$3" -o "$4" -q -j 1 "${@:5}"; }
infer 0 m "$work/m/b.csv" "$work/m.npy"
infer 0 cm "$work/cm/b.csv" "$work/cm.npy" # the weights keep the unit
same "$work/m.npy" "$work/cm.npy"
infer 0 m "$work/cm/b.csv" "$work/asked.npy" --unit cm
same "$work/m.npy" "$work/asked.npy"
infer 0 cm "$work/m/b.csv" "$work/over.npy" --unit m
same "$work/m.npy" "$work/over.npy"
infer 0 m "$work/cm/b.csv" "$work/wrong.npy"
differ 'centimetres taken as metres' "$work/m.npy" "$work/wrong.npy"
infer 0 cm "$work/cm/b.csv" "$work/labelled.csv"
near_columns() { # FILE FILE FACTOR: the first three columns of the second one are those of the first one, times the factor
    awk -F '[, ]' -v f="$3" 'FNR == 1 && $1 == "x" { next } NR == FNR { n++; for (k = 1; k <= 3; k++) v[n, k] = $k; next }
        { m++; for (k = 1; k <= 3; k++) if ((d = $k - f * v[m, k]) > 1e-3 || d < -1e-3) bad = 1 }
        END { exit !(n && n == m && !bad) }' "$1" "$2"
}
check 'coordinates of the file' near_columns "$work/cm/b.csv" "$work/labelled.csv" 1
sed 's/unit: cm/unit: file/' "$work/cm/dataset.yaml" >"$work/cm/of_file.yaml"
run 4 data info "$work/cm/of_file.yaml"
says 'a.csv: unit: file: the file does not state its unit'
sed 's/unit: cm/unit: furlong/' "$work/cm/dataset.yaml" >"$work/cm/bad.yaml"
run 4 data info "$work/cm/bad.yaml"
says 'bad.yaml:4: unit: `furlong`'
run 0 plan $model --input "$work/m/a.csv" -q
cp "$out" "$work/plan"
run 0 plan $model --input "$work/cm/a.csv" -q --unit cm
same "$work/plan" "$out"

# Poses map metres; the source is written in the unit of the target.
printf '1 0 0 2\n0 1 0 -1\n0 0 1 0.5\n0 0 0 1\n' >"$work/pose.txt"
cut -d , -f 1-3 "$work/m/a.csv" | tail -n +2 | tr , ' ' >"$work/m.xyz"
cut -d , -f 1-3 "$work/cm/a.csv" | tail -n +2 | tr , ' ' >"$work/cm.xyz"
run 0 register "$work/m.xyz" "$work/m.xyz" --from "$work/pose.txt" -o "$work/moved-m.xyz" --json
cp "$out" "$work/pose-m"
run 0 register "$work/cm.xyz" "$work/cm.xyz" --from "$work/pose.txt" -o "$work/moved-cm.xyz" --json --unit cm
says 'the pose maps coordinates in metres'
same <(sed 's/"target".*"pose"//; s/"source":"[^"]*"//' "$work/pose-m") <(sed 's/"target".*"pose"//; s/"source":"[^"]*"//' "$out")
check 'the source in centimetres' near_columns "$work/moved-m.xyz" "$work/moved-cm.xyz" 100

# Clouds with fewer columns than those of the training.
tail -n +2 "$work/m/a.csv" >"$work/m/bare.csv"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c, d, e, f, g, h, i, j, k, l]\ncolumns: [x, y, z, red, green, blue, label]\ntrain: [bare.csv]\n' >"$work/m/bare.yaml"
printf 'data: m/bare.yaml\nsteps: 1\neval_every: 0\n' >"$work/bare.yaml"
run 0 train $model --config "$work/bare.yaml" -o "$work/run-bare" -q -j 1
cut -d , -f 1-6 "$work/m/bare.csv" >"$work/six.csv"
infer 4 bare "$work/six.csv" "$work/six.npy"
says 'six.csv: has 6 columns, but `columns` names 7: name those of this file, --columns x,y,z,...'
infer 0 bare "$work/six.csv" "$work/six.npy" --columns x,y,z,red,green,blue
finish
