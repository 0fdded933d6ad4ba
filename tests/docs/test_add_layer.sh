# A layer added to a copy of the sources, exactly as docs/adding-a-layer.md says, works: its documentation, its cases, a
# model that uses it, and what its rule refuses.
set -eu
. tests/docs/added.sh
echo 'files:'
added docs/adding-a-layer.md layer 5
tail -n 1 "$work/tree/runtime/plan/ops.def" | grep -qx 'PNET_OP(clamp)'

"$pnetc" ops clamp | diff -u "$texts/ops" -
"$pnetc" ops --markdown | grep -qx '### clamp'
(cd "$work/tree" && "$work/build/tests/test_cases" clamp)
cd "$texts"
"$pnetc" check clamped.pnet
sed -i 's/clamp(0, 1)/clamp(1, 0)/' clamped.pnet
code=0
"$pnetc" check clamped.pnet 2> message || code=$?
[ $code = 3 ] || { echo "exit code $code where the rule refuses" >&2; exit 1; }
head -n 1 message | diff -u mistake -
added_cuda kernels/cuda/layer/clamp.cu clamp
cd / # the folder goes
