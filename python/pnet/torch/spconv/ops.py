"""What of spconv's ops is there: extents."""

from pnet.torch import _sets
from pnet.torch.spconv.core import ConvAlgo, absent, expand_nd

__all__ = ["ConvAlgo", "get_conv_output_size", "get_deconv_output_size"]


def _numbers(input_size, kernel_size, stride, padding, dilation, output_padding):
    given = {"spatial_shape": input_size, "kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation,
             "output_padding": output_padding}
    return [expand_nd(len(input_size), value, name) for name, value in given.items()]


def get_conv_output_size(input_size, kernel_size, stride, padding, dilation):
    """The spatial shape of what a SparseConv gives."""
    return _sets.extent_after("strided", *_numbers(input_size, kernel_size, stride, padding, dilation, 0))


def get_deconv_output_size(input_size, kernel_size, stride, padding, dilation, output_padding):
    """The spatial shape of what a SparseConvTranspose gives."""
    return _sets.extent_after("transposed", *_numbers(input_size, kernel_size, stride, padding, dilation, output_padding))


_PAIRS = "it works on index pairs; pnet.torch.voxel_set makes sets, and their conv and pool use them"
__getattr__ = absent(__name__, {name: _PAIRS for name in (
    "get_indice_pairs", "get_indice_pairs_implicit_gemm", "indice_conv", "indice_conv_backward", "implicit_gemm",
    "implicit_gemm_backward", "indice_maxpool", "indice_maxpool_backward", "indice_maxpool_implicit_gemm",
    "indice_avgpool_implicit_gemm", "global_pool_rearrange")})
