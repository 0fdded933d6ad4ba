"""Functions of sparse tensors."""

from __future__ import annotations

import torch

from pnet import _library as library
from pnet.torch.spconv.core import SparseConvTensor, absent

__all__ = ["sparse_add"]


def sparse_add(*tens: SparseConvTensor) -> SparseConvTensor:
    """The sum of tensors with the same shapes and any voxels: the voxels of all of them, ordered by sample, then by index.

    Where all of them are voxels of one of the tensors, the result has its indices, in its order, and its indice_dict.
    """
    if not tens:
        raise library.refuse("sparse_add: there are no tensors to add")
    first = tens[0]
    for other in tens[1:]:
        if (other.spatial_shape, other.batch_size, other.features.shape[1]) != (
                first.spatial_shape, first.batch_size, first.features.shape[1]):
            raise ValueError("sparse_add: the tensors have other spatial shapes, samples or channels")
    for x in tens:
        x._check_voxels()
    indices, row = torch.unique(torch.cat([x.indices for x in tens]), dim=0, return_inverse=True)
    indice_dict, begin = {}, 0
    for x in tens:
        own = row[begin:begin + x.indices.shape[0]]
        begin += x.indices.shape[0]
        if own.shape[0] == indices.shape[0] and own.unique().shape[0] == own.shape[0]:
            place = torch.empty_like(own)
            place[own] = torch.arange(own.shape[0], device=own.device)
            indices, row, indice_dict = x.indices, place[row], x.indice_dict
            break
    features = torch.cat([x.features for x in tens])
    total = features.new_zeros((indices.shape[0], features.shape[1])).index_add(0, row, features)
    made = SparseConvTensor(total, indices, first.spatial_shape, first.batch_size, indice_dict=indice_dict)
    return made._are_inside()


_PAIRS = "it works on index pairs; pnet.torch.voxel_set makes sets, and their conv and pool use them"
__getattr__ = absent(__name__, {name: _PAIRS for name in (
    "indice_conv", "indice_inverse_conv", "indice_subm_conv", "implicit_gemm", "indice_maxpool", "indice_maxpool_implicit_gemm",
    "indice_avgpool_implicit_gemm", "sparse_add_hash_based")})
