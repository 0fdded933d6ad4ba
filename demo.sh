#!/bin/sh
# The whole way in one command: set up, make a data set, train on it, label a room the network has not seen.
# sh demo.sh [options that training, evaluation and inference share, such as --mode voxel or --device cuda]
# PNETC=PROGRAM takes a program that was built elsewhere: nothing is installed or built.
set -eu
cd "$(dirname "$0")"
[ "${PNETC:-}" ] || sh setup.sh
pnetc=${PNETC:-build/release/pnetc}
[ -f out/rooms/dataset.yaml ] || $pnetc data synth rooms -o out/rooms --count 240 --seed 1
rm -rf out/demo
$pnetc train models/rooms.pnet --config models/rooms.yaml -o out/demo "$@"
$pnetc eval models/rooms.pnet --weights out/demo/best --config models/rooms.yaml --split test "$@"
room=$(ls out/rooms/test/*.ply | head -n 1)
$pnetc infer models/rooms.pnet --weights out/demo/best --input "$room" -o out/demo/room.ply --colour "$@"
echo "predictions: out/demo/room.ply (coloured by class), report: out/demo/report.html"
