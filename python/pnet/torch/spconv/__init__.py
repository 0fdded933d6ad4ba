"""The interface of spconv 2.3 on libpnet: `import pnet.torch.spconv as spconv` in the place of `import spconv.pytorch as spconv`.

docs/pytorch.md lists what of it is there. What is not there says so when it is asked for.
"""

from pnet.torch.spconv import conv, core, functional, modules, ops, pool, tables
from pnet.torch.spconv.conv import (
    SparseConv1d, SparseConv2d, SparseConv3d, SparseConv4d, SparseConvolution, SparseConvTranspose1d, SparseConvTranspose2d,
    SparseConvTranspose3d, SparseConvTranspose4d, SparseInverseConv1d, SparseInverseConv2d, SparseInverseConv3d,
    SparseInverseConv4d, SubMConv1d, SubMConv2d, SubMConv3d, SubMConv4d,
    weights_by_tap,
)
from pnet.torch.spconv.core import ConvAlgo, SparseConvTensor
from pnet.torch.spconv.modules import (
    Identity, RemoveGrid, SparseBatchNorm, SparseIdentity, SparseModule, SparseReLU, SparseSequential, SparseSyncBatchNorm,
    ToDense, assign_name_for_sparse_modules,
)
from pnet.torch.spconv.pool import (
    SparseAvgPool1d, SparseAvgPool2d, SparseAvgPool3d, SparseGlobalAvgPool, SparseGlobalMaxPool, SparseMaxPool1d,
    SparseMaxPool2d, SparseMaxPool3d, SparseMaxPool4d,
)
from pnet.torch.spconv.tables import AddTable, AddTableMisaligned, ConcatTable, JoinTable

__all__ = [
    "AddTable", "AddTableMisaligned", "ConcatTable", "ConvAlgo", "Identity", "JoinTable", "RemoveGrid", "SparseAvgPool1d",
    "SparseAvgPool2d", "SparseAvgPool3d", "SparseBatchNorm", "SparseConv1d", "SparseConv2d", "SparseConv3d", "SparseConv4d",
    "SparseConvTensor", "SparseConvTranspose1d", "SparseConvTranspose2d", "SparseConvTranspose3d", "SparseConvTranspose4d",
    "SparseConvolution", "SparseGlobalAvgPool", "SparseGlobalMaxPool", "SparseIdentity", "SparseInverseConv1d",
    "SparseInverseConv2d", "SparseInverseConv3d", "SparseInverseConv4d", "SparseMaxPool1d", "SparseMaxPool2d",
    "SparseMaxPool3d", "SparseMaxPool4d", "SparseModule", "SparseReLU", "SparseSequential", "SparseSyncBatchNorm", "SubMConv1d",
    "SubMConv2d", "SubMConv3d", "SubMConv4d", "ToDense", "assign_name_for_sparse_modules", "conv", "core", "functional",
    "modules", "ops", "pool", "tables", "weights_by_tap",
]

_ABSENT = {
    "utils": "its voxel generators and point operators are not there: torch.unique(torch.floor(xyz / cell).int(), dim=0) has "
             "the voxels of points, pnet.torch.Points grids, pools and interpolation of points",
    "hash": "its hash tables are not there",
    "quantization": "quantized layers are not there",
    "cppcore": "it is the inside of spconv",
    "spatial": "its deformable operators are not there",
}
__getattr__ = core.absent(__name__, _ABSENT)


def refuse_import(module: str) -> None:
    """What the modules do that are not there."""
    raise ImportError(f"{module}: pnet has no such part of spconv: {_ABSENT[module.rpartition('.')[2]]}", name=module)
