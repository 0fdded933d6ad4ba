"""pnet.torch.Network on an NVIDIA GPU, against the CPU and PyTorch in float64: losses, gradients, outputs, what waits."""

import copy
import gc
import io
import pickle
import unittest

import torch

import test_cuda  # first: it finds what lies beside this folder
import pnet
import pnet.torch
import support
import test_model

HERE = torch.device("cuda", 0)
SCENE = test_model.package.SCENE
PLAIN = test_model.PLAIN


def tensors(device, rows=2000, seed=1):
    """A batch of two samples for SCENE."""
    batch = {name: t.to(device) for name, t in test_model.tensors(test_model.package.cloud(rows, seed)).items()}
    batch["cloud"] = torch.tensor([0, rows // 3, rows], device=device)
    return batch


def without_labels(batch):
    return {name: value for name, value in batch.items() if name != "cloud.label"}


class Case(test_cuda.Case):
    def alike(self, got, wanted, limit, share=0.01):
        """Gradients by name; small ones may differ by as much as a share of the largest."""
        wanted = dict(wanted)
        least = share * max(t.norm().item() for t in wanted.values())
        for name, one in got:
            self.assertEqual((one.dtype, one.device), (torch.float32, HERE), name)
            self.near(one.cpu(), wanted[name].double().cpu(), limit, name, least)

    def grads(self, net):
        return [(name, p.grad) for name, p in net.named_parameters()]


class Losses(Case):
    def setUp(self):
        super().setUp()
        self.cpu = pnet.torch.Network(SCENE, seed=7)
        self.gpu = copy.deepcopy(self.cpu).to(HERE)

    def test_training(self):
        """The loss, gradients and running statistics of two batches, then evaluation."""
        for seed in (1, 2):
            one, two = self.cpu(tensors("cpu", seed=seed)), self.gpu(tensors(HERE, seed=seed))
            self.assertEqual((two.device, two.dtype, two.dim()), (HERE, torch.float32, 0))
            self.assertAlmostEqual(two.item(), one.item(), delta=1e-5 * abs(one.item()))
            self.assertEqual(list(self.gpu.losses), list(self.cpu.losses))
            for net, loss in ((self.cpu, one), (self.gpu, two)):
                net.zero_grad()
                (3 * loss).backward()
            self.alike(self.grads(self.gpu), self.grads(self.cpu), 1e-4)
        self.alike(self.gpu.named_buffers(), self.cpu.named_buffers(), 1e-5)
        self.assertTrue(list(self.gpu.buffers()))
        one, two = self.cpu.eval()(without_labels(tensors("cpu"))), self.gpu.eval()(without_labels(tensors(HERE)))
        self.assertEqual((two.device, two.dtype), (HERE, torch.float32))
        self.near(two.cpu(), one.double(), 2e-5, "result")
        wanted, got = self.cpu.objectives(tensors("cpu")), self.gpu.objectives(tensors(HERE))
        self.assertAlmostEqual(got["ce"], wanted["ce"], delta=1e-4)
        self.assertAlmostEqual(got["oa"], wanted["oa"], delta=2e-3)

    def test_learns(self):
        """An optimizer of PyTorch, in all precisions: the loss of the batch falls as on the CPU."""
        def run(net, device, kind=None):
            optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
            for _ in range(12):
                with torch.autocast("cuda", kind or torch.bfloat16, enabled=kind is not None):
                    loss = net(tensors(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return loss.item()

        wanted = run(copy.deepcopy(self.cpu), "cpu")
        self.assertLess(wanted, 1.5)
        for kind, precision in ((None, "highest"), (None, "high"), (torch.bfloat16, "high"), (torch.float16, "high")):
            with self.subTest(kind=kind, precision=precision):
                torch.set_float32_matmul_precision(precision)
                self.assertAlmostEqual(run(copy.deepcopy(self.gpu), HERE, kind), wanted, delta=0.15 * wanted)

    def test_precisions(self):
        """What autocast and the precision of PyTorch choose is used, and nothing else changes."""
        batch, losses = tensors(HERE), {}
        for kind, precision in ((None, "highest"), (None, "high"), (torch.bfloat16, "highest"), (torch.float16, "highest")):
            torch.set_float32_matmul_precision(precision)
            with torch.autocast("cuda", kind or torch.bfloat16, enabled=kind is not None):
                losses[kind, precision] = copy.deepcopy(self.gpu)(batch).item()
        exact = losses[None, "highest"]
        self.assertEqual(len(set(losses.values())), 4, losses)
        for rule, limit in (((None, "high"), 1e-3), ((torch.bfloat16, "highest"), 3e-2), ((torch.float16, "highest"), 4e-3)):
            self.assertAlmostEqual(losses[rule], exact, delta=limit * exact, msg=str(rule))

    def test_same_bits(self):
        """The same batch gives the same bits, by a copy too."""
        batch = tensors(HERE)
        wanted = None
        for net in (self.gpu, copy.deepcopy(self.gpu), pickle.loads(pickle.dumps(self.gpu))):
            net.zero_grad()
            loss = net(batch)
            loss.backward()
            found = [loss.detach(), *(p.grad for p in net.parameters()), *net.buffers()]
            for one, two in zip(found, wanted or found):
                self.same(one, two)
            wanted = [t.clone() for t in found]

    def test_moves(self):
        """To the CPU and back; a state_dict goes in either direction."""
        file = io.BytesIO()
        torch.save(self.gpu.state_dict(), file)
        file.seek(0)
        other = pnet.torch.Network(SCENE, seed=8)
        other.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        self.same(other(tensors("cpu")).detach(), self.cpu(tensors("cpu")).detach())
        first = copy.deepcopy(self.gpu)(tensors(HERE)).detach()
        back = self.gpu.cpu()
        self.near(back(tensors("cpu")).detach(), first.double().cpu(), 1e-5)
        for name, value in back.named_buffers():  # a batch has updated them: as on the CPU alone
            self.same(value, dict(self.cpu.named_buffers())[name])
        back.load_state_dict(other.state_dict())
        again = back.to(HERE)(tensors(HERE, seed=2))
        self.assertEqual(again.device, HERE)
        self.assertTrue(again.isfinite().item())

    def test_wrong(self):
        self.usage("expected cuda:0, where the network is", self.gpu, tensors("cpu"))
        self.usage("expected cpu, where the network is", self.cpu, tensors(HERE))
        self.usage("missing", self.gpu, without_labels(tensors(HERE)))
        self.usage("torch.float16", copy.deepcopy(self.gpu).half(), tensors(HERE))
        bad = tensors(HERE)
        bad["cloud.label"][5] = 99
        self.usage("row 5", self.gpu, bad)
        apart = copy.deepcopy(self.gpu)
        next(apart.parameters()).data = next(apart.parameters()).data.cpu()
        self.usage("on one device", apart, tensors(HERE))
        batch = tensors(HERE)
        wanted = copy.deepcopy(self.gpu)(batch).detach()
        self.same(self.gpu(batch).detach(), wanted)  # all works on

    def test_a_graph_is_refused(self):
        self.gpu(tensors(HERE))
        batch, graph = tensors(HERE), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.usage("cannot record a Network", self.gpu, batch)
        self.assertTrue(self.gpu(batch).isfinite().item())


class Outputs(Case):
    """Losses of one's own."""

    def plain(self, device):
        """A network of linear layers, and its batch."""
        net = pnet.torch.Network(PLAIN, seed=3, outputs=["y", "n.h"], input_gradients=True).to(device)
        draw = torch.Generator().manual_seed(4)
        xyz, f = torch.rand(40, 3, generator=draw), torch.rand(40, 4, generator=draw)
        return net, {"cloud.xyz": xyz.to(device), "cloud.f": f.to(device)}

    def test_gradients(self):
        """Against the same network in PyTorch, in float64."""
        net, batch = self.plain(HERE)
        given = {**batch, "cloud.f": batch["cloud.f"].clone().requires_grad_()}
        found = net(given)
        (found["y"].cos().sum() + found["n.h"].pow(3).sum()).backward()
        w = {name: value.detach().double().cpu().requires_grad_() for name, value in net.named_parameters()}
        f = batch["cloud.f"].double().cpu().requires_grad_()
        h = torch.sigmoid(functional_linear(f, w, "n.h"))
        y = functional_linear(h, w, "n.out")
        (y.cos().sum() + h.pow(3).sum()).backward()
        for name, got, wanted in (("y", found["y"], y), ("n.h", found["n.h"], h)):
            self.assertEqual(got.device, HERE)
            self.near(got.detach().cpu(), wanted.detach(), 2e-6, name)
        self.alike(self.grads(net), [(name, t.grad) for name, t in w.items()], 1e-5)
        self.assertEqual(given["cloud.f"].grad.device, HERE)
        self.near(given["cloud.f"].grad.cpu(), f.grad, 1e-5, "cloud.f")

    def test_gradients_of_any_form(self):
        """Expanded and transposed gradients of outputs, and outputs that the loss does not read."""
        found = []
        for device in ("cpu", HERE):
            net, batch = self.plain(device)
            for loss in (lambda o: o["n.h"].sum(), lambda o: (o["y"].t() @ o["n.h"]).square().sum()):
                net.zero_grad()
                loss(net(batch)).backward()
                found.append([(name, p.grad.clone()) for name, p in net.named_parameters()])
        for one, two in zip(found[:2], found[2:]):
            self.alike(two, one, 1e-5)

    def test_own_loss(self):
        """The model's own loss, computed in PyTorch with points on the GPU, trains it as the model does."""
        batch = tensors(HERE)
        own, net = (pnet.torch.Network(SCENE, seed=7, outputs=outputs).to(HERE) for outputs in ((), ["y"]))
        own(batch).backward()
        points = pnet.torch.Points(batch["cloud.xyz"], row_splits=batch["cloud"])
        cells = points.grid(net._model("train").outputs[0].cell)
        scores = pnet.torch.upsample(net(batch)["y"], cells, points)
        torch.nn.functional.cross_entropy(scores, batch["cloud.label"].long()).backward()
        self.alike(self.grads(net), self.grads(own), 1e-4)
        self.same(net.state_dict()["scene.a.unit.out.bn.running_mean"], own.state_dict()["scene.a.unit.out.bn.running_mean"])
        found = net.eval()(batch)["y"]
        self.assertFalse(found.requires_grad)
        self.near(pnet.torch.upsample(found, cells, points).cpu(), own.eval()(without_labels(batch)).double().cpu(), 2e-5)

    def test_order(self):
        net, batch = self.plain(HERE)
        first = net(batch)["y"]
        net(batch)
        self.usage("another batch", first.sum().backward)
        again = net(batch)["y"].sum()
        again.backward(retain_graph=True)
        self.refused("forward_training", again.backward, error=pnet.Error)

    def test_backward_does_not_wait(self):
        """Once a batch is bound, calls return while a kernel before them still runs."""
        net, batch = pnet.torch.Network(SCENE, seed=7, outputs=["y"]).to(HERE), tensors(HERE)
        for last in (False, False, False, False, True):
            net.zero_grad(set_to_none=False)
            loss = net(batch)["y"].square().mean()
            slept = torch.cuda.Event()
            if last:
                torch.cuda.synchronize()
                torch.cuda._sleep(1_000_000_000)
            slept.record()
            loss.backward()
            if last:
                self.assertFalse(slept.query(), "backward waited for the kernel before it")
        torch.cuda.synchronize()

    def test_streams(self):
        """On other streams than the session's: what is there before is seen, what comes afterwards sees the network."""
        net, batch = pnet.torch.Network(SCENE, seed=7, outputs=["y"]).to(HERE), tensors(HERE)

        def run():
            net.zero_grad(set_to_none=False)
            late = {name: t.clone() for name, t in batch.items()}
            y = net(late)["y"]
            y.square().mean().backward()
            return [y.detach().clone(), *(p.grad.clone() for p in net.parameters())]

        state = copy.deepcopy(net.state_dict())
        wanted = run()
        torch.cuda.synchronize()
        for side in (torch.cuda.Stream(), torch.cuda.Stream()):
            net.load_state_dict(state)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(50_000_000)
                got = run()
            torch.cuda.current_stream().wait_stream(side)
            for one, two in zip(got, wanted):
                self.same(one, two)

    def test_memory(self):
        """Steps hold memory constant, all of it is PyTorch's, and goes back with the network."""
        gc.collect()
        torch.cuda.synchronize()
        empty = torch.cuda.memory_allocated()
        net, batch = pnet.torch.Network(SCENE, seed=7, outputs=["y"]).to(HERE), tensors(HERE)

        def step():
            net.zero_grad()
            net(batch)["y"].square().mean().backward()

        for _ in range(10):
            step()
        torch.cuda.synchronize()
        before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
        self.assertGreater(before - empty, 100_000)
        for _ in range(100):
            step()
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.assertLess(free - torch.cuda.mem_get_info()[0], 64 << 20)  # of the whole GPU: no other program may use it
        del net, batch, step
        gc.collect()
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), empty)

    def test_several_gpus(self):
        net, batch = self.plain(HERE)
        wanted = net(batch)["y"].detach().cpu()
        for index in range(1, min(torch.cuda.device_count(), 3)):
            there, given = self.plain(torch.device("cuda", index))
            y = there(given)["y"]
            y.sum().backward()
            self.near(y.detach().cpu(), wanted.double(), 1e-6)
            self.assertEqual(torch.cuda.current_device(), 0)


def functional_linear(x, weights, path):
    return torch.nn.functional.linear(x, weights[f"{path}.linear.weight"], weights[f"{path}.linear.bias"])


if __name__ == "__main__":
    unittest.main()
