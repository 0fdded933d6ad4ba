"""Each layer of pnet.torch.spconv against a dense convolution of PyTorch in float64: results, sites and gradients."""

import itertools
import unittest

import torch

import dense
import pnet.torch.spconv as spconv
import support

SHAPES = {1: [23], 2: [9, 11], 3: [6, 7, 5]}


class Layers(support.Case):
    def check(self, name, axes, x=None, *arguments, **named):
        """A layer with 5 channels in and 6 out, unless it is a pool."""
        x = x or support.tensor(SHAPES[axes], 3, 0.35, 6, empty=[1])
        given = () if "Pool" in name else (6, 4)
        torch.manual_seed(3)
        layer = getattr(spconv, f"{name}{axes}d")(*given, *arguments, **named)
        return self.agrees(layer, getattr(dense, f"{name}{axes}d")(*given, *arguments, **named), x)

    def test_submanifold(self):
        for axes in (1, 2, 3):
            for kernel, dilation in itertools.product((1, 3, 5), (1, 2)):
                with self.subTest(axes=axes, kernel=kernel, dilation=dilation):
                    self.check("SubMConv", axes, None, kernel, dilation=dilation)
        self.check("SubMConv", 3, None, (1, 3, 5), padding=7, stride=1)  # its padding is ignored, as in spconv
        self.check("SubMConv", 3, None, (5, 1, 1), dilation=(2, 1, 1), bias=False)

    def test_strided(self):
        for axes in (1, 2, 3):
            for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1), (4, 3, 2), (1, 2, 0), (5, 2, 0)):
                with self.subTest(axes=axes, kernel=kernel, stride=stride, padding=padding):
                    self.check("SparseConv", axes, None, kernel, stride, padding)
        self.check("SparseConv", 3, None, (3, 1, 2), (2, 1, 1), (0, 0, 1), (1, 1, 2))
        self.check("SparseConv", 3, None, 3, 1, 2, 2, bias=False)

    def test_transposed(self):
        for axes in (1, 2, 3):
            for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1), (4, 3, 1)):
                with self.subTest(axes=axes, kernel=kernel, stride=stride, padding=padding):
                    self.check("SparseConvTranspose", axes, None, kernel, stride, padding)
        self.check("SparseConvTranspose", 3, None, (3, 1, 2), (2, 1, 1), (1, 0, 0), (2, 1, 1), bias=False)

    def test_inverse(self):
        for axes, (first, *numbers) in itertools.product((1, 2, 3), (
                ("SparseConv", 3, 2, 1), ("SparseConv", 2, 2, 0), ("SparseMaxPool", 2, 2, 0), ("SparseConv", 3, 3, 0, 1))):
            with self.subTest(axes=axes, first=first, numbers=numbers):
                def net(sp):
                    torch.manual_seed(4)
                    given = () if "Pool" in first else (6, 5)
                    channels = 6 if "Pool" in first else 5
                    return sp.SparseSequential(
                        getattr(sp, f"{first}{axes}d")(*given, *numbers, indice_key="down"),
                        getattr(sp, f"SubMConv{axes}d")(channels, 5, 3, indice_key="same"), torch.nn.ReLU(),
                        getattr(sp, f"SparseInverseConv{axes}d")(5, 4, numbers[0], indice_key="down"))
                x = support.tensor(SHAPES[axes], 2, 0.35, 6)
                y = self.agrees(net(spconv), net(dense), x)
                self.assertIs(y.indices, x.indices)

    def test_groups(self):
        for name, numbers in (("SubMConv", (3,)), ("SparseConv", (3, 2, 1)), ("SparseConvTranspose", (2, 2))):
            with self.subTest(name=name):
                self.check(name, 3, None, *numbers, groups=2)
        x = support.tensor([4, 5, 3], 1, 0.5, 6)
        torch.manual_seed(1)
        layer = spconv.SubMConv3d(6, 4, 1, groups=2)  # a product in groups is no matter of sets
        wanted = torch.nn.functional.conv1d(x.features.T[None], layer.weight.reshape(4, 3, 1), layer.bias, groups=2)[0].T
        self.near(layer(x).features.detach(), wanted.detach().double())

    def test_pools(self):
        for axes in (1, 2, 3):
            for numbers in ((2,), (3, 2, 1), (3, 1, 0), (2, 3)):
                with self.subTest(axes=axes, numbers=numbers):
                    self.check("SparseMaxPool", axes, None, *numbers)
                    self.check("SparseAvgPool", axes, None, *numbers)
        below = support.tensor([4, 4, 4], 1, 0.4, 3)
        below = below.replace_feature(below.features.abs().neg() - 1)
        self.assertLess(spconv.SparseMaxPool3d(2)(below).features.max().item(), -1)  # not from 0 on

    def test_ties(self):
        """Of equal features the first tap's row gets the gradient."""
        indices = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=torch.int32)
        features = torch.tensor([[2.0, 1], [2, 3], [1, 3]], requires_grad=True)
        y = spconv.SparseMaxPool3d(2)(spconv.SparseConvTensor(features, indices, [2, 2, 2], 1)).features
        self.same(y.detach(), torch.tensor([[2.0, 3]]))
        y.backward(torch.tensor([[5.0, 7]]))
        self.same(features.grad, torch.tensor([[0.0, 0], [5, 0], [0, 7]]))

    def test_global_pools(self):
        x = support.tensor([5, 4, 6], 3, 0.3, 7, empty=[1])
        parts = [x.features[x.indices[:, 0] == sample] for sample in range(3)]
        top, mean = spconv.SparseGlobalMaxPool()(x), spconv.SparseGlobalAvgPool()(x)
        for sample in (0, 2):
            self.same(top[sample], parts[sample].amax(0))
            self.near(mean[sample], parts[sample].double().mean(0))
        self.assertEqual((top[1].abs().sum().item(), mean[1].abs().sum().item()), (0, 0))
        features = x.features.requires_grad_()
        (spconv.SparseGlobalMaxPool()(x) + spconv.SparseGlobalAvgPool()(x)).sum().backward()
        counts = torch.bincount(x.indices[:, 0], minlength=3)
        wanted = (1 / counts.double())[x.indices[:, 0].long()][:, None].repeat(1, 7)
        for sample in (0, 2):
            rows = (x.indices[:, 0] == sample).nonzero()[:, 0]
            wanted[rows[features[rows].argmax(0)], torch.arange(7)] += 1
        self.near(features.grad, wanted)

    def test_one_site_and_none(self):
        one = torch.tensor([[1, 2, 0, 3]], dtype=torch.int32)
        for indices in one, one[:0]:
            for name, numbers in (("SubMConv", (3,)), ("SparseConv", (3, 2, 1)), ("SparseConvTranspose", (2, 2)),
                                  ("SparseMaxPool", (2,)), ("SparseAvgPool", (2,))):
                with self.subTest(name=name, rows=len(indices)):
                    self.check(name, 3, support.tensor([4, 3, 5], 2, 0, 6, indices=indices), *numbers)

    def test_rows_in_any_order(self):
        """Shuffled rows give the shuffled results, bit for bit."""
        x = support.tensor([7, 6, 8], 2, 0.4, 16)
        order = torch.randperm(len(x.indices), generator=support.draw(5))
        moved = spconv.SparseConvTensor(x.features[order], x.indices[order], x.spatial_shape, 2)
        gradient = torch.randn(len(order), 24, generator=support.draw(6))
        torch.manual_seed(1)
        layer = spconv.SubMConv3d(16, 24, 3)
        found = []
        for given, at in ((x, gradient), (moved, gradient[order])):
            features = given.features.clone().requires_grad_()
            y = layer(given.replace_feature(features)).features
            y.backward(at)
            found.append((y.detach(), features.grad))
        for one, two in zip(*found):
            self.same(one[order], two)
        for layer in (spconv.SparseConv3d(16, 8, 3, 2, 1), spconv.SparseConvTranspose3d(16, 8, 2, 2),
                      spconv.SparseMaxPool3d(2), spconv.SparseAvgPool3d(3, 2)):
            y, z = layer(x), layer(moved)
            self.same(y.indices, z.indices)
            self.same(y.features.detach(), z.features.detach())
        back = spconv.SparseSequential(spconv.SparseConv3d(16, 8, 2, 2, indice_key="k"), spconv.SparseInverseConv3d(8, 4, 2, "k"))
        self.same(back(x).features.detach()[order], back(moved).features.detach())

    def test_initial_weights(self):
        torch.manual_seed(0)
        layer = spconv.SubMConv3d(64, 128, 3)
        bound = (64 * 27) ** -0.5
        for given in layer.weight, layer.bias:
            self.assertLessEqual(given.abs().max().item(), bound)
            self.assertGreater(given.abs().max().item(), 0.9 * bound)
        self.assertLess(abs(layer.weight.std().item() / (bound / 3 ** 0.5) - 1), 0.02)
        self.assertEqual(list(layer.weight.shape), [128, 3, 3, 3, 64])


if __name__ == "__main__":
    unittest.main()
