"""The interface of spconv: tensors, keys, tables, names; and the call of FlexGEMM."""

import unittest
from collections import OrderedDict

import torch
from torch import nn

import pnet.torch
import pnet.torch.spconv as spconv
import support

SHAPE = [6, 5, 7]


class Tensors(support.Case):
    def setUp(self):
        self.x = support.tensor(SHAPE, 3, 0.3, 4, empty=[2])

    def test_attributes(self):
        x = self.x
        self.assertEqual((x.spatial_shape, x.batch_size, x.spatial_size, x.indice_dict), (SHAPE, 3, 210, {}))
        self.assertAlmostEqual(x.sparity, len(x.indices) / 630)
        self.assertEqual((x.grid, x.voxel_num, x.benchmark, x.is_quantized), (None, None, False, False))
        self.refused("replace_feature", setattr, x, "features", x.features)
        y = x.replace_feature(x.features[:, :2])
        self.assertEqual((list(y.features.shape), list(x.features.shape)), ([len(x.indices), 2], [len(x.indices), 4]))
        self.assertIs(y.indices, x.indices)
        self.assertIs(y.indice_dict, x.indice_dict)
        self.same(x.minus().features, -x.features)
        self.same((x + x).features, 2 * x.features)
        self.same((x + x.features).features, 2 * x.features)
        self.same(x.shadow_copy().features, x.features)
        self.assertIn("spatial_shape=[6, 5, 7]", repr(x))

    def test_wrong(self):
        f, i = self.x.features, self.x.indices
        self.usage("torch.int64", spconv.SparseConvTensor, f, i.long(), SHAPE, 3)
        self.usage("2 numbers", spconv.SparseConvTensor, f, i, [6, 5], 3)
        self.usage("expected [N, C]", spconv.SparseConvTensor, f[0], i, SHAPE, 3)
        self.usage("batch_size is 0", spconv.SparseConvTensor, f, i, SHAPE, 0)
        conv = spconv.SubMConv3d(4, 4, 3)
        self.usage("5 channels", conv, self.x.replace_feature(torch.zeros(len(i), 5)))
        self.usage("features: [", conv, self.x.replace_feature(f[1:]))
        self.usage("sample 1 is none", conv, spconv.SparseConvTensor(f, i, SHAPE, 1))
        self.usage("3 axes", conv, spconv.SparseConvTensor(f, i[:, :3].contiguous(), SHAPE[:2], 3))
        self.refused("SparseConvTensor", conv, f, error=TypeError)

    def test_dense(self):
        x = self.x
        grid = x.dense()
        self.assertEqual(list(grid.shape), [3, 4, *SHAPE])
        at = x.indices.long().unbind(1)
        self.same(grid.movedim(1, -1)[at], x.features)
        self.assertEqual((grid != 0).sum(), (x.features != 0).sum())
        self.same(x.dense(channels_first=False), grid.movedim(1, -1).contiguous())
        features = x.features.requires_grad_()
        (x.dense() * grid).sum().backward()
        self.same(features.grad, features.detach())
        back = spconv.SparseConvTensor.from_dense(grid.movedim(1, -1))
        self.assertEqual((back.spatial_shape, back.batch_size), (SHAPE, 3))
        self.same(back.dense(), grid)
        self.assertEqual(sorted(map(tuple, back.indices.tolist())), sorted(map(tuple, x.indices.tolist())))
        outside = spconv.SparseConvTensor(x.features, x.indices + 1, SHAPE, 3)
        self.usage("row 0: the voxel", outside.dense)

    def test_select(self):
        conv = spconv.SubMConv3d(4, 4, 3, indice_key="k")
        y = conv(self.x)
        keep = y.indices[:, 1] > 2
        some = y.select_by_index(keep)
        self.same(some.indices, y.indices[keep])
        self.same(some.features, y.features[keep])
        self.assertEqual((some.indice_dict, list(y.indice_dict)), ({}, ["k"]))
        self.assertEqual(len(conv(some).indices), keep.sum())


class Keys(support.Case):
    """Layers share a set by its name only where they get the same voxels and have the same rule."""

    def setUp(self):
        self.x = support.tensor(SHAPE, 2, 0.3, 4)
        # as many other voxels of the same shape
        rest = support.sites(SHAPE, 2, 0.3, seed=8)
        self.assertGreaterEqual(len(rest), len(self.x.indices) - 20)
        rows = min(len(rest), len(self.x.indices))
        self.x = spconv.SparseConvTensor(self.x.features[:rows], self.x.indices[:rows].contiguous(), SHAPE, 2)
        self.other = rest[:rows].contiguous()

    def test_other_voxels(self):
        layer = spconv.SubMConv3d(4, 4, 3, indice_key="k")
        y = layer(self.x)
        other = spconv.SparseConvTensor(y.features, self.other, SHAPE, 2, indice_dict=y.indice_dict)
        self.refused("'k' belongs to other voxels", layer, other)
        moved = spconv.SparseConvTensor(y.features, self.x.indices.flip(0), SHAPE, 2, indice_dict=y.indice_dict)
        self.refused("another order", layer, moved)
        larger = spconv.SparseConvTensor(y.features, self.x.indices, [7, 5, 7], 2, indice_dict=y.indice_dict)
        self.refused("spatial shape [6, 5, 7]", layer, larger)
        copied = spconv.SparseConvTensor(y.features, self.x.indices.clone(), SHAPE, 2, indice_dict=y.indice_dict)
        self.same(layer(copied).features, layer(y).features)  # equal voxels in another tensor

    def test_other_voxels_of_an_inverse(self):
        down = spconv.SparseConv3d(4, 4, 2, 2, indice_key="d")
        up = spconv.SparseInverseConv3d(4, 4, 2, indice_key="d")
        y = down(self.x)
        z = down(spconv.SparseConvTensor(self.x.features, self.other, SHAPE, 2))
        rows = min(len(y.indices), len(z.indices))
        wrong = spconv.SparseConvTensor(z.features[:rows], z.indices[:rows], y.spatial_shape, 2, indice_dict=y.indice_dict)
        self.refused("'d' belongs to other voxels", up, wrong)
        self.refused("there is no 'd'", up, self.x)
        self.refused("[2, 2, 2]", spconv.SparseInverseConv3d(4, 4, 3, indice_key="d"), y)
        same = spconv.SubMConv3d(4, 4, 3, indice_key="s")(y)
        self.refused("no inverse", spconv.SparseInverseConv3d(4, 4, 3, indice_key="s"), same)
        self.refused("spatial shape", up, self.x.replace_feature(self.x.features)._with(
            self.x.features, self.x.indices, SHAPE, y.indice_dict))

    def test_written_to(self):
        layer = spconv.SubMConv3d(4, 4, 3, indice_key="k")
        y = layer(self.x)
        self.x.indices[:] = self.x.indices.flip(0)
        self.refused("written to in place", layer, y)

    def test_other_rules(self):
        y = spconv.SubMConv3d(4, 4, 3, indice_key="k")(self.x)
        for layer in (spconv.SubMConv3d(4, 4, 5, indice_key="k"), spconv.SubMConv3d(4, 4, 3, dilation=2, indice_key="k"),
                      spconv.SparseConv3d(4, 4, 3, padding=1, indice_key="k"), spconv.SparseMaxPool3d(3, 1, 1, indice_key="k")):
            self.refused("'k' belongs to another kind", layer, y)
        self.same(spconv.SubMConv3d(4, 4, 3, stride=2, padding=5, indice_key="k")(y).indices, y.indices)

    def test_branches(self):
        """A key that one branch leaves is not seen by another."""
        left, right = spconv.SparseConv3d(4, 4, 2, 2, indice_key="k"), spconv.SparseConv3d(4, 4, 3, 2, indice_key="k")
        self.assertNotEqual(left(self.x).spatial_shape, [])
        right(self.x)
        self.assertEqual(self.x.indice_dict, {})
        self.assertIsNone(self.x.find_indice_pair("k"))
        found = left(self.x).find_indice_pair("k")
        self.assertEqual((found.ksize, found.is_subm, found.spatial_shape), ([2, 2, 2], False, SHAPE))


class Modules(support.Case):
    def setUp(self):
        self.x = support.tensor(SHAPE, 2, 0.3, 4)

    def test_sequential(self):
        net = spconv.SparseSequential(OrderedDict(a=spconv.SubMConv3d(4, 5, 3), b=nn.ReLU()), c=nn.Linear(5, 2))
        self.assertEqual([name for name, _ in net.named_children()], ["a", "b", "c"])
        self.same(net(self.x).features, net.c(torch.relu(net.a(self.x).features)))
        self.assertEqual((len(net), net[-1]), (3, net.c))
        net.add(spconv.ToDense())
        self.assertEqual(list(net(self.x).shape), [2, 2, *SHAPE])
        self.refused("two modules", spconv.SparseSequential, nn.ReLU(), **{"0": nn.ReLU()})
        self.refused("two modules", net.add, nn.ReLU(), "a", error=KeyError)
        self.refused("no module 9", net.__getitem__, 9, error=IndexError)
        none = spconv.SparseConvTensor(torch.zeros(0, 4), self.x.indices[:0], SHAPE, 2)
        self.assertEqual(list(spconv.SparseSequential(nn.BatchNorm1d(4), nn.ReLU())(none).features.shape), [0, 4])

    def test_on_features(self):
        x, features = self.x, self.x.features
        self.same(spconv.SparseReLU()(x).features, features.relu())
        self.same(spconv.SparseIdentity()(x).features, features)
        self.same(spconv.SparseBatchNorm(4)(x).features.detach(), nn.BatchNorm1d(4)(features).detach())
        self.same(spconv.SparseReLU()(features), features.relu())
        self.assertIs(spconv.Identity()(x), x)
        x.grid = torch.zeros(3)
        self.assertIsNone(spconv.RemoveGrid()(x).grid)
        net = spconv.SparseSequential(spconv.SubMConv3d(4, 4, 3))
        spconv.assign_name_for_sparse_modules(net)
        self.assertEqual(net[0]._sparse_unique_name, "0")
        self.assertTrue(spconv.modules.is_spconv_module(net) and spconv.modules.is_sparse_conv(net[0]))
        self.assertFalse(spconv.modules.is_spconv_module(nn.ReLU()))

    def test_tables(self):
        branch = spconv.ConcatTable().add(spconv.SubMConv3d(4, 4, 3)).add(spconv.Identity())
        one, two = branch(self.x)
        self.same(spconv.AddTable()([one, two]).features, one.features + two.features)
        self.same(spconv.JoinTable()([one, two]).features, torch.cat([one.features, two.features], 1))
        other = spconv.SparseConvTensor(two.features, two.indices.flip(0), SHAPE, 2)
        for table in spconv.AddTable(), spconv.JoinTable():
            self.refused("other voxels", table, [one, other])

    def test_sparse_add(self):
        x, y = self.x, support.tensor(SHAPE, 2, 0.3, 4, seed=5)
        for features in (x.features, y.features):
            features.requires_grad_()
        total = spconv.functional.sparse_add(x, y)
        self.near(total.dense().detach(), (x.dense() + y.dense()).detach().double(), 0)
        rows = [tuple(row) for row in total.indices.tolist()]
        self.assertEqual(rows, sorted({*map(tuple, x.indices.tolist()), *map(tuple, y.indices.tolist())}))
        total.features.pow(2).sum().backward()
        self.near(x.features.grad, 2 * total.dense().detach().movedim(1, -1)[x.indices.long().unbind(1)].double(), 0)
        some = x.select_by_index(torch.arange(0, len(x.indices), 3))
        all_of_them = spconv.SubMConv3d(4, 4, 3, indice_key="k")(x)
        kept = spconv.AddTableMisaligned()([some, all_of_them])
        self.near(kept.dense().detach(), (some.dense() + all_of_them.dense()).detach().double(), 0)
        self.assertIs(kept.indices, x.indices)
        self.assertIn("k", kept.indice_dict)
        self.refused("channels", spconv.functional.sparse_add, x, x.replace_feature(x.features[:, :2]))

    def test_kernel_of_one(self):
        """A product, in which spconv reads the weights [out, 1, 1, 1, in] as [in, out]; checkpoints rely on that."""
        for layer in spconv.SubMConv3d(4, 6, 1, padding=1), spconv.SparseConv3d(4, 6, 1):
            y = layer(self.x)
            numbers = layer.weight.detach().reshape(-1).double()
            self.near(y.features.detach(), self.x.features.double() @ numbers.reshape(4, 6) + layer.bias.detach().double())
            self.assertIs(y.indices, self.x.indices)
        self.usage("padding must be 0", spconv.SparseConv3d, 4, 6, 1, padding=1)

    def test_values(self):
        """What spconv 2.3.8 from PyPI, built for the CPU, prints in one thread, as in tests/exchange/test_spconv_values.c."""
        voxels = [(0, 0, 0), (1, 0, 0), (3, 2, 1), (2, 2, 0), (3, 3, 1), (2, 0, 2), (3, 0, 3), (1, 0, 2)]  # x, y, z
        indices = torch.tensor([[0, z, y, x] for x, y, z in voxels], dtype=torch.int32)
        features = ((5 * torch.arange(24) + 2) % 7 - 3).float().reshape(8, 3)
        down = spconv.SparseConv3d(3, 4, 2, stride=2, bias=False, indice_key="k")
        product = [[107, 204], [110, 206], [85, 208], [88, 210], [91, 212], [108, 179], [111, 181], [107, 204]]
        up = [[329, -46], [73, 457], [-65, 212], [208, 221], [202, 215], [65, 92], [205, 89], [89, 319]]
        cases = (
            ([spconv.SubMConv3d(3, 2, 1)], voxels, product),
            ([spconv.SparseConv3d(3, 2, 1)], voxels, product),
            ([spconv.SparseConvTranspose3d(3, 2, 1)], voxels, product),
            ([spconv.SubMConv3d(3, 2, 3)], voxels,
             [[83, 232], [82, 209], [106, 173], [106, 206], [84, 228], [127, 166], [135, 186], [112, 205]]),
            ([spconv.SparseConv3d(3, 2, 1, stride=2, bias=False)], [(0, 0, 0), (1, 1, 0), (1, 0, 1)],
             [[-11, -9], [-6, -6], [16, 17]]),
            ([down, spconv.SparseInverseConv3d(4, 2, 2, indice_key="k")], voxels, up),
            ([down, spconv.SparseConvTranspose3d(4, 2, 2, stride=2)], voxels, up),
            ([down, spconv.SubMConv3d(4, 2, 1)], [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 0, 1)],
             [[139, -45], [223, 146], [-45, 238], [116, 86]]),
            # an inverse convolution of kernel 1 is a product, and stays
            ([spconv.SparseConv3d(3, 4, 1, stride=2, bias=False, indice_key="k"),
              spconv.SparseInverseConv3d(4, 2, 1, indice_key="k")], [(0, 0, 0), (1, 1, 0), (1, 0, 1)],
             [[105, 157], [106, 170], [81, 286]]),
        )
        for layers, at, want in cases:
            with self.subTest(layers=layers), torch.no_grad():
                y = spconv.SparseConvTensor(features, indices, [8, 8, 8], 1)
                for layer in layers:
                    count = layer.weight.numel()
                    layer.weight.copy_(((7 * torch.arange(count) + 3) % 11 - 5).float().reshape(layer.weight.shape))
                    if layer.bias is not None:
                        layer.bias.copy_(torch.arange(1.0, 3.0) * 100)
                    y = layer(y)
                have = {tuple(i): f for i, f in zip(y.indices.tolist(), y.features.tolist())}
                self.assertEqual([have.get((0, z, y, x)) for x, y, z in at], want)

    def test_voxel_count(self):
        layer = spconv.SparseConv3d(4, 4, 2, 2, record_voxel_count=True)
        y = layer(self.x)
        self.assertEqual(layer.state_dict()["max_num_voxels_during_training"].tolist(), [len(y.indices)])
        layer(self.x.select_by_index(torch.arange(3)))
        self.assertEqual(layer.max_num_voxels_during_training.tolist(), [len(y.indices)])

    def test_what_is_ignored(self):
        torch.manual_seed(1)
        one = spconv.SubMConv3d(4, 4, 3, algo=spconv.ConvAlgo.Native, fp32_accum=True, large_kernel_fast_algo=True, name="n")
        torch.manual_seed(1)
        self.same(one(self.x).features, spconv.SubMConv3d(4, 4, 3)(self.x).features)
        self.assertEqual(one.name, "n")

    def test_what_is_not_there(self):
        for name in ("SubMConv4d", "SparseConv4d", "SparseConvTranspose4d"):
            self.refused("4 axes", getattr(spconv, name), 4, 4, 3, error=NotImplementedError)
        self.refused("4 axes", spconv.SparseInverseConv4d, 4, 4, 3, "k", error=NotImplementedError)
        self.refused("4 axes", spconv.SparseMaxPool4d, 2, error=NotImplementedError)
        self.refused("act_type", spconv.SparseConvolution, 3, 4, 4, act_type=1, error=NotImplementedError)
        self.refused("add_input", spconv.SubMConv3d(4, 4, 3), self.x, self.x, error=NotImplementedError)
        self.usage("groups", spconv.SubMConv3d, 4, 4, 3, groups=3)
        for module, name in ((spconv, "utils"), (spconv, "quantization"), (spconv.functional, "indice_conv"),
                             (spconv.ops, "get_indice_pairs")):
            self.refused("pnet has no such part of spconv", getattr, module, name, error=AttributeError)
            self.assertFalse(hasattr(module, name))
        self.refused("has no attribute", getattr, spconv, "SparseKonv3d", error=AttributeError)
        even = spconv.SubMConv3d(4, 4, 2)
        self.usage("kernel is odd", even, self.x)

    def test_paths(self):
        import pnet.torch.spconv.pytorch as same
        from pnet.torch.spconv.pytorch import functional, ops
        from pnet.torch.spconv.pytorch.conv import SubMConv3d
        from pnet.torch.spconv.pytorch.modules import SparseModule
        self.assertIs(same.SparseConvTensor, spconv.SparseConvTensor)
        self.assertIs(SubMConv3d, spconv.SubMConv3d)
        self.assertIs(SparseModule, spconv.SparseModule)
        self.assertIs(functional, spconv.functional)
        self.assertEqual(ops.get_conv_output_size([9, 8], 3, 2, 1, [1, 1]), [5, 4])
        self.assertEqual(ops.get_deconv_output_size([5, 4], [3, 3], 2, 1, 1, 1), [10, 8])
        self.assertEqual({name for name in spconv.__all__ if not hasattr(same, name)}, set())
        self.refused("spconv.utils", getattr, same, "utils", error=AttributeError)


class FlexGemm(support.Case):
    def test_call(self):
        """coords are x, y, z, and so are the axes of the kernel."""
        coords = support.sites(SHAPE, 2, 0.3)
        feats = torch.randn(len(coords), 4, requires_grad=True)
        weight = torch.randn(6, 3, 5, 1, 4, requires_grad=True)
        bias = torch.randn(6, requires_grad=True)
        y, cache = pnet.torch.sparse_submanifold_conv3d(feats, coords, torch.Size([2, 4, *SHAPE]), weight, bias)
        at = coords.long().unbind(1)
        leaves = [t.detach().double().requires_grad_() for t in (feats, weight, bias)]
        grid = torch.zeros(2, *SHAPE, 4, dtype=torch.float64).index_put(at, leaves[0]).movedim(-1, 1)
        dense = nn.functional.conv3d(grid, leaves[1].movedim(-1, 1), leaves[2], padding=(1, 2, 0)).movedim(1, -1)[at]
        self.near(y.detach(), dense.detach())
        gradient = torch.randn(y.shape)
        for one, two in zip(torch.autograd.grad(y, [feats, weight, bias], gradient),
                            torch.autograd.grad(dense, leaves, gradient.double())):
            self.near(one, two)
        again, kept = pnet.torch.sparse_submanifold_conv3d(feats, coords.clone(), [2, 4, *SHAPE], weight, bias, cache)
        self.assertIs(kept, cache)
        self.same(again, y)
        call = pnet.torch.sparse_submanifold_conv3d
        self.refused("other coordinates", call, feats, coords.flip(0), [2, 4, *SHAPE], weight, bias, cache)
        self.refused("kernel and dilation", call, feats, coords, [2, 4, *SHAPE], weight, bias, cache, (2, 1, 1))
        self.refused("kernel and dilation", call, feats, coords, [2, 4, *SHAPE], weight[:, :, :3], bias, cache)
        self.usage("expected [out, Kx, Ky, Kz, in]", call, feats, coords, [2, 4, *SHAPE], weight[0])
        self.usage("expected [samples", call, feats, coords, SHAPE, weight)


if __name__ == "__main__":
    unittest.main()
