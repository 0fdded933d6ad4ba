"""Convolution and pools over sets of voxels and points, in PyTorch, on the CPU and on NVIDIA GPUs, and .pnet models as modules.

pnet.torch.spconv has the interface of spconv, sparse_submanifold_conv3d that of FlexGEMM. docs/pytorch.md shows them at work.
"""

import torch as _torch

if tuple(int(number) for number in _torch.__version__.split(".")[:2]) < (2, 4):
    raise ImportError(f"pnet.torch needs PyTorch 2.4 or later, and this is {_torch.__version__}")

from pnet.torch import _point_ops  # noqa: F401
from pnet.torch._flexgemm import NeighborCache, sparse_submanifold_conv3d
from pnet.torch._layers import PointConv, VoxelConv
from pnet.torch._network import Network
from pnet.torch._points import Buckets, PointMap, Points, PointSet, attend, interpolate, point_loss, pool, upsample
from pnet.torch._sets import VoxelSet, voxel_set

__all__ = [
    "Buckets", "NeighborCache", "Network", "PointConv", "PointMap", "PointSet", "Points", "VoxelConv", "VoxelSet", "attend",
    "interpolate", "point_loss", "pool", "sparse_submanifold_conv3d", "upsample", "voxel_set",
]
