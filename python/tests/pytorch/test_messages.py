"""What pnet.torch says of arguments that it does not take, and of calls that PyTorch cannot record or transform: what was given,
what is expected, and what to do. And what works instead of failing inside of PyTorch."""

import copy
import importlib
import io
import unittest
import warnings

import numpy
import torch

import pnet
import pnet.torch as points_of
import pnet.torch.spconv as spconv
import support

SHAPE = [6, 6, 6]


class Net(torch.nn.Module):
    """Layers of voxels as a function of tensors."""

    def __init__(self, at):
        super().__init__()
        self.conv, self.at = spconv.SubMConv3d(4, 8, 3), at

    def forward(self, features):
        return self.conv(spconv.SparseConvTensor(features, self.at, SHAPE, 1)).features


class Messages(support.Case):
    def setUp(self):
        torch.manual_seed(3)
        self.at = support.sites(SHAPE, 1, 0.2)
        self.features = torch.rand(len(self.at), 4)
        self.net = Net(self.at)
        self.set = points_of.voxel_set(self.at, SHAPE, 3)
        self.points = points_of.Points(torch.rand(60, 3))
        self.level = self.points.grid(0.2)

    def of_points(self):
        """Functions of features of points."""
        of, level = self.points, self.level
        return {"pool": (lambda x: points_of.pool(x, of, level), torch.rand(60, 4)),
                "upsample": (lambda x: points_of.upsample(x, level, of), torch.rand(level.rows, 4)),
                "attend": (lambda x: points_of.attend(x, of), torch.rand(60, 24)),
                "point_loss": (lambda x: points_of.point_loss("chamfer", x, of.positions), torch.rand(9, 3))}

    def every(self):
        return {**self.of_points(), "layer": (self.net, self.features), "set.pool": (self.set.pool, self.features),
                "set.conv": (lambda x: self.set.conv(x, torch.ones(27, 4, 8)), self.features)}

    def test_trace(self):
        """A recording would have the voxels of the first call as constants."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, of everything that it records
            for name, (function, x) in self.every().items():
                with self.subTest(name):
                    self.refused("torch.jit.trace", torch.jit.trace, function, (x,), error=RuntimeError)
            self.refused("torch.export.export", torch.onnx.export, self.net, (self.features,), io.BytesIO(), error=RuntimeError,
                         dynamo=False)
        self.net(self.features)  # works afterwards

    def test_transforms(self):
        for name, (function, x) in self.every().items():
            with self.subTest(name):
                self.refused("torch.autograd.grad", torch.func.grad(lambda x: function(x).sum()), x, error=RuntimeError)
                self.refused("torch.autograd.grad", torch.func.jacrev(function), x, error=RuntimeError)
        weights = dict(self.net.named_parameters())
        self.refused("torch.autograd.grad", torch.func.grad(
            lambda w: torch.func.functional_call(self.net, w, (self.features,)).sum()), weights, error=RuntimeError)
        several = torch.rand(3, *self.features.shape)
        self.same(torch.func.vmap(self.net)(several), torch.stack([self.net(one) for one in several]))

    def test_vectorised_jacobians(self):
        """They are those that are found row by row."""
        jacobian = torch.autograd.functional.jacobian
        for name, (function, x) in self.every().items():
            with self.subTest(name):
                self.near(jacobian(function, x, vectorize=True), jacobian(function, x).double())
        result = self.net(self.features.requires_grad_())
        given = (self.features, *self.net.parameters())
        rows = torch.rand(5, *result.shape)
        found = torch.autograd.grad(result, given, rows, retain_graph=True, is_grads_batched=True)
        wanted = zip(*(torch.autograd.grad(result, given, row, retain_graph=True) for row in rows))
        for got, each in zip(found, wanted):
            self.near(got, torch.stack(each).double())

    def test_arrays_of_numpy(self):
        x, expected = self.features.numpy(), "of class numpy.ndarray, expected torch.Tensor: torch.from_numpy"
        sparse = spconv.SparseConvTensor(self.features, self.at, SHAPE, 1)
        for name, call, *arguments in (
            ("features", spconv.SparseConvTensor, x, self.at, SHAPE, 1),
            ("indices", spconv.SparseConvTensor, self.features, self.at.numpy(), SHAPE, 1),
            ("feature", sparse.replace_feature, x),
            ("features", self.set.conv, x, torch.ones(27, 4, 8)),
            ("weight", self.set.conv, self.features, numpy.ones((27, 4, 8), numpy.float32)),
            ("bias", self.set.conv, self.features, torch.ones(27, 4, 8), numpy.ones(8, numpy.float32)),
            ("features", self.set.pool, x),
            ("features", points_of.pool, numpy.ones((60, 4), numpy.float32), self.points, self.level),
            ("qkv", points_of.attend, numpy.ones((60, 24), numpy.float32), self.points),
            ("x", points_of.point_loss, "chamfer", x, self.points.positions),
        ):
            self.usage(f"{name} is {expected}", call, *arguments)
        for name, call, *arguments in (("features", self.set.pool, None), ("features", self.set.conv, None, torch.ones(27, 4, 8)),
                                       ("weight", self.set.conv, self.features, None),
                                       ("y", points_of.point_loss, "chamfer", self.points.positions, None)):
            self.usage(f"{name} is None, expected torch.Tensor", call, *arguments)

    def test_classes(self):
        usage, x, of = self.usage, torch.rand(60, 4), "expected pnet.torch._points.Points"
        for part, call, *arguments in (
            (f"level is None, {of}", points_of.pool, x, self.points, None),
            (f"points is None, {of}", points_of.pool, x, None, self.level),
            (f"level is 'a', {of}", points_of.upsample, x, "a", self.points),
            (f"source is None, {of}", points_of.interpolate, x, None, self.points),
            (f"points is of class pnet.torch._sets.VoxelSet, {of}", points_of.attend, x, self.set),
            (f"coarse is of class pnet.torch._sets.VoxelSet, {of}", self.points.parents, self.set),
            (f"source is 'a', {of}", self.level.set, "a"),
            ("cell is of class list, expected a number", self.points.grid, [0.1]),
            ("squares is 'a', expected a bool", lambda: points_of.point_loss(
                "chamfer", self.points.positions, self.points.positions, squares="a")),
        ):
            usage(part, call, *arguments)

    def test_batch_size(self):
        for given, what in ((1.0, "1.0"), ("1", "'1'"), (None, "None"), (torch.tensor(1.0), "of class torch.Tensor")):
            self.usage(f"batch_size is {what}, expected an integer", spconv.SparseConvTensor, self.features, self.at, SHAPE,
                       given)
        for given in (1, numpy.int32(1), torch.tensor(1)):
            self.assertEqual(spconv.SparseConvTensor(self.features, self.at, SHAPE, given).dense().shape, (1, 4, *SHAPE))

    def test_weights_by_tap_after_a_backward(self):
        """Gradients that are there get the order of the weights: fused optimizers read both by their places in memory."""
        other = copy.deepcopy(self.net)
        for net in self.net, other:
            net(self.features).square().sum().backward()
        self.assertIs(spconv.weights_by_tap(self.net), self.net)
        weight, kept = self.net.conv.weight, other.conv.weight
        self.assertEqual(weight.grad.stride(), weight.stride())
        self.assertNotEqual(weight.stride(), kept.stride())
        for net in self.net, other:
            torch.optim.SGD(net.parameters(), lr=0.1, fused=True).step()
        self.same(weight.contiguous(), kept.detach())
        self.usage("module is None, expected torch.nn", spconv.weights_by_tap, None)

    def test_network(self):
        text = ("pnet 1\ninput cloud {\n  xyz : position\n  rgb : feature[3]\n  label : class[4]\n}\n"
                "net n(p: cloud) { return p.rgb -> linear(4) }\ny = n(cloud)\nloss ce = cross_entropy(y, cloud.label)\n")
        network = points_of.Network(text)
        self.usage("batch is None, expected a dict", network, None)
        batch = {"cloud.xyz": torch.rand(9, 3), "cloud.rgb": torch.rand(9, 3), "cloud.label": torch.zeros(9, dtype=torch.int32)}
        self.refused("torch.autograd.grad", torch.func.grad(lambda x: network({**batch, "cloud.rgb": x})), batch["cloud.rgb"],
                     error=RuntimeError)
        self.refused("torch.jit.trace", torch.jit.trace, lambda x: network({**batch, "cloud.rgb": x}), (batch["cloud.rgb"],),
                     error=RuntimeError)
        self.usage("text_or_path is None, expected str or a path", points_of.Network, None)


class Imports(support.Case):
    def test_modules_that_are_not_there(self):
        for name, part in (("utils", "torch.unique(torch.floor(xyz / cell).int(), dim=0)"), ("utils.nms", "voxel generators"),
                           ("hash", "hash tables"), ("quantization", "quantized layers"), ("cppcore", "inside of spconv"),
                           ("spatial", "deformable")):
            for package in ("pnet.torch.spconv", "pnet.torch.spconv.pytorch"):
                whole = f"{package}.{name}"
                with self.subTest(whole):
                    self.refused(part, importlib.import_module, whole, error=ImportError)
        with self.assertRaisesRegex(ImportError, "no such part of spconv: its voxel generators"):
            from pnet.torch.spconv import utils  # noqa: F401
        with self.assertRaisesRegex(ImportError, "no such part of spconv: its voxel generators"):
            from pnet.torch.spconv.utils import Point2VoxelCPU3d  # noqa: F401
        self.assertIs(importlib.import_module("pnet.torch.spconv.pytorch.modules"), spconv.modules)
        self.refused("no such part", getattr, spconv, "utils", error=AttributeError)


if __name__ == "__main__":
    unittest.main()
