"""pnet.torch.Network: training in PyTorch has the losses of pnetc train; parameters, copies, results."""

import copy
import importlib.util
import io
import json
import pathlib
import pickle
import unittest

import numpy
import torch

import pnet
import pnet.torch
import support

# the support module of the package's own tests, which has the same name
_path = pathlib.Path(__file__).resolve().parents[1] / "support.py"
_spec = importlib.util.spec_from_file_location("package_support", _path)
package = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(package)

DATA = """\
pnet_dataset: 1
task: segmentation
classes: [ceiling, floor, wall, door, window, board, table, chair, sofa, shelf, lamp, clutter]
label_field: label
train: [{cloud: train/000000.ply}]
val: [{cloud: val/000008.ply}]
"""
RUN = "data: rooms/one.yaml\nsteps: 8\noptimizer: {name: adamw, beta2: 0.99}\nweight_decay: 0.05\nclip_grad: 0.5\nlr: 0.01\n"


def tensors(batch):
    return {name: torch.from_numpy(numpy.ascontiguousarray(value)) for name, value in batch.items()}


class Rooms(package.RoomCase):
    def test_losses_of_pnetc(self):
        (self.rooms / "one.yaml").write_text(DATA)
        (self.folder / "run.yaml").write_text(RUN)
        package.run(package.PNETC, "train", self.model, "--config", self.folder / "run.yaml", "-o", self.folder / "run",
                    "--seed", 5, "-q")
        lines = [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        wanted = [(line["loss.ce"], line["gradient_norm"]) for line in lines if "gradient_norm" in line]
        self.assertEqual(len(wanted), 8)
        net = pnet.torch.Network(package.SCENE, seed=5)
        groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.05},
                  {"params": [p for p in net.parameters() if p.dim() == 1], "weight_decay": 0}]
        optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.99))
        batch = tensors(package.read_room(self.rooms / "train" / "000000.ply"))
        given = []
        for _ in range(8):
            loss = net(batch)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            given.append((loss.item(), norm.item()))
            self.assertEqual(list(net.losses), ["ce"])
        numpy.testing.assert_allclose(given, wanted, rtol=2e-5)
        self.assertLess(given[-1][0], 0.8 * given[0][0])


class Modules(support.Case):
    def setUp(self):
        self.batch, self.net = tensors(package.cloud()), pnet.torch.Network(package.SCENE, seed=7)
        self.inputs = {name: value for name, value in self.batch.items() if name != "cloud.label"}

    def test_parameters(self):
        model = pnet.Model(package.SCENE, purpose="train")
        self.assertEqual({name: tuple(value.shape) for name, value in self.net.state_dict().items()},
                         {w.name: w.shape for w in model.weights})
        self.assertEqual({name for name, _ in self.net.named_parameters()}, {w.name for w in model.weights if w.trained})
        session = package.session("train")
        for name, value in self.net.state_dict().items():
            self.same(value, torch.from_numpy(session.weight(name)))

    def test_gradients(self):
        """Those of a session; scaled as the loss is, added up, none for parameters that are frozen."""
        session = package.session("train")
        session.bind(package.cloud())
        session.gradients()
        frozen, *others = self.net.named_parameters()
        frozen[1].requires_grad_(False)
        (3 * self.net(self.batch)).backward()
        self.net(self.batch).backward()
        self.assertIsNone(frozen[1].grad)
        whole = max(torch.from_numpy(session.gradient(name)).norm().item() for name, _ in others)
        for name, parameter in others:
            self.near(parameter.grad, 4 * torch.from_numpy(session.gradient(name)).double(), 1e-5, name, 0.01 * whole)
        running = [name for name, _ in self.net.named_buffers()]
        self.assertTrue(running)
        for name in running:  # two batches have updated them
            self.assertFalse(torch.equal(self.net.state_dict()[name], torch.from_numpy(package.session("train").weight(name))))
        with torch.no_grad():
            self.assertFalse(self.net(self.batch).requires_grad)
        for power in 1, 2:  # the gradient of the loss is a constant, or not
            loss = self.net(self.batch).pow(power)
            first = torch.autograd.grad(loss, others[0][1], create_graph=True)[0]
            self.refused("no second derivative", (loss + first.pow(2).sum()).backward, error=RuntimeError)

    def test_default_type(self):
        """Parameters, losses and results are float32 whatever the program's tensors are."""
        before = torch.get_default_dtype()
        for dtype in torch.float64, torch.bfloat16:
            torch.set_default_dtype(dtype)
            try:
                net = pnet.torch.Network(package.SCENE, seed=7)
                loss = net(self.batch)
                loss.backward()
                result = net.eval()(self.batch)
            finally:
                torch.set_default_dtype(before)
            for one in loss, result, *net.parameters(), *net.buffers(), *(p.grad for p in net.parameters()):
                self.assertEqual(one.dtype, torch.float32)

    def test_result(self):
        session = package.session()
        session.copy_weights(package.session("train"))
        self.net.eval()
        self.same(self.net(self.inputs), torch.from_numpy(package.result(session, package.cloud())))
        scores = self.net(self.batch)
        losses = self.net.objectives(self.batch)
        wanted = torch.nn.functional.cross_entropy(scores, self.batch["cloud.label"].long()).item()
        self.assertAlmostEqual(losses["ce"], wanted, 5)
        self.assertAlmostEqual(losses["oa"], (scores.argmax(1) == self.batch["cloud.label"]).float().mean().item(), 6)
        with torch.no_grad():
            for parameter in self.net.parameters():
                parameter.mul_(1.1)
        self.assertFalse(torch.equal(self.net(self.inputs), scores))

    def test_copies(self):
        self.net(self.batch)
        file = io.BytesIO()
        torch.save(self.net.state_dict(), file)
        file.seek(0)
        other = pnet.torch.Network(package.SCENE, seed=8)
        self.assertNotEqual(other(self.batch).item(), self.net(self.batch).item())
        other = pnet.torch.Network(package.SCENE, seed=8)
        other.load_state_dict(torch.load(file, weights_only=True))
        self.net.load_state_dict(other.state_dict())
        wanted = self.net(self.batch)
        for copied in (other, copy.deepcopy(self.net), pickle.loads(pickle.dumps(self.net))):
            self.same(copied(self.batch).detach(), wanted.detach())

    def test_in_voxel_mode(self):
        voxel = pnet.torch.Network(package.SCENE, mode="voxel", seed=7)
        self.assertEqual(voxel.state_dict().keys(), self.net.state_dict().keys())
        self.assertNotEqual(voxel(self.batch).item(), self.net(self.batch).item())

    def test_wrong(self):
        self.usage("no losses before", lambda: self.net.losses)
        self.usage("requires a gradient", self.net, {**self.batch, "cloud.rgb": self.batch["cloud.rgb"].clone().requires_grad_()})
        self.usage("missing", self.net, self.inputs)
        self.usage("torch.float64", copy.deepcopy(self.net).double(), self.batch)
        self.refused("no field", pnet.torch.Network, package.SCENE.replace("p.rgb", "p.red"), error=pnet.Error)


PLAIN = """\
pnet 1
input cloud {
  xyz : position
  f   : feature[4]
}
net n(p: cloud) {
  h = p.f -> linear(5) -> sigmoid
  return h -> linear(3)
}
y = n(cloud)
"""


class Outputs(support.Case):
    """Losses of one's own."""

    def setUp(self):
        self.net = pnet.torch.Network(PLAIN, seed=3, outputs=["y", "n.h"], input_gradients=True)
        draw = torch.Generator().manual_seed(4)
        self.batch = {"cloud.xyz": torch.rand(40, 3, generator=draw), "cloud.f": torch.rand(40, 4, generator=draw)}

    def test_gradients(self):
        """Of a loss of both outputs, against the same network in PyTorch."""
        given = {**self.batch, "cloud.f": self.batch["cloud.f"].clone().requires_grad_()}
        found = self.net(given)
        loss = found["y"].cos().sum() + found["n.h"].pow(3).sum()
        loss.backward()
        w = {name: value.detach().double().requires_grad_() for name, value in self.net.named_parameters()}
        f = self.batch["cloud.f"].double().requires_grad_()
        h = torch.sigmoid(torch.nn.functional.linear(f, w["n.h.linear.weight"], w["n.h.linear.bias"]))
        y = torch.nn.functional.linear(h, w["n.out.linear.weight"], w["n.out.linear.bias"])
        (y.cos().sum() + h.pow(3).sum()).backward()
        self.near(found["y"].detach(), y.detach(), 1e-6, "y")
        self.near(found["n.h"].detach(), h.detach(), 1e-6, "h")
        for name, parameter in self.net.named_parameters():
            self.near(parameter.grad, w[name].grad, 1e-5, name)
        self.near(given["cloud.f"].grad, f.grad, 1e-5, "cloud.f")

    def test_one_output(self):
        """Outputs that a loss does not read have no part in its gradients."""
        self.net(self.batch)["n.h"].sum().backward()
        grads = {name: parameter.grad for name, parameter in self.net.named_parameters()}
        self.assertEqual(grads["n.out.linear.weight"].abs().sum().item(), 0)
        self.assertGreater(grads["n.h.linear.weight"].abs().sum().item(), 0)

    def test_no_second_derivative(self):
        """Of a penalty on gradients, as of a critic, whose outputs are summed."""
        given = {**self.batch, "cloud.f": self.batch["cloud.f"].clone().requires_grad_()}
        score = self.net(given)["y"].sum()
        first = torch.autograd.grad(score, given["cloud.f"], create_graph=True)[0]
        self.refused("no second derivative", (score + first.norm()).backward, error=RuntimeError)

    def test_own_loss(self):
        """The model's own loss, computed in PyTorch, trains it as the model does; evaluation gives the same outputs."""
        batch = tensors(package.cloud())
        own, net = pnet.torch.Network(package.SCENE, seed=7), pnet.torch.Network(package.SCENE, seed=7, outputs=["y"])
        own(batch).backward()
        points = pnet.torch.Points(batch["cloud.xyz"])
        cells = points.grid(net._model("train").outputs[0].cell)
        scores = pnet.torch.upsample(net(batch)["y"], cells, points)
        torch.nn.functional.cross_entropy(scores, batch["cloud.label"].long()).backward()
        whole = max(parameter.grad.norm().item() for parameter in own.parameters())
        wanted = dict(own.named_parameters())
        for name, parameter in net.named_parameters():
            self.near(parameter.grad, wanted[name].grad.double(), 1e-4, name, 0.01 * whole)
        self.same(net.state_dict()["scene.a.unit.out.bn.running_mean"], own.state_dict()["scene.a.unit.out.bn.running_mean"])
        found = net.eval()(batch)["y"]
        self.assertFalse(found.requires_grad)
        self.near(pnet.torch.upsample(found, cells, points), own.eval()(batch).double(), 1e-5, "evaluation")

    def test_order(self):
        first = self.net(self.batch)["y"]
        self.net(self.batch)
        self.usage("another batch", first.sum().backward)
        again = self.net(self.batch)["y"].sum()
        again.backward(retain_graph=True)
        self.refused("forward_training", again.backward, error=pnet.Error)

    def test_wrong(self):
        net = pnet.torch.Network(PLAIN, outputs=["y"])
        self.usage("requires a gradient", net, {**self.batch, "cloud.f": self.batch["cloud.f"].clone().requires_grad_()})
        self.refused("z", pnet.torch.Network, PLAIN, outputs=["z"], error=pnet.Error)
        copied = copy.deepcopy(self.net)
        self.same(copied(self.batch)["y"].detach(), self.net(self.batch)["y"].detach())


if __name__ == "__main__":
    unittest.main()
