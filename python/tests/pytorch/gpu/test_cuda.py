"""pnet.torch on an NVIDIA GPU, against the CPU: sets, convolution, pools, networks; nothing waits; CUDA graphs, streams, memory.

    cd python/tests/pytorch/gpu && python3 -m unittest

tests/cuda/gpu_torch.sh runs it too.
"""

import copy
import gc
import io
import pathlib
import pickle
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import networks  # noqa: E402
import pnet  # noqa: E402
import pnet.torch  # noqa: E402
import pnet.torch.spconv as spconv  # noqa: E402
import support  # noqa: E402
import test_kept  # noqa: E402
from pnet.torch import _ops  # noqa: E402

THERE = torch.cuda.is_available()
SHAPE = [14, 15, 13]
CHANNELS = (4, 6, 1), (32, 32, 1), (64, 96, 1), (24, 40, 4), (16, 16, 16), (3, 128, 1)  # in, out, groups
# By norm: kernels/precision.h, and the rounding of results to 16 bits.
LIMITS = {torch.float32: 3e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def on_gpu(x, device="cuda"):
    """The same sparse tensor on the GPU."""
    return spconv.SparseConvTensor(x.features.to(device), x.indices.to(device), x.spatial_shape, x.batch_size)


@unittest.skipUnless(THERE, "there is no GPU")
class Case(support.Case):
    def setUp(self):
        self.before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False

    def tearDown(self):
        torch.cuda.set_sync_debug_mode("default")
        torch.set_float32_matmul_precision(self.before)
        torch.cuda.synchronize()


def sets(x, device):
    """Sets of all kinds of the voxels of x, by name."""
    at = x.indices.to(device)
    make = pnet.torch.voxel_set
    strided = make(at, SHAPE, 3, kind="strided", stride=2, padding=1, batches=x.batch_size)
    return {"submanifold": make(at, SHAPE, 3, batches=x.batch_size),
            "wide": make(at, SHAPE, (1, 5, 3), batches=x.batch_size), "strided": strided, "inverse": strided.inverse(),
            "transposed": make(at, SHAPE, 2, kind="transposed", stride=2, batches=x.batch_size)}


class Sums(Case):
    def setUp(self):
        super().setUp()
        self.x = support.tensor(SHAPE, 3, 0.3, 1, empty=[1])

    def test_sets(self):
        here, there = sets(self.x, "cpu"), sets(self.x, "cuda")
        for name, one in here.items():
            with self.subTest(name=name):
                other = there[name]
                self.assertEqual((other.rows_in, other.rows_out, other.taps, other.extent),
                                 (one.rows_in, one.rows_out, one.taps, one.extent))
                self.same(other.indices.cpu(), one.indices)
                self.assertEqual(other._triplets.count, one._triplets.count)

    def sums(self, made, leaves, groups, gradient):
        leaves = [t.clone().requires_grad_() for t in leaves]
        y = made.conv(*leaves, groups)
        return [y.detach(), *torch.autograd.grad(y, leaves, gradient)]

    def test_convolution(self):
        """Results and gradients, in all types, of channels of many widths, in groups. In 16 bits both get the rounded numbers."""
        here, there = sets(self.x, "cpu"), sets(self.x, "cuda")
        for number, (name, made) in enumerate(here.items()):
            for channels_in, channels_out, groups in CHANNELS:
                for kind, limit in LIMITS.items():
                    with self.subTest(name=name, channels=(channels_in, channels_out), kind=kind):
                        random = support.draw(number)
                        leaves = [torch.randn(made.rows_in, channels_in, generator=random),
                                  torch.randn(made.taps, channels_in // groups, channels_out, generator=random),
                                  torch.randn(channels_out, generator=random)]
                        gradient = torch.randn(made.rows_out, channels_out, generator=random)
                        leaves, gradient = [t.to(kind) for t in leaves], gradient.to(kind)
                        wanted = self.sums(made, [t.float() for t in leaves], groups, gradient.float())
                        got = self.sums(there[name], [t.cuda() for t in leaves], groups, gradient.cuda())
                        for what, one, two in zip(("result", "features", "weight", "bias"), got, wanted):
                            self.assertEqual((one.dtype, one.device.type), (kind, "cuda"))
                            self.near(one.cpu().double(), two.double(), limit, what)

    def test_tf32(self):
        made, random = sets(self.x, "cuda")["submanifold"], support.draw(1)
        x = torch.randn(made.rows_in, 64, generator=random)
        w = torch.randn(27, 64, 64, generator=random)
        wanted = sets(self.x, "cpu")["submanifold"].conv(x, w).double()
        exact = made.conv(x.cuda(), w.cuda()).cpu().double()
        torch.set_float32_matmul_precision("high")
        rounded = made.conv(x.cuda(), w.cuda()).cpu().double()
        self.near(exact, wanted, 3e-6)
        self.near(rounded, wanted, 1e-3)

    def test_pools(self):
        here, there = sets(self.x, "cpu"), sets(self.x, "cuda")
        for name, made in here.items():
            for how in "max", "mean", "sum":
                for kind, limit in LIMITS.items():
                    with self.subTest(name=name, how=how, kind=kind):
                        random = support.draw(4)
                        x = torch.randn(made.rows_in, 20, generator=random).to(kind)
                        g = torch.randn(made.rows_out, 20, generator=random).to(kind)
                        found = []
                        for one, device in ((made, "cpu"), (there[name], "cuda")):
                            leaf = x.to(device).requires_grad_()
                            y = one.pool(leaf, how)
                            found.append([y.detach().cpu(), torch.autograd.grad(y, leaf, g.to(device))[0].cpu()])
                        if how == "max":
                            self.same(found[1][0], found[0][0])
                        for one, two in zip(found[1], found[0]):
                            self.near(one.double(), two.double(), limit)

    def test_odd_memory(self):
        """Views that are not contiguous, or not aligned."""
        made, other = sets(self.x, "cuda")["submanifold"], sets(self.x, "cpu")["submanifold"]
        random = support.draw(3)
        wide = torch.randn(made.rows_in, 23, generator=random)
        weight = torch.randn(16, 27 * 8 + 1, generator=random)
        for cut in (lambda t: t[:, 3:11], lambda t: t.reshape(-1)[1:1 + 8 * made.rows_in].view(-1, 8)):
            y = made.conv(cut(wide.cuda()), weight.cuda()[:, 1:].reshape(16, 27, 8).permute(1, 2, 0))
            self.near(y.cpu(), other.conv(cut(wide), weight[:, 1:].reshape(16, 27, 8).permute(1, 2, 0)).double(), 3e-6)

    def test_none_and_one(self):
        for rows in (0, 1):
            for kind in "submanifold", "strided", "transposed":
                at = torch.tensor([[0, 2, 3, 4]], dtype=torch.int32)[:rows].cuda()
                made = pnet.torch.voxel_set(at, SHAPE, 3, kind=kind, padding=1)
                x = torch.ones(rows, 8, device="cuda", requires_grad=True)
                w = torch.ones(27, 8, 4, device="cuda", requires_grad=True)
                y = made.conv(x, w)
                y.sum().backward()
                self.assertEqual(list(y.shape), [made.rows_out, 4])
                self.assertEqual(w.grad.sum().item(), 32 * made._triplets.count)

    def test_wrong(self):
        at = self.x.indices.cuda()
        self.usage("same voxel", pnet.torch.voxel_set, torch.cat([at, at[:1]]), SHAPE, batches=3)
        self.usage("sample 2 is none", pnet.torch.voxel_set, at, SHAPE)
        made = sets(self.x, "cuda")["submanifold"]
        x, w = torch.zeros(made.rows_in, 4), torch.zeros(27, 4, 4)
        self.usage("features is on cpu", made.conv, x, w.cuda())
        self.usage("weight is on cpu", made.conv, x.cuda(), w)
        self.usage("features: [", made.conv, x.cuda()[1:], w.cuda())
        self.usage("is on cuda", sets(self.x, "cpu")["submanifold"].conv, x.cuda(), w)
        self.same(made.conv(x.cuda(), w.cuda()).cpu(), torch.zeros(made.rows_in, 4))  # all works on

    def test_opcheck(self):
        made = sets(self.x, "cuda")["strided"]
        t = made._triplets
        random = support.draw(2)
        x, w = torch.randn(made.rows_in, 16, generator=random).cuda(), torch.randn(27, 16, 8, generator=random).cuda()
        g = torch.randn(made.rows_out, 8, generator=random).cuda()
        blocks = t.by_out, t.by_in, t.count
        tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        for name, arguments in (("conv", (x.requires_grad_(), w.requires_grad_(), None, *blocks, made.rows_out, 1)),
                                ("conv_grad_input", (g, w.detach(), *blocks, made.rows_in, 1)),
                                ("conv_grad_weight", (x.detach(), g, *blocks, 27, 1)),
                                ("pool", (x, *blocks, 27, made.rows_out, "max"))):
            with self.subTest(name=name):
                torch.library.opcheck(getattr(torch.ops.pnet, name).default, arguments, test_utils=tests)

    def test_copies(self):
        made = sets(self.x, "cuda")["strided"]
        x, w = torch.randn(made.rows_in, 16).cuda(), torch.randn(27, 16, 8).cuda()
        wanted = made.conv(x, w)
        for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            self.same(other.conv(x, w), wanted)
        file = io.BytesIO()
        torch.save(made, file)
        file.seek(0)
        moved = torch.load(file, map_location="cpu", weights_only=False)
        self.near(moved.conv(x.cpu(), w.cpu()), wanted.cpu().double(), 3e-6)


class Networks(Case):
    def switch(self, net, other):
        """The ReLUs of `other` pass what those of `net` passed, on whatever devices."""
        masks = []
        for one in (m for m in net.modules() if isinstance(m, torch.nn.ReLU)):
            one.register_forward_hook(lambda _, given, result: masks.append(result.detach() > 0))
        for one in (m for m in other.modules() if isinstance(m, torch.nn.ReLU)):
            one.register_forward_hook(lambda _, given, result: given[0] * masks.pop(0).to(given[0].device))

    def results(self, net, x, gradient=None):
        features = x.features.detach().clone().requires_grad_()
        y = net(spconv.SparseConvTensor(features, x.indices, x.spatial_shape, x.batch_size))
        y = y if isinstance(y, torch.Tensor) else y.features
        gradient = torch.randn(y.shape, generator=support.draw(9)).to(y.device) if gradient is None else gradient
        found = torch.autograd.grad(y, [features, *net.parameters()], gradient)
        return [y.detach().cpu(), *(f.cpu() for f in found)]

    def check(self, make, x, limit):
        torch.manual_seed(2)
        net = make(spconv)
        other = copy.deepcopy(net).cuda()
        self.switch(net, other)
        wanted, got = self.results(net, x), self.results(other, on_gpu(x))
        least = 0.01 * max(two.norm().item() for two in wanted[1:])
        for name, one, two in zip(["result", "features", *(n for n, _ in net.named_parameters())], got, wanted):
            self.near(one, two.double(), limit, name, 1e-3 if name == "result" else least)

    def test_voxel_backbone(self):
        x = support.tensor([41, 64, 60], 2, 0.03, 4)
        for residual in False, True:
            with self.subTest(residual=residual):
                self.check(lambda sp: networks.backbone_8x(sp, 4, residual), x, 5e-5)

    def test_sp_unet(self):
        self.check(lambda sp: networks.sp_unet(sp, 6, 13), support.tensor([40, 44, 42], 3, 0.03, 6, empty=[1]), 5e-5)

    def test_autocast(self):
        """16 bits stay near float32, gradients of weights are float32."""
        x = on_gpu(support.tensor([40, 44, 42], 2, 0.03, 6))
        for kind, limit in ((torch.bfloat16, 0.1), (torch.float16, 0.02)):
            torch.manual_seed(2)
            net = networks.sp_unet(spconv, 6, 13, narrow=2, layers=(1,) * 8).cuda()
            wanted = net(x).features.detach()
            with torch.autocast("cuda", kind):
                y = net(x).features
            self.assertEqual(y.dtype, kind)
            self.near(y.detach().float(), wanted.double(), limit)
            y.float().pow(2).sum().backward()
            self.assertEqual({p.grad.dtype for p in net.parameters()}, {torch.float32})
            self.assertTrue(all(p.grad.isfinite().all() and p.grad.norm() > 0 for p in net.parameters()))

    def test_flexgemm_and_global_pools(self):
        x = support.tensor(SHAPE, 2, 0.3, 16)
        weight = torch.randn(24, 3, 3, 3, 16)
        y, _ = pnet.torch.sparse_submanifold_conv3d(x.features, x.indices, [2, 16, *SHAPE], weight)
        z, _ = pnet.torch.sparse_submanifold_conv3d(x.features.cuda(), x.indices.cuda(), [2, 16, *SHAPE], weight.cuda())
        self.near(z.cpu(), y.double(), 3e-6)
        self.same(spconv.SparseGlobalMaxPool()(on_gpu(x)).cpu(), spconv.SparseGlobalMaxPool()(x))
        self.near(spconv.SparseGlobalAvgPool()(on_gpu(x)).cpu(), spconv.SparseGlobalAvgPool()(x).double())
        self.same(on_gpu(x).dense().cpu(), x.dense())


def small():
    """Layers of all kinds, with norms."""
    torch.manual_seed(7)
    norm, relu = torch.nn.BatchNorm1d, torch.nn.ReLU
    return spconv.SparseSequential(
        spconv.SubMConv3d(16, 32, 3, indice_key="s", bias=False), norm(32), relu(),
        spconv.SparseConv3d(32, 64, 3, 2, 1, indice_key="down"), norm(64), relu(), spconv.SubMConv3d(64, 64, 3, indice_key="t"),
        spconv.SparseInverseConv3d(64, 32, 3, indice_key="down"), spconv.SubMConv3d(32, 32, 3, indice_key="s"),
        spconv.SparseMaxPool3d(2, indice_key="p")).cuda()


class Kept(Case, test_kept.Kept):
    """Of writes to indices those are found that PyTorch counts."""

    device, writes = "cuda", (test_kept.flip,)


class Running(Case):
    def setUp(self):
        super().setUp()
        self.x = on_gpu(support.tensor([30, 31, 29], 2, 0.2, 16)).keep_sets()
        self.net = small()

    def step(self, kind=None):
        """Gradients of the parameters are filled; returns the result."""
        for parameter in self.net.parameters():
            parameter.grad = None
        with torch.autocast("cuda", kind or torch.bfloat16, enabled=kind is not None):
            y = self.net(self.x).features
        y.float().pow(2).sum().backward()
        return y.detach()

    def test_nothing_waits(self):
        """PyTorch sees no wait, and calls return while a kernel before them still runs."""
        for kind in (None, torch.bfloat16):
            for _ in range(3):
                self.step(kind)
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            try:
                slept = torch.cuda.Event()
                torch.cuda._sleep(4_000_000_000)
                slept.record()
                self.step(kind)
                self.assertFalse(slept.query(), "the step waited for the kernel before it")
            finally:
                torch.cuda.set_sync_debug_mode("default")
            torch.cuda.synchronize()

    def test_cuda_graph(self):
        """Forward and backward recorded: replays give the bits of the step itself, for other features too."""
        for kind in (None, torch.bfloat16):
            self.net = small()
            for module in self.net.modules():
                if isinstance(module, torch.nn.BatchNorm1d):
                    module.track_running_stats = False
                    module.running_mean = module.running_var = module.num_batches_tracked = None
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.step(kind)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = self.step(kind)
            recorded = [y, *(p.grad for p in self.net.parameters())]
            for seed in (3, 4):
                self.x.features.copy_(torch.randn(self.x.features.shape, generator=support.draw(seed)))
                graph.replay()
                got = [t.clone() for t in recorded]
                wanted = [self.step(kind), *(p.grad for p in self.net.parameters())]
                for one, two in zip(got, wanted):
                    self.same(one, two)

    def test_streams(self):
        """Work on other streams sees sets that are complete, and their memory stays until it is over."""
        at = self.x.indices
        made = pnet.torch.voxel_set(at.clone(), self.x.spatial_shape, batches=2)
        weight = torch.randn(27, 16, 64, device="cuda")
        wanted = made.conv(self.x.features, weight)
        torch.cuda.synchronize()
        streams = [torch.cuda.Stream() for _ in range(3)]
        for turn in range(20):
            indices = at.clone()
            made = pnet.torch.voxel_set(indices, self.x.spatial_shape, batches=2)
            side = streams[turn % 3]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(20_000_000)
                y = made.conv(self.x.features, weight)
            del made, indices  # its memory must not be given to these
            other = [torch.full((1 << 18,), -1, dtype=torch.int64, device="cuda") for _ in range(8)]
            side.synchronize()
            self.same(y, wanted)
            del other

    def test_made_on_a_stream(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        weight = torch.randn(27, 16, 32, device="cuda")
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            at = self.x.indices.clone()
            made = pnet.torch.voxel_set(at, self.x.spatial_shape, batches=2)
        y = made.conv(self.x.features, weight)
        other = pnet.torch.voxel_set(self.x.indices, self.x.spatial_shape, batches=2)
        self.same(y, other.conv(self.x.features, weight))

    def test_a_thousand_steps(self):
        """New sets in each step: memory stays."""
        indices = self.x.indices

        def step():
            self.x = spconv.SparseConvTensor(self.x.features, indices.clone(), self.x.spatial_shape, 2)
            self.step(torch.bfloat16)

        for _ in range(50):
            step()
        gc.collect()
        torch.cuda.synchronize()
        before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
        for _ in range(1000):
            step()
        gc.collect()
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.assertLess(free - torch.cuda.mem_get_info()[0], 64 << 20)  # of the whole GPU: no other program may use it

    def test_all_memory_is_pytorchs(self):
        """A set and its sums come out of the caching allocator."""
        self.step()
        gc.collect()  # or what other tests left could be given back in between
        torch.cuda.synchronize()
        taken = torch.cuda.memory_stats()["allocation.all.allocated"]
        at = self.x.indices.clone()
        before = torch.cuda.memory_allocated()
        made = pnet.torch.voxel_set(at, self.x.spatial_shape, batches=2)
        blocks = made._triplets.by_out.numel() + made._triplets.by_in.numel()
        self.assertLess(abs(torch.cuda.memory_allocated() - before - 8 * blocks), 4096)
        self.assertGreater(torch.cuda.memory_stats()["allocation.all.allocated"] - taken, 10)

    def test_calls_again(self):
        """What a set remembers of calls: not the precision, the stream or the place of tensors; and workspaces are given back."""
        made, random = sets(support.tensor(SHAPE, 2, 0.3, 4), "cuda")["submanifold"], support.draw(1)

        def run(of, kind):
            x, w, b, g = (t.cuda().to(kind) for t in draws)
            leaves = [t.requires_grad_() for t in (x, w, b)]
            y = of.conv(*leaves)
            return [y.detach(), *torch.autograd.grad(y, leaves, g)]

        for turn in range(3):
            shapes = (made.rows_in, 64), (27, 64, 64), (64,), (made.rows_out, 64)
            draws = [torch.randn(shape, generator=random) for shape in shapes]
            for kind, precision in ((torch.float32, "highest"), (torch.float32, "high"), (torch.bfloat16, "high")):
                torch.set_float32_matmul_precision(precision)
                wanted = run(copy.deepcopy(made), kind)  # which remembers nothing
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    elsewhere = run(made, kind)
                torch.cuda.synchronize()
                for one, two, three in zip(run(made, kind), elsewhere, wanted):
                    self.same(one, three)
                    self.same(two, three)
                if kind is torch.float32 and precision == "highest":
                    exact = wanted[0]
                elif kind is torch.float32:
                    self.assertFalse(torch.equal(wanted[0], exact))
        for kind in torch.float32, torch.bfloat16:
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            for _ in range(20):
                run(made, kind)
            torch.cuda.synchronize()
            self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_weights_by_tap(self):
        """The bits of weights in the usual order, with autocast and without."""
        usual = self.net
        by_tap = spconv.weights_by_tap(copy.deepcopy(usual))
        for kind in (None, torch.bfloat16):
            found = []
            for self.net in (usual, by_tap):
                for _ in range(3):
                    y = self.step(kind)
                found.append([y, *(p.grad for p in self.net.parameters())])
            for one, two in zip(*found):
                self.same(one, two)
        for p in by_tap.parameters():
            self.assertEqual(p.grad.stride(), p.stride())

    def test_out_of_memory(self):
        """PyTorch's own exception, and all works on."""
        limit = torch.cuda.memory_reserved() / torch.cuda.get_device_properties(0).total_memory
        at = torch.cartesian_prod(torch.arange(1), *(torch.arange(160) for _ in range(3))).int().cuda()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit + 0.0015))
        try:
            with self.assertRaises(torch.cuda.OutOfMemoryError):
                pnet.torch.voxel_set(at, [160] * 3, 5)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        pnet.torch.voxel_set(self.x.indices.clone(), self.x.spatial_shape, batches=2)

    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compile(self):
        torch._dynamo.reset()
        del self.net._modules["4"]
        features = self.x.features.clone().requires_grad_()

        def run(net):
            y = net(spconv.SparseConvTensor(features, self.x.indices, self.x.spatial_shape, 2)).features
            return [y.detach(), *torch.autograd.grad(y.float().pow(2).sum(), [features, *self.net.parameters()])]

        wanted = run(self.net)
        least = 0.01 * max(two.norm().item() for two in wanted)
        for one, two in zip(run(torch.compile(self.net, fullgraph=True)), wanted):
            self.near(one, two.double(), 1e-4, least=least)

    def test_several_gpus(self):
        for index in range(1, min(torch.cuda.device_count(), 3)):
            net = copy.deepcopy(self.net).to(f"cuda:{index}")
            x = on_gpu(self.x, f"cuda:{index}")
            self.near(net(x).features.detach().cpu(), self.net(self.x).features.detach().cpu().double(), 1e-5)
            self.assertEqual(torch.cuda.current_device(), 0)


if __name__ == "__main__":
    unittest.main()
