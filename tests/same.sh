#!/bin/sh
# Compares two builds of pnetc: sh tests/same.sh OLD NEW. Every plan, listing and memory peak of the models must be the same
# text, and short trainings must end in the same bits. Prints a line for each kind of output, and what differs.
set -eu
cd "$(dirname "$0")/.."
old=$(realpath "$1") new=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

listings() { # program, folder
    for model in models/*.pnet; do
        name=$(basename "$model" .pnet)
        for device in cpu cuda; do
            for mode in native voxel; do
                for train in '' --train; do
                    for form in '' --json; do
                        # a device that the build lacks says so, in either build alike
                        # shellcheck disable=SC2086
                        "$1" plan "$model" --points 100000 --device $device --mode $mode $train $form \
                            >"$2/$name.$device.$mode$train$form" 2>&1 || true
                    done
                done
            done
        done
        "$1" check "$model" --dump hash >"$2/$name.dump" 2>&1 || true
        "$1" graph "$model" -o "$2/$name.svg" || true
    done
}

train() { # program, folder, model, data, options
    program=$1 folder=$2 model=$3 data=$4
    shift 4
    "$program" train "models/$model.pnet" --config "$work/$model.yaml" --data "$data" -o "$folder/$model" --steps 6 --seed 3 \
        --quiet "$@" >"$folder/$model.out" 2>&1 || { cat "$folder/$model.out" >&2; exit 1; }
    sha256sum <"$folder/$model/last/weights.safetensors" >"$folder/$model.bits"
}

"$old" data synth rooms -o "$work/rooms" --count 6 --seed 5 >/dev/null
"$old" data synth shapes -o "$work/shapes" --count 24 --seed 5 >/dev/null
"$old" data synth pairs -o "$work/pairs" --count 6 --seed 5 >/dev/null
for model in rooms shapes fcgf_3dmatch; do
    grep -v '^eval_every:\|^save_every:' "models/$model.yaml" >"$work/$model.yaml"
done
status=0
for build in old new; do
    mkdir -p "$work/$build/listings" "$work/$build/native" "$work/$build/voxel"
    program=$(eval echo "\$$build")
    listings "$program" "$work/$build/listings"
    for mode in native voxel; do
        train "$program" "$work/$build/$mode" rooms "$work/rooms" --mode $mode
        train "$program" "$work/$build/$mode" shapes "$work/shapes" --mode $mode
        train "$program" "$work/$build/$mode" fcgf_3dmatch "$work/pairs" --mode $mode
    done
done
for part in listings native voxel; do
    differing=0
    for file in "$work/old/$part"/*; do
        [ -f "$file" ] || continue
        case $file in *.out) continue ;; esac
        if ! diff -u "$file" "$work/new/$part/$(basename "$file")" | head -n 12; then :; fi
        cmp -s "$file" "$work/new/$part/$(basename "$file")" || differing=$((differing + 1))
    done
    echo "$part: $(find "$work/old/$part" -maxdepth 1 -type f ! -name '*.out' | wc -l) compared, $differing differ"
    [ $differing = 0 ] || status=1
done
exit $status
