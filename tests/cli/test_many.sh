# Files with many of something are read in time that grows as they do: tensors, layers, rules of a map, classes, open documents. Each command has
# SECONDS_MOST seconds of a processor. It needs a few of them; in steps that grow as the square of the file it would need many more.
. tests/cli/common.sh
SECONDS_MOST=6
input=/dev/null

# quickly CODE ARGUMENTS...: the same as run, within that time.
quickly() {
    local want=$1 got=0
    shift
    (ulimit -t $SECONDS_MOST && exec "$pnetc" "$@") >"$out" 2>"$err" <"$input" || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "exit code $got instead of $want: pnetc $*: $(tail -n 2 "$err")"; fi
}

# weights FILE HEADER BYTES: a safetensors file with that header and so many zero bytes of data.
weights() {
    local size=$(wc -c <"$2") i
    {
        for i in 0 1 2 3 4 5 6 7; do printf "\\$(printf %03o $((size >> 8 * i & 255)))"; done
        cat "$2"
        head -c "$3" /dev/zero
    } >"$1"
}

# tensors COUNT PREFIX SUFFIX FIRST: the header of layers of 4 x 4 weights and 4 biases, with their numbers from FIRST on.
tensors() {
    awk -v n="$1" -v a="$2" -v b="$3" -v first="$4" 'BEGIN {
        printf "{"
        for (i = 0; i < n; i++) {
            name = a (i + first) b
            printf "%s\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[4,4],\"data_offsets\":[%d,%d]}", i ? "," : "", name, i * 80, i * 80 + 64
            printf ",\"%s.bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[%d,%d]}", name, i * 80 + 64, i * 80 + 80
        }
        printf "}"
    }'
}

# ---- tensors: the header of weights ----
count=100000
awk -v n=$count 'BEGIN {
    printf "{"
    for (i = 0; i < n; i++) printf "%s\"layer%d.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "", i, i, i + 1
    printf "}"
}' >"$work/header"
weights "$work/many.safetensors" "$work/header" $count
quickly 0 info "$work/many.safetensors"
check "all are listed" test "$(grep -c '^ *layer' "$out")" = $count

# ---- layers of a model, tensors of another library, and rules between them ----
layers=20000
awk -v n=$layers 'BEGIN {
    printf "pnet 1\ninput cloud { xyz : position\n rgb : feature[4] }\nnet m(p: cloud) {\n  x0 = p.rgb\n"
    for (i = 1; i <= n; i++) printf "  x%d = x%d -> linear(4)\n", i, i - 1
    printf "  return x%d\n}\ny = m(cloud)\n", n
}' >"$work/model.pnet"
tensors $layers their. '' 0 >"$work/header"
weights "$work/theirs" "$work/header" $((80 * layers))
awk -v n=$layers 'BEGIN { for (i = 0; i < n; i++) printf "their.%d: m.x%d.linear\n", i, i + 1 }' >"$work/map.yaml"
awk -v n=$layers 'BEGIN { for (i = 0; i < n; i++) printf "their.%d.*: m.x%d.linear.*\n", i, i + 1 }' >"$work/stars.yaml"
for map in map stars; do
    quickly 0 import "$work/model.pnet" --weights "$work/theirs" --from torch --map "$work/$map.yaml" -o "$work/$map" -q
    quickly 0 export "$work/model.pnet" --weights "$work/$map" --to torch --map "$work/$map.yaml" -o "$work/$map.back.safetensors" -q
done
check "both maps say the same" cmp -s "$work/map" "$work/stars"
quickly 0 info "$work/map.back.safetensors" --json
check "names are theirs again" test "$(tr , '\n' <"$out" | grep -c '"their\.[0-9]*\.weight"')" = $layers
quickly 0 import "$work/model.pnet" --weights "$work/theirs" --from torch --propose "$work/proposed.yaml" -q
check "the proposal is this map" cmp -s <(sed 's/"//g; s/?//; s/ *#.*//; /^$/d' "$work/proposed.yaml") "$work/map.yaml"
tensors $layers other. '' 0 >"$work/header"
weights "$work/others" "$work/header" $((80 * layers))
quickly 3 import "$work/model.pnet" --weights "$work/others" --from torch --partial -o "$work/none"
says 'none of its tensors has the name and shape of a weight of the model'

# ---- classes of a data set ----
classes=65000
mkdir "$work/set"
printf 'ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nproperty int label\nend_header\n1 2 3 7\n' >"$work/set/a.ply"
awk -v n=$classes 'BEGIN {
    printf "pnet_dataset: 1\ntask: segmentation\nclasses: ["
    for (i = 0; i < n; i++) printf "%sc%d", i ? ", " : "", i
    printf "]\nmap: {"
    for (i = 0; i < n; i++) printf "%s%d: c%d", i ? ", " : "", i, n - 1 - i
    printf "}\ntrain: [a.ply]\n"
}' >"$work/set/dataset.yaml"
quickly 0 data info "$work/set"

# ---- documents of an editor ----
documents=400
awk -v n=$documents 'function say(body) { printf "Content-Length: %d\r\n\r\n%s", length(body), body }
BEGIN {
    say("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"capabilities\":{}}}")
    for (i = 0; i < n; i++)
        say("{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didOpen\",\"params\":{\"textDocument\":{\"uri\":\"file:///nowhere/" i ".pnet\",\"version\":1,\"text\":\"pnet 1\\nx = 1\\n\"}}}")
    say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}")
    say("{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}")
}' >"$work/session"
input=$work/session
quickly 0 lsp
check "each has its diagnostics" test "$(tr '{' '\n' <"$out" | grep -c 'uri.*nowhere')" = $documents

finish
