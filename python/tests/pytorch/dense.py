"""What the layers of spconv mean, on dense grids by PyTorch's own convolutions: the reference of the tests.

The same names and state_dicts as pnet.torch.spconv, so that a network is written once and made of either. Rows of features are
put into a grid, convolved as a whole, and taken out at the output sites; nothing here knows sets. For float64.
"""

import math

import torch
from torch import nn
from torch.nn import functional

SparseModule = nn.Module


class SparseConvTensor:
    def __init__(self, features, indices, spatial_shape, batch_size, indice_dict=None):
        self.features, self.indices, self.spatial_shape, self.batch_size = features, indices, list(spatial_shape), batch_size
        self.indice_dict = {} if indice_dict is None else indice_dict

    def replace_feature(self, features):
        return SparseConvTensor(features, self.indices, self.spatial_shape, self.batch_size, self.indice_dict)

    def grid(self, features, empty=0.0):
        """[batch, channels, ..] with these features at the sites."""
        at = self.indices.long().unbind(1)
        whole = torch.full((self.batch_size, *self.spatial_shape, features.shape[1]), empty, dtype=features.dtype)
        return whole.index_put(at, features).movedim(-1, 1)

    def dense(self):
        return self.grid(self.features)


def take(grid, indices):
    """Rows of a grid [batch, channels, ..] at sites."""
    return grid.movedim(1, -1)[indices.long().unbind(1)]


class Layer(nn.Module):
    def __init__(self, ndim, kernel, stride, padding, dilation, key, how):
        super().__init__()
        each = [list(v) if isinstance(v, (list, tuple)) else [v] * ndim for v in (kernel, stride, padding, dilation)]
        self.ndim, self.key, self.how = ndim, key, how
        self.kernel, self.stride, self.padding, self.dilation = each
        if how == "subm":
            self.stride = [1] * ndim
            self.padding = [d * (k - 1) // 2 for k, d in zip(self.kernel, self.dilation)]

    def options(self):
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    def run(self, grid, weight, bias=None, groups=1, transposed=False, **more):
        name = f"conv{'_transpose' if transposed else ''}{self.ndim}d"
        return getattr(functional, name)(grid, weight, bias, groups=groups, **self.options(), **more)

    def sites(self, x):
        """Which outputs meet an input: a convolution of ones, and the shape."""
        here = x.grid(torch.ones(x.indices.shape[0], 1, dtype=torch.float64))
        met = self.run(here, torch.ones(1, 1, *self.kernel, dtype=torch.float64), transposed=self.how == "transposed")
        return (met[:, 0] > 0.5).nonzero().int(), list(met.shape[2:])


class Conv(Layer):
    def __init__(self, ndim, cin, cout, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, indice_key=None,
                 how="strided"):
        super().__init__(ndim, kernel_size, stride, padding, dilation, indice_key, how)
        self.groups, self.shape = groups, (cout, *self.kernel, cin // groups)
        self.weight = nn.Parameter(torch.empty(self.shape))
        self.bias = nn.Parameter(torch.empty(cout)) if bias else None

    def matrices(self):
        """Weights as conv3d takes them: [out, in / groups, ..]. spconv's own order for a kernel of 1."""
        if math.prod(self.kernel) == 1 and self.how != "transposed" and math.prod(self.stride) == 1 and self.groups == 1:
            return self.weight.view(self.shape[-1], self.shape[0]).T.reshape(*self.shape[:1], self.shape[-1], *self.kernel)
        return self.weight.movedim(-1, 1)

    def forward(self, x):
        weight, indices, shape, known = self.matrices(), x.indices, x.spatial_shape, x.indice_dict
        if self.how == "inverse":
            before, layer = known[self.key]
            indices, shape = before.indices, before.spatial_shape
            grown = [(d - 1) * s - 2 * p + a * (k - 1) + 1 for d, s, p, a, k in zip(
                x.spatial_shape, layer.stride, layer.padding, layer.dilation, layer.kernel)]
            y = layer.run(x.grid(x.features), weight.transpose(0, 1), self.bias, transposed=True,
                          output_padding=[d - g for d, g in zip(shape, grown)])
        else:
            if self.how != "subm":
                indices, shape = self.sites(x)
            if self.key is not None:
                known = {**known, self.key: (x, self)}
            if self.how == "transposed":  # [in, out / groups, ..]
                weight = torch.cat([part.transpose(0, 1) for part in weight.chunk(self.groups)])
            y = self.run(x.grid(x.features), weight, self.bias, self.groups, self.how == "transposed")
        return SparseConvTensor(take(y, indices), indices, shape, x.batch_size, known)


class MaxPool(Layer):
    def forward(self, x):
        indices, shape = self.sites(x)
        y = getattr(functional, f"max_pool{self.ndim}d")(
            functional.pad(x.grid(x.features, -math.inf), [p for p in reversed(self.padding) for _ in range(2)], value=-math.inf),
            self.kernel, self.stride, 0, self.dilation)
        known = x.indice_dict if self.key is None else {**x.indice_dict, self.key: (x, self)}
        return SparseConvTensor(take(y, indices), indices, shape, x.batch_size, known)


class AvgPool(Layer):
    def forward(self, x):
        indices, shape = self.sites(x)
        channels = x.features.shape[1]
        ones = torch.ones(channels, 1, *self.kernel, dtype=x.features.dtype)
        total = self.run(x.grid(x.features), ones, groups=channels)
        count = self.run(x.grid(torch.ones_like(x.features)), ones, groups=channels)
        return SparseConvTensor(take(total, indices) / take(count, indices), indices, shape, x.batch_size, x.indice_dict)


def of_axes(ndim):
    """The layers of so many axes by their names in spconv."""
    def inverse(cin, cout, kernel_size, indice_key, bias=True):
        return Conv(ndim, cin, cout, kernel_size, bias=bias, indice_key=indice_key, how="inverse")

    def pool(kind):
        return lambda kernel, stride=None, padding=0, dilation=1, indice_key=None: kind(
            ndim, kernel, kernel if stride is None else stride, padding, dilation, indice_key, "strided")

    def conv(how):
        return lambda *given, **named: Conv(ndim, *given, how=how, **named)

    return {f"SubMConv{ndim}d": conv("subm"), f"SparseConv{ndim}d": conv("strided"),
            f"SparseConvTranspose{ndim}d": conv("transposed"), f"SparseInverseConv{ndim}d": inverse,
            f"SparseMaxPool{ndim}d": pool(MaxPool), f"SparseAvgPool{ndim}d": pool(AvgPool)}


for axes in (1, 2, 3):
    globals().update(of_axes(axes))

class SparseSequential(nn.Sequential):
    """Modules of PyTorch get the features."""

    def forward(self, x):
        for module in self:
            plain = type(module).__module__.startswith("torch.") and isinstance(x, SparseConvTensor)
            x = x.replace_feature(module(x.features)) if plain else module(x)
        return x
