# pnetc plan: the kernels that layers get on the CPU and on GPUs of any architecture.
. tests/cli/common.sh
model=$work/net.pnet
cat >"$model" <<END
pnet 1
param v = 5cm
input cloud {
  xyz   : position
  rgb   : feature[3]
  label : class[4] per point
}
net n(p: cloud) {
  g = grid(p, v)
  x = p.rgb -> pool(mean, to=g) -> conv(64, kernel=3) -> relu -> conv(64, kernel=3, groups=64)
  return x -> conv(96, kernel=11) -> linear(4)
}
y = n(cloud)
loss ce = cross_entropy(y, cloud.label)
END
# The line of a layer in the listing, blanks joined.
kernels() {
    grep -E "^  n\.$1 " "$out" | tail -n 1 | tr -s ' '
}
gets() { # layer, line
    check "$1: $(kernels "$1") instead of $2" test "$(kernels "$1")" = " n.$1 $2"
}
for gpu in 80 86 89 100 120; do
    run 0 plan "$model" --points 30000 --train --device cuda --architecture $gpu --precision bf16
    prints "kernels: cuda, architecture $gpu"
    gets x.conv 'forward warps dW warps'
    gets x.conv_2 'forward depthwise dF depthwise dW depthwise'
    gets out.conv 'forward warps dF warps dW warps'
    gets out.linear 'forward warps dF warps dW warps'
done
run 0 plan "$model" --points 30000 --train --device cuda --architecture 90 --precision bf16
gets x.conv 'forward tiles dW narrow'
gets x.conv_2 'forward depthwise dF depthwise dW depthwise'
gets out.conv 'forward triplets dF triplets dW triplets'
gets out.linear 'forward dense dF dense dW dense'
prints 'triplets as tiles'
run 0 plan "$model" --points 30000 --device cuda --architecture 90
gets x.conv 'forward tiles'
run 0 plan "$model" --points 30000 --device cuda --architecture 90 --algo implicit-gemm
gets x.conv 'forward triplets'
run 0 plan "$model" --points 30000 --train
prints 'kernels: cpu'
gets x.conv 'forward panels dW panels'
gets x.conv_2 'forward depthwise dF depthwise dW depthwise'
run 0 plan "$model" --points 30000 --train --algo im2col
gets x.conv 'forward im2col dW im2col'
gets out.linear 'forward panels dF panels dW panels'

# No tiles lie in memory where no kernel reads them.
run 0 plan "$model" --points 30000 --train --device cuda --architecture 86 --algo implicit-gemm --json
valid_json "$out"
check "tiles for no kernel" test "$(number tiles_of_a_batch "$out")" = 0
prints '"architecture":86'
prints '{"layer":"n.x.conv","forward":"warps","dW":"warps"}'
run 2 plan "$model" --points 30000 --device cuda --architecture 70
says '--architecture is 80, 86, 89, 90, 100 or 120, not '"'70'"
run 2 plan "$model" --points 30000 --architecture 80
says '--architecture is for --device cuda'
finish
