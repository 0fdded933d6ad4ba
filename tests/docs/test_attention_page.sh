# The commands of docs/attention.md work, in the order in which they stand there, and print what the page shows.
page=docs/attention.md
least=7
. tests/docs/page.sh
says 'the cloud has labels' grep -aqx 'property int class' out/attention/labelled.ply
says 'streets have 13 classes' grep -q '^  cyclist  ' output
# Every run config of the page is there, and takes the networks that it names.
for recipe in flash3d flash3d_streets ptv3 ptv3_scans; do
    says "the page lists $recipe.yaml" grep -qF "| [$recipe.yaml](../models/$recipe.yaml) |" "$root/docs/attention.md"
    says "models/$recipe.yaml trains 2,000 steps" grep -qx 'steps: 2000' "models/$recipe.yaml"
done
# The numbers of weights, beside a head of 16 classes.
weights() { # model, number
    says "$1 has $2 weights" sh -c "pnetc plan models/$1.pnet --points 2048 | grep -q '^parameters: *$(($2 + 1040)) numbers'"
}
weights flash3d 19331712
weights ptv3 46166272
weights flash3d_wide 46166272
for order in z z_trans hilbert hilbert_trans xor_div xor_mod z_mod; do
    says "the page lists $order" grep -q "^| \`$order\` | [0-9.]* m | [0-9.]* m |$" "$root/docs/attention.md"
    says "flash3d takes $order" pnetc check models/flash3d.pnet --set "order=\"$order\""
done
says 'flash3d takes shifts=no' pnetc check models/flash3d.pnet --set shifts=no
finish
