# What a run takes on a GPU is planned alike by every build: peaks in bytes, recorded from one with CUDA, for GPUs with
# Hopper's matrix unit, which is what a machine without a GPU plans for.
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep GPU | grep -qvE 'H100|H200'; then
    echo 'skipped: this GPU has other kernels'
    exit 77
fi
. tests/cli/common.sh
while read -r peak options; do
    # shellcheck disable=SC2086
    run 0 plan $options --device cuda --json
    check "peak of $options: $(number peak "$out") instead of $peak" test "$(number peak "$out")" = "$peak"
done <<END
18670784 models/rooms.pnet --points 50000
102952896 models/rooms.pnet --points 50000 --train
2204505408 models/rooms.pnet --points 3000000 --train --precision bf16
3382445568 models/rooms.pnet --points 3000000 --train --precision tf32 --mode voxel
305697600 models/rooms.pnet --points 200000 --train --algo mvmr-k
340759040 models/rooms.pnet --points 200000 --train --algo im2col
327511488 models/rooms.pnet --points 200000 --train --algo gather-gemm-scatter
268021504 models/rooms.pnet --points 200000 --train --algo implicit-gemm
78901824 models/shapes.pnet --points 2048 --train --precision fp16
4687632320 models/resnet18.pnet --points 20000000 --train --precision bf16
2348778816 models/resnet18.pnet --points 20000000 --degrade centre
4372169216 models/minkunet18a.pnet --points 1000000 --train
2492558848 models/minkunet18a.pnet --points 1000000 --train --precision bf16
2492558848 models/minkunet18a.pnet --points 1000000 --train --precision bf16 --degrade neighbour
548490560 models/fcgf_3dmatch.pnet --points 100000 --train --precision bf16
744448256 models/fcgf_kitti.pnet --points 100000 --train
468691456 models/fcgf.pnet --points 1000000 --precision fp16
END
finish
