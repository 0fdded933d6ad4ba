# pnet-bench net: every part and layer of a training step, checked first; what the error of gradients is made of, and the
# files of --write; models and clouds that do not fit.
. tests/cli/common.sh
run 0 data synth rooms -o "$work/rooms" --count 2 --points 3000 --seed 3 -j 1
scene=$work/rooms/train/000000.ply
pnetc=$(dirname "$pnetc")/bench/pnet-bench

run 0 net models/rooms.pnet --scene "$scene" --scene "$scene" --check-points 500 --repeat 1 --json
valid_json "$out"
for key in inference_ms geometry_ms layout_ms forward_ms backward_ms optimizer_ms step_with_geometry_ms inference_peak_bytes \
    training_peak_bytes conv linear norm other loss not_convolution layers; do prints "\"$key\":"; done
check "two samples" grep -qE '"samples": ?2' "$out"
check "the gradients agree" grep -qE '"gradient_error": ?[0-9.]*e-[0-9]+' "$out"
convolutions=$(grep -oE '"op": ?"conv"' "$out" | wc -l)
check "all convolutions of the model" test "$convolutions" -ge 5
run 0 net models/rooms.pnet --scene "$scene" --mode voxel --optimizer sgd --check-points 500 --repeat 1 --layers
prints "voxel"
prints "is not convolution"
check "a line for every convolution" test "$(grep -cE '^[^ ]+ +conv ' "$out")" = "$convolutions"

run 0 net models/rooms.pnet --scene "$scene" --check-points 500 --repeat 1 --json
cp "$out" "$work/check"
run 0 net models/rooms.pnet --scene "$scene" --check-points 500 --gradients --json --write "$work/net"
valid_json "$out"
if command -v python3 >/dev/null; then
    check "tables, files and the check agree" python3 - "$out" "$work/check" "$work/net" <<'END'
import array, ast, json, math, sys

def near(a, b): assert abs(a - b) <= 1e-6 * abs(b), (a, b)

def npy(name):
    data = open(f"{sys.argv[3]}/{name}.npy", "rb").read()
    end = 10 + int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:end].decode())
    x = array.array({"<f4": "f", "<i4": "i", "<u2": "H"}[head["descr"]])
    x.frombytes(data[end:])
    assert len(x) == math.prod(head["shape"])
    return x

table, check = (json.load(open(name)) for name in sys.argv[1:3])
net = json.load(open(f"{sys.argv[3]}/network.json"))
error = table["error"]["fp32"]
assert 0 < error < 1e-3
near(error, check["gradient_error_fp32"])
for parts in table["parameters"], table["levels"]:
    near(sum(p["share"]["fp32"] for p in parts), 1)
    shares = [p["share"]["fp32"] for p in parts]
    assert shares == sorted(shares, reverse=True)
    norm = math.hypot(*(p["norm"] for p in parts))
    near(math.hypot(*(p["norm"] * p["error"]["fp32"] for p in parts)) / norm, error)

# The vectors, parameter by parameter.
plain, x = npy("gradients_plain"), npy("gradients_fp32")
rows = {level["name"]: level["rows"] for level in net["levels"]}
listed = {p["parameter"]: p for p in table["parameters"]}
assert listed.keys() == {p["name"] for p in net["parameters"] if p["trained"]}
for p in net["parameters"]:
    if not p["trained"]: continue
    at = range(p["offset"], p["offset"] + math.prod(p["shape"]))
    near(math.hypot(*(plain[i] for i in at)), listed[p["name"]]["norm"])
    near(math.hypot(*(x[i] - plain[i] for i in at)), listed[p["name"]]["norm"] * listed[p["name"]]["error"]["fp32"])
    assert listed[p["name"]]["rows"] == rows[listed[p["name"]]["level"]]

# A step reads what is there by then; geometry stays within its levels.
there = {i for i, t in enumerate(net["tensors"]) if t["role"] == "input"}
for step in net["steps"]:
    assert there.issuperset(step["in"]), step
    there.add(step["out"])
assert there.issuperset(net["losses"]) and net["losses"]
sets = 0
for i, item in enumerate(net["geometry"]):
    ends = {"triplets": [("a", "a"), ("b", "b")], "parent": [("parent", "b")]}.get(item["kind"], [])
    for part, level in ends:
        values = npy(f"geometry{i}_{part}")
        assert 0 <= min(values) and max(values) < net["levels"][item[level]]["rows"]
    if item["kind"] == "triplets":
        sets += 1
        assert max(npy(f"geometry{i}_cell")) < item["cells"]
assert sets > 1
END
fi
run 0 net models/rooms.pnet --scene "$scene" --check-points 500 --gradients
prints "others (--all)"
lines=$(wc -l <"$out")
run 0 net models/rooms.pnet --scene "$scene" --check-points 500 --gradients --all
check "all parameters" test "$(wc -l <"$out")" -gt "$((lines + 5))"
run 1 net models/rooms.pnet --scene "$scene" --check-points 500 --gradients --write "$scene/net"
says "$scene"
run 2 net models/rooms.pnet --scene "$scene" --write "$work/net"
says "go with --gradients"

run 2 net --scene "$scene"
says "which model?"
run 2 net models/rooms.pnet
says "--scene is needed"
run 2 net models/rooms.pnet --scene "$scene" --precision bf16
says "the CPU computes fp32"
printf 'pnet 1\ninput cloud { xyz : position }\nnet n(p: cloud) { return ones(grid(p, 5cm)) }\n' >"$work/bad.pnet"
run 3 net "$work/bad.pnet" --scene "$scene"
says "bad.pnet: error: the model has no loss"
run 1 net models/rooms.pnet --scene "$work/none.ply"
says "none.ply: cannot open"
finish
