# The commands of docs/completion.md work, in the order in which they stand there, and print what the page shows.
page=docs/completion.md
least=7
. tests/docs/page.sh
says 'the fine cloud has 256 x 4 points' grep -aqx 'element vertex 1024' out/completion/whole.ply
says 'the rough cloud has 256 points' test "$(wc -l <out/completion/rough.xyz)" = 256
says 'a matrix for each cloud of the pattern' test "$(echo out/completion/clouds/*)" = \
    'out/completion/clouds/000008_partial.npy out/completion/clouds/000018_partial.npy'
says 'the report shows the validation samples' test "$(grep -c '>truth, 4096 points<' out/completion/pcn/report.html)" = 2
says 'FoldingNet generates a square of points' grep -q '>prediction, 1024 points' out/completion/folding/report.html
# The recipe is that of the file, but for what the page replaces.
for line in 'optimizer: adam' 'lr: 0.0001' 'schedule: {name: step, every: 50, gamma: 0.5}' 'clip_grad: 10' 'augment: {flip: \[x, y\]}'; do
    says "the recipe has $line" grep -qx "$line" models/partial.yaml
    says "the run has ${line%%:*}" grep -q "^${line%%:*}:" out/completion/pcn/config.yaml
done
# The params of the page are those of the models, and the losses it lists are all that a model takes.
for way in $(sed -n 's/^| `\([a-z0-9]*\)` | .*layers.md#.*/\1/p; s/^| `\(l1\|dcd_5\)` | .*/\1/p' "$root/docs/completion.md"); do
    for model in pcn foldingnet; do
        says "models/$model.pnet takes $way" pnetc check models/$model.pnet --train --set "way=\"$way\""
    done
    ways=${ways:-}${ways:+ }$way
done
says "the losses are ${ways:-none}" test "${ways:-}" = 'chamfer l1 dcd dcd_5 hypercd infocd sinkhorn apml'
# The numbers of weights.
says 'PCN has 6,864,387 weights' sh -c 'pnetc plan models/pcn.pnet --points 2048 | grep -q "6864387 numbers"'
says 'FoldingNet has 2,407,430 weights' sh -c 'pnetc plan models/foldingnet.pnet --points 2048 | grep -q "2407430 numbers"'
finish
