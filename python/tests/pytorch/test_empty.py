"""No voxels, no points, and samples without any: each layer, pool, loss and container, forward and backward.

TABLE has a use of every public name, so that a new one cannot be forgotten.
"""

import pathlib
import unittest

import torch
import torch._dynamo
from torch import nn

import pnet.torch as pt
import pnet.torch.spconv as spconv
import support

SCENE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "scene.pnet"
NOTHING = object()  # of a name that takes no rows


class Given:
    """What a use takes: tensors of some rows in the first sample, none in the others."""

    def __init__(self, device, dtype, samples, some):
        self.device, self.dtype, self.samples, self.some = device, dtype, samples, some
        self.leaves, self.modules = [], []
        torch.manual_seed(1)

    def leaf(self, rows, channels, dtype=None, scale=1.0):
        """Features that require a gradient."""
        drawn = scale * torch.randn(rows, channels, generator=support.draw(len(self.leaves) + 2))
        self.leaves.append(drawn.to(self.device, dtype or self.dtype).requires_grad_())
        return self.leaves[-1]

    def made(self, module):
        """A module whose parameters are to get gradients, in training."""
        self.modules.append(module.to(self.device, self.dtype))
        return module

    def voxels(self, axes=3):
        return support.sites([6] * axes, 1, 0.4 if self.some else 0, seed=3).to(self.device)

    def x(self, axes=3, channels=8):
        """A sparse tensor."""
        at = self.voxels(axes)
        return spconv.SparseConvTensor(self.leaf(len(at), channels), at, [6] * axes, self.samples)

    def points(self):
        """Points, a level and a coarser one."""
        xyz = self.leaf(200 if self.some else 0, 3, torch.float32)
        splits = torch.tensor([0] + [len(xyz)] * self.samples, device=self.device)
        points = pt.Points(xyz, row_splits=splits)
        level = points.grid(0.3)
        return points, level, level.grid(0.6)

    def splits(self, rows):
        return torch.tensor([0] + [rows] * self.samples, device=self.device)


def layer(axes, make):
    """The use of a layer of sparse tensors."""
    def use(g):
        found = g.made(make())(g.x(axes))
        return found if isinstance(found, torch.Tensor) else found.features
    return use


def inverse(axes, first, *numbers):
    key = {"indice_key": "k"}
    channels = () if "Pool" in first else (8, 8)
    return layer(axes, lambda: spconv.SparseSequential(
        getattr(spconv, f"{first}{axes}d")(*channels, *numbers, **key), nn.BatchNorm1d(8), nn.ReLU(),
        getattr(spconv, f"SparseInverseConv{axes}d")(8, 5, numbers[0], **key)))


def dense(*modules):
    """A container with modules of PyTorch."""
    return layer(3, lambda: spconv.SparseSequential(*[make() for make in modules]))


def of_axes(axes):
    """The names that end in the number of axes."""
    def plain(name, *cases):
        return [layer(axes, lambda numbers=numbers, named=named: getattr(spconv, f"{name}{axes}d")(*numbers, **named))
                for numbers, named in cases]
    conv = [((8, 6, 3), {}), ((8, 6, 1), {}), ((8, 6, 3), {"groups": 2}), ((8, 6, 3), {"bias": False})]
    strided = [((8, 6, 3), {"stride": 2, "padding": 1}), ((8, 6, 2), {"stride": 2, "record_voxel_count": True}), *conv[1:]]
    pool = [((2,), {}), ((3, 2, 1), {})]
    return {f"SubMConv{axes}d": plain("SubMConv", *conv), f"SparseConv{axes}d": plain("SparseConv", *strided),
            f"SparseConvTranspose{axes}d": plain("SparseConvTranspose", *strided),
            f"SparseInverseConv{axes}d": [inverse(axes, "SparseConv", 2, 2), inverse(axes, "SparseMaxPool", 2, 2)],
            f"SparseMaxPool{axes}d": plain("SparseMaxPool", *pool), f"SparseAvgPool{axes}d": plain("SparseAvgPool", *pool)}


def tensor(g):
    """SparseConvTensor's methods."""
    x = g.x()
    back = spconv.SparseConvTensor.from_dense(x.dense(channels_first=False))
    some = x.select_by_index(torch.arange(len(x.indices), device=g.device))
    return [x.dense(), x.minus().features, (x + x).features, some.features, back.features, (x + x.features).features]


def tables(g):
    x = g.x()
    branch = g.made(spconv.ConcatTable().add(spconv.SubMConv3d(8, 8, 3)).add(spconv.Identity()))
    return branch(x)


def added(g):
    """Other voxels."""
    x = g.x()
    return x, g.made(spconv.SparseConv3d(8, 8, 3, padding=1))(g.x())


def named(g):
    net = g.made(spconv.weights_by_tap(spconv.SparseSequential(spconv.SubMConv3d(8, 6, 3), nn.ReLU())))
    spconv.assign_name_for_sparse_modules(net)
    return net(g.x()).features


SPCONV = {
    **of_axes(1), **of_axes(2), **of_axes(3),
    "SparseConvolution": [layer(3, lambda: spconv.SparseConvolution(3, 8, 6, 3, subm=True))],
    "SparseConvTensor": [tensor],
    "SparseSequential": [
        dense(lambda: nn.Linear(8, 3)), dense(lambda: nn.Linear(8, 8), lambda: nn.BatchNorm1d(8), nn.ReLU, nn.Dropout),
        dense(lambda: nn.BatchNorm1d(8, momentum=None)), dense(lambda: nn.BatchNorm1d(8, track_running_stats=False)),
        dense(lambda: nn.LayerNorm(8), nn.GELU), dense(lambda: nn.GroupNorm(2, 8), lambda: nn.PReLU(8)),
        dense(lambda: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))),
        dense(lambda: nn.SyncBatchNorm(8)),
        dense(lambda: spconv.SparseSequential(nn.Linear(8, 8), spconv.SubMConv3d(8, 8, 3), nn.BatchNorm1d(8)))],
    "SparseBatchNorm": [layer(3, lambda: spconv.SparseBatchNorm(8)), layer(3, lambda: spconv.SparseBatchNorm(8, momentum=None)),
                        lambda g: g.made(spconv.SparseBatchNorm(8))(g.x().features)],
    "SparseSyncBatchNorm": [layer(3, lambda: spconv.SparseSyncBatchNorm(8))],
    "SparseReLU": [layer(3, spconv.SparseReLU)], "SparseIdentity": [layer(3, spconv.SparseIdentity)],
    "Identity": [layer(3, spconv.Identity)], "ToDense": [layer(3, spconv.ToDense)], "RemoveGrid": [layer(3, spconv.RemoveGrid)],
    "SparseGlobalMaxPool": [layer(3, spconv.SparseGlobalMaxPool)], "SparseGlobalAvgPool": [layer(3, spconv.SparseGlobalAvgPool)],
    "ConcatTable": [lambda g: [y.features for y in tables(g)]], "AddTable": [lambda g: spconv.AddTable()(tables(g)).features],
    "JoinTable": [lambda g: spconv.JoinTable()(tables(g)).features],
    "AddTableMisaligned": [lambda g: spconv.AddTableMisaligned()(added(g)).features],
    "functional": [lambda g: spconv.functional.sparse_add(*added(g)).features],
    "weights_by_tap": [named], "assign_name_for_sparse_modules": [named],
    **dict.fromkeys(("ConvAlgo", "SparseModule", "conv", "core", "modules", "ops", "pool", "tables"), NOTHING),
    **dict.fromkeys(("SubMConv4d", "SparseConv4d", "SparseConvTranspose4d", "SparseInverseConv4d", "SparseMaxPool4d"), NOTHING),
}


def voxel_sets(g):
    """Sets of all kinds: convolution, there and back, and pools."""
    at, found = g.voxels(), []
    for kind, numbers in (("submanifold", {}), ("strided", {"stride": 2, "padding": 1}), ("transposed", {"stride": 2})):
        made = pt.voxel_set(at, [6] * 3, 3, kind=kind, batches=g.samples, **numbers)
        y = made.conv(g.leaf(len(at), 8), g.leaf(27 * 8, 6, scale=0.1).reshape(27, 8, 6), g.leaf(1, 6).flatten())
        found += [y, made.inverse().conv(y, g.leaf(27 * 6, 4, scale=0.1).reshape(27, 6, 4))]
        found += [made.pool(g.leaf(len(at), 8), how) for how in ("max", "mean", "sum")]
    return found


def flexgemm(g):
    at, weight, shape = g.voxels(), g.leaf(6, 27 * 8).reshape(6, 3, 3, 3, 8), [g.samples, 8, 6, 6, 6]
    y, cache = pt.sparse_submanifold_conv3d(g.leaf(len(at), 8), at, shape, weight, g.leaf(1, 6).flatten())
    return [y, pt.sparse_submanifold_conv3d(g.leaf(len(at), 8), at, shape, weight, None, cache)[0]]


def point_convs(g):
    points, level, coarse = g.points()
    x, found = g.leaf(level.rows, 8), [points.positions, level.positions]
    for named in ({}, {"radius": 0.4}, {"knn": 3}, {"shape": "cube"}, {"degrade": "voxel"}, {"groups": 2}):
        found.append(g.made(pt.PointConv(8, 6, **named))(x, level))
    down = g.made(pt.PointConv(8, 6, 2))(x, level, coarse)
    return [*found, down, g.made(pt.PointConv(6, 6, 2))(down, coarse, level)]


def point_set(g):
    _, level, coarse = g.points()
    made = coarse.set(level, 2)
    return [coarse.positions, made.conv(g.leaf(level.rows, 8), g.leaf(8 * 8, 6).reshape(8, 8, 6)),
            *(made.pool(g.leaf(level.rows, 8), how) for how in ("max", "mean", "sum"))]


def maps(g):
    points, level, coarse = g.points()
    x = g.leaf(level.rows, 8)
    y = [pt.pool(x, level, coarse, kind) for kind in ("mean", "max", "sum")]
    return [level.positions, *y, pt.upsample(y[0], coarse, level), *(
        pt.interpolate(x, level, points, kind) for kind in ("inverse_distance", "trilinear", "nearest")),
        pt.interpolate(x, level, points, "trilinear", outside="nearest")]


def attention(g):
    _, level, _ = g.points()
    return [level.positions, *(pt.attend(g.leaf(level.rows, 48), level, 2, order=order) for order in (
        "z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod")),
        level.buckets(bucket=16, scope=2, shift=3, wrap=True).attend(g.leaf(level.rows, 24))]


def losses(g):
    """The mean over the samples, times their number."""
    found, rows = [], 40 if g.some else 0
    for kind in ("chamfer", "dcd", "hypercd", "infocd", "emd", "sinkhorn", "apml"):
        x, y = g.leaf(rows, 3, torch.float32), g.leaf(rows, 3, torch.float32)
        found.append(g.samples * pt.point_loss(kind, x, y, x_splits=g.splits(rows), y_splits=g.splits(rows)))
    return found


def network(g):
    if g.dtype != torch.float32:
        return None  # it is float32 in all types
    rows = 300 if g.some else 0
    net = pt.Network(SCENE, {"v": "10cm"}, seed=1)
    draw = support.draw(4)
    batch = {"cloud.xyz": torch.rand(rows, 3, generator=draw), "cloud.rgb": torch.rand(rows, 3, generator=draw),
             "cloud.label": torch.randint(0, 3, (rows,), generator=draw, dtype=torch.int32), "cloud": g.splits(rows)}
    return g.made(net)({name: value.to(g.device) for name, value in batch.items()})


TORCH = {
    "VoxelSet": [voxel_sets], "voxel_set": [voxel_sets], "NeighborCache": [flexgemm], "sparse_submanifold_conv3d": [flexgemm],
    "VoxelConv": [lambda g: g.made(pt.VoxelConv(8, 6))(g.leaf(len(g.voxels()), 8),
                                                       pt.voxel_set(g.voxels(), [6] * 3, batches=g.samples))],
    "Points": [point_convs], "PointConv": [point_convs], "PointSet": [point_set], "PointMap": [maps], "pool": [maps],
    "upsample": [maps], "interpolate": [maps], "Buckets": [attention], "attend": [attention], "point_loss": [losses],
    "Network": [network],
}
TABLE = {"pnet.torch": (pt, TORCH), "pnet.torch.spconv": (spconv, SPCONV)}


class Empty(support.Case):
    device = "cpu"

    def uses(self):
        """Each use once, with the names that it belongs to."""
        for where, (_, table) in TABLE.items():
            for name, uses in table.items():
                for number, use in enumerate(() if uses is NOTHING else uses):
                    yield f"{where}.{name} {number}", use

    def run_use(self, use, samples, some, dtype, autocast=False):
        """Results, gradients by leaves and parameters, and buffers by name; None where the use is of another type."""
        g = Given(self.device, dtype, samples, some)
        with torch.autocast(self.device, torch.bfloat16, enabled=autocast):
            found = use(g)
        if found is None:
            return None
        found = found if isinstance(found, list) else [found]
        sum(y.float().mul(1.5).sum() for y in found).backward()
        leaves = g.leaves + [p for module in g.modules for p in module.parameters()]
        self.assertGreater(len(leaves), 0)
        for leaf in leaves:
            self.assertIsNotNone(leaf.grad, list(leaf.shape))
            self.assertEqual(leaf.grad.shape, leaf.shape)
        buffers = {name: value for module in g.modules for name, value in module.named_buffers()}
        return [y.detach() for y in found], [leaf.grad for leaf in leaves], buffers

    def test_every_name(self):
        """TABLE has all public names, and no others."""
        for where, (module, table) in TABLE.items():
            self.assertEqual(sorted(table), sorted(module.__all__), where)
        self.assertEqual(spconv.functional.__all__, ["sparse_add"])

    def test_no_rows(self):
        """Results of no rows, or of zeros; gradients of zero; running statistics as they were."""
        fresh = {"running_mean": 0, "running_var": 1, "num_batches_tracked": 0, "max_num_voxels_during_training": 0}
        for name, use in self.uses():
            for samples in (1, 2):
                for dtype in (torch.float32, torch.float16, torch.bfloat16, "autocast"):
                    with self.subTest(name=name, samples=samples, dtype=dtype):
                        autocast = dtype == "autocast"
                        done = self.run_use(use, samples, False, torch.float32 if autocast else dtype, autocast)
                        if done is None:
                            continue
                        for one in done[0] + done[1]:
                            self.assertEqual((one.count_nonzero().item(), one.isnan().any().item()), (0, False))
                        for buffer, value in done[2].items():
                            wanted = fresh[buffer.rsplit(".", 1)[-1]]
                            self.same(value, torch.full_like(value, wanted))

    def test_empty_sample(self):
        """A sample without rows changes nothing of another one, and gives zeros of its own."""
        for name, use in self.uses():
            with self.subTest(name=name):
                alone = self.run_use(use, 1, True, torch.float32)
                both = self.run_use(use, 2, True, torch.float32)
                for one, two in zip(alone[0], both[0]):
                    rows = one.shape[0] if one.dim() else None
                    self.near(two[:rows] if one.dim() else two, one.double(), 1e-5)
                    if one.dim():
                        self.assertEqual(two[rows:].count_nonzero().item(), 0)
                for one, two in zip(alone[1], both[1]):
                    self.near(two, one.double(), 1e-5)
                self.assertGreater(max(one.abs().max().item() for one in alone[0]), 0)

    def test_nothing_left(self):
        """A stride that leaves no voxel, and the way back."""
        indices = torch.tensor([[1, 2, 2, 2]], dtype=torch.int32, device=self.device)
        features = torch.ones(1, 8, device=self.device, requires_grad=True)
        for first in (spconv.SparseConv3d(8, 8, 2, 2, indice_key="k"), spconv.SparseMaxPool3d(2, indice_key="k"),
                      spconv.SparseAvgPool3d(2, indice_key="k")):
            net = spconv.SparseSequential(
                first, nn.Linear(8, 8), nn.BatchNorm1d(8), spconv.SubMConv3d(8, 8, 3),
                spconv.SparseInverseConv3d(8, 4, 2, indice_key="k")).to(self.device)
            features.grad = None
            y = net(spconv.SparseConvTensor(features, indices, [3, 3, 3], 2))
            self.assertIs(y.indices, indices)
            self.same(y.features.detach(), net[-1].bias.detach()[None])
            y.features.sum().backward()
            self.same(features.grad, torch.zeros_like(features))
            for name, parameter in net.named_parameters():
                self.same(parameter.grad, torch.full_like(parameter, 1.0 if name == "4.bias" else 0.0))

    def test_steps(self):
        """A training goes on after a batch without voxels: cumulative statistics are those of the others alone."""
        x = support.tensor([6, 6, 6], 2, 0.3, 8)
        features = x.features.to(self.device)
        none = spconv.SparseConvTensor(features[:0], x.indices[:0].to(self.device), [6, 6, 6], 2)
        x = spconv.SparseConvTensor(features, x.indices.to(self.device), [6, 6, 6], 2)
        for make in (lambda: spconv.SparseSequential(nn.BatchNorm1d(8, momentum=None)),
                     lambda: spconv.SparseBatchNorm(8, momentum=None),
                     lambda: spconv.SparseSequential(nn.Sequential(nn.Identity(), nn.BatchNorm1d(8, momentum=None)))):
            net = make().to(self.device)
            for given in (none, x, none, none):
                net(given)
            mean, = (value for name, value in net.named_buffers() if name.endswith("running_mean"))
            self.near(mean, features.double().mean(0))

    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compiled(self):
        net = spconv.SparseSequential(spconv.SubMConv3d(8, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).to(self.device)
        given = Given(self.device, torch.float32, 2, False)
        y = torch.compile(net, fullgraph=True, backend="eager")(given.x()).features
        self.assertEqual(list(y.shape), [0, 3])
        y.sum().backward()
        for leaf in (*given.leaves, *net.parameters()):
            self.same(leaf.grad, torch.zeros_like(leaf))
        self.same(net[1].running_mean, torch.zeros(8, device=self.device))


if __name__ == "__main__":
    unittest.main()
