"""docs/pytorch.md and docs/python.md on a GPU: each is one program, in the order of the page, with its blocks for a GPU in their
places. What such a block computes is compared with the CPU."""

import contextlib
import copy
import gc
import io
import os
import pathlib
import sys
import tempfile
import unittest

import torch

import test_cuda  # first: it finds what lies beside this folder

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "python" / "tests"))

import page  # noqa: E402
import pnet.torch.spconv as spconv  # noqa: E402
from pnet.torch import Network, Points, pool  # noqa: E402

HERE = torch.device("cuda", 0)


class Case(test_cuda.Case):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.symlink(ROOT / "examples", pathlib.Path(folder.name, "examples"))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def tearDown(self):
        sys.modules.pop("page_program").__dict__.clear()  # other tests measure memory
        torch._dynamo.reset()
        gc.collect()
        super().tearDown()
        torch.cuda.empty_cache()

    def run_page(self, name, checks):
        """Runs docs/NAME. Each block for a GPU has a check: a generator, which gets the names of the page, keeps what it needs of
        them, yields before the block, and goes on behind it."""
        file, checks, names, printed = ROOT / "docs" / name, iter(checks), page.program(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            for block in page.blocks(file):
                if block.kind == "python":
                    page.run(file, block, names)
                elif block.kind == "python cuda":
                    check = next(checks, None)
                    self.assertIsNotNone(check, f"{name}:{block.line}: nothing compares what this block computes")
                    with self.subTest(line=block.line):
                        compared = check(names)
                        next(compared)
                        page.run(file, block, names)
                        torch.cuda.synchronize()  # the page may have used another stream
                        self.assertEqual(list(compared), [])
        self.assertEqual([check.__name__ for check in checks], [], "checks of blocks that are not there")
        lines = {page.without_numbers(line) for line in printed.getvalue().splitlines()}
        self.assertEqual([line for line in page.shown(file) if line not in lines], [])

    def grads(self, got, wanted, limit):
        """Gradients of parameters on the GPU are those of the same parameters on the CPU; small ones may differ by as much as a
        share of the largest."""
        least = 0.01 * max(p.grad.norm().item() for p in wanted.parameters())
        self.assertGreater(least, 0)
        for (name, one), (same, two) in zip(got.named_parameters(), wanted.named_parameters()):
            self.assertEqual((name, one.device, one.grad.device), (same, HERE, HERE))
            self.near(one.grad.cpu(), two.grad.double().cpu(), limit, name, least)


class PyTorch(Case):
    @torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    def test_page(self):
        self.run_page("pytorch.md", (self.moves, self.by_tap, self.graph, self.points, self.network))

    def on_cpu(self, names):
        """A copy of the page's net on the CPU, and a function that takes it forward and backward, as the page's step() has just
        done on the GPU, and returns the loss. ReLUs pass what those of the page passed."""
        net, masks = copy.deepcopy(names["net"]).cpu().train(), []
        hooks = [m.register_forward_hook(lambda _, given, result: masks.append(result.detach().cpu() > 0))
                 for m in names["net"].modules() if isinstance(m, torch.nn.ReLU)]
        for m in net.modules():
            if isinstance(m, torch.nn.ReLU):
                m.register_forward_hook(lambda _, given, result: given[0] * masks.pop(0))

        def step():
            for hook in hooks:
                hook.remove()
            net.zero_grad()
            x = spconv.SparseConvTensor(names["x"].features.detach().cpu(), names["indices"], [24, 24, 24], 2)
            loss = torch.nn.functional.cross_entropy(net(x).features, names["labels"].cpu())
            loss.backward()
            self.assertEqual(masks, [])
            return loss.item()
        return net, step

    def moves(self, names):
        net, step = self.on_cpu(names)
        yield
        wanted = step()
        self.assertEqual((names["x"].features.device, names["loss"].device), (HERE, HERE))
        self.assertAlmostEqual(names["loss"].item(), wanted, delta=1e-3 * wanted)
        self.grads(names["net"], net, 1e-3)

    def by_tap(self, names):
        net, step = self.on_cpu(names)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        yield
        wanted = step()
        self.assertAlmostEqual(names["loss"].item(), wanted, delta=1e-3 * wanted)
        self.grads(names["net"], net, 1e-3)
        laid = [m.weight for m in names["net"].modules() if isinstance(m, spconv.SparseConvolution)]
        self.assertEqual(len(laid), 5)
        for weight in laid:  # [out, *kernel, in]: those of one tap lie together
            self.assertEqual(weight.stride(), weight.grad.stride())
            self.assertEqual(weight.permute(1, 2, 3, 4, 0).is_contiguous(), True)
        # a small gradient may have another sign, from which the first step of AdamW goes the other way
        for one, two in zip(net.parameters(), names["net"].parameters()):
            one.grad = two.grad.cpu()
        optimizer.step()
        for (name, one), two in zip(names["net"].named_parameters(), net.parameters()):
            self.near(one.detach().cpu(), two.detach().double(), 1e-5, name)

    def graph(self, names):
        before = names["step"]().item()
        yield
        for turn in range(3):
            recorded, net = names["loss"].item(), copy.deepcopy(names["net"])
            for one, two in zip(net.parameters(), names["net"].parameters()):
                one.grad = two.grad.clone()
            kept = [p.grad for p in names["net"].parameters()]  # of the graph: step() makes others
            wanted = names["step"]().item()
            self.assertGreater(abs(wanted - before), 0.01 * before, "the features are those of the recording")
            self.assertAlmostEqual(recorded, wanted, delta=1e-5 * wanted)
            self.grads(names["net"], net, 1e-4)
            for one, grad in zip(names["net"].parameters(), kept):
                one.grad = grad
            names["x"].features.copy_(torch.randn(names["x"].features.shape))
            names["graph"].replay()

    def points(self, names):
        yield
        points = Points(names["xyz"], row_splits=names["batch"]["cloud"])
        level, layer = points.grid(0.05), copy.deepcopy(names["layer"]).cpu()
        features = names["features"].detach().cpu().requires_grad_()
        layer.zero_grad()
        y = layer(pool(features, points, level), level)
        y.square().mean().backward()
        self.assertEqual((names["points"].rows, names["level"].rows), (points.rows, level.rows))
        self.assertEqual(names["y"].device, HERE)
        self.near(names["y"].detach().cpu(), y.detach().double(), 3e-5)
        self.near(names["features"].grad.cpu(), features.grad.double(), 3e-5)
        self.grads(names["layer"], layer, 3e-5)

    def network(self, names):
        yield
        network = Network("examples/scene.pnet", {"v": "10cm"}, seed=1)
        loss = network(names["batch"])
        loss.backward()
        self.assertEqual(names["loss"].device, HERE)
        self.assertAlmostEqual(names["loss"].item(), loss.item(), delta=1e-4 * loss.item())
        self.grads(names["network"], network, 5e-3)


class Python(Case):
    def test_page(self):
        self.run_page("python.md", (self.scores,))

    def scores(self, names):
        wanted = names["scores"]  # of the same points, in host memory
        yield
        self.assertEqual(names["scores"].device, HERE)
        self.near(names["scores"].cpu(), torch.from_numpy(wanted).double(), 1e-4)


if __name__ == "__main__":
    unittest.main()
