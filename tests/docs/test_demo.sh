# demo.sh runs twice, deletes nothing, and takes no data set but its own; on fewer rooms and steps than it has.
. tests/cli/common.sh
mkdir -p "$work/tree/out/demo" "$work/tree/out/rooms"
cp demo.sh "$work/tree"
cp -r models "$work/tree/models"
echo mine >"$work/tree/out/demo/mine"
echo 'pnet_dataset: 1' >"$work/tree/out/rooms/dataset.yaml"
cp -r "$work/tree/out" "$work/before"
mkdir -p "$work/tree/out/demo-rooms/train" # an interrupted demonstration leaves rooms without an index
echo cut >"$work/tree/out/demo-rooms/train/000000.ply"
cat >"$work/a small one" <<END
#!/bin/sh
case \$1 in
data) exec "$(realpath "$pnetc")" "\$@" --count 20 --points 600 -q ;;
train) exec "$(realpath "$pnetc")" "\$@" --steps 2 -q ;;
esac
exec "$(realpath "$pnetc")" "\$@"
END
chmod +x "$work/a small one"

demo() { # exit code, options
    local want=$1 code=0
    shift
    (cd / && PNETC="$work/a small one" sh "$work/tree/demo.sh" "$@") >"$out" 2>"$err" || code=$?
    check "exit code $code: $(tail -n 3 "$err")" test $code = "$want"
}
demo 0
prints 'predictions: out/demo-2/room.ply'
check "a report" test -s "$work/tree/out/demo-2/report.html"
cp "$work/tree/out/demo-2/last/weights.safetensors" "$work/first"
demo 0 --mode voxel
prints 'predictions: out/demo-3/room.ply'
check "a room" test -s "$work/tree/out/demo-3/room.ply"
same "$work/first" "$work/tree/out/demo-2/last/weights.safetensors"
check "what was there" diff -r "$work/before/demo" "$work/tree/out/demo"
check "other data" diff -r "$work/before/rooms" "$work/tree/out/rooms"
rm -r "$work/tree/out/demo"
demo 0
prints 'predictions: out/demo/room.ply'
demo 2 --colours
finish
