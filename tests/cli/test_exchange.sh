# pnetc import and export: what is taken, what is not, and what is said of it; maps, proposals, partial weights; bad files.
. tests/cli/common.sh
model=tests/cli/tiny.pnet
needs python3
run 0 data synth rooms -o "$work/rooms" --count 4 --points 300 --seed 6 -j 1 -q
printf 'data: rooms\nsteps: 2\nbatch_size: 1\neval_every: 0\n' >"$work/run.yaml"
run 0 train $model --config "$work/run.yaml" -o "$work/run" -q --mode voxel --set c=4
own=$work/run/last/weights.safetensors

# edit FROM TO CODE: changes the tensors of a file: CODE sees t, {name: (type, shape, bytes)}.
edit() {
    python3 - "$1" "$2" "$3" <<'END'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
h.pop("__metadata__", None)
t = {k: (v["dtype"], v["shape"], b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in h.items()}
exec(sys.argv[3])
h, data = {}, b""
for k, (kind, shape, bytes_) in sorted(t.items(), key=lambda i: i[1][0] not in ("F64", "I64")):
    h[k] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
    data += bytes_
j = json.dumps(h).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(j)) + j + data)
END
}
# tensors FILE: name, shape and checksum of each, by name.
tensors() {
    python3 - "$1" <<'END'
import hashlib, json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
for k, v in sorted(json.loads(b[8:8 + n]).items()):
    if k != "__metadata__":
        print(k, v["dtype"], v["shape"], hashlib.sha1(b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]).hexdigest())
END
}

# Out and in again is the same, for every library; and not without reordering.
total=$("$pnetc" info "$own" | grep -c '^  tiny\.')
for library in minkowski spconv torchsparse torch; do
    theirs=$work/$library.safetensors back=$work/$library.back.safetensors
    run 0 export $model --weights "$work/run" --to $library -o "$theirs"
    prints "$theirs: $total tensors"
    check "nothing else is said" test ! -s "$err"
    run 0 import $model --weights "$theirs" --from $library --set c=4 -o "$back"
    prints "$back: $total weights of the model's $total, 0 counters ignored"
    axes=xyz
    case $library in spconv | torch) axes=zyx ;; esac
    prints "assumed, as no file of weights says it: axes $axes, mode voxel, norms with eps 1e-05"
    check "nothing else is said" test ! -s "$err"
    check "$library and back" cmp -s <(tensors "$own") <(tensors "$back")
    differ "$library has pnet's layout" <(tensors "$own") <(tensors "$theirs")
    run 0 eval $model --weights "$back" --config "$work/run.yaml" -q
    check "no notice" test ! -s "$err"
    prints 'iou '
    grep -v ' s, peak memory ' "$out" >"$work/$library.eval"
    same "$work/minkowski.eval" "$work/$library.eval"
    run 0 export $model --weights "$back" --to $library -o "$work/again" -q
    same "$theirs" "$work/again"
done
me=$work/minkowski.safetensors sp=$work/spconv.safetensors
run 0 info "$work/spconv.back.safetensors"
prints 'trained in mode voxel, in fp32'
prints 'c=4'
run 0 import $model --weights "$me" --from minkowski --set c=9 --set c=4 --mode native -o "$work/native.safetensors" -q
check "-q prints nothing" test ! -s "$out"
run 0 info "$work/native.safetensors"
prints 'trained in mode native'
check "the last value counts" hides -q 'c=9' "$out"
run 0 export $model --weights "$work/native.safetensors" --to torch -o "$work/x" -q
says 'runs in mode native; torch computes on voxels'
run 0 import $model --weights "$sp" --from spconv --set c=4 --axes xyz -o "$work/turned" -q
differ "axes do nothing" "$work/spconv.back.safetensors" "$work/turned"
run 0 export $model --weights "$work/turned" --to spconv --axes xyz -o "$work/again" -q
same "$sp" "$work/again"
# lists of lines, to standard error where the file goes to standard output
"$pnetc" import $model --weights "$me" --from minkowski --set c=4 -o - >"$work/piped" 2>"$err"
same "$work/piped" "$work/minkowski.back.safetensors"
says '.conv.kernel [27, 3, 4] -> tiny.a.unit.out.conv.weight [27, 3, 4]'
# An export says what it is: the library and the version of its layout. Import reads both.
metadata() { # FILE: its metadata
    python3 -c 'import json, struct, sys
b = open(sys.argv[1], "rb").read()
print(json.loads(b[8:8 + struct.unpack("<Q", b[:8])[0]])["__metadata__"])' "$1"
}
# record FROM TO KEY VALUE: another value, of the same length, in the metadata.
record() { sed "s/\"$3\":\"[^\"]*\"/\"$3\":\"$4\"/" "$1" >"$2"; }
version=$("$pnetc" --version | head -n 1 | grep -o '[0-9][0-9.]*')
check "what it says" test "$(metadata "$sp")" = \
    "{'format': 'pt', 'pnet.exported': 'spconv', 'pnet.layout': '2', 'pnet.version': '$version'}"
run 2 import $model --weights "$me" --from torchsparse --set c=4 -o "$work/none"
says 'minkowski.safetensors: was exported for minkowski, not for torchsparse'
record "$sp" "$work/later" pnet.layout 9
run 4 import $model --weights "$work/later" --from spconv --set c=4 -o "$work/none"
says 'later: was exported by a later pnet, in layout 9; this one knows layouts up to 2'
for value in spconx/pnet.exported 0/pnet.layout x/pnet.layout; do
    record "$sp" "$work/odd" "${value#*/}" "${value%/*}"
    run 4 import $model --weights "$work/odd" --from spconv --set c=4 -o "$work/none"
    says 'are not those of an export of pnet'
done
check "nothing was written" test ! -e "$work/none"
# into a folder that is not there
run 0 export $model --weights "$own" --to spconv -o "$work/new/er/x.safetensors" -q
same "$sp" "$work/new/er/x.safetensors"

# Names: counters, a map there and back, two tensors of one name.
edit "$me" "$work/named" 't = {"module." + k[5:].replace("unit.out", "block"): v for k, v in t.items()}; t["module.a.block.bn.num_batches_tracked"] = ("I64", [], b"\1" + bytes(7)); t["module.n.bn.num_batches_tracked"] = ("I64", [], bytes(8))'
printf '# the words of a block\nmodule.a.block: tiny.a.unit.out\nmodule.b.block: tiny.b.unit.out\n"module.*": "tiny.*"\n' >"$work/map.yaml"
run 0 import $model --weights "$work/named" --from minkowski --map "$work/map.yaml" --set c=4 -o "$work/mapped"
prints 'module.n.bn.num_batches_tracked []: a counter, ignored'
prints "weights of the model's $total, 2 counters ignored"
same "$work/minkowski.back.safetensors" "$work/mapped"
run 0 export $model --weights "$own" --to minkowski --map "$work/map.yaml" -o "$work/x" -q
check "names by the map, backwards" cmp -s <(tensors "$work/named" | grep -v num_batches) <(tensors "$work/x")
run 3 import $model --weights "$work/named" --from minkowski --set c=4 -o "$work/none"
says 'none of its tensors has the name and shape of a weight of the model; --propose writes a map'
printf 'module.a.block.conv: x\nmodule.b.conv: x\n' >"$work/twice.yaml"
run 2 import $model --weights "$work/named" --from minkowski --map "$work/twice.yaml" --set c=4 -o "$work/none"
says 'would both be x.weight'
printf 'a.b: tiny.d.conv\ntiny: elsewhere\n' >"$work/away.yaml"
run 2 export $model --weights "$own" --to minkowski --map "$work/away.yaml" -o "$work/none"
says 'gives no tensor the name tiny.a.unit.out.conv.weight'
for bad in '[a, b]' 'a: [b]' 'a: "*"' '"*.*": "*.*"' 'just words' ''; do
    printf '%s\n' "$bad" >"$work/bad.yaml"
    run 2 import $model --weights "$work/named" --from minkowski --map "$work/bad.yaml" --set c=4 -o "$work/none"
    says 'bad.yaml:'
done
run 1 import $model --weights "$work/named" --from minkowski --map "$work/no.yaml" --set c=4 -o "$work/none"
check "nothing was written" test ! -e "$work/none"

# What does not fit: listed by name and shape, nothing written; with --partial, the rest.
layer=tiny.d
edit "$me" "$work/short" "del t['$layer.bn.bias']; t['$layer.conv.kernel'] = ('F32', [8, 2, 2], bytes(128)); t['extra.w'] = ('F32', [3], bytes(12)); t['$layer.bn.weight'] = ('I8', [4], bytes(4))"
run 3 import $model --weights "$work/short" --from minkowski --set c=4 -o "$work/none"
says "  $layer.conv.kernel [8, 2, 2] F32: $layer.conv.weight takes [8, 8, 4]"
says "  $layer.bn.weight [4] I8: $layer.bn.weight takes F32, F16, BF16 or F64"
says "  $layer.bn.bias [4]: missing"
says "  extra.w [3]: not in the model"
says "short: does not fit the model (of another shape: 2, missing: 1, not in the model: 1); --partial writes what fits"
check "nothing was written" test ! -e "$work/none"
run 3 import $model --weights "$work/short" --from minkowski --set c=4 -o "$work/none" --json
valid_json "$out"
prints '"missing":[{"weight":"tiny.d.bn.bias","weight_shape":[4]}]'
prints '"left":[{"tensor":"extra.w","type":"F32","shape":[3],"renamed":"extra.w"}]'
prints '"expected":[8,8,4]'
prints '"assumed":{"axes":"xyz","mode":"voxel","eps":[1e-05]}'
check "no output" hides -q '"output"' "$out"
run 0 import $model --weights "$work/short" --from minkowski --set c=4 -o "$work/part" --partial
prints "part: $((total - 3)) weights of the model's $total"
prints "  $layer.bn.bias [4]: missing"
run 3 eval $model --weights "$work/part" --config "$work/run.yaml" -q
says "no tensor \"$layer."
run 0 train $model --config "$work/run.yaml" --weights "$work/part" -o "$work/tuned" --set c=4 --steps 1 --mode voxel
says "loaded $((total - 3)) of the model's $total tensors"
run 3 export $model --weights "$work/part" --to torch -o "$work/none" -q
says "no tensor \"$layer."
edit "$sp" "$work/flat" 't["tiny.a.unit.out.conv.weight"] = ("F32", [4, 3, 1, 1, 3], bytes(144))'
run 3 import $model --weights "$work/flat" --from spconv --set c=4 -o "$work/none"
says '  tiny.a.unit.out.conv.weight [4, 3, 1, 1, 3] F32: tiny.a.unit.out.conv.weight takes [4, 3, 3, 3, 3]'
# one net, one value
run 0 import $model --net tiny --weights "$me" --from minkowski --set c=4 -o "$work/net" -q
same "$work/minkowski.back.safetensors" "$work/net"
run 0 import $model --value tiny.a.unit.out.relu --weights "$me" --from minkowski --set c=4 -o "$work/value" --partial
prints 'value: 5 weights of the model'

# A map is proposed; with it all of the file is taken.
edit "$sp" "$work/numbered" 't = {"layers.%d.%s" % (sorted({n.rpartition(".")[0] for n in t}).index(k.rpartition(".")[0]), k.rpartition(".")[2]): v for k, v in t.items()}'
run 0 import $model --weights "$work/numbered" --from spconv --set c=4 --propose "$work/proposed.yaml"
prints '0 have their names in the file'
prints '0 are open'
check "it says what it rests on" grep -q '# the only layer of these shapes' "$work/proposed.yaml"
check "it says what it rests on" grep -q '# one of [0-9] layers of these shapes, in order' "$work/proposed.yaml"
check "nothing was imported" test "$(ls "$work"/prop*)" = "$work/proposed.yaml"
# Of two layers of the model that are alike the file lacks one: neither is taken for the one that is left.
lacking=$(sed -n 's/^\(layers\.[0-9]*\): "?tiny\.d\.bn".*/\1/p' "$work/proposed.yaml")
check "the layer is proposed" test -n "$lacking"
edit "$work/numbered" "$work/lacking" "t = {k: v for k, v in t.items() if not k.startswith('$lacking.')}"
run 0 import $model --weights "$work/lacking" --from spconv --set c=4 --propose - -q
for name in tiny.a.unit.out.bn tiny.d.bn; do
    prints "# open, in the model: $name.weight [4]"
    check "$name is not proposed" test "$(grep -c "^layers.*$name" "$out")" = 0
done
# Lines that rest on order alone have a mark. While one is left the map is refused, in a run config too.
guesses=$(grep -c ': "?tiny\..*" *# one of' "$work/proposed.yaml")
check "guesses are marked" test "$guesses" -ge 2
check "others are not" test "$guesses" = "$(grep -vc '^#\|# the only' "$work/proposed.yaml")"
run 2 import $model --weights "$work/numbered" --from spconv --set c=4 --map "$work/proposed.yaml" -o "$work/none"
for name in $(sed -n 's/^\([^#:]*\): "?.*/\1/p' "$work/proposed.yaml"); do check "it lists $name" grep -q "[ ,]$name[,;]" "$err"; done
says 'matched by order alone, and not confirmed: layers.'
says '; compare each with the network, and take the ? before its new name away'
run 2 export $model --weights "$own" --to spconv --map "$work/proposed.yaml" -o "$work/none"
sed '0,/"?/s/"?/"/' "$work/proposed.yaml" >"$work/partly.yaml" # one is confirmed
run 2 import $model --weights "$work/numbered" --from spconv --set c=4 --map "$work/partly.yaml" -o "$work/none"
says 'not confirmed: '
check "one fewer" test "$(grep -o 'layers\.[0-9]*[,;]' "$err" | wc -l)" = $((guesses - 1))
run 2 train $model --config "$work/run.yaml" --weights "$work/numbered" --set c=4 --steps 1 -o "$work/none" \
    --set-config 'weights_map={layers.1: "?tiny.a.unit.out.bn"}'
says 'not confirmed: layers.1;'
check "nothing was written" test ! -e "$work/none"
sed -i 's/"?/"/' "$work/proposed.yaml"
run 0 import $model --weights "$work/numbered" --from spconv --set c=4 --map "$work/proposed.yaml" -o "$work/proposed" -q
check "convolutions are in their places" cmp -s <(tensors "$own" | grep conv) <(tensors "$work/proposed" | grep conv)
run 0 import $model --weights "$work/short" --from minkowski --set c=4 --propose - -q
prints "# open, in the model: $layer.conv.weight [8, 8, 4]"
prints '# open, in the file: extra.w [3]'

edit "$me" "$work/star" 't = {k.replace("tiny.d", "tiny.*"): v for k, v in t.items()}'
run 0 import $model --weights "$work/star" --from minkowski --set c=4 --propose "$work/star.yaml" -q
sed -i 's/"?/"/' "$work/star.yaml"
check "no rule for a star" grep -q '^# open, in the file: "tiny.\*.conv.kernel" \[8, 8, 4\]$' "$work/star.yaml"
run 3 import $model --weights "$work/star" --from minkowski --set c=4 --map "$work/star.yaml" -o "$work/none"

# Groups that a library has not.
sed 's/conv(w, kernel=3)/conv(w, kernel=3, groups=if w > 4 then 2 else 1)/' $model >"$work/grouped.pnet"
run 0 train "$work/grouped.pnet" --config "$work/run.yaml" -o "$work/grouped" -q --mode voxel --set c=4
run 3 export "$work/grouped.pnet" --weights "$work/grouped" --to minkowski -o "$work/none"
says 'minkowski has no layer for `tiny.b.unit.out.conv.weight`: groups=2'
run 0 export "$work/grouped.pnet" --weights "$work/grouped" --to spconv -o "$work/g" -q
run 0 import "$work/grouped.pnet" --weights "$work/g" --from spconv --set c=4 -o "$work/g.back" -q
check "groups" cmp -s <(tensors "$work/grouped/last/weights.safetensors") <(tensors "$work/g.back")

# Where a shape is that of an older layout of spconv too, that is said.
run 0 train $model --config "$work/run.yaml" -o "$work/narrow" -q --mode voxel --set c=2
run 0 export $model --weights "$work/narrow" --to spconv -o "$work/sq" -q
run 0 import $model --weights "$work/sq" --from spconv --set c=2 -o "$work/sq.back" -q
says 'tiny.d.conv.weight [2, 2, 2, 2, 4] was read as spconv 2.2 has it; kernels [K, K, K, out, in]'
check "of one kernel" test "$(wc -l <"$err")" = 1

# Numbers: other types, not finite ones; names that move the cursor; files that are none.
edit "$me" "$work/types" 'import array; t = {k: ("F64", s, array.array("d", array.array("f", b)).tobytes()) for k, (_, s, b) in t.items()}'
run 0 import $model --weights "$work/types" --from minkowski --set c=4 -o "$work/x" -q
same "$work/minkowski.back.safetensors" "$work/x"
edit "$me" "$work/nan" 't["tiny.d.conv.kernel"] = ("F32", [8, 8, 4], t["tiny.d.conv.kernel"][2][:-4] + struct.pack("<f", float("nan")))'
run 4 import $model --weights "$work/nan" --from minkowski --set c=4 -o "$work/none"
says '1 of the 256 numbers of `tiny.d.conv.kernel` are not finite'
esc=$(printf '\033')
edit "$me" "$work/esc" 't["a\x1b[31m\nb\u202e"] = ("F32", [1], bytes(4))'
run 3 import $model --weights "$work/esc" --from minkowski --set c=4 -o "$work/none"
says 'a\x1b[31m\x0ab'
check "no escape" hides -q "$esc" "$err"
run 0 import $model --weights "$work/esc" --from minkowski --set c=4 --propose "$work/esc.yaml" -q
check "no escape in the map" hides -q "$esc" "$work/esc.yaml"
run 0 train $model --config "$work/run.yaml" --weights "$work/esc" --set-config 'weights_map={"tiny.*.kernel": "tiny.*.weight"}' \
    -o "$work/esc.run" --set c=4 --steps 1
says 'a\x1b[31m\x0ab'
check "no escape in the notice of a training" hides -q "$esc" "$err"
head -c 300 "$me" >"$work/torn"
run 4 import $model --weights "$work/torn" --from minkowski --set c=4 -o "$work/none"
run 4 import $model --weights $model --from torch --set c=4 -o "$work/none"
run 1 import $model --weights "$work/nowhere" --from torch -o "$work/none"
run 3 import $model --weights "$me" --from minkowski --set zzz=4 -o "$work/none"
mkdir "$work/folder"
run 1 import $model --weights "$me" --from minkowski --set c=4 -o "$work/folder"
check "nothing was written" test ! -e "$work/none"

# Usage.
run 2 import
run 2 import $model --from torch -o "$work/none"
says 'which weights?'
run 2 import $model --weights "$me" -o "$work/none"
says 'which library? --from minkowski, spconv, torchsparse or torch'
run 2 export $model --weights "$me" --to spconv2 -o "$work/none"
says "not 'spconv2'"
run 2 import $model --weights "$me" --from minkowski
says 'where to?'
run 2 import $model --weights "$me" --from minkowski --propose "$work/none" -o "$work/none"
run 2 export $model --weights "$me" --to spconv
run 2 export $model --weights "$own" --to spconv -o - --json
for axes in xy xyy xyzz XYZ ''; do
    run 2 import $model --weights "$me" --from minkowski -o "$work/none" --axes "$axes"
    says 'an order of the letters x, y and z'
done
run 0 import --help
prints '--partial'
finish
