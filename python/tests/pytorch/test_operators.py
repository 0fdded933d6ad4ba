"""The operators pnet:: in PyTorch: what torch.library checks of them, gradients, types, compilation, checkpoints, copies,
processes."""

import copy
import ctypes
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import unittest
import warnings

import torch
import torch._dynamo
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import pnet
import pnet.torch
import pnet.torch.spconv as spconv
import support
from pnet.torch import _ops

SHAPE = [6, 5, 7]
# PyTorch 2.4 writes C++ that does not compile for a batch norm in training on a number of rows that it does not know. Its
# tests of compilation leave the norm behind a strided set out.
OLD = torch.__version__.startswith("2.4.")


def network(sp, key="s"):
    torch.manual_seed(7)
    return sp.SparseSequential(
        sp.SubMConv3d(4, 8, 3, indice_key=key, bias=False), torch.nn.BatchNorm1d(8), torch.nn.ReLU(),
        sp.SparseConv3d(8, 16, 3, 2, 1, indice_key="down"), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), sp.SubMConv3d(16, 16, 3),
        sp.SparseInverseConv3d(16, 8, 3, indice_key="down"), sp.SubMConv3d(8, 8, 3, indice_key=key), sp.SparseMaxPool3d(2))


class Operators(support.Case):
    def setUp(self):
        self.x = support.tensor(SHAPE, 2, 0.4, 4)
        self.set = pnet.torch.voxel_set(self.x.indices, SHAPE, batches=2)
        random = support.draw(3)
        self.weight = torch.randn(27, 4, 6, generator=random)
        self.bias = torch.randn(6, generator=random)

    def blocks(self, of=None):
        """A set as operators take it."""
        triplets = (of or self.set)._triplets
        return triplets.by_out, triplets.by_in, triplets.count

    def test_ways_agree(self):
        """Functions of autograd, and operators under a mode: the same bits."""
        from torch.utils._python_dispatch import TorchDispatchMode

        class Counts(TorchDispatchMode):
            seen = set()

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.seen.add(str(func))
                return func(*args, **(kwargs or {}))

        def run():
            found = []
            for kind in torch.float32, torch.bfloat16:
                leaves = [t.to(kind).requires_grad_() for t in (self.x.features, self.weight, self.bias)]
                y = self.set.conv(*leaves)
                z = self.set.inverse().pool(y, "max")
                found += [y, z, *torch.autograd.grad(z.float().pow(2).sum(), leaves)]
            return found

        wanted = run()
        with Counts() as counts:
            got = run()
        for name in "conv", "conv_grad_input", "conv_grad_weight", "pool", "pool_grad":
            self.assertIn(f"pnet.{name}.default", counts.seen)
        for one, two in zip(got, wanted):
            self.same(one, two)

    def test_arguments(self):
        """The numbers that a call writes lie where the structs of the library have them."""
        from pnet import _library as library
        from pnet.torch import _calls
        frame = _calls.Frame()
        self.assertEqual(_calls.NUMBERS.size, _calls.Frame.error.offset)
        _calls.NUMBERS.pack_into((ctypes.c_char * ctypes.sizeof(frame)).from_buffer(frame), 0, *range(1, 24))
        found = []
        for part in frame.left, frame.right, frame.result, frame.options:
            for name, kind in part._fields_:
                value = getattr(part, name)
                found.append(ctypes.cast(value, ctypes.c_void_p).value if name == "bias" else value)
        self.assertEqual(found, list(range(1, 24)))
        self.assertEqual(len(found), 15 + len(library.pnet_conv_options._fields_))

    def test_arguments_again(self):
        """Calls behind the first one write places into words of the same struct."""
        from pnet.torch import _calls
        numbers = _calls._Arguments(bytes(ctypes.sizeof(_calls.Frame)))
        names = "LEFT", "RIGHT", "RESULT", "BIAS", "WORKSPACE", "STREAM", "PRECISION"
        for value, name in enumerate(names, 1):
            numbers.words[getattr(_calls, f"_{name}")] = value
        frame = numbers.frame
        bias = ctypes.cast(frame.options.bias, ctypes.c_void_p).value
        self.assertEqual([frame.left.data, frame.right.data, frame.result.data, bias, frame.options.workspace,
                          frame.options.stream, frame.options.precision], list(range(1, 8)))

    def test_opcheck(self):
        rows, blocks = len(self.x.indices), self.blocks()
        features, gradient = self.x.features, torch.randn(rows, 6, generator=support.draw(1))
        learned = [t.clone().requires_grad_() for t in (features, self.weight, self.bias)]
        argmax = _ops.pool(features, *blocks, 27, rows, "max")[1]
        column = torch.zeros(5, dtype=torch.int32)
        rule = [SHAPE, [3] * 3, [2] * 3, [1] * 3, [1] * 3, [0] * 3, 2]
        for name, arguments in (
            ("conv", (*learned, *blocks, rows, 1)),
            ("conv", (*learned[:2], None, *blocks, rows, 1)),
            ("conv", (learned[0], torch.randn(27, 2, 6), None, *blocks, rows, 2)),
            ("conv_grad_input", (gradient, self.weight, *blocks, rows, 1)),
            ("conv_grad_weight", (features, gradient, *blocks, 27, 1)),
            ("pool", (learned[0], *blocks, 27, rows, "max")),
            ("pool", (learned[0], *blocks, 27, rows, "mean")),
            ("pool_grad", (features, argmax, *blocks, 27, rows, "max")),
            ("pool_grad", (features, argmax[:0], *blocks, 27, rows, "sum")),
            ("voxel_set", (self.x.indices, "submanifold", *rule)),
            ("voxel_set", (self.x.indices, "strided", *rule)),
            ("voxel_set", (self.x.indices, "transposed", *rule)),
            ("triplet_set", (column, column, column, 3, 4, 1)),
        ):
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.library.opcheck(getattr(torch.ops.pnet, name).default, arguments)

    def test_gradients_by_differences(self):
        """Convolution is linear in each argument, so that wide differences are exact but for rounding."""
        leaves = [t.requires_grad_() for t in (self.x.features, self.weight, self.bias)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of float32
            for made in (self.set, self.set.inverse()):
                self.assertTrue(torch.autograd.gradcheck(made.conv, leaves, eps=1, atol=1e-4, rtol=1e-4, nondet_tol=0))
            for kind in "mean", "sum":
                self.assertTrue(torch.autograd.gradcheck(
                    lambda f: self.set.pool(f, kind), leaves[:1], eps=1, atol=1e-4, rtol=1e-4))

    def test_no_second_derivative(self):
        features = self.x.features.requires_grad_()
        for call in (lambda: self.set.conv(features, self.weight), lambda: self.set.pool(features)):
            with torch.enable_grad():
                first = torch.autograd.grad(call().pow(2).sum(), features, create_graph=True)[0]
            self.refused("no second derivative", first.sum().backward, error=RuntimeError)

    def test_no_forward_derivative(self):
        features = self.x.features
        for call in (lambda t: self.set.conv(t, self.weight), self.set.pool):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.refused("no forward derivatives", lambda: torch.func.jvp(call, (features,), (features,)), error=RuntimeError)
            with forward_ad.dual_level():
                given = forward_ad.make_dual(features, features)
                self.refused("", lambda: call(given), error=NotImplementedError)  # PyTorch's own

    def test_groups(self):
        for groups in 0, -1, 2 ** 40:
            self.usage("groups do not divide", self.set.conv, self.x.features, self.weight, groups=groups)

    def test_only_what_is_wanted(self):
        y = self.set.conv(self.x.features, self.weight.requires_grad_(), self.bias)
        y.sum().backward()
        self.assertIsNone(self.x.features.grad)
        self.assertFalse(self.set.conv(self.x.features, self.weight.detach()).requires_grad)

    def test_narrow_types(self):
        """bfloat16 and float16: products and sums are float32, what goes in and out is rounded."""
        for kind in torch.bfloat16, torch.float16:
            leaves = [t.to(kind).requires_grad_() for t in (self.x.features, self.weight, self.bias)]
            wide = [t.detach().float().requires_grad_() for t in leaves]
            y, z = self.set.conv(*leaves), self.set.conv(*wide)
            self.same(y.detach(), z.detach().to(kind))
            g = torch.randn(y.shape, generator=support.draw(2)).to(kind)
            for one, two in zip(torch.autograd.grad(y, leaves, g), torch.autograd.grad(z, wide, g.float())):
                self.same(one, two.to(kind))
            self.same(self.set.pool(leaves[0]).detach(), self.set.pool(wide[0]).detach().to(kind))
        self.usage("float64", self.set.conv, self.x.features.double(), self.weight.double())
        self.usage("float64", self.set.pool, self.x.features.double())
        self.usage("one type", self.set.conv, self.x.features, self.weight.bfloat16())

    def test_autocast(self):
        leaves = [t.requires_grad_() for t in (self.x.features, self.weight, self.bias)]
        with torch.autocast("cpu", torch.bfloat16):
            y = self.set.conv(*leaves)
            narrow = torch.nn.functional.linear(y, torch.randn(3, 6))
        self.assertEqual(narrow.dtype, torch.bfloat16)
        self.same(y, self.set.conv(*leaves).bfloat16())
        y.float().pow(2).sum().backward()
        self.assertEqual({t.grad.dtype for t in leaves}, {torch.float32})
        net = network(spconv)
        with torch.autocast("cpu", torch.bfloat16):
            z = net(self.x).features
        z.float().sum().backward()
        self.assertEqual({p.grad.dtype for p in net.parameters()}, {torch.float32})
        self.near(z.float(), net(self.x).features.detach().double(), 0.02)

    def test_set_calls(self):
        fine = self.set
        coarse = pnet.torch.voxel_set(self.x.indices, SHAPE, 2, kind="strided", stride=2, batches=2)
        self.assertEqual((fine.rows_in, fine.taps, fine.extent), (len(self.x.indices), 27, SHAPE))
        self.assertEqual((coarse.rows_in, coarse.rows_out), (len(self.x.indices), len(coarse.indices)))
        self.assertEqual(coarse.extent, [3, 2, 3])
        back = coarse.inverse()
        self.assertEqual((back.rows_in, back.rows_out, back.extent), (coarse.rows_out, coarse.rows_in, SHAPE))
        self.assertIs(back.indices, self.x.indices)
        self.same(back.inverse().conv(self.x.features, torch.ones(8, 4, 2)), coarse.conv(self.x.features, torch.ones(8, 4, 2)))
        ours = pnet.VoxelSet(self.x.indices.numpy(), SHAPE, 2, kind="strided", stride=2, batches=2)
        weight = torch.randn(8, 4, 5)
        self.same(coarse.conv(self.x.features, weight), torch.from_numpy(ours.conv(self.x.features, weight)))
        self.near(coarse.pool(self.x.features, "sum"), coarse.conv(self.x.features, torch.eye(4).expand(8, 4, 4)).double())

    def test_wrong(self):
        twice = torch.cat([self.x.indices, self.x.indices[:1]])
        self.usage("same voxel", pnet.torch.voxel_set, twice, SHAPE, batches=2)
        self.usage("sample 1 is none", pnet.torch.voxel_set, self.x.indices, SHAPE)
        self.usage("index", pnet.torch.voxel_set, self.x.indices, [6, 5, 3], batches=2)
        self.usage("torch.int64", pnet.torch.voxel_set, self.x.indices.long(), SHAPE, batches=2)
        self.usage("expected [rows, 2 to 4]", pnet.torch.voxel_set, self.x.indices[:, :1], [])
        self.usage("2 numbers for 3 axes", pnet.torch.voxel_set, self.x.indices, [6, 5], batches=2)
        self.usage("a submanifold kernel is odd", pnet.torch.voxel_set, self.x.indices, SHAPE, 2, batches=2)
        self.usage("expected one of", pnet.torch.voxel_set, self.x.indices, SHAPE, kind="dense", batches=2)
        self.usage("features: [", self.set.conv, self.x.features[1:], self.weight)
        self.usage("weights: [", self.set.conv, self.x.features, self.weight[1:])
        self.usage("bias is [5]", self.set.conv, self.x.features, self.weight, torch.zeros(5))
        self.usage("groups", self.set.conv, self.x.features, self.weight, None, 3)
        self.usage("expected one of", self.set.pool, self.x.features, "median")
        by_out, by_in, count = self.blocks()
        damaged = by_in.clone()
        damaged[-8] = -1
        rows = len(self.x.indices)
        self.usage("no packed set", _ops.conv, self.x.features, self.weight, None, by_out, damaged, count, rows, 1)
        self.usage("other numbers", _ops.conv, self.x.features, self.weight, None, by_out, by_in, count, rows + 1, 1)
        with torch._subclasses.FakeTensorMode():
            block = torch.empty(8, dtype=torch.int64)
            self.assertEqual(_ops.conv(torch.empty(9, 4), torch.empty(27, 4, 6), None, block, block, 20, 9, 1).shape, (9, 6))


class Frameworks(support.Case):
    """What PyTorch does with modules: compiles, copies, saves, recomputes them."""

    def setUp(self):
        self.x, self.net = support.tensor(SHAPE, 2, 0.4, 4), network(spconv)

    def results(self, net, x=None):
        """Features and gradients."""
        x = x or self.x
        features = x.features.detach().clone().requires_grad_()
        y = net(x.replace_feature(features)).features
        return [y.detach(), *torch.autograd.grad(y.pow(2).sum(), [features, *net.parameters()])]

    def alike(self, one, two, limit=1e-6):
        least = 0.01 * max(b.norm().item() for b in two)  # the gradient of a bias before a norm cancels
        for a, b in zip(one, two):
            self.near(a, b.double(), limit, least=least)

    # PyTorch 2.4 leaves sets, whose number of triplets it cannot know, out of graphs without this
    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compile(self):
        """Of a whole graph, sets inside: results are those without it, for other voxels as well."""
        torch._dynamo.reset()
        if OLD:
            del self.net._modules["4"]
        wanted = self.results(self.net)
        compiled = torch.compile(self.net, fullgraph=True)

        def run(x):
            features = x.features.clone().requires_grad_()
            y = compiled(spconv.SparseConvTensor(features, x.indices, SHAPE, 2)).features
            return [y.detach(), *torch.autograd.grad(y.pow(2).sum(), [features, *self.net.parameters()])]

        self.alike(run(self.x), wanted, 1e-5)
        for seed in (11, 12):
            other = support.tensor(SHAPE, 2, 0.3, 4, seed=seed)
            self.alike(run(other), self.results(self.net, other), 1e-5)
        one = support.tensor(SHAPE, 1, 0, 4, indices=torch.tensor([[0, 1, 1, 1]], dtype=torch.int32))
        self.refused("", compiled, one, error=RuntimeError)  # a level with one voxel alone

    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_compile_with_autocast(self):
        torch._dynamo.reset()
        if OLD:
            del self.net._modules["4"]

        def run(net):
            with torch.autocast("cpu", torch.bfloat16):
                return net(self.x).features

        wanted = run(self.net)
        got = torch.compile(run, fullgraph=True)(self.net)
        self.assertEqual(got.dtype, wanted.dtype)
        self.near(got.detach().float(), wanted.detach().double(), 0.02)

    def test_copies(self):
        wanted = self.results(self.net)
        for net in (copy.deepcopy(self.net), pickle.loads(pickle.dumps(self.net))):
            self.alike(self.results(net), wanted, 0)
        kept = spconv.SubMConv3d(4, 4, 3, indice_key="k").requires_grad_(False)  # PyTorch copies no results with gradients
        y = kept(self.x)
        for x in (copy.deepcopy(y), pickle.loads(pickle.dumps(y)), y.shadow_copy()):
            self.same(kept(x).features, kept(y).features)
            self.assertIs(x.find_indice_pair("k").indices, x.indices)
        file = io.BytesIO()
        torch.save(y, file)
        file.seek(0)
        x = torch.load(file, weights_only=False)
        self.same(kept(x).features, kept(y).features)

    def test_state_dict(self):
        """The names and shapes of spconv; back from a file to the bit."""
        state = self.net.state_dict()
        self.assertEqual({name: list(value.shape) for name, value in state.items() if "weight" in name or "bias" in name}, {
            "0.weight": [8, 3, 3, 3, 4], "1.weight": [8], "1.bias": [8], "3.weight": [16, 3, 3, 3, 8], "3.bias": [16],
            "4.weight": [16], "4.bias": [16], "6.weight": [16, 3, 3, 3, 16], "6.bias": [16], "7.weight": [8, 3, 3, 3, 16],
            "7.bias": [8], "8.weight": [8, 3, 3, 3, 8], "8.bias": [8]})
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        other = network(spconv)
        for parameter in other.parameters():
            torch.nn.init.zeros_(parameter)
        other.load_state_dict(torch.load(file, weights_only=True))
        self.net.load_state_dict(state)
        self.alike(self.results(other), self.results(self.net), 0)

    def test_checkpoint(self):
        wanted = self.results(self.net)
        net = network(spconv)

        def stored(x):
            first = net[0](x)
            middle = torch.nn.Sequential(net[1], net[2])

            def rest(features):
                y = first.replace_feature(features)
                for module in list(net)[3:]:
                    y = module(y) if isinstance(module, spconv.SparseModule) else y.replace_feature(module(y.features))
                return y.features
            return first.replace_feature(checkpoint(rest, middle(first.features), use_reentrant=reentrant))

        for reentrant in (False, True):
            features = self.x.features.detach().clone().requires_grad_()
            net.load_state_dict(network(spconv).state_dict())
            y = stored(self.x.replace_feature(features)).features
            y.pow(2).sum().backward()
            self.alike([y.detach(), features.grad, *(p.grad for p in net.parameters())], wanted)
            net.zero_grad()

    def test_deterministic(self):
        wanted = self.results(self.net)
        torch.use_deterministic_algorithms(True)
        try:
            self.net.load_state_dict(network(spconv).state_dict())
            self.alike(self.results(self.net), wanted, 0)
        finally:
            torch.use_deterministic_algorithms(False)
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            self.net.load_state_dict(network(spconv).state_dict())
            self.alike(self.results(self.net), wanted, 1e-6)

    def test_inference_mode(self):
        with torch.inference_mode():
            x = support.tensor(SHAPE, 2, 0.4, 4)
            self.net.eval()
            got = self.net(x).features.clone()
        self.net.load_state_dict(network(spconv).state_dict())
        self.same(got, network(spconv).eval()(self.x).features.detach())

    def test_threads(self):
        nets = [network(spconv).eval() for _ in range(3)]
        wanted, failures = self.results(nets[0]), []

        def work(net):
            try:
                for _ in range(20):
                    self.alike(self.results(net, copy.deepcopy(self.x)), wanted, 0)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(net,)) for net in nets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            self.assertFalse(thread.is_alive())
        if failures:
            raise failures[0]

    def test_a_thousand_steps(self):
        def resident():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def step():
            x = spconv.SparseConvTensor(self.x.features, self.x.indices.clone(), SHAPE, 2)
            self.net(x).features.sum().backward()

        for _ in range(100):
            step()
        gc.collect()
        before = resident()
        for _ in range(1000):
            step()
        gc.collect()
        self.assertLess(resident() - before, 2 ** 21)  # the sets of a step take 100 KiB


class Processes(support.Case):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])})

    def test_pnet_alone_takes_no_torch(self):
        done = self.run_python("import sys, pnet; print('torch' in sys.modules)")
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), done.stderr)

    def test_older_torch(self):
        done = self.run_python("import torch; torch.__version__ = '2.3.1+cpu'; import pnet.torch")
        self.assertIn("ImportError: pnet.torch needs PyTorch 2.4 or later, and this is 2.3.1+cpu", done.stderr)

    def test_fork(self):
        """A forked process is told so instead of waiting for ever; one that was forked before works."""
        code = ("import os, sys, signal, torch, support, pnet, pnet.torch.spconv as spconv\n"
                "x, layer = support.tensor([4, 4, 4], 1, 0.5, 4), spconv.SubMConv3d(4, 4, 3)\n"
                "def child():\n"
                "    signal.alarm(60)\n"
                "    try:\n"
                "        layer(x)\n"
                "        os._exit(0)\n"
                "    except pnet.Error as why:\n"
                "        os._exit(3 if 'was forked' in str(why) else 4)\n"
                "for before in (True, False):\n"
                "    number = os.fork()\n"
                "    if not number: child()\n"
                "    print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))\n"
                "    layer(x)\n")
        done = self.run_python(code)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n3\n"), done.stderr)

    def test_ddp(self):
        """Two processes with half of the samples each have the gradients of one with all of them."""
        code = ("import sys, torch, support, pnet.torch.spconv as spconv\n"
                "import torch.distributed as dist\n"
                "def net():\n"
                "    torch.manual_seed(1)\n"
                "    layers = spconv.SubMConv3d(4, 8, 3), torch.nn.ReLU(), spconv.SparseConv3d(8, 6, 2, 2)\n"
                "    return spconv.SparseSequential(*layers)\n"
                "def loss(made, x, sample):\n"
                "    keep = x.indices[:, 0] == sample\n"
                "    at = x.indices[keep].clone(); at[:, 0] = 0\n"
                "    y = made(spconv.SparseConvTensor(x.features[keep], at, x.spatial_shape, 1))\n"
                "    return y.features.pow(2).mean()\n"
                "def work(rank, file):\n"
                "    dist.init_process_group('gloo', init_method=file, rank=rank, world_size=2)\n"
                "    x, made = support.tensor([6, 5, 7], 2, 0.4, 4), torch.nn.parallel.DistributedDataParallel(net())\n"
                "    loss(made, x, rank).backward()\n"
                "    whole = net()\n"
                "    ((loss(whole, x, 0) + loss(whole, x, 1)) / 2).backward()\n"
                "    for one, two in zip(made.parameters(), whole.parameters()):\n"
                "        assert (one.grad - two.grad).norm() <= 1e-6 * two.grad.norm(), (one.grad, two.grad)\n"
                "        assert two.grad.norm() > 0\n"
                "    dist.destroy_process_group()\n"
                "if __name__ == '__main__':\n"
                "    work(int(sys.argv[1]), sys.argv[2])\n")
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "ddp.py")
            with open(program, "w") as file:
                file.write(code)
            path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])
            both = [subprocess.Popen([sys.executable, program, str(rank), f"file://{folder}/meet"], stderr=subprocess.PIPE,
                                     text=True, env={**os.environ, "PYTHONPATH": path}) for rank in range(2)]
            for one in both:
                _, said = one.communicate(timeout=300)
                self.assertEqual(one.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()
