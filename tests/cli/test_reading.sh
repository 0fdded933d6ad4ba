# What a data set says of its files - unit, origin, names of columns, the array of the coordinates - is kept with the weights:
# infer reads clouds likewise, eval says what a set leaves out, and a run does not resume with something else.
. tests/cli/common.sh

cat >"$work/model.pnet" <<'END'
pnet 1
param classes = 3
input cloud {
  xyz   : position
  place : feature[3]
  label : class[classes] per point
}
net n(p: cloud) { return p.place -> linear(classes) }
y = n(cloud)
loss ce = cross_entropy(y, cloud.label)
END
awk 'BEGIN { srand(3); for (i = 0; i < 40; i++) printf "%.3f %.3f %.3f %d\n", 9 * rand(), 9 * rand(), 9 * rand(), i % 3 }' >"$work/a.xyz"
index() { # LINES...: an index with these lines
    {
        printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c]\ntrain: [a.xyz]\nval: [a.xyz]\n'
        printf '%s\n' "$@"
    } >"$work/dataset.yaml"
}
printf 'data: .\nsteps: 1\neval_every: 0\ninputs: {cloud: {place: [x, y, z]}}\n' >"$work/run.yaml"
train() { run "$1" train "$work/model.pnet" --config "$work/run.yaml" -o "$work/run" -q -j 1 "${@:2}"; }

said='columns: [x, y, z, label]'
index "$said" 'unit: cm' 'origin: [0.01, 0, 0]'
train 0
run 0 info "$work/run"
prints 'unit cm'
run 0 info --json "$work/run"
valid_json "$out"
prints '"unit":"cm"'
run 0 eval "$work/model.pnet" --weights "$work/run" --config "$work/run.yaml" -q
check 'nothing to say' test ! -s "$err"

# The same set without its unit.
index "$said" 'origin: [0.01, 0, 0]'
run 0 eval "$work/model.pnet" --weights "$work/run" --config "$work/run.yaml" -q
says 'was trained on clouds with `unit: cm`;'
says 'names no unit, so its numbers are taken as metres'
cp -r "$work/run" "$work/before"
for changed in 'unit: mm' 'origin: [0, 0, 0]' 'columns: [x, y, label, z]' 'coordinates: scan'; do
    case $changed in
    unit*) index "$said" "$changed" 'origin: [0.01, 0, 0]' ;;
    origin*) index "$said" 'unit: cm' "$changed" ;;
    columns*) index 'columns: [x, y, z, label, more]' 'unit: cm' 'origin: [0.01, 0, 0]' ;;
    *) index "$said" 'unit: cm' 'origin: [0.01, 0, 0]' "$changed" ;;
    esac
    train 2 --resume --steps 2
    says "\`${changed%%:*}\`"
    says 'the net would read other numbers, so the run cannot be resumed with it'
    check 'the run stays as it was' diff -r "$work/before/last" "$work/run/last"
done
index "$said" 'unit: cm' 'origin: [0.01, 0, 0]'
train 0 --resume --steps 2

# register says, as infer does, that the net reads coordinates less two offsets. The clouds are in metres.
awk '{ print $1 + 3000, $2, $3, $4 }' "$work/a.xyz" >"$work/far.xyz"
index "$said"
run 0 train "$work/model.pnet" --config "$work/run.yaml" -o "$work/metres" -q -j 1
register() { run "$1" register "$work/a.xyz" "$work/far.xyz" --model "$work/model.pnet" --weights "$work/metres" --distance 1m -q -j 1 "${@:2}"; }
register 0
says 'far.xyz: the model reads coordinates less an offset, here (3000, 0, 0), in the training (0, 0, 0)'
register 1 --origin 0,0,0 # no pose: the same point has other features
check 'one origin' hides 'less an offset' "$err"

# The array of the coordinates: `rgb`, where names would choose `points`.
cp tests/fuzz/seeds/npy/archive0.npz "$work/a.npz"
mkdir "$work/archive"
cp "$work/a.npz" "$work/archive/a.npz"
printf 'pnet_dataset: 1\ntask: segmentation\nclasses: [a, b, c]\ntrain: [a.npz]\ncoordinates: rgb\nmap_other: ignore\n' >"$work/archive/dataset.yaml"
printf 'data: archive\nsteps: 1\neval_every: 0\ninputs: {cloud: {place: [x, y, z]}}\n' >"$work/archive.yaml"
run 0 train "$work/model.pnet" --config "$work/archive.yaml" -o "$work/chosen" -q -j 1
run 0 info "$work/chosen"
prints 'coordinates rgb'
infer() { run "$1" infer "$work/model.pnet" --weights "$work/chosen" --input "$work/a.npz" -o "$work/out.csv" -q -j 1 "${@:2}"; }
places() { tail -n +2 "$work/out.csv" | cut -d, -f1-3; }
infer 0
places >"$work/kept"
infer 0 --coordinates rgb
check 'the array of the training' test "$(places)" = "$(cat "$work/kept")"
infer 0 --coordinates points
check 'another array' test "$(places)" != "$(cat "$work/kept")"
infer 4 --coordinates normals
says 'no array "normals"'
says '--coordinates NAME chooses one'
finish
