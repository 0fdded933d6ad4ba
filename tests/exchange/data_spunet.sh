# A U-net of Pointcept in spconv's layout, evaluated elsewhere in float64 (backbones/spunet of the test data): imported, the model
# gives its results, and exported its tensors, bit for bit. Needs Python with NumPy.
. tests/cli/common.sh
golden=${PNET_TEST_DATA:-../shared}/backbones/spunet
[ -e "$golden/case.npz" ] || { echo "skipped: no $golden"; exit 77; }
python=
for one in python3 /usr/bin/python3; do
    [ "$python" ] || ! "$one" -c 'import numpy' 2>/dev/null || python=$one
done
[ "$python" ] || { echo 'skipped: no Python with NumPy'; exit 77; }
cat >"$work/unet.pnet" <<'END'
pnet 1
input cloud { xyz : position  f : feature[6] }
block convs(w) {
  out = in -> conv(w, kernel=3) -> bn(eps=0.001) -> relu -> conv(w, kernel=3) -> bn(eps=0.001)
}
net unet(p: cloud) {
  g = grid(p, 10cm * [1, 2, 4, 8, 16])
  down = [16, 16, 32, 32, 48]
  up = [24, 32, 32, 48]
  s[0] = p.f -> pool(mean, to=g[0]) -> conv(16, kernel=5) -> bn(eps=0.001) -> relu
  for i = 1..4 {
    d[i] = s[i-1] -> conv(down[i], kernel=2, to=g[i]) -> bn(eps=0.001) -> relu
    s[i] = (d[i] -> convs(down[i])) + d[i] -> relu
  }
  x = s[4]
  for i = 3..0 {
    u = cat(x -> conv(up[i], kernel=2, to=g[i]) -> bn(eps=0.001) -> relu, s[i])
    side = u -> conv(up[i], kernel=1) -> bn(eps=0.001)
    x = (u -> convs(up[i])) + side -> relu
  }
  return x -> conv(13, kernel=1, bias=yes, name="final")
}
y = unet(cloud)
END
{
    printf '%s\n' 'conv_input.0: unet.s.0.conv' 'conv_input.1: unet.s.0.bn' 'final: unet.final'
    for s in 0 1 2 3; do
        t=$((s + 1))
        printf '%s\n' "down.$s.0: unet.d.$t.conv" "down.$s.1: unet.d.$t.bn" "up.$s.0: unet.u.$s.conv" "up.$s.1: unet.u.$s.bn" \
            "dec.$s.block0.proj.0: unet.side.$s.conv" "dec.$s.block0.proj.1: unet.side.$s.bn"
        for part in "enc.$s.block0 unet.s.$t" "dec.$s.block0 unet.x.$s"; do
            for word in conv bn; do
                printf '%s\n' "${part% *}.${word}1: ${part#* }.convs.out.$word" "${part% *}.${word}2: ${part#* }.convs.out.${word}_2"
            done
        done
    done
} >"$work/map.yaml"
run 0 import "$work/unet.pnet" --weights "$golden/weights.safetensors" --from spconv --axes xyz --map "$work/map.yaml" \
    -o "$work/ours.safetensors"
prints "147 weights of the model's 147, 29 counters ignored"
run 0 export "$work/unet.pnet" --weights "$work/ours.safetensors" --to spconv --axes xyz --map "$work/map.yaml" \
    -o "$work/theirs.safetensors" -q
"$python" - "$golden/case.npz" "$work" <<'END' || fail 'no clouds'
import sys
import numpy as np
case, begin = np.load(sys.argv[1]), 0
for sample, end in enumerate(case["offset"]):
    rows = np.concatenate([(case["grid_coord"][begin:end] + 0.5) * 0.1, case["feat"][begin:end]], 1)
    np.savetxt(f"{sys.argv[2]}/{sample}.csv", rows, "%.9g", ",", comments="", header="x,y,z," + ",".join(f"f_{i}" for i in range(6)))
    begin = end
END
for sample in 0 1; do
    run 0 infer "$work/unet.pnet" --weights "$work/ours.safetensors" --input "$work/$sample.csv" -o "$work/$sample.npy" -q
done
"$python" - "$golden" "$work" <<'END' || fail 'other results or tensors'
import json, struct, sys
import numpy as np
golden, work = sys.argv[1:]
want = np.load(golden + "/case.npz")["out"]
have = np.concatenate([np.load(f"{work}/{sample}.npy") for sample in range(2)])
far = np.linalg.norm(have - want) / np.linalg.norm(want)
print(f"{len(have)} voxels, relative difference {far:.1e}")
def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:size])
    header.pop("__metadata__", None)
    return {name: (t["shape"], data[size + t["data_offsets"][0]:size + t["data_offsets"][1]])
            for name, t in header.items() if not name.endswith("num_batches_tracked")}
alike = tensors(golden + "/weights.safetensors") == tensors(work + "/theirs.safetensors")
print("exported tensors are", "those of the file" if alike else "others")
sys.exit(not (len(have) == 1000 and far < 1e-5 and alike))
END
pass
finish
