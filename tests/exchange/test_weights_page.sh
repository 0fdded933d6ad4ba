# The commands of docs/weights.md work, in the order in which they stand there, and print what the page shows.
page=docs/weights.md
least=8
. tests/docs/page.sh
says 'a feature for each point' test "$(wc -c <out/weights/features.npy)" -gt 100000
# The map that is proposed for this file does the same as the one of the repository.
"$pnetc" import models/fcgf.pnet --net fcgf --weights out/weights/theirs.safetensors --from minkowski --map out/weights/map.yaml \
    -o out/weights/proposed.safetensors -q || status=1
says 'the proposal is right' cmp out/weights/fcgf.safetensors out/weights/proposed.safetensors
# What the page says of names is a map.
awk '/^```yaml/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/$page" >map.yaml
"$pnetc" import models/fcgf.pnet --net fcgf --weights out/weights/theirs.safetensors --from minkowski --map map.yaml -o x.safetensors \
    --partial >partial || status=1
says 'the rules on the page fit' grep -q 'final.kernel \[64, 32\] -> fcgf.out.linear_2.weight \[32, 64\]' partial
finish
