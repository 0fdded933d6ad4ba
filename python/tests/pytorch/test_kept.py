"""What is kept between calls: results are those of tensors made anew, whatever was written to or done before, and nothing lasts
longer than its use."""

import copy
import gc
import pickle
import random
import unittest
import weakref
from unittest import mock

import numpy
import torch
from torch.utils.checkpoint import checkpoint

import pnet.torch as pt
import support
from pnet.torch import _calls, _ops, spconv

SHAPE = [8, 7, 6]


def flip(indices):
    """Other rows, by a write that PyTorch counts."""
    indices[:] = indices.flip(0)


def flip_data(indices):
    indices.data.copy_(indices.flip(0))


def flip_numpy(indices):
    there = indices.numpy()
    there[:] = there[::-1].copy()


class Kept(support.Case):
    device = "cpu"
    writes = flip, flip_data, flip_numpy  # those that are found

    def tensor(self, channels=4, seed=1):
        x = support.tensor(SHAPE, 2, 0.4, channels, seed)
        return spconv.SparseConvTensor(x.features.to(self.device), x.indices.to(self.device), SHAPE, 2)

    def anew(self, x):
        return spconv.SparseConvTensor(x.features.detach().clone(), x.indices.clone(), list(x.spatial_shape), x.batch_size)

    def layers(self, key=None):
        torch.manual_seed(1)
        made = [spconv.SubMConv3d(4, 4, 3, indice_key=key and key + "s"),
                spconv.SparseConv3d(4, 4, 3, 2, 1, indice_key=key and key + "d"),
                spconv.SparseConvTranspose3d(4, 4, 2, 1, indice_key=key and key + "t"),
                spconv.SparseMaxPool3d(2, 1, indice_key=key and key + "p"),
                spconv.SparseAvgPool3d(2, 2, indice_key=key and key + "a")]
        return [layer.to(self.device) for layer in made]

    def alike(self, x, y):
        self.same(x.indices, y.indices)
        self.same(x.features.detach(), y.features.detach())
        self.assertEqual(x.spatial_shape, y.spatial_shape)

    def test_any_order(self):
        """Layers, writes to indices, and forgetting, at random: each result is that of a tensor made anew."""
        layers, pools = self.layers(), (spconv.SparseGlobalMaxPool(), spconv.SparseGlobalAvgPool())
        for seed in range(12):
            draw = random.Random(seed)
            held = [self.tensor(seed=seed)]
            for _ in range(60):
                x = draw.choice(held)
                what = draw.randrange(10)
                if what < 5:
                    small, large = min(x.spatial_shape) < 3, max(x.spatial_shape) > 20
                    layer = draw.choice(layers[:1] if small and large else layers[:3] if small else
                                        [one for one in layers if not (large and one is layers[2])])
                    with draw.choice((torch.no_grad, torch.enable_grad, torch.inference_mode))():
                        y = layer(x)
                    self.alike(y, layer(self.anew(x)))
                    if not y.features.is_inference():
                        held.append(y)
                elif what == 5:
                    held.append(x.replace_feature(x.features * 2))
                elif what == 6:
                    pool = draw.choice(pools)
                    self.same(pool(x).detach(), pool(self.anew(x)).detach())
                elif what == 7 and not x.indices.is_inference():
                    draw.choice(self.writes)(x.indices)
                elif what == 8:
                    (x.keep_sets if draw.random() < 0.5 else x.drop_sets)()
                elif len(held) > 6:
                    held = [held[0], *draw.sample(held, 3)]

    def test_keys(self):
        """A set with a key is that of the voxels, or the layer refuses it."""
        for write in self.writes:
            for number, layer in enumerate(self.layers("k")):
                first = layer(self.tensor())
                x = self.tensor()
                x.indice_dict = first.indice_dict
                self.alike(layer(x), layer(self.anew(x)))
                write(x.indices)
                with self.assertRaisesRegex(ValueError, "other voxels"):
                    layer(x)
                if number:  # the voxels of the result are its own
                    y = layer(self.tensor())
                    x = spconv.SparseConvTensor(y.features[:1], self.tensor().indices, SHAPE, 2, indice_dict=y.indice_dict)
                    write(y.indices)
                    with self.assertRaisesRegex(ValueError, "written to in place"):
                        layer(x)

    def test_results(self):
        """Of the report: the indices of a result are scaled, and the layer is called again."""
        down = self.layers()[1]
        for kept in (False, True):
            x = self.tensor()
            if kept:
                x.keep_sets()
            y = down(x)
            wanted = y.indices.clone()
            y.indices[:, 1:] *= 2
            self.same(down(x).indices, wanted)

    def test_one_buffer(self):
        """Scenes in the same memory, of which PyTorch is told nothing."""
        if self.device != "cpu":
            return
        layer, kernel = self.layers()[0], torch.randn(4, 3, 3, 3, 4)
        scenes = [self.tensor(seed=seed) for seed in (1, 2)]
        rows = min(len(x.indices) for x in scenes)
        buffer = numpy.zeros((rows, 4), numpy.int32)
        shared, features = torch.from_numpy(buffer), scenes[0].features[:rows].detach()
        caches = []
        for x in scenes:
            at = x.indices[:rows]
            buffer[:] = at.numpy()
            self.alike(layer(spconv.SparseConvTensor(features, shared, SHAPE, 2)),
                       layer(spconv.SparseConvTensor(features, at.clone(), SHAPE, 2)))
            self.same(pt.voxel_set(shared, SHAPE, batches=2).pool(features, "sum"),
                      pt.voxel_set(at.clone(), SHAPE, batches=2).pool(features, "sum"))
            wanted = pt.sparse_submanifold_conv3d(features, at.clone(), (2, 4, *SHAPE), kernel)[0]
            got, cache = pt.sparse_submanifold_conv3d(features, shared, (2, 4, *SHAPE), kernel)
            self.same(got, wanted)
            self.same(pt.sparse_submanifold_conv3d(features, shared, (2, 4, *SHAPE), kernel, None, cache)[0], wanted)
            caches.append(cache)
        for given in (shared, scenes[0].indices[:rows].clone()):
            with self.assertRaisesRegex(ValueError, "written to in place"):
                pt.sparse_submanifold_conv3d(features, given, (2, 4, *SHAPE), kernel, None, caches[0])

    def gradients(self, net, x, *modes):
        features = x.features.detach().clone().requires_grad_()
        y = x.replace_feature(features)
        for module in net:
            y = module(y)
        return torch.autograd.grad(y.features.square().sum(), [features, *(p for one in net for p in one.parameters())])

    def test_made_without_gradients(self):
        """Sets that were made in inference are used in training, also where PyTorch differentiates by operators."""
        for key in (None, "k"):
            net = self.layers(key)
            for mode in (torch.inference_mode, torch.no_grad):
                x = self.tensor().keep_sets()
                with mode():
                    y = x
                    for module in net:
                        y = module(y)
                    x.indice_dict = y.indice_dict
                for one, two in zip(self.gradients(net, x), self.gradients(net, self.anew(x))):
                    self.same(one, two)
                for triplets in self.known(x):
                    self.assertFalse(triplets.by_out.is_inference() or triplets.by_in.is_inference())
                leaf = x.features.detach().clone().requires_grad_()
                first, = torch.autograd.grad(net[0](x.replace_feature(leaf)).features.square().sum(), leaf, create_graph=True)
                self.assertTrue(first.requires_grad)

    @staticmethod
    def known(x):
        return [triplets for triplets, _ in x._known().sets().values()] + [
            one.made._triplets for one in x.indice_dict.values()]

    def test_inference_tensors(self):
        """Indices that were made in inference."""
        with torch.inference_mode():
            at = self.tensor().indices.clone()
        x = spconv.SparseConvTensor(self.tensor().features, at, SHAPE, 2)
        for key in (None, "k"):
            for layer in self.layers(key):
                self.alike(layer(x), layer(self.tensor()))

    def test_checkpoints(self):
        """Parts that are computed again in backward, over voxels and points."""
        net, x = self.layers("k"), self.tensor()
        wanted = self.gradients(net, x)
        for reentrant in (False, True):
            leaf = x.features.detach().clone().requires_grad_()
            fresh = self.anew(x)

            def run(features):
                y = fresh.replace_feature(features)
                for module in net:
                    y = module(y)
                return y.features

            total = checkpoint(run, leaf, use_reentrant=reentrant).square().sum()
            total.backward()
            for one, two in zip([leaf.grad, *(p.grad for module in net for p in module.parameters())], wanted):
                self.same(one, two)
            for module in net:
                module.zero_grad()

    def cloud(self, seed=1):
        return torch.rand(500, 3, generator=support.draw(seed)).to(self.device)

    def through_points(self, xyz, x, points=None):
        """A scalar of features and of positions of levels."""
        points = points or pt.Points(xyz)
        level = points.grid(0.1)
        coarse = level.grid(0.2)
        weight = torch.ones(27, 4, 6, device=self.device) / 27
        y = level.set(level, 3).conv(pt.pool(x, points, level), weight)
        y = pt.interpolate(pt.upsample(pt.pool(y, level, coarse, "max"), coarse, level), level, points)
        y = pt.attend(y.repeat(1, 4), points, bucket=64, scope=1) if y.shape[1] == 6 else y
        return y.square().sum() + (level.positions.square().sum(1) * coarse.positions.sum()).sum()

    def points_gradients(self, xyz, points=None, before=None):
        x = torch.rand(500, 4, generator=support.draw(7)).to(self.device).requires_grad_()
        if before is not None:
            before(xyz, x.detach(), points)
        return torch.autograd.grad(self.through_points(xyz, x, points), [xyz, x])

    def test_points(self):
        """What was made of points before, in another mode or without gradients of positions, takes none away."""
        wanted = self.points_gradients(self.cloud().requires_grad_())
        for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            def before(xyz, x, points):
                with mode():
                    self.through_points(xyz, x, points)

            xyz = self.cloud().requires_grad_()
            for one, two in zip(self.points_gradients(xyz, pt.Points(xyz), before), wanted):
                self.same(one, two)
            xyz = self.cloud()
            points = pt.Points(xyz)
            before(xyz, torch.rand(500, 4, device=self.device), points)
            xyz.requires_grad_()
            for one, two in zip(self.points_gradients(xyz, points), wanted):
                self.same(one, two)
        for reentrant in (False, True):
            xyz, x = self.cloud().requires_grad_(), torch.rand(500, 4, generator=support.draw(7)).to(self.device).requires_grad_()
            points = pt.Points(xyz)
            checkpoint(lambda a, b: self.through_points(a, b, points), xyz, x, use_reentrant=reentrant).backward()
            if not reentrant:  # PyTorch gives a function the gradients of its arguments alone there
                self.same(xyz.grad, wanted[0])
            self.same(x.grad, wanted[1])

    def test_points_written_to(self):
        """Geometry stays that of the positions given; positions that have changed are not handed out as its own."""
        xyz = self.cloud()
        points = pt.Points(xyz)
        level = points.grid(0.1)
        wanted = level.positions.clone()
        level.positions.zero_()
        level.samples().fill_(7)
        self.same(level.positions, wanted)
        self.assertEqual(int(level.samples().max()), 0)
        rows = points.grid(0.2).rows
        xyz.mul_(100)
        points.drop_sets()
        self.assertEqual(points.grid(0.2).rows, rows)
        for one in (points, level):
            with self.assertRaisesRegex(ValueError, "written to in place"):
                one.positions
        self.assertGreater(pt.Points(xyz).grid(0.2).rows, rows)

    def alive(self):
        return sum(type(one) is _calls.Triplets for one in gc.get_objects())

    def test_ends(self):
        """Sets end with the results of layers, or with drop_sets(), without the collector of cycles."""
        net = [*self.layers()[:3], *self.layers("k")[:3]]
        scenes = [self.tensor(seed=seed) for seed in range(40)]
        gc.collect()
        gc.disable()
        try:
            before = self.alive()
            for x in scenes:
                y = x
                for module in net:
                    y = module(y)
                y.features.sum().backward()
            del y, x
            self.assertEqual(self.alive(), before)
            x = self.tensor().keep_sets()
            for _ in range(2):
                y = x
                for module in net:
                    y = module(y)
                del y
            self.assertEqual(self.alive(), before + 6)
            x.drop_sets()
            self.assertEqual(self.alive(), before)
            xyz = self.cloud()
            points = pt.Points(xyz)
            self.through_points(xyz, torch.rand(500, 4, device=self.device), points)
            ends = [weakref.ref(one) for one in points._levels.values()]
            self.assertGreater(self.alive(), before)
            points.drop_sets()
            self.assertEqual([end() for end in ends], [None] * len(ends))
            self.assertEqual(self.alive(), before)
        finally:
            gc.enable()

    def test_made_once(self):
        """Layers without keys share a set while a result is there; kept ones are found by the next run, at every level."""
        net = self.layers()

        def run(x):
            y = net[0](net[0](x))
            a, b = net[1](y), net[1](y)
            return net[3](net[0](a)), net[3](b)

        with mock.patch.object(_ops, "make_voxel_set", wraps=_ops.make_voxel_set) as make:
            x = self.tensor()
            run(x)
            self.assertEqual(make.call_count, 4)
            x.keep_sets()
            for _ in range(3):
                run(x)
            self.assertEqual(make.call_count, 8)
            del x
            run(self.tensor())
            self.assertEqual(make.call_count, 12)

    def test_copies(self):
        """Copies have sets of their own, and give the same."""
        for key in (None, "k"):
            net = self.layers(key)
            x = self.tensor().keep_sets()
            x = net[0](x)
            x = x.replace_feature(x.features.detach())
            for one in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
                self.alike(net[1](one), net[1](self.anew(x)))
                self.alike(net[0](one), net[0](self.anew(x)))


if __name__ == "__main__":
    unittest.main()
