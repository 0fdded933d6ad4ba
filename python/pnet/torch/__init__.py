"""Convolution and pools over sets of voxels, in PyTorch, on the CPU and on NVIDIA GPUs, and .pnet models as modules.

pnet.torch.spconv has the interface of spconv, sparse_submanifold_conv3d that of FlexGEMM. docs/pytorch.md shows them at work.
"""

import torch as _torch

if tuple(int(number) for number in _torch.__version__.split(".")[:2]) < (2, 4):
    raise ImportError(f"pnet.torch needs PyTorch 2.4 or later, and this is {_torch.__version__}")

from pnet.torch._flexgemm import NeighborCache, sparse_submanifold_conv3d
from pnet.torch._network import Network
from pnet.torch._sets import VoxelSet, voxel_set

__all__ = ["NeighborCache", "Network", "VoxelSet", "sparse_submanifold_conv3d", "voxel_set"]
