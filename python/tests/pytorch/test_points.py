"""Points in PyTorch: convolution, pools, maps, attention and losses against float64; what PyTorch does with them."""

import copy
import gc
import pickle
import unittest
import warnings

import torch
import torch._dynamo
from torch.autograd import forward_ad
from torch.nn import functional

import pnet
import pnet.torch as pt
import support
from pnet.torch import _points

CELL = 0.2


def cloud(rows=400, seed=1, size=1.5):
    """Two samples of random positions, and the splits."""
    return torch.rand(rows, 3, generator=support.draw(seed)) * size, torch.tensor([0, rows // 3, rows])


class Case(support.Case):
    def setUp(self):
        self.xyz, self.splits = cloud()
        self.points = pt.Points(self.xyz, row_splits=self.splits, cell=CELL)
        self.level = self.points.grid(CELL)
        self.coarse = self.level.grid(2 * CELL)

    def draw(self, *shape, seed=5):
        return torch.randn(shape, generator=support.draw(seed))

    def agrees(self, call, reference, leaves, limit=2e-6):
        """Results and gradients of a function and of another one in float64."""
        given = [t.detach().clone().requires_grad_() for t in leaves]
        wide = [t.detach().double().requires_grad_() for t in leaves]
        y, z = call(*given), reference(*wide)
        self.near(y.detach(), z.detach(), limit, "result")
        gradient = self.draw(*y.shape, seed=8)
        for number, (one, two) in enumerate(zip(torch.autograd.grad(y, given, gradient),
                                                torch.autograd.grad(z, wide, gradient.double()))):
            self.near(one, two, limit, f"gradient {number}")


class Geometry(Case):
    def test_levels(self):
        """A cell with points keeps the one that is nearest to its centre."""
        cells = torch.floor(self.xyz.double() / CELL).long()
        key = torch.cat([self.points.samples()[:, None].long(), cells], 1)
        own, of = torch.unique(key, dim=0, return_inverse=True)
        self.assertEqual(self.level.rows, len(own))
        parents = self.points.parents(self.level).long()
        for row in range(0, self.level.rows, 7):
            self.assertEqual(len(of[parents == row].unique()), 1)
        far = ((self.xyz.double() / CELL) % 1 - 0.5).norm(dim=1)
        least = torch.full((len(own),), 9.0, dtype=torch.float64).scatter_reduce(0, of, far, "amin")
        kept = self.level.sources().long()
        self.near(far[kept], least[of[kept]], 1e-6)
        self.same(self.level.positions, self.xyz[kept])
        self.same(self.level.samples(), self.points.samples()[kept])
        self.assertEqual((self.points.batches, self.level.cell, self.points.cell), (2, CELL, 0))

    def test_positions_have_gradients(self):
        xyz = self.xyz.clone().requires_grad_()
        level = pt.Points(xyz, row_splits=self.splits).grid(CELL).grid(2 * CELL)
        level.positions.sum().backward()
        wanted = torch.zeros_like(xyz)
        wanted[level.sources().long()] = 1
        self.same(xyz.grad, wanted)

    def test_made_once(self):
        self.assertIs(self.points.grid(CELL), self.level)
        self.assertIs(self.level.grid(CELL), self.level)
        layer = pt.PointConv(4, 4)
        self.assertIs(layer.set(self.level), layer.set(self.level))
        self.assertIs(layer.set(self.level), layer.set(self.level, self.level))
        self.assertIsNot(layer.set(self.level), layer.set(self.level, self.coarse))
        self.assertIsNot(self.level.set(kernel=3), self.level.set(kernel=3, radius=0.5))
        self.assertIs(self.level.map(self.points, "mean"), self.level.map(self.points, "mean"))

    def test_forgotten(self):
        """Geometry goes with its points, tokens with whatever uses them."""
        def step():
            points = pt.Points(self.xyz, row_splits=self.splits)
            level = points.grid(CELL)
            features = self.draw(len(self.xyz), 4).requires_grad_()
            y = pt.interpolate(pt.PointConv(4, 4)(pt.pool(features, points, level), level), level, points)
            del points, level
            return y, features

        gc.collect()
        before = len(_points._held)
        gc.disable()
        try:
            y, features = step()
            self.assertGreater(len(_points._held), before)
            y.sum().backward()  # its geometry is there still
            self.assertGreater(features.grad.norm(), 0)
            del y
            self.assertEqual(len(_points._held), before)
        finally:
            gc.enable()

    def test_wrong(self):
        self.usage("not finite", pt.Points, torch.full((3, 3), float("nan")))
        self.usage("float64", pt.Points, self.xyz.double())
        self.usage("multiple", self.level.grid, 1.5 * CELL)
        self.usage("features is", pt.pool, torch.zeros(len(self.xyz), 4).double(), self.points, self.level)
        self.usage("features is [3, 4]", pt.pool, torch.zeros(3, 4), self.points, self.level)
        self.usage("expected one of", pt.pool, torch.zeros(len(self.xyz), 4), self.points, self.level, "median")
        self.usage("sampled", pt.pool, torch.zeros(self.level.rows, 4), self.level, self.points)
        self.usage("expected one of", pt.point_loss, "distance", self.xyz, self.xyz)
        self.usage("no option", pt.point_loss, "chamfer", self.xyz, self.xyz, sigma=1)
        self.usage("groups", pt.PointConv, 4, 6, groups=4)
        for broken in (lambda: copy.deepcopy(self.points), lambda: pickle.dumps(self.points)):
            self.refused("not copied", broken, error=TypeError)
        token = self.level.map(self.points, "mean")._token
        self.usage("not there", _points.held, token + 10 ** 6)


class Layers(Case):
    def triplets(self, out, source, kernel, **options):
        """From the library itself, whose own tests compare them with searches; here with distances once more."""
        made = pnet.PointSet(out._points, source._points, kernel, **options)
        i, j, k = (torch.from_numpy(t).long() for t in made.triplets())
        if "radius" in options:
            far = torch.cdist(out.positions.double(), source.positions.double())
            far[out.samples()[:, None] != source.samples()[None]] = 9
            near = torch.zeros_like(far, dtype=torch.bool)
            near[i, j] = True
            unsure = (far - options["radius"]).abs() < 1e-6
            self.assertTrue(((near == (far <= options["radius"])) | unsure).all())
        return i, j, k

    def test_convolution(self):
        for out, source, kernel, options in (
            (self.level, self.level, 3, {}), (self.level, self.level, 3, {"radius": 0.45}), (self.coarse, self.level, 2, {}),
            (self.level, self.coarse, 2, {}), (self.level, self.level, 5, {"knn": 9}),
            (self.level, self.level, 3, {"degrade": "voxel"}), (self.points, self.level, 3, {"radius": 0.3}),
        ):
            for groups in (1, 2):
                with self.subTest(kernel=kernel, options=options, groups=groups):
                    torch.manual_seed(2)
                    layer = pt.PointConv(6, 8, kernel, groups=groups, **options)
                    i, j, k = self.triplets(out, source, kernel, **options)

                    def reference(features, weight, bias):
                        result = bias.expand(out.rows, 8)
                        for g in range(groups):
                            x = features.view(-1, groups, 6 // groups)[j, g]
                            part = torch.einsum("ti,tio->to", x, weight.view(kernel ** 3, 6 // groups, groups, -1)[k, :, g])
                            whole = torch.zeros(len(i), 8, dtype=torch.float64)
                            whole[:, g * 8 // groups:(g + 1) * 8 // groups] = part
                            result = result.index_add(0, i, whole)
                        return result

                    def call(features, weight, bias):
                        return layer.set(source, out).conv(features, weight, bias, groups)

                    features = self.draw(source.rows, 6)
                    self.agrees(call, reference, [features, layer.weight, layer.bias])
                    self.same(layer(features, source, out), call(features, layer.weight, layer.bias))

    def test_voxel_conv(self):
        at = support.sites([6, 5, 7], 2, 0.4)
        made = pt.voxel_set(at, [6, 5, 7], (3, 1, 3), batches=2)
        layer = pt.VoxelConv(4, 6, (3, 1, 3), groups=2)
        x = self.draw(len(at), 4)
        self.same(layer(x, made), made.conv(x, layer.weight, layer.bias, 2))
        self.assertEqual((list(layer.weight.shape), layer.extra_repr()), ([9, 2, 6], "4, 6, groups=2, kernel=[3, 1, 3]"))

    def test_model(self):
        """A level's convolution has the bits of the same layer of a model."""
        text = """pnet 1
input cloud { xyz : position rgb : feature[3] }
net n(p: cloud) { g = grid(p, 20cm) return p.rgb -> pool(mean, to=g) -> conv(5, kernel=3) }
y = n(cloud)
"""
        model = pnet.Model(text)
        session = model.session()
        session.init()
        rgb = self.draw(len(self.xyz), 3)
        session.bind({"cloud.xyz": self.xyz.numpy(), "cloud.rgb": rgb.numpy(), "cloud": self.splits.numpy()})
        weights = {w.name: torch.from_numpy(session.weight(w.name)) for w in model.weights if not w.folded}
        layer = pt.PointConv(3, 5, bias=any("bias" in name for name in weights))
        for name, value in weights.items():
            getattr(layer, name.split(".")[-1]).data.copy_(value.reshape(getattr(layer, name.split(".")[-1]).shape))
        session.forward()
        y = layer(pt.pool(rgb, self.points, self.level), self.level)
        wanted = torch.from_numpy(session.result())
        got = y if len(wanted) == len(y) else pt.upsample(y, self.level, self.points)
        self.same(got.detach(), wanted)

    def test_pools(self):
        parents = self.points.parents(self.level).long()
        count = torch.bincount(parents, minlength=self.level.rows).double()[:, None]
        x = self.draw(len(self.xyz), 7)

        def total(features):
            return torch.zeros(self.level.rows, 7, dtype=torch.float64).index_add(0, parents, features)

        def top(features):
            return torch.full((self.level.rows, 7), -9.0, dtype=torch.float64).scatter_reduce(
                0, parents[:, None].expand(-1, 7), features, "amax")

        for kind, reference in (("sum", total), ("mean", lambda f: total(f) / count), ("max", top)):
            with self.subTest(kind=kind):
                self.agrees(lambda f: pt.pool(f, self.points, self.level, kind), reference, [x])
        self.agrees(lambda f: pt.upsample(f, self.level, self.points), lambda f: f[parents], [self.draw(self.level.rows, 7)])

    def test_interpolate(self):
        other, splits = cloud(90, 3)
        queries = pt.Points(other, row_splits=splits)
        far = torch.cdist(other.double(), self.level.positions.double())
        far[queries.samples()[:, None] != self.level.samples()[None]] = float("inf")
        for k in (1, 3, 8):
            near, rows = far.topk(k, largest=False)
            weight = 1 / (near ** 2 + 1e-8)
            weight = weight / weight.sum(1, keepdim=True)
            self.agrees(lambda f: pt.interpolate(f, self.level, queries, k=k),
                        lambda f: (f[rows] * weight[..., None]).sum(1), [self.draw(self.level.rows, 5)], 2e-5)

    def test_trilinear(self):
        """A function that is linear is met exactly where all eight cells are there; elsewhere weights are shares of those."""
        inside = (torch.cartesian_prod(*(torch.arange(5) for _ in range(3))) + 0.5) * CELL
        level = pt.Points(inside.float()).grid(CELL)
        queries = pt.Points(torch.rand(60, 3, generator=support.draw(4)) * 3.9 * CELL + 0.55 * CELL)
        centres = (torch.floor(level.positions.double() / CELL) + 0.5) * CELL
        q = queries.positions.double()
        weight = (1 - (q[:, None] - centres[None]).abs() / CELL).clamp(min=0).prod(2)
        weight = weight / weight.sum(1, keepdim=True)
        x = self.draw(level.rows, 4)
        self.agrees(lambda f: pt.interpolate(f, level, queries, "trilinear"), lambda f: weight @ f, [x], 1e-5)
        linear = pt.interpolate(level.positions, level, queries, "trilinear")
        self.near(linear, q, 1e-5)
        cells = (queries.positions / CELL).floor()
        own = [(level.positions / CELL).floor().eq(c).all(1).nonzero().item() for c in cells]
        self.same(pt.interpolate(x, level, queries, "nearest"), x[own])
        outside = pt.Points(torch.full((1, 3), -1.0))
        self.same(pt.interpolate(x, level, outside, "nearest"), torch.zeros(1, 4))
        corner = level.positions.norm(dim=1).argmin()
        self.same(pt.interpolate(x, level, outside, "nearest", outside="nearest"), x[corner][None])

    def test_attend(self):
        """With scopes of a whole sample it is attention among all of its points."""
        starts = self.splits.tolist()
        for heads, width, scale in ((1, 16, None), (2, 32, 0.7), (4, 32, None)):
            def reference(qkv):
                found = []
                for first, end in zip(starts, starts[1:]):
                    q, k, v = (t.view(end - first, heads, -1).transpose(0, 1) for t in qkv[first:end].chunk(3, 1))
                    y = functional.scaled_dot_product_attention(q, k, v, scale=scale)
                    found.append(y.transpose(0, 1).reshape(end - first, width))
                return torch.cat(found)

            for order in ("z", "hilbert"):
                self.agrees(lambda qkv: pt.attend(qkv, self.points, heads, scale, order=order, scope=64, bucket=512, cell=CELL),
                            reference, [self.draw(len(self.xyz), 3 * width)], 1e-5)
        few = pt.attend(self.draw(len(self.xyz), 48), self.points, bucket=16, scope=1)
        self.assertGreater((few - pt.attend(self.draw(len(self.xyz), 48), self.points)).norm(), 0.1)

    def test_types(self):
        """16 bits and autocast: computed in float32, rounded once."""
        x = self.draw(len(self.xyz), 48)
        layer = pt.PointConv(48, 8)
        for kind in torch.bfloat16, torch.float16:
            narrow = x.to(kind).requires_grad_()
            wide = narrow.detach().float().requires_grad_()
            for call in (lambda t: pt.pool(t, self.points, self.level), lambda t: pt.attend(t, self.points, 2)):
                y, z = call(narrow), call(wide)
                self.same(y, z.to(kind))
                g = self.draw(*y.shape).to(kind)
                self.same(torch.autograd.grad(y, narrow, g)[0], torch.autograd.grad(z, wide, g.float())[0].to(kind))
            with torch.autocast("cpu", kind):
                features = pt.pool(x, self.points, self.level)
                y = layer(features, self.level)
                a = pt.attend(x, self.points, 2)
            self.assertEqual((features.dtype, y.dtype, a.dtype), (torch.float32, kind, kind))
            y.float().sum().backward()
            self.assertEqual(layer.weight.grad.dtype, torch.float32)


class Losses(Case):
    def setUp(self):
        super().setUp()
        self.x = self.xyz
        self.y = torch.rand(400, 3, generator=support.draw(9)) * 1.5

    def loss(self, kind, x=None, y=None, **options):
        return pt.point_loss(kind, self.x if x is None else x, self.y if y is None else y, x_splits=self.splits,
                             y_splits=self.splits, **options)

    def test_chamfer(self):
        starts = self.splits.tolist()

        def reference(squares):
            def of(x, y):
                found = []
                for first, end in zip(starts, starts[1:]):
                    far = ((x[first:end, None] - y[None, first:end]) ** 2).sum(-1)
                    far = far if squares else far.sqrt()
                    found.append((far.amin(1).mean() + far.amin(0).mean()) / (1 if squares else 2))
                return torch.stack(found).mean()
            return of

        for squares in (0, 1):
            self.agrees(lambda x, y: self.loss("chamfer", x, y, squares=squares), reference(squares), [self.x, self.y], 5e-6)

    def test_all(self):
        """Values of pnet.point_loss; gradients predict what a small step along them changes."""
        ours = [pnet.Points(t.numpy(), row_splits=self.splits.numpy()) for t in (self.x, self.y)]
        for kind, options in (("chamfer", {}), ("dcd", {"alpha": 40.0}), ("hypercd", {}),
                              ("infocd", {"tau": 0.5, "lambda_": 0.1}), ("emd", {}), ("sinkhorn", {}), ("apml", {})):
            with self.subTest(kind=kind):
                x, y = (t.clone().requires_grad_() for t in (self.x, self.y))
                value = self.loss(kind, x, y, **options)
                found = pnet.point_loss(kind, *ours, gradients=True, **options)
                self.assertEqual(value.item(), found[0])
                (3 * value).backward()
                for got, wanted in zip((x.grad, y.grad), found[1:]):
                    self.same(got, 3 * torch.from_numpy(wanted))
                if kind in ("chamfer", "hypercd", "sinkhorn"):  # the others fix pairs or weights in the gradient
                    step = 1e-3 * x.grad / x.grad.abs().max()
                    change = (self.loss(kind, self.x + step, **options) - self.loss(kind, self.x - step, **options)).item() / 2
                    self.assertAlmostEqual(change / (x.grad / 3 * step).sum().item(), 1, delta=0.1)

    def test_one_side(self):
        x = self.x.clone().requires_grad_()
        self.loss("chamfer", x).backward()
        self.assertGreater(x.grad.norm(), 0)
        self.assertFalse(self.loss("chamfer").requires_grad)
        with torch.no_grad():
            self.assertFalse(self.loss("chamfer", x).requires_grad)


class Net(torch.nn.Module):
    """Two levels, there and back, whose geometry is given."""

    def __init__(self):
        super().__init__()
        self.first, self.down, self.up = pt.PointConv(4, 16), pt.PointConv(16, 16, 2), pt.PointConv(16, 8, 2, bias=False)
        self.qkv, self.norm = torch.nn.Linear(16, 48), torch.nn.LayerNorm(16)

    def sets(self, level, coarse):
        return self.first.set(level), self.down.set(level, coarse), self.up.set(coarse, level)

    def forward(self, features, sets, maps, buckets):
        x = self.first(maps[0](features), sets[0]).relu()
        y = self.norm(self.down(x, sets[1]))
        y = y + buckets.attend(self.qkv(y), 2)
        return maps[1](self.up(y, sets[2]))


class Operators(Case):
    def test_opcheck(self):
        features = self.draw(len(self.xyz), 6).requires_grad_()
        up, down = self.level.map(self.points, "max"), self.points.map(self.level, "parent")
        argmax = torch.ops.pnet.map(features.detach(), up._token, self.level.rows, "max")[1]
        gradient = self.draw(self.level.rows, 6)
        qkv = self.draw(len(self.xyz), 48)
        token = self.points.buckets("z")._token
        result, log_sum = torch.ops.pnet.attend(qkv, token, 2, 0.0)
        x, y = (t[:60].clone().requires_grad_() for t in (self.xyz, self.xyz.flip(0)))
        for name, arguments in (
            ("map", (features, up._token, self.level.rows, "max")),
            ("map", (self.draw(self.level.rows, 6).requires_grad_(), down._token, len(self.xyz), "parent")),
            ("map_grad", (gradient, argmax, up._token, len(self.xyz), "max")),
            ("attend", (qkv.clone().requires_grad_(), token, 2, 0.0)),
            ("attend_grad", (self.draw(len(self.xyz), 16), qkv, result, log_sum, token, 0.0)),
            ("point_loss", (x, y, None, None, "chamfer", "squares", [1.0], True)),
            ("point_loss_grad", (torch.tensor(2.0), self.xyz, y.detach())),
        ):
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.library.opcheck(getattr(torch.ops.pnet, name).default, arguments)

    def test_wrong_arguments(self):
        for wrong in ([[0.0, 1.0, 2.0]], self.xyz.numpy()):
            self.usage(f"positions: expected a tensor, not {type(wrong).__name__}", pt.Points, wrong)
        self.usage("sample: expected a tensor, not list", pt.Points, self.xyz, sample=[0] * len(self.xyz), batches=1)
        self.usage("cell is '5cm', expected a number", self.points.grid, "5cm")
        for width in (100, 49):
            self.usage(f"qkv: width {width}, expected queries, keys and values for 2 heads", pt.attend,
                       self.draw(len(self.xyz), width), self.points, 2)
        self.usage("mean, max and sum go from points to a level", self.points.map, self.level, "mean")
        self.usage("a parent is of a level", self.level.map, self.points, "parent")

    def test_no_second_derivative(self):
        x = self.draw(len(self.xyz), 48).requires_grad_()
        xyz = self.xyz.clone().requires_grad_()
        for call, leaf in ((lambda: pt.pool(x, self.points, self.level), x), (lambda: pt.attend(x, self.points), x),
                           (lambda: pt.point_loss("chamfer", xyz, self.xyz + 1), xyz)):
            first = torch.autograd.grad(call().pow(2).sum(), leaf, create_graph=True)[0]
            self.refused("no second derivative", first.sum().backward, error=RuntimeError)
        for call, leaf in ((lambda: pt.attend(x, self.points).sum(), x),  # whose gradient is a constant
                           (lambda: pt.point_loss("chamfer", xyz, self.xyz + 1), xyz),
                           (lambda: pt.point_loss("chamfer", self.xyz + 1, xyz), xyz)):
            result = call()
            first = torch.autograd.grad(result, leaf, create_graph=True)[0]
            self.refused("no second derivative", (result + first.pow(2).sum()).backward, error=RuntimeError)

    def test_no_forward_derivative(self):
        x = self.draw(len(self.xyz), 48)
        made, scopes = self.level.map(self.points, "mean"), self.points.buckets("z")
        for call, of in ((made, x), (scopes.attend, x), (lambda t: pt.point_loss("chamfer", t, self.xyz + 1), self.xyz)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.refused("no forward derivatives", lambda: torch.func.jvp(call, (of,), (of,)), error=RuntimeError)
            with forward_ad.dual_level():
                given = forward_ad.make_dual(of, of)
                self.refused("no forward derivatives", lambda: call(given), error=RuntimeError)
                self.same(call(of), call(of.clone()))

    def test_loss_numbers(self):
        """Numbers that a struct of C would cut off."""
        for rounds in 2 ** 32 + 5, -1:
            self.usage("rounds is", pt.point_loss, "emd", self.xyz, self.xyz + 1, rounds=rounds)
        self.refused("integer", pt.point_loss, "emd", self.xyz, self.xyz + 1, rounds=5.5, error=TypeError)

    def net(self):
        torch.manual_seed(3)
        return Net()

    def geometry(self, net, points):
        level = points.grid(CELL)
        coarse = level.grid(2 * CELL)
        return (net.sets(level, coarse), (level.map(points, "mean"), points.map(level, "inverse_distance")),
                coarse.buckets("hilbert", cell=CELL))

    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compile(self):
        """A whole graph, geometry of several clouds given to it; and with breaks where it is made inside."""
        torch._dynamo.reset()
        net = self.net()
        compiled = torch.compile(net, fullgraph=True)
        for seed in (1, 2, 3):
            xyz, splits = cloud(300 + 20 * seed, seed)
            points = pt.Points(xyz, row_splits=splits)
            geometry = self.geometry(net, points)
            features = self.draw(len(xyz), 4).requires_grad_()
            found = []
            for run in (net, compiled):
                y = run(features, *geometry)
                found.append([y.detach(), *torch.autograd.grad(y.pow(2).sum(), [features, *net.parameters()])])
            least = 0.01 * max(t.norm().item() for t in found[0])
            for one, two in zip(found[1], found[0]):
                self.near(one, two.double(), 1e-5, least=least)

        layer = pt.PointConv(4, 4)

        @torch.compile
        def inside(features, points):
            level = points.grid(CELL)
            return pt.interpolate(layer(pt.pool(features, points, level), level).relu(), level, points)

        features = self.draw(len(self.xyz), 4)
        wanted = pt.interpolate(layer(pt.pool(features, self.points, self.level), self.level).relu(), self.level, self.points)
        self.near(inside(features, self.points).detach(), wanted.detach().double(), 1e-6)

    def test_copies(self):
        net = self.net()
        geometry = self.geometry(net, self.points)
        features = self.draw(len(self.xyz), 4)
        wanted = net(features, *geometry)
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            self.same(other(features, *geometry), wanted)
        fresh = self.net()
        for parameter in fresh.parameters():
            torch.nn.init.zeros_(parameter)
        fresh.load_state_dict(net.state_dict())
        self.same(fresh(features, *geometry), wanted)

    def test_rows_in_any_order(self):
        """Shuffled points give the shuffled results of rows, bit for bit."""
        splits = torch.tensor([0, len(self.xyz)])
        order = torch.randperm(len(self.xyz), generator=support.draw(6))
        features, net, found = self.draw(len(self.xyz), 4), self.net(), []
        for xyz, x in ((self.xyz, features), (self.xyz[order], features[order])):
            points = pt.Points(xyz, row_splits=splits)
            found.append(net(x, *self.geometry(net, points)).detach())
        self.same(found[0][order], found[1])


if __name__ == "__main__":
    unittest.main()
