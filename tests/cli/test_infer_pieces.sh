# infer --tile on files that are read and written in pieces: the same bytes as from the whole cloud, in every format; a run that was
# killed goes on.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
run 0 data synth rooms -o "$work/rooms" --count 10 --points 3000 --seed 2 -j 1
printf 'data: rooms\nsteps: 2\nbatch_size: 2\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q -j 1
infer() { # exit code, cloud, output, options
    local want=$1 cloud=$2 to=$3
    shift 3
    run "$want" infer $model --weights "$work/run" --input "$cloud" -o "$to" "$@"
}

# A survey of three rooms, with rows at random and one without a place. Its columns become those of every format.
run 0 infer $model --weights "$work/run" --input "$work/rooms/test/000009.ply" -o "$work/plain.csv" -q
for i in 7 8 9; do
    tail -n +2 "$work/plain.csv" | awk -F, -v OFS=, -v i=$i '{ printf "%.3f,%.3f,%.3f,%s,%s,%s,%d\n", $1 + 345000 + 6 * i, $2 + 5400000.5 - 3 * i, $3 + 112, $4, $5, $6, NR % 256 }'
done | awk 'BEGIN { srand(4) } { print rand() "," $0 }' | sort | cut -d, -f2- >"$work/rows"
{ echo x,y,z,red,green,blue,intensity; cat "$work/rows"; } >"$work/survey.csv"
{ head -n 500 "$work/survey.csv"; echo nan,nan,nan,1,2,3,4; tail -n +501 "$work/survey.csv"; } >"$work/holes.csv"

# Every input that is read in pieces, in its own format and as others.
each() { run 0 infer "$work/each.pnet" --weights "$work/each" -q "$@"; }
cat >"$work/each.pnet" <<'END'
pnet 1
input cloud { xyz : position  rgb : feature[3]  label : class[12] per point }
net each(p: cloud) { return p.rgb -> linear(12) }
y = each(cloud)
loss ce = cross_entropy(y, cloud.label)
END
run 0 train "$work/each.pnet" --config "$work/run.yaml" -o "$work/each" -q -j 1
each --input "$work/survey.csv" -o "$work/survey.las"
each --input "$work/holes.csv" -o "$work/holes.ply"
each --input "$work/holes.csv" -o "$work/holes.pcd"
for input in survey.las holes.ply holes.pcd; do
    for ending in las ply pcd npy csv; do
        case $input.$ending in holes.*.las | holes.pcd.[!n]*) continue ;; esac # LAS has no rows without a place
        infer 0 "$work/$input" "$work/whole.$ending" -q
        infer 0 "$work/$input" "$work/tiled.$ending" -q --tile 1.3m
        same "$work/whole.$ending" "$work/tiled.$ending"
    done
done
infer 0 "$work/survey.las" "$work/whole.las" -q --mode voxel --colour
infer 0 "$work/survey.las" "$work/tiled.las" -q --mode voxel --colour --tile 1m
same "$work/whole.las" "$work/tiled.las"
infer 0 "$work/survey.las" "$work/whole.las" -q --classification floor=ground,wall=building
infer 0 "$work/survey.las" "$work/tiled.las" -q --classification floor=ground,wall=building --tile 1m
same "$work/whole.las" "$work/tiled.las"
infer 0 "$work/holes.ply" "$work/whole.ply" -q --value tiny.a --origin 345000,5400000,100
infer 0 "$work/holes.ply" "$work/tiled.ply" -q --value tiny.a --origin 345000,5400000,100 --tile 1m
same "$work/whole.ply" "$work/tiled.ply"
check "no tiles are left" test ! -e "$work/tiled.ply.tiles"

# What is said of a cloud in pieces is what is said of it in memory.
told() { grep -v 'points/s\|tiles' "$err" | sed 's/ load .*//'; }
infer 0 "$work/holes.ply" "$work/whole.npy"
told >"$work/told"
infer 0 "$work/holes.ply" "$work/tiled.npy" --tile 1.3m
says 'of points and results in'
check "warnings" cmp "$work/told" <(told)
check "there are warnings" test -s "$work/told"

# A file that is read as a whole is told, and has the same result.
infer 0 "$work/survey.csv" "$work/whole.npy" -q
infer 0 "$work/survey.csv" "$work/tiled.npy" --tile 1.3m
says 'survey.csv'
says 'whole'
same "$work/whole.npy" "$work/tiled.npy"

# Killed at some moment, a run leaves its tiles; the same command goes on, and another one begins anew.
infer 0 "$work/survey.las" "$work/whole.las" -q
kill_one() {
    local tries=0 size=0
    "$pnetc" infer $model --weights "$work/run" --input "$work/survey.las" -o "$work/killed.las" -q --tile 40cm -j 1 &
    while [ "$size" -lt 44 ] && [ $tries -lt 2000 ]; do
        sleep 0.005
        tries=$((tries + 1))
        size=$(stat -c %s "$work/killed.las.tiles/done" 2>"$work/none" || echo 0)
    done
    kill -9 $! 2>"$work/none"
    wait $! 2>"$work/none"
    [ "$size" -ge 44 ]
}
check "killed among tiles" kill_one
check "tiles are left" test -s "$work/killed.las.tiles/values"
# A run that fails before it comes to the tiles leaves them.
run 4 infer $model --weights "$work/run" --input "$work/survey.las" -o "$work/killed.las" -q --tile 40cm --map rgb=missing
says 'stay in'
check "no output" test ! -e "$work/killed.las"
infer 0 "$work/survey.las" "$work/killed.las" --tile 40cm
says 'were done before'
same "$work/whole.las" "$work/killed.las"
check "nothing is left" test ! -e "$work/killed.las.tiles"
rm "$work/killed.las"
check "killed again" kill_one
infer 0 "$work/survey.las" "$work/killed.las" --tile 40cm --margin 1m
check "another margin begins anew" hides 'were done before' "$err"

# A cloud that needs ten times the memory that there is goes through: fifty rooms in a row.
for i in $(seq 0 49); do
    tail -n +2 "$work/plain.csv" | awk -F, -v OFS=, -v i="$i" '{ printf "%.3f,%.3f,%.3f,%s,%s,%s\n", $1 + 345000 + 6 * i, $2, $3, $4, $5, $6 }'
done >"$work/rows"
{ echo x,y,z,red,green,blue; cat "$work/rows"; } >"$work/row.csv"
each --input "$work/row.csv" -o "$work/row.ply"
infer 0 "$work/row.ply" "$work/whole.npy" -q
infer 5 "$work/row.ply" "$work/none.npy" -q --memory 20MB
infer 0 "$work/row.ply" "$work/tiled.npy" -q --memory 2MB --tile 3m
same "$work/whole.npy" "$work/tiled.npy"
infer 5 "$work/row.ply" "$work/none.npy" -q --memory 2MB --tile 1km
says 'smaller tiles take less memory (--tile): no room'

# An output that cannot hold the cloud is refused before anything is computed, for which there is too little memory here.
name=a_name_of_more_than_32_bytes_for_las
awk -v name=$name '{ print $0 "," (NR == 1 ? name : NR) }' "$work/row.csv" >"$work/long.csv"
{ cat "$work/row.csv"; echo nan,1,1,2,3,4; } >"$work/lacking.csv"
{ cat "$work/row.csv"; echo 5000000,1,1,2,3,4; } >"$work/wide.csv"
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/identity.txt"
refused() { # CLOUD MESSAGE
    infer 5 "$work/$1.csv" "$work/none.csv" -q --memory 2MB
    infer 2 "$work/$1.csv" "$work/none.las" -q --memory 2MB
    says "$2"
    check "nothing is left of $1" test ! -e "$work/none.las"
}
refused long "\"$name\": names of LAS have at most 32 bytes"
refused lacking "row $(($(wc -l <"$work/row.csv") - 1)) has no x" # rows count from 0, behind the line of names
infer 2 "$work/wide.csv" "$work/none.las" -q --memory 2MB
says 'LAS would be off by up to'
for cloud in long lacking; do
    each --input "$work/$cloud.csv" -o "$work/$cloud.ply"
    infer 2 "$work/$cloud.ply" "$work/none.las" --tile 3m
    check "no tile was computed" hides -E 'points and results|tiles that are done' "$err"
    check "nothing is left of $cloud" test ! -e "$work/none.las.tiles"
    run 0 register "$work/$cloud.ply" "$work/$cloud.ply" --from "$work/identity.txt" -q
    check "it prints the pose" test -s "$out"
    run 2 register "$work/$cloud.ply" "$work/$cloud.ply" --from "$work/identity.txt" -o "$work/none.las" -q
    check "no pose was computed" test ! -s "$out"
done

# Something else of that name is not touched.
mkdir "$work/mine.las.tiles"
echo diary >"$work/mine.las.tiles/done"
infer 2 "$work/survey.las" "$work/mine.las" -q --tile 1m
says 'is in the way'
check "it stays" grep -q diary "$work/mine.las.tiles/done"
finish
