"""Points of pnet.torch on an NVIDIA GPU, against the CPU and PyTorch in float64: geometry, layers, losses, what waits."""

import gc
import unittest

import torch
import torch._dynamo
from torch.nn import functional

import test_cuda  # first: it finds what lies beside this folder
import pnet
import pnet.torch as pt
import support
import test_points

HERE = torch.device("cuda", 0)
CELL = 0.2
LIMITS = test_cuda.LIMITS


class Case(test_cuda.Case):
    def setUp(self):
        super().setUp()
        self.xyz = torch.rand(2500, 3, generator=support.draw(1)) * torch.tensor([2.4, 1.9, 1.2])
        self.splits = torch.tensor([0, 900, 900, 2500])  # the second sample has no points
        self.cpu, self.gpu = self.side("cpu"), self.side(HERE)

    def side(self, device, cell=CELL):
        """Points, a level and a coarser one on a device."""
        points = pt.Points(self.xyz.to(device), row_splits=self.splits.to(device), cell=cell)
        level = points.grid(CELL)
        return points, level, level.grid(2 * CELL)

    def draw(self, *shape, seed=5):
        return torch.randn(shape, generator=support.draw(seed))

    def both(self, calls, leaves, limit, kind=torch.float32, reference=None, exact=False, what=""):
        """Results and gradients of a call for either side, given leaves in a type; on the CPU in float32, of the same rounded
        numbers. `exact`: results are the same bits. A reference is the same call in float64."""
        rounded = [t.to(kind) for t in leaves]
        sides = [(calls[0], [t.float() for t in rounded]), (calls[1], [t.to(HERE) for t in rounded])]
        if reference:
            sides.append((reference, [t.double() for t in rounded]))
        found = []
        for call, given in sides:
            given = [t.detach().clone().requires_grad_() for t in given]
            y = call(*given)
            gradient = self.draw(*y.shape, seed=8).to(kind).to(y.dtype).to(y.device)
            found.append([y.detach(), *torch.autograd.grad(y, given, gradient)])
        for name, one in zip(("result", "first gradient", "second gradient", "third gradient"), found[1]):
            self.assertEqual((one.dtype, one.device), (kind, HERE), f"{what} {name}")
        names = ("result", *(f"gradient {i}" for i in range(len(leaves))))
        if exact:
            self.same(found[1][0].cpu(), found[0][0].to(kind))
        for other, against in zip((found[0], *found[2:]), ("the CPU", "float64")):
            for name, one, two in zip(names, found[1], other):
                self.near(one.cpu(), two.double(), limit, f"{what} {name} against {against}, {kind}")


class Geometry(Case):
    def test_levels(self):
        """Rows, samples, sources, parents and positions are those of the CPU, with row splits, samples by row, and other rows."""
        order = torch.randperm(len(self.xyz), generator=support.draw(3))
        sample = torch.bucketize(torch.arange(len(self.xyz)), self.splits[1:], right=True)[order]
        for name, xyz, how in (("splits", self.xyz, {"row_splits": self.splits}),
                               ("int32 splits", self.xyz, {"row_splits": self.splits.int()}),
                               ("samples", self.xyz[order], {"sample": sample, "batches": 3}),
                               ("int32 samples", self.xyz[order], {"sample": sample.int(), "batches": 3}),
                               ("one sample", self.xyz, {}), ("none", self.xyz[:0], {}), ("one row", self.xyz[:1], {})):
            for cell in (None, CELL):
                with self.subTest(name=name, cell=cell):
                    found = []
                    for device in ("cpu", HERE):
                        given = {n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in how.items()}
                        points = pt.Points(xyz.to(device), cell=cell, **given)
                        level = points.grid(CELL)
                        coarse = level.grid(2 * CELL)
                        every = [points.samples(), points.parents(level), points.parents(coarse), level.parents(coarse)]
                        for one in (level, coarse):
                            every += [one.positions, one.samples(), one.sources()]
                        self.assertEqual({t.device.type for t in every}, {torch.device(device).type})
                        found.append([t.cpu() for t in every])
                        numbers = [(one.rows, one.batches, one.cell) for one in (points, level, coarse)]
                        found[-1].append(torch.tensor(numbers, dtype=torch.float64))
                    for one, two in zip(*found):
                        self.same(two, one)

    def test_positions_have_gradients(self):
        grads = []
        for device in ("cpu", HERE):
            xyz = self.xyz.to(device, copy=True).requires_grad_()
            coarse = pt.Points(xyz, row_splits=self.splits.to(device)).grid(CELL).grid(2 * CELL)
            coarse.positions.square().sum().backward()
            grads.append(xyz.grad.cpu())
        self.same(*grads)

    def test_wrong(self):
        """The messages of the CPU, and those of tensors that lie apart; then all works on."""
        points, level, _ = self.gpu
        bad = self.xyz.clone()
        bad[17, 1] = float("nan")
        for part, make in (("not finite", lambda d: pt.Points(bad.to(d))), ("float64", lambda d: pt.Points(bad.double().to(d))),
                           ("row 1", lambda d: pt.Points(self.xyz[:2].to(d), sample=torch.tensor([0, 5], device=d), batches=2)),
                           ("row", lambda d: pt.Points(self.xyz.to(d), row_splits=torch.tensor([0, 9, 5, 2500], device=d)))):
            said = []
            for device in ("cpu", HERE):
                with self.assertRaises(pnet.Error) as caught:
                    make(device)
                said.append(str(caught.exception))
            self.assertIn(part, said[0])
            self.assertEqual(*said)
        self.usage("row_splits is on cpu", pt.Points, self.xyz.to(HERE), row_splits=self.splits)
        x = torch.zeros(points.rows, 4)
        self.usage("features is on cpu", pt.pool, x, points, level)
        self.usage("features is on cuda", pt.pool, x.to(HERE), *self.cpu[:2])
        self.usage("features is [3, 4]", pt.pool, x[:3].to(HERE), points, level)
        self.usage("sampled", pt.pool, x[:level.rows].to(HERE), level, points)
        self.usage("y is on cpu", pt.point_loss, "chamfer", self.xyz.to(HERE), self.xyz)
        self.refused("", pt.pool, x.to(HERE), points, self.cpu[1], error=pnet.Error)
        self.same(pt.pool(x.to(HERE), points, level).cpu(), torch.zeros(level.rows, 4))


class Layers(Case):
    def test_convolution(self):
        """Of all kinds of sets, in all types; in float32 also against float64."""
        for name, out, source, kernel, options in (
            ("level", 1, 1, 3, {}), ("wide", 1, 1, 5, {"radius": 0.45}), ("down", 2, 1, 2, {}), ("up", 1, 2, 2, {}),
            ("nearest", 1, 1, 3, {"knn": 9}), ("voxels", 1, 1, 3, {"degrade": "voxel"}), ("cube", 1, 1, 3, {"shape": "cube"}),
            ("from points", 1, 0, 3, {"radius": 0.3}), ("to points", 0, 1, 3, {"radius": 0.3}),
        ):
            made = [side[out].set(side[source], kernel, **options) for side in (self.cpu, self.gpu)]
            one = pnet.PointSet(self.cpu[out]._points, self.cpu[source]._points, kernel, **options)
            i, j, k = (torch.from_numpy(t).long() for t in one.triplets())
            self.assertEqual(made[1]._triplets.count, len(i), name)
            for cin, cout, groups in ((6, 8, 1), (32, 64, 1), (16, 32, 4)):
                def reference(features, weight, bias):
                    result = bias.expand(made[0].rows_out, cout)
                    for tap, of_tap in enumerate(weight.view(kernel ** 3, cin // groups, groups, -1)):
                        at = k == tap
                        x = features[j[at]].view(-1, groups, cin // groups)
                        result = result.index_add(0, i[at], torch.einsum("tgi,igo->tgo", x, of_tap).flatten(1))
                    return result

                leaves = [self.draw(made[0].rows_in, cin, seed=2), self.draw(kernel ** 3, cin // groups, cout, seed=3),
                          self.draw(cout, seed=4)]
                for kind, limit in LIMITS.items():
                    calls = [lambda f, w, b, m=m: m.conv(f, w, b, groups) for m in made]
                    with self.subTest(name=name, channels=(cin, cout), kind=kind):
                        self.both(calls, leaves, limit, kind, reference if kind is torch.float32 else None, what=name)

    def test_layer(self):
        """PointConv itself, and pools over its set."""
        for make in (lambda: pt.PointConv(5, 7), lambda: pt.PointConv(5, 7, knn=6, bias=False)):
            torch.manual_seed(2)
            layer = make()
            x = self.draw(self.cpu[1].rows, 5)
            y = layer(x, self.cpu[1])
            z = layer.to(HERE)(x.to(HERE), self.gpu[1])
            self.near(z.detach().cpu(), y.detach().double(), 3e-6)
            for how in ("max", "mean", "sum"):
                calls = [lambda f, p=side[1]: layer.set(p).pool(f, how) for side in (self.cpu, self.gpu)]
                for kind, limit in LIMITS.items():
                    self.both(calls, [x], limit, kind, exact=how == "max" and kind is torch.float32, what=how)

    def test_maps(self):
        """Pools between levels and back, interpolation at other points: forward and backward in all types."""
        other = torch.rand(700, 3, generator=support.draw(4)) * torch.tensor([2.6, 2.0, 1.3]) - 0.1
        splits = torch.tensor([0, 200, 300, 700])
        queries = [pt.Points(other.to(d), row_splits=splits.to(d)) for d in ("cpu", HERE)]
        parents = self.cpu[0].parents(self.cpu[1]).long()
        count = torch.bincount(parents, minlength=self.cpu[1].rows).double()[:, None]

        def total(features):
            return torch.zeros(self.cpu[1].rows, features.shape[1], dtype=torch.float64).index_add(0, parents, features)

        cases = [
            ("sum", 0, lambda f, s, q: pt.pool(f, s[0], s[1], "sum"), total),
            ("mean", 0, lambda f, s, q: pt.pool(f, s[0], s[1], "mean"), lambda f: total(f) / count),
            ("max", 0, lambda f, s, q: pt.pool(f, s[0], s[1], "max"), None),
            ("far max", 0, lambda f, s, q: pt.pool(f, s[0], s[2], "max"), None),
            ("upsample", 1, lambda f, s, q: pt.upsample(f, s[1], s[0]), lambda f: f[parents]),
        ]
        for k in (1, 3, 8):
            cases.append((f"{k} nearest", 1, lambda f, s, q, k=k: pt.interpolate(f, s[1], q, k=k), None))
        for how in ("trilinear", "nearest"):
            for outside in ("zero", "nearest"):
                cases.append((f"{how}, outside {outside}", 1,
                              lambda f, s, q, h=how, o=outside: pt.interpolate(f, s[1], q, h, outside=o), None))
        for name, source, call, reference in cases:
            for width in (7, 32):
                for kind, limit in LIMITS.items():
                    with self.subTest(name=name, width=width, kind=kind):
                        calls = [lambda f, s=s, q=q: call(f, s, q) for s, q in zip((self.cpu, self.gpu), queries)]
                        # weights 1 / (d^2 + 1e-8) have the rounding of d
                        wide = max(limit, 2e-5) if "nearest" in name else limit
                        self.both(calls, [self.draw(self.cpu[source].rows, width)], wide, kind,
                                  reference if kind is torch.float32 else None, exact="max" in name or name == "upsample",
                                  what=name)

    def test_odd_memory(self):
        """Features that are not contiguous, or not aligned; gradients that are expanded."""
        wide = self.draw(self.cpu[0].rows, 23)
        for cut in (lambda t: t[:, 3:11], lambda t: t.reshape(-1)[1:1 + 8 * len(self.xyz)].view(-1, 8)):
            found = []
            for side, device in ((self.cpu, "cpu"), (self.gpu, HERE)):
                leaf = wide.to(device).requires_grad_()
                y = pt.pool(cut(leaf), side[0], side[1])
                found.append([y.detach().cpu(), torch.autograd.grad(y.sum(), leaf)[0].cpu()])
            for one, two in zip(*found):
                self.near(two, one.double(), 3e-6)

    def test_attend(self):
        """With scopes of a whole sample it is attention among all of its points; with small ones that of the CPU."""
        starts = self.splits.tolist()
        for heads, width, scale in ((1, 16, None), (2, 32, 0.7), (4, 32, None), (1, 128, None)):
            def reference(qkv):
                found = []
                for first, end in zip(starts, starts[1:]):
                    q, k, v = (t.view(end - first, heads, width // heads).transpose(0, 1) for t in qkv[first:end].chunk(3, 1))
                    y = functional.scaled_dot_product_attention(q, k, v, scale=scale)
                    found.append(y.transpose(0, 1).reshape(end - first, width))
                return torch.cat(found)

            qkv = [self.draw(len(self.xyz), 3 * width)]
            for kind, limit in LIMITS.items():
                for order in ("z", "hilbert"):
                    calls = [lambda t, p=side[0]: pt.attend(t, p, heads, scale, order=order, scope=64, cell=CELL if order != "z"
                                                            else None) for side in (self.cpu, self.gpu)]
                    with self.subTest(heads=heads, width=width, order=order, kind=kind):
                        self.both(calls, qkv, max(2 * limit, 1e-5), kind, reference, what=order)
        for order in ("z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod"):
            more = {} if order == "z" else {"cell": CELL}
            for shape in ({"bucket": 32, "scope": 2}, {"bucket": 48, "scope": 3, "shift": 1, "stride": 2, "wrap": True}):
                calls = [lambda t, p=side[0]: pt.attend(t, p, 2, order=order, **shape, **more) for side in (self.cpu, self.gpu)]
                with self.subTest(order=order, **shape):
                    self.both(calls, [self.draw(len(self.xyz), 48)], 1e-5, what=order)

    def test_autocast(self):
        """Layers and attention compute in its type, pools keep theirs; gradients of weights are float32."""
        torch.manual_seed(4)
        layer, qkv = pt.PointConv(8, 16).to(HERE), torch.nn.Linear(16, 48).to(HERE)
        x = self.draw(len(self.xyz), 8).to(HERE)

        def run():
            pooled = pt.pool(x, *self.gpu[:2])
            y = layer(pooled, self.gpu[1])
            return pooled, y, pt.attend(qkv(y), self.gpu[1], 2)

        wanted = run()
        for kind, limit in ((torch.bfloat16, 3e-2), (torch.float16, 4e-3)):
            with torch.autocast("cuda", kind):
                found = run()
            self.assertEqual([t.dtype for t in found], [torch.float32, kind, kind])
            for one, two in zip(found, wanted):
                self.near(one.detach().float().cpu(), two.detach().double().cpu(), limit)
            layer.zero_grad()
            found[2].float().square().sum().backward()
            self.assertEqual({p.grad.dtype for p in layer.parameters()}, {torch.float32})
            self.assertTrue(all(p.grad.isfinite().all() and p.grad.norm() > 0 for p in layer.parameters()))


class Losses(Case):
    def setUp(self):
        super().setUp()
        self.y = torch.rand(2500, 3, generator=support.draw(9)) * torch.tensor([2.4, 1.9, 1.2])

    def loss(self, kind, device, x=None, y=None, **options):
        x, y = (t.detach().to(device).requires_grad_() for t in (self.xyz if x is None else x, self.y if y is None else y))
        splits = self.splits.to(device)
        value = pt.point_loss(kind, x, y, x_splits=splits, y_splits=splits, **options)
        self.assertEqual((value.device, value.dtype, value.dim()), (x.device, torch.float32, 0))
        return [value.detach().cpu(), *(g.cpu() for g in torch.autograd.grad(3 * value, [x, y]))]

    def test_all(self):
        for kind, options, limit in (("chamfer", {}, 4e-6), ("chamfer", {"squares": False}, 4e-6), ("dcd", {"alpha": 40.0}, 4e-6),
                                     ("hypercd", {}, 4e-6), ("infocd", {"tau": 0.5, "lambda_": 0.1}, 4e-6), ("emd", {}, 4e-6),
                                     ("sinkhorn", {}, 2e-4), ("apml", {}, 2e-4)):
            with self.subTest(kind=kind, **options):
                one, two = (self.loss(kind, device, **options) for device in ("cpu", HERE))
                self.assertAlmostEqual(two[0].item(), one[0].item(), delta=limit * abs(one[0].item()) + 3e-6, msg=kind)
                for name, got, wanted in zip("xy", two[1:], one[1:]):
                    self.near(got, wanted.double(), 10 * limit, f"{kind}, gradient of {name}")

    def test_chamfer(self):
        """Against PyTorch in float64."""
        starts = self.splits.tolist()
        x, y = (t.double().requires_grad_() for t in (self.xyz, self.y))
        found = []
        for first, end in zip(starts, starts[1:]):
            if end > first:
                far = torch.cdist(x[first:end], y[first:end], compute_mode="donot_use_mm_for_euclid_dist").square()
                found.append(far.amin(1).mean() + far.amin(0).mean())
        wanted = torch.stack(found).sum() / 3  # the second sample adds 0
        got = self.loss("chamfer", HERE)
        self.assertAlmostEqual(got[0].item(), wanted.item(), delta=5e-6 * wanted.item())
        for one, two in zip(got[1:], torch.autograd.grad(3 * wanted, [x, y])):
            self.near(one, two, 2e-5)

    def test_one_side(self):
        x, y = self.xyz.to(HERE).requires_grad_(), self.y.to(HERE)
        pt.point_loss("chamfer", x, y).backward()
        self.assertGreater(x.grad.norm().item(), 0)
        with torch.no_grad():
            self.assertFalse(pt.point_loss("chamfer", x, y).requires_grad)


class Running(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(3)
        self.net = test_points.Net().to(HERE)
        self.features = self.draw(len(self.xyz), 4).to(HERE).requires_grad_()

    def geometry(self, device=HERE):
        points, level, coarse = self.side(device)
        return (self.net.sets(level, coarse), (level.map(points, "mean"), points.map(level, "inverse_distance")),
                coarse.buckets("hilbert", cell=CELL))

    def step(self, geometry, net=None, features=None, kind=None):
        """The result, and gradients of features and parameters."""
        net, features = self.net if net is None else net, self.features if features is None else features
        with torch.autocast("cuda", kind or torch.bfloat16, enabled=kind is not None):
            y = net(features, *geometry)
        return [y.detach(), *torch.autograd.grad(y.float().pow(2).sum(), [features, *net.parameters()])]

    def test_network(self):
        """Two levels, there and back, as on the CPU."""
        got = self.step(self.geometry())
        net = test_points.Net()
        net.load_state_dict(self.net.state_dict())
        wanted = self.step(self.geometry("cpu"), net, self.features.detach().cpu().requires_grad_())
        least = 0.01 * max(t.norm().item() for t in wanted)
        for name, one, two in zip(("result", "features", *(n for n, _ in net.named_parameters())), got, wanted):
            self.near(one.cpu(), two.double(), 2e-5, name, least)

    def test_nothing_waits(self):
        """PyTorch sees no wait, and calls return while a kernel before them still runs."""
        geometry = self.geometry()
        for kind in (None, torch.bfloat16):
            for _ in range(3):
                self.step(geometry, kind=kind)
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            try:
                slept = torch.cuda.Event()
                torch.cuda._sleep(1_000_000_000)
                slept.record()
                self.step(geometry, kind=kind)
                self.assertFalse(slept.query(), f"the step waited for the kernel before it ({kind})")
            finally:
                torch.cuda.set_sync_debug_mode("default")
            torch.cuda.synchronize()

    def test_cuda_graph(self):
        """Forward and backward recorded: replays give the bits of the step itself, for other features too."""
        for kind in (None, torch.bfloat16):
            geometry = self.geometry()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.step(geometry, kind=kind)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                recorded = self.step(geometry, kind=kind)
            for seed in (3, 4):
                with torch.no_grad():
                    self.features.copy_(self.draw(len(self.xyz), 4, seed=seed))
                graph.replay()
                got = [t.clone() for t in recorded]
                for one, two in zip(got, self.step(geometry, kind=kind)):
                    self.same(one, two)

    def test_streams(self):
        """Work on other streams sees geometry that is complete, whose memory stays until that work is over."""
        wanted = self.step(self.geometry())
        torch.cuda.synchronize()
        streams = [torch.cuda.Stream() for _ in range(3)]
        for turn in range(9):
            geometry = self.geometry()
            side = streams[turn % 3]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(20_000_000)
                got = self.step(geometry)
            del geometry  # its memory must not be given to these
            other = [torch.full((1 << 16,), -1, dtype=torch.int64, device=HERE) for _ in range(32)]
            side.synchronize()
            for one, two in zip(got, wanted):
                self.same(one, two)
            del other

    def test_made_on_a_stream(self):
        """Geometry of a stream whose work is late, used on the usual one; and tensors that a stream fills late."""
        wanted = [t.clone() for t in self.step(self.geometry())]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            points, level, coarse = self.side(HERE)
        samples, parents = points.samples(), points.parents(coarse)  # on the usual stream
        self.same(samples.cpu(), self.cpu[0].samples())
        self.same(parents.cpu(), self.cpu[0].parents(self.cpu[2]))
        geometry = (self.net.sets(level, coarse), (level.map(points, "mean"), points.map(level, "inverse_distance")),
                    coarse.buckets("hilbert", cell=CELL))
        torch.cuda.current_stream().wait_stream(side)
        for one, two in zip(self.step(geometry), wanted):
            self.same(one, two)

    def test_memory(self):
        """New clouds in each step: memory stays, and is PyTorch's."""
        y = torch.rand(500, 3, generator=support.draw(2)).to(HERE)

        def step():
            self.step(self.geometry())
            moved = (y + 1).requires_grad_()
            pt.point_loss("chamfer", moved, y).backward()

        for _ in range(20):
            step()
        gc.collect()
        torch.cuda.synchronize()
        before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
        for _ in range(200):
            step()
        gc.collect()
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.assertLess(free - torch.cuda.mem_get_info()[0], 64 << 20)  # of the whole GPU: no other program may use it
        taken = torch.cuda.memory_stats()["allocation.all.allocated"]
        geometry = self.geometry()
        self.assertGreater(torch.cuda.memory_allocated(), before)
        self.assertGreater(torch.cuda.memory_stats()["allocation.all.allocated"] - taken, 20)
        del geometry
        gc.collect()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_out_of_memory(self):
        """PyTorch's own exception, and all works on."""
        dense = torch.rand(200_000, 3, generator=support.draw(1)).to(HERE)
        points = pt.Points(dense)
        torch.cuda.empty_cache()
        limit = torch.cuda.memory_reserved() / torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit + 0.001))
        try:
            with self.assertRaises(torch.cuda.OutOfMemoryError):
                points.set(kernel=3, radius=0.12)  # 1400 neighbours each
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.assertGreater(points.grid(0.1).rows, 900)

    def test_opcheck(self):
        points, level, _ = self.gpu
        x, gradient = self.draw(len(self.xyz), 6).to(HERE), self.draw(level.rows, 6).to(HERE)
        up, token = level.map(points, "max"), points.buckets("z")._token
        argmax = torch.ops.pnet.map(x, up._token, level.rows, "max")[1]
        qkv = self.draw(len(self.xyz), 48).to(HERE)
        result, log_sum = torch.ops.pnet.attend(qkv, token, 2, 0.0)
        few = [t[:60].to(HERE).requires_grad_() for t in (self.xyz, self.xyz.flip(0))]
        narrow = qkv.bfloat16()
        for name, arguments in (
            ("map", (x.clone().requires_grad_(), up._token, level.rows, "max")),
            ("map_grad", (gradient, argmax, up._token, len(self.xyz), "max")),
            ("attend", (qkv.clone().requires_grad_(), token, 2, 0.0)), ("attend", (narrow.requires_grad_(), token, 2, 0.0)),
            ("attend_grad", (self.draw(len(self.xyz), 16).to(HERE), qkv, result, log_sum, token, 0.0)),
            ("point_loss", (*few, None, None, "chamfer", "squares", [1.0], True)),
        ):
            with self.subTest(name=name):
                torch.library.opcheck(getattr(torch.ops.pnet, name).default, arguments, test_utils=(
                    "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"))

    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compile(self):
        torch._dynamo.reset()
        geometry = self.geometry()
        wanted = self.step(geometry)
        least = 0.01 * max(t.norm().item() for t in wanted)
        for one, two in zip(self.step(geometry, torch.compile(self.net, fullgraph=True)), wanted):
            self.near(one, two.double(), 1e-4, least=least)

    def test_several_gpus(self):
        wanted = self.step(self.geometry())
        for index in range(1, min(torch.cuda.device_count(), 3)):
            there = torch.device("cuda", index)
            net = test_points.Net().to(there)
            net.load_state_dict(self.net.state_dict())
            got = self.step(self.geometry(there), net, self.features.detach().to(there).requires_grad_())
            self.near(got[0].cpu(), wanted[0].cpu().double(), 1e-5)
            self.assertEqual(torch.cuda.current_device(), 0)


if __name__ == "__main__":
    unittest.main()
