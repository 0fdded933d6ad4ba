"""What the tests of pnet.torch share: sites, comparison with dense.py."""

import unittest

import torch

import dense
import pnet
import pnet.torch.spconv as spconv


def draw(seed):
    return torch.Generator().manual_seed(seed)


def sites(shape, batch, share, seed=1, empty=()):
    """Some of all voxels in any order, int32 [rows, 1 + axes]; none of the samples `empty`."""
    random = draw(seed)
    every = torch.cartesian_prod(*(torch.arange(n) for n in (batch, *shape)))
    for sample in empty:
        every = every[every[:, 0] != sample]
    chosen = every[torch.rand(len(every), generator=random) < share]
    return chosen[torch.randperm(len(chosen), generator=random)].int()


def tensor(shape, batch, share, channels, seed=1, empty=(), indices=None):
    """A sparse tensor with random features."""
    at = sites(shape, batch, share, seed, empty) if indices is None else indices
    return spconv.SparseConvTensor(torch.randn(len(at), channels, generator=draw(seed + 1)), at, shape, batch)


def densely(x):
    """The tensor of the reference."""
    return dense.SparseConvTensor(x.features.detach().double(), x.indices, x.spatial_shape, x.batch_size)


class Case(unittest.TestCase):
    def same(self, x, y):
        """The same bits."""
        self.assertEqual((x.dtype, x.shape), (y.dtype, y.shape))
        self.assertTrue(torch.equal(x, y), f"{(x != y).sum()} of {x.numel()} differ")

    def near(self, got, wanted, limit=1e-6, what="", least=1e-3):
        """Equal to fp32 rounding, by norm; differences are those of numbers of at least the norm `least`."""
        self.assertEqual(got.shape, wanted.shape, what)
        far, whole = (got.double() - wanted).norm().item(), wanted.norm().item()
        self.assertLessEqual(far, limit * max(whole, least), f"{what}: {far} of {whole}")

    def refused(self, part, call, *arguments, error=ValueError, **options):
        """The call raises this exception, whose message has this part."""
        with self.assertRaises(error) as caught:
            call(*arguments, **options)
        self.assertIn(part, str(caught.exception))

    def usage(self, part, call, *arguments, **options):
        self.refused(part, call, *arguments, error=pnet.Error, **options)

    def switch_alike(self, net, other):
        """The ReLUs of `other` pass what those of `net` passed: numbers that differ by rounding may lie on both sides of 0, from
        where gradients differ by more."""
        relus = [[m for m in one.modules() if isinstance(m, torch.nn.ReLU)] for one in (net, other)]
        for relu, reference in zip(*relus):
            passed = []
            relu.register_forward_hook(lambda _, given, result, passed=passed: passed.append(result.detach() > 0))

            def switch(_, given, result, passed=passed):
                mask = passed.pop(0)
                far = given[0].detach()[mask != (given[0] > 0)]
                self.assertLess(far.abs().max().item() if len(far) else 0, 1e-4)
                return given[0] * mask

            reference.register_forward_hook(switch)

    def agrees(self, net, other, x, limit=1e-6):
        """`net` on a sparse tensor and `other`, of dense.py, give the same sites, features and gradients; returns the result."""
        other = other.double()
        other.load_state_dict(net.state_dict())
        other.train(net.training)
        self.switch_alike(net, other)
        features = x.features.detach().clone().requires_grad_()
        x = spconv.SparseConvTensor(features, x.indices, x.spatial_shape, x.batch_size)
        reference = densely(x)
        reference.features.requires_grad_()
        given, wanted = net(x), other(reference)
        if isinstance(given, torch.Tensor):
            y, z = given, wanted
        else:
            y, z = given.features, wanted.features
            self.assertEqual((given.spatial_shape, given.batch_size), (wanted.spatial_shape, wanted.batch_size))
            self.same(given.indices, wanted.indices)
        self.near(y.detach(), z.detach(), limit, "result")
        gradient = torch.randn(y.shape, generator=draw(9))
        names = [name for name, _ in net.named_parameters()]
        got = torch.autograd.grad(y, [features, *net.parameters()], gradient)
        expected = torch.autograd.grad(z, [reference.features, *other.parameters()], gradient.double())
        least = 0.01 * max(two.norm().item() for two in expected)  # some are sums that cancel: of a bias before a norm
        for name, one, two in zip(["features", *names], got, expected):
            self.near(one, two, limit, f"gradient of {name}", least)
        return given
