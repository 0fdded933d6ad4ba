"""Numbers of arguments of pnet.torch: each is checked, 0 is not taken for one that is not given, messages name the argument; and
voxels of sparse tensors are checked where no set does it."""

import functools
import inspect
import math
import pathlib
import sys
import unittest

import numpy
import torch

import pnet
import pnet.torch as pt
import pnet.torch.spconv as spconv
import support

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))  # behind this folder, which has a support.py too
from wrong_values import (  # noqa: E402
    ANY_NUMBER, AXES, AXES_FROM_0, COUNT, FLAG, FROM_0, NUMBER, OTHER, arguments_of, check_arguments,
)

GRADIENT = torch.tensor(1.0, requires_grad=True)
NO_INTEGER = [torch.tensor(2.5), torch.tensor([2, 2]), torch.tensor(True), torch.tensor([]), GRADIENT]
MORE = {kind: NO_INTEGER for kind in (COUNT, FROM_0, AXES, AXES_FROM_0)}
MORE |= {kind: [torch.tensor(math.nan), torch.tensor([1.0, 2.0]), torch.tensor(True), GRADIENT] for kind in (NUMBER, ANY_NUMBER)}
MORE |= {FLAG: [torch.tensor([True, False]), torch.tensor(0.5)]}
SITES = torch.tensor([[0, 1, 2, 3], [1, 2, 2, 2]], dtype=torch.int32)
FEATURES = torch.ones(2, 4)
SCENE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "scene.pnet"


@functools.lru_cache
def geometry():
    points = pt.Points(torch.rand(300, 3, generator=support.draw(1)))
    return points, points.grid(0.1)


def voxel_set(**given):
    return pt.voxel_set(SITES, **{"extent": [4, 4, 4], "batches": 2, **given})


def scene(**given):
    return spconv.SparseConvTensor(FEATURES, SITES, **{"spatial_shape": [4, 4, 4], "batch_size": 2, **given})


def flexgemm(**given):
    return pt.sparse_submanifold_conv3d(FEATURES, SITES, [2, 4, 4, 4, 4], torch.ones(4, 3, 3, 3, 4), **given)


def shapes(place):
    """The shape of FlexGEMM with a number at one place."""
    def call(number=4):
        shape = [2, 4, 4, 4, 4]
        shape[place] = number
        return pt.sparse_submanifold_conv3d(FEATURES, SITES, shape, torch.ones(4, 3, 3, 3, 4))
    return call


def set_conv(**given):
    return pt.voxel_set(SITES, [4, 4, 4], 1, batches=2).conv(FEATURES, torch.ones(1, 4, 4), **given)


def point_conv(**given):
    points, level = geometry()
    return level.set(points, 1, radius=0.1).conv(torch.ones(300, 4), torch.ones(1, 4, 4), **given)


def attend(**given):
    return pt.attend(torch.ones(geometry()[1].rows, 48), geometry()[1], **{"order": "hilbert", **given})


def buckets_attend(**given):
    return geometry()[1].buckets(bucket=16).attend(torch.ones(geometry()[1].rows, 48), **given)


def interpolate(**given):
    return pt.interpolate(torch.ones(geometry()[1].rows, 4), *geometry()[::-1], **given)


def loss(**given):
    return pt.point_loss("chamfer", torch.rand(9, 3), torch.rand(8, 3), **given)


def others(call, **kinds):
    return {**dict.fromkeys(arguments_of(call), OTHER), **kinds}


BUCKETS = {"bucket": COUNT, "scope": COUNT, "shift": FROM_0, "stride": COUNT, "wrap": FLAG, "cell": NUMBER}
NEAR = {"kernel": COUNT, "radius": NUMBER, "knn": COUNT}
CHANNELS = {"in_channels": COUNT, "out_channels": COUNT, "groups": COUNT}
CONV = {**CHANNELS, "kernel_size": AXES, "stride": AXES, "padding": AXES_FROM_0, "dilation": AXES}
POOL = {"kernel_size": AXES, "padding": AXES_FROM_0, "dilation": AXES}
CALLS = {
    "voxel_set": (voxel_set, pt.voxel_set, others(
        pt.voxel_set, extent=AXES, kernel=AXES, stride=AXES, padding=AXES_FROM_0, dilation=AXES, output_padding=AXES_FROM_0,
        batches=COUNT)),
    "VoxelSet.conv": (set_conv, pt.VoxelSet.conv, others(pt.VoxelSet.conv, groups=COUNT)),
    "PointSet.conv": (point_conv, pt.PointSet.conv, others(pt.PointSet.conv, groups=COUNT)),
    "VoxelConv": (lambda **given: pt.VoxelConv(**{"in_channels": 4, "out_channels": 4, **given}), pt.VoxelConv, others(
        pt.VoxelConv, **CHANNELS)),
    "PointConv": (lambda **given: pt.PointConv(**{"in_channels": 4, "out_channels": 4, **given}), pt.PointConv, others(
        pt.PointConv, **CHANNELS, **NEAR)),
    "sparse_submanifold_conv3d": (flexgemm, pt.sparse_submanifold_conv3d, others(pt.sparse_submanifold_conv3d, dilation=AXES)),
    "Points": (lambda **given: pt.Points(torch.rand(9, 3), **given), pt.Points, others(pt.Points, batches=COUNT, cell=NUMBER)),
    "Points.grid": (lambda **given: geometry()[0].grid(**{"cell": 0.1, **given}), pt.Points.grid, {"cell": NUMBER}),
    "Points.set": (lambda **given: geometry()[1].set(**given), pt.Points.set, others(pt.Points.set, **NEAR)),
    "Points.map": (lambda **given: geometry()[0].map(geometry()[1], "inverse_distance", **given), pt.Points.map, others(
        pt.Points.map, k=COUNT)),
    "Points.buckets": (lambda **given: geometry()[1].buckets("hilbert", **given), pt.Points.buckets, others(
        pt.Points.buckets, **BUCKETS)),
    "Buckets.attend": (buckets_attend, pt.Buckets.attend, others(pt.Buckets.attend, heads=COUNT, scale=NUMBER)),
    "attend": (attend, pt.attend, others(pt.attend, heads=COUNT, scale=NUMBER, **BUCKETS)),
    "interpolate": (interpolate, pt.interpolate, others(pt.interpolate, k=COUNT)),
    "Network": (lambda **given: pt.Network(SCENE, **given), pt.Network, others(
        pt.Network, seed=FROM_0, input_gradients=FLAG)),
    "SparseConvTensor": (scene, spconv.SparseConvTensor, others(
        spconv.SparseConvTensor, spatial_shape=AXES, batch_size=COUNT)),
    "SparseConvolution": (
        lambda **given: spconv.SparseConvolution(
            **{"ndim": 3, "in_channels": 4, "out_channels": 4, "transposed": True, **given}),
        spconv.SparseConvolution, others(spconv.SparseConvolution, ndim=COUNT, output_padding=AXES_FROM_0, **CONV)),
    **{name: (lambda of=getattr(spconv, name), **given: of(
        **{"in_channels": 4, "out_channels": 4, "kernel_size": 3, **given}),
              getattr(spconv, name), others(getattr(spconv, name), **CONV))
       for name in ("SubMConv3d", "SparseConv3d", "SparseConvTranspose3d")},
    "SparseInverseConv3d": (
        lambda **given: spconv.SparseInverseConv3d(
            **{"in_channels": 4, "out_channels": 4, "kernel_size": 3, "indice_key": "k", **given}),
        spconv.SparseInverseConv3d, others(spconv.SparseInverseConv3d, in_channels=COUNT, out_channels=COUNT, kernel_size=AXES)),
    **{name: (lambda name=name, **given: getattr(spconv, name)(**{"kernel_size": 3, **given}), getattr(spconv, name),
              others(getattr(spconv, name), **POOL)) for name in ("SparseMaxPool3d", "SparseAvgPool3d")},
    "ops.get_conv_output_size": (
        lambda **given: spconv.ops.get_conv_output_size(
            **{"input_size": [9, 9, 9], "kernel_size": 3, "stride": 1, "padding": 0, "dilation": 1, **given}),
        spconv.ops.get_conv_output_size, others(spconv.ops.get_conv_output_size, stride=AXES, **POOL)),
    "ops.get_deconv_output_size": (
        lambda **given: spconv.ops.get_deconv_output_size(
            **{"input_size": [9] * 3, "kernel_size": 3, "stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, **given}),
        spconv.ops.get_deconv_output_size, others(
            spconv.ops.get_deconv_output_size, stride=AXES, output_padding=AXES_FROM_0, **POOL)),
}
# Numbers that stand elsewhere.
PARTS = {
    "shape of sparse_submanifold_conv3d": (shapes(0), {"number": (COUNT, "shape[0]")}),
    "extent of sparse_submanifold_conv3d": (shapes(3), {"number": (COUNT, "extent")}),
    "stride of a pool": (lambda stride=2: spconv.SparseMaxPool3d(3, stride), {"stride": COUNT}),
    "point_loss": (loss, {"squares": FLAG, "at_least_one": FLAG, "sums": FLAG, "rounds": FROM_0, "most": FROM_0,
                          "entries": FROM_0, "lambda_": ANY_NUMBER, "tau": ANY_NUMBER, "eps": ANY_NUMBER, "p": ANY_NUMBER}),
}


class Values(support.Case):
    def test_arguments(self):
        for name, (call, of, kinds) in CALLS.items():
            self.assertEqual(sorted(kinds), sorted(arguments_of(of)), name)
            check_arguments(self, name, call, kinds, MORE, pnet.Error)

    def test_parts(self):
        for name, (call, kinds) in PARTS.items():
            check_arguments(self, name, call, kinds, MORE, pnet.Error)

    def test_all_calls(self):
        """CALLS has whatever takes a number by default."""
        known = {name for name in CALLS} | {f"{name[:-2]}{axes}d" for name in CALLS for axes in range(1, 5)}
        for module in pt, spconv:
            for name in module.__all__:
                of = getattr(module, name)
                members = {f"{name}.{member}": value for member, value in vars(of).items()
                           if not member.startswith("_") and inspect.isfunction(value)} if isinstance(of, type) else {}
                for where, call in {name: of, **members}.items():
                    if where in known or not (inspect.isfunction(call) or isinstance(call, type)) or name == "ConvAlgo":
                        continue
                    if call is of and isinstance(of, type) and of.__init__.__module__.startswith("torch."):
                        continue  # PyTorch's own
                    numbers = [p.name for p in inspect.signature(call).parameters.values() if type(p.default) in (int, float)]
                    self.assertEqual(numbers, [], where)

    def test_numbers_of_others(self):
        """Integers of NumPy, and tensors that hold one, are integers; sets of them are those of others."""
        at = support.sites([6, 6, 6], 2, 0.3)
        one = pt.voxel_set(at, numpy.array([6, 6, 6]), numpy.int64(3), kind="strided", stride=torch.tensor(2),
                           padding=(numpy.int8(1), torch.tensor(1), 1), batches=at[:, 0].max() + 1)
        two = pt.voxel_set(at, [6, 6, 6], 3, kind="strided", stride=2, padding=1, batches=2)
        self.same(one.indices, two.indices)
        self.same(one._triplets.by_out, two._triplets.by_out)
        x = spconv.SparseConvTensor(torch.ones(len(at), 4), at, torch.tensor([6, 6, 6]), at[:, 0].max() + 1)
        self.assertEqual((x.spatial_shape, x.batch_size, type(x.batch_size)), ([6, 6, 6], 2, int))
        points, level = geometry()
        cell, radius = torch.tensor(0.1, dtype=torch.float64), numpy.array(0.3)
        self.assertIs(points.grid(cell), level)
        made = level.set(level, 3, radius=radius)
        self.assertIs(level.set(level, numpy.int64(3), radius=0.3)._triplets.by_out.dtype, torch.int64)
        radius.fill(0.1)
        self.assertEqual(level.set(level, 3, radius=radius)._triplets.count, level.set(level, 3, radius=0.1)._triplets.count)
        self.assertNotEqual(made._triplets.count, level.set(level, 3, radius=0.1)._triplets.count)

    def test_equal_is_not_enough(self):
        """What equals a number that was taken before, and is none, is refused as before."""
        points, level = geometry()
        level.set(level, 1)
        level.buckets(bucket=16, shift=0)
        for value in (True, 1.0):
            self.refused("kernel", level.set, level, value, error=TypeError)
        self.refused("bucket", level.buckets, bucket=16.0, error=TypeError)
        self.refused("shift", level.buckets, bucket=16, shift=False, error=TypeError)


    def test_kernel(self):
        """Of VoxelConv: a number, or one an axis, of one to three."""
        self.assertEqual(pt.VoxelConv(4, 4, kernel=numpy.int64(3)).kernel, [3, 3, 3])
        self.assertEqual(pt.VoxelConv(4, 4, kernel=torch.tensor(5)).kernel, [5, 5, 5])
        self.assertEqual(list(pt.VoxelConv(4, 4, kernel=(3, 1)).weight.shape), [3, 4, 4])
        for wrong in (0, -1, 3.0, True, math.nan, None, "3", [3, 0], [3.0], [], [1] * 4, torch.tensor(2.5), GRADIENT):
            with self.subTest(kernel=wrong):
                self.usage("kernel", pt.VoxelConv, 4, 4, kernel=wrong)


class Voxels(support.Case):
    """dense(), sparse_add() and what adds tensors see voxels that are wrong; others need no check."""

    WRONG = (([2, 0, 0, 0], "row 1: the voxel [2, 0, 0, 0] is outside of 2 samples of [4, 3, 5]"), ([-1, 0, 0, 0], "row 1"),
             ([0, 4, 0, 0], "row 1"), ([0, 0, 3, 0], "row 1"), ([0, 0, 0, 5], "row 1"), ([1, -1, 2, 4], "row 1"),
             ([0, 0, -1, 0], "row 1"), ([1, 0, 0, -2], "row 1"), ([2 ** 31 - 1] * 4, "row 1"), ([-2 ** 31] * 4, "row 1"),
             ([1, 3, 2, 4], "rows 0 and 1 are the same voxel"))
    device = "cpu"

    def tensor(self, *rows, shape=(4, 3, 5), batch=2):
        at = torch.tensor(rows, dtype=torch.int32, device=self.device)
        return spconv.SparseConvTensor(torch.ones(len(rows), 2, device=self.device), at, list(shape), batch)

    def test_wrong_voxels(self):
        good = self.tensor([0, 1, 1, 1])
        for voxel, part in self.WRONG:
            wrong = self.tensor([1, 3, 2, 4], voxel, [0, 1, 1, 1])
            for call in (wrong.dense, lambda: spconv.ToDense()(wrong), lambda: spconv.functional.sparse_add(good, wrong),
                         lambda: spconv.AddTableMisaligned()([wrong, good])):
                self.usage(part, call)
                self.refused(part, call)

    def test_other_batch_size(self):
        x, y = self.tensor([0, 1, 1, 1]), self.tensor([0, 1, 1, 1], batch=3)
        for call in (lambda: x + y, lambda: spconv.AddTable()([x, y]), lambda: spconv.JoinTable()([x, y])):
            self.refused("other voxels", call)
        self.refused("samples", spconv.functional.sparse_add, x, y)
        self.usage("no tensors", spconv.functional.sparse_add)

    def test_corners(self):
        """The first and the last voxel, and any number of axes."""
        for axes in range(1, 5):
            shape = list(range(2, 2 + axes))
            x = self.tensor([0] * (1 + axes), [1, *(n - 1 for n in shape)], shape=shape)
            wanted = torch.zeros(2, 2, *shape, device=self.device)
            wanted[(0, slice(None), *[0] * axes)] = wanted[(1, slice(None), *[-1] * axes)] = 1
            self.same(x.dense(), wanted)
        self.usage("too many voxels", self.tensor([0, 0, 0, 0], shape=[2 ** 30] * 3).dense)

    def test_checks_once(self):
        """Voxels are checked once a tensor, and not at all where a set knows them; what was written to is checked anew."""
        checked = []
        plain = spconv.core.check_voxels
        self.addCleanup(setattr, spconv.core, "check_voxels", plain)
        spconv.core.check_voxels = lambda *given: (checked.append(given), plain(*given))
        at = support.sites([6, 6, 6], 2, 0.3).to(self.device)
        x = spconv.SparseConvTensor(torch.ones(len(at), 4, device=self.device), at, [6, 6, 6], 2)
        first, down = spconv.SubMConv3d(4, 4, 3).to(self.device), spconv.SparseConv3d(4, 4, 2, 2).to(self.device)
        y = first(x)
        z = down(y)
        spconv.functional.sparse_add(z, spconv.SparseMaxPool3d(2)(x)).dense()
        for given in (y, z, spconv.SparseConvTensor.from_dense(y.dense(False).detach()), y.replace_feature(y.features + 1)):
            given.dense()
        x.dense()
        self.assertEqual(checked, [])
        x = spconv.SparseConvTensor(x.features, at, [6, 6, 6], 2)
        x.dense()
        x.dense()
        spconv.functional.sparse_add(x.replace_feature(x.features), x).dense()
        self.assertEqual(len(checked), 1)
        z.indices[0, 1] = 3
        self.usage("outside of 2 samples of [3, 3, 3]", z.dense)
        x.indices = x.indices + 1  # of the same version
        self.usage("outside of 2 samples of [6, 6, 6]", x.dense)
        x.indices = at
        x.dense()
        x.spatial_shape = [5, 6, 6]
        self.usage("outside of 2 samples of [5, 6, 6]", x.dense)

    def test_compiled(self):
        """A compiled graph refuses voxels outside."""
        dense = torch.compile(lambda f, at: spconv.SparseConvTensor(f, at, [4, 3, 5], 2).dense(), fullgraph=True, backend="eager")
        good, wrong = self.tensor([1, 3, 2, 4], [0, 1, 1, 1]), self.tensor([1, 3, 2, 4], [0, 0, 3, 0])
        self.same(dense(good.features, good.indices), good.dense())
        if self.device == "cpu":  # on a GPU it ends the process
            self.refused("outside", dense, wrong.features, wrong.indices, error=RuntimeError)


if __name__ == "__main__":
    unittest.main()
