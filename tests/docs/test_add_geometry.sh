# A kind of geometry added to a copy of the sources, exactly as docs/adding-a-geometry.md says, works: a layer reads it, the
# plan counts it, its CUDA half compiles where nvcc is, and runs where a GPU is too.
set -eu
. tests/docs/added.sh
echo 'files:'
added docs/adding-a-geometry.md geometry 7
tail -n 1 "$work/tree/runtime/plan/geo.def" | grep -qx 'PNET_GEO(BOXES, boxes, char none;)'
(cd "$work/tree" && "$work/build/tests/test_cases" in_box)
cd "$texts"
"$pnetc" check boxed.pnet --dump geometry | grep '  boxes ' | diff -u item -
# the same bytes whether boxes are sized or built, and more of them than without
bytes() { "$pnetc" plan "$1" --points 1000 --train --json | sed -n 's/.*"maps_of_a_batch": *\([0-9]*\).*/\1/p'; }
sed 's/in_box(g)/ones(g, 3)/' boxed.pnet > plain.pnet
[ "$(bytes boxed.pnet)" -gt "$(bytes plain.pnet)" ] || { echo 'the plan does not count the boxes' >&2; exit 1; }
added_cuda kernels/cuda/geometry/boxes.cu in_box
cd / # the folder goes
