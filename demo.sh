#!/bin/sh
# The whole way in one command: set up, make a data set, train on it, label a room the network has not seen.
# sh demo.sh [options that training, evaluation and inference share, such as --mode voxel or --device cuda]
# PNETC=PROGRAM takes a program that was built elsewhere: nothing is installed or built.
# The rooms are made once, in out/demo-rooms. The run goes to out/demo, a further one to out/demo-2, and so on.
set -eu
cd "$(dirname "$0")"
[ "${PNETC:-}" ] || sh setup.sh
pnetc=${PNETC:-build/release/pnetc}
rooms=out/demo-rooms
run=out/demo
number=1
while [ -e "$run" ]; do
    number=$((number + 1))
    run=out/demo-$number
done
# without the index the rooms are those of a demonstration that was interrupted
[ -f $rooms/dataset.yaml ] || "$pnetc" data synth rooms -o $rooms --count 240 --seed 1 --force
"$pnetc" train models/rooms.pnet --config models/rooms.yaml --data $rooms -o "$run" "$@"
"$pnetc" eval models/rooms.pnet --weights "$run/best" --config models/rooms.yaml --data $rooms --split test "$@"
room=$(ls $rooms/test/*.ply | head -n 1)
"$pnetc" infer models/rooms.pnet --weights "$run/best" --input "$room" -o "$run/room.ply" --colour "$@"
echo "predictions: $run/room.ply (coloured by class), report: $run/report.html"
