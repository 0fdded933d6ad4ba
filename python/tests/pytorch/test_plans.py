"""What a set remembers of calls changes no result: tensors of the same types and shapes that lie elsewhere, are written to, or
are not as kernels read them; and weights of spconv in memory by tap."""

import copy
import gc
import io
import threading
import weakref

import torch
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode

import pnet.torch
import pnet.torch.spconv as spconv
import support

SHAPE = [6, 5, 7]


def expected(of, x, weight, bias, g, groups=1):
    """The result and the gradients of a convolution, from its triplets, in double: a loop over them, tap by tap."""
    rows, (taps, deep, out) = of.rows_in, weight.shape
    leaves = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    features, learned, added = leaves
    at = of.indices[:, 1:].tolist()
    place = {tuple(row): n for n, row in enumerate(of.indices.tolist())}
    total = [added] * rows
    for n, row in enumerate(of.indices.tolist()):
        for tap in range(taps):
            offset = tap // 9 - 1, tap // 3 % 3 - 1, tap % 3 - 1
            j = place.get((row[0], *(a + b for a, b in zip(at[n], offset))))
            if j is not None:
                parts = [features[j, q * deep:(q + 1) * deep] @ learned[tap][:, q * out // groups:(q + 1) * out // groups]
                         for q in range(groups)]
                total[n] = total[n] + torch.cat(parts)
    y = torch.stack(total)
    return y.detach(), *torch.autograd.grad(y, leaves, g.double())


class Plans(support.Case):
    def setUp(self):
        self.x = support.tensor(SHAPE, 2, 0.3, 4)
        self.set = pnet.torch.voxel_set(self.x.indices, SHAPE, batches=2)
        random = support.draw(3)
        self.weight, self.bias = torch.randn(27, 4, 6, generator=random), torch.randn(6, generator=random)
        self.g = torch.randn(len(self.x.indices), 6, generator=random)

    def run_with(self, x, weight, bias, g, groups=1):
        leaves = [t if t.requires_grad else t.detach().requires_grad_() for t in (x, weight, bias)]
        y = self.set.conv(*leaves, groups)
        return y.detach(), *torch.autograd.grad(y, leaves, g)

    def agree(self, got, wanted):
        for one, two in zip(got, wanted):
            self.near(one, two)

    def test_other_numbers(self):
        """The second and later calls read the tensors that they get."""
        for turn in range(4):
            x, weight, bias, g = (torch.randn(t.shape, generator=support.draw(turn)) for t in (
                self.x.features, self.weight, self.bias, self.g))
            self.agree(self.run_with(x, weight, bias, g), expected(self.set, x, weight, bias, g))
        self.assertEqual(len(self.set._triplets.plans), 1)

    def test_written_to(self):
        """In place, by .data, and by swapped memory, which a version counter does not see."""
        weight = self.weight.clone().requires_grad_()
        for change in (lambda: None, lambda: weight.detach().mul_(2), lambda: weight.data.add_(1),
                       lambda: setattr(weight, "data", weight.data.flip(0).contiguous())):
            change()
            self.agree(self.run_with(self.x.features, weight, self.bias, self.g),
                       expected(self.set, self.x.features, weight, self.bias, self.g))
        y = self.set.conv(self.x.features, weight, self.bias)
        with torch.no_grad():
            weight.add_(1)
        self.refused("modified by an inplace operation", y.backward, self.g, error=RuntimeError)

    def test_other_types_and_shapes(self):
        """Each has its own plan, in any order."""
        wanted = {}
        for turn in range(3):
            for kind in torch.float32, torch.bfloat16, torch.float16:
                for groups, out in (1, 6), (2, 6), (1, 3):
                    given = (self.x.features, self.weight[:, :4 // groups, :out].contiguous(), self.bias[:out].contiguous())
                    got = self.run_with(*(t.to(kind) for t in given), self.g[:, :out].to(kind), groups)
                    self.assertEqual({t.dtype for t in got}, {kind})
                    for one, two in zip(got, wanted.setdefault((kind, groups, out), got)):
                        self.same(one, two)
                    if kind is torch.float32 and not turn:
                        self.agree(got, expected(self.set, *given, self.g[:, :out], groups))
        self.assertEqual(len(self.set._triplets.plans), 9)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(self.set.conv(self.x.features, self.weight, self.bias).dtype, torch.bfloat16)
        self.same(self.set.conv(self.x.features, self.weight, self.bias), wanted[torch.float32, 1, 6][0])

    def test_other_sets(self):
        """A plan belongs to its set; the inverse and a copy have their own."""
        other = pnet.torch.voxel_set(self.x.indices.flip(0).contiguous(), SHAPE, batches=2)
        turned = copy.deepcopy(self.set._triplets)
        for _ in range(2):
            self.same(other.conv(self.x.features.flip(0).contiguous(), self.weight, self.bias),
                      self.set.conv(self.x.features, self.weight, self.bias).flip(0))
            mirrored = self.set.inverse().conv(self.x.features, self.weight.flip(0).contiguous(), self.bias)
            self.near(mirrored, self.set.conv(self.x.features, self.weight, self.bias).double())
        self.assertEqual((len(other._triplets.plans), len(turned.plans)), (1, 0))

    def test_not_as_kernels_read(self):
        """Tensors with gaps, in another order, at odd places, and expanded ones."""
        wanted = self.run_with(self.x.features, self.weight, self.bias, self.g)

        def ragged(t):
            return torch.stack([t, t], -1)[..., 0]

        def odd(t):
            return torch.cat([t.new_zeros(1), t.flatten()])[1:].view(t.shape)

        for change in ragged, odd, lambda t: t.t().contiguous().t() if t.dim() == 2 else t:
            got = self.run_with(*(change(t) for t in (self.x.features, self.weight, self.bias, self.g)))
            for one, two in zip(got[:3], wanted):
                self.same(one, two)
            self.near(got[3], wanted[3].double())  # PyTorch's sum
        once = self.run_with(self.x.features, self.weight, self.bias, torch.ones(1, 1).expand_as(self.g))
        for one, two in zip(once, self.run_with(self.x.features, self.weight, self.bias, torch.ones_like(self.g))):
            self.near(one, two.double())

    def test_what_is_wanted(self):
        """Gradients of each choice of leaves, after a plan that has seen others."""
        wanted = dict(zip("xwb", self.run_with(self.x.features, self.weight, self.bias, self.g)[1:]))
        for names in "x", "w", "b", "xw", "xb", "wb", "xwb":
            given = dict(zip("xwb", (self.x.features, self.weight, self.bias)))
            leaves = {name: t.detach().requires_grad_(name in names) for name, t in given.items()}
            y = self.set.conv(*leaves.values())
            for name, found in zip(names, torch.autograd.grad(y, [leaves[name] for name in names], self.g)):
                self.same(found, wanted[name])

    def test_wrong_again(self):
        """Refusals stay behind calls that went well, and calls go well behind refusals."""
        x, w, b = self.x.features, self.weight, self.bias
        for _ in range(2):
            good = self.set.conv(x, w, b)
            self.usage("features: [", self.set.conv, x[1:], w, b)
            self.usage("weights: [", self.set.conv, x, w[1:], b)
            self.usage("bias is [5]", self.set.conv, x, w, b[:5])
            self.usage("one type", self.set.conv, x, w.bfloat16(), b)
            self.usage("float64", self.set.conv, x.double(), w.double(), b.double())
            for n in range(3):
                moved = [t.to("meta") if n == k else t for k, t in enumerate((x, w, b))]
                self.usage("is on meta", self.set.conv, *moved)
            self.same(self.set.conv(x, w, b), good)
        self.assertEqual(len(self.set._triplets.plans), 1)

    def test_keeps_nothing(self):
        """Neither tensors nor the set live longer by a plan, without a collection of cycles."""
        gc.collect()
        gc.disable()
        try:
            x, w = self.x.features.clone().requires_grad_(), self.weight.clone().requires_grad_()
            indices = self.x.indices.clone()
            made = pnet.torch.voxel_set(indices, SHAPE, batches=2)
            for _ in range(3):
                y = made.conv(x, w)
                y.backward(self.g)
            ends = [weakref.ref(t) for t in (x, w, x.grad, w.grad, y, indices, made._triplets)]
            del x, w, y, indices, made
            self.assertEqual([end() for end in ends], [None] * len(ends))
        finally:
            gc.enable()

    def test_threads(self):
        """Threads that share a plan have their own arguments."""
        cases = [torch.randn(self.x.features.shape, generator=support.draw(n)) for n in range(4)]
        wanted = [self.run_with(x, self.weight, self.bias, self.g) for x in cases]
        failures = []

        def work(x, two):
            try:
                for _ in range(100):
                    for one, other in zip(self.run_with(x, self.weight, self.bias, self.g), two):
                        self.same(one, other)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=case) for case in zip(cases, wanted)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            self.assertFalse(thread.is_alive())
        if failures:
            raise failures[0]

    def test_outlived(self):
        """A tensor that a transform of functions left behind."""
        left = []
        torch.func.grad(lambda x: (left.append(x), x.square().sum())[1])(self.x.features)
        for _ in range(2):
            self.same(self.set.conv(left[0], self.weight), self.set.conv(self.x.features, self.weight))


class Passes(TorchDispatchMode):
    """Looks into a program, and changes nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class ByTap(support.Case):
    """weights_by_tap()."""

    def setUp(self):
        torch.manual_seed(2)
        self.x = support.tensor(SHAPE, 2, 0.3, 4)
        self.net = spconv.SparseSequential(
            spconv.SubMConv3d(4, 6, 3, indice_key="a"), torch.nn.ReLU(),
            spconv.SparseConv3d(6, 8, 2, 2, groups=2, indice_key="d"),
            spconv.SubMConv3d(8, 8, 1), spconv.SparseInverseConv3d(8, 4, 2, indice_key="d", bias=False))
        self.by_tap = spconv.weights_by_tap(copy.deepcopy(self.net))

    def step(self, net):
        net.zero_grad()
        y = net(self.x).features
        y.square().sum().backward()
        return [y.detach(), *(p.grad for p in net.parameters())]

    def test_layout(self):
        weights = [layer.weight for layer in self.by_tap if isinstance(layer, spconv.SparseConvolution)]
        self.assertEqual([w.is_contiguous() for w in weights], [False, False, True, False])
        for w in weights[:2] + weights[3:]:
            self.assertTrue(w.permute(*range(1, w.dim()), 0).is_contiguous())
        for one, two in zip(self.by_tap.parameters(), self.net.parameters()):
            self.assertIsInstance(one, torch.nn.Parameter)
            self.same(one, two)

    def test_same_bits(self):
        for _ in range(3):
            for one, two in zip(self.step(self.by_tap), self.step(self.net)):
                self.same(one, two)
        for net in self.net, self.by_tap:
            self.assertEqual([p.grad.stride() for p in net.parameters()], [p.stride() for p in net.parameters()])
        given = list(self.net.parameters())
        for found in torch.autograd.grad(self.net(self.x).features.sum(), given):
            self.assertTrue(found.is_contiguous())

    def test_no_copy(self):
        """A call reads the weights where they lie, and no operator of PyTorch copies them or their gradients."""
        for net, copies in (self.net, True), (self.by_tap, False):
            layer = net[0]
            layer(self.x).features.sum().backward()
            layer.weight.grad = None
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
                layer(self.x).features.backward(torch.ones(len(self.x.indices), 6))
            self.assertEqual("aten::copy_" in {event.key for event in seen.key_averages()}, copies)

    def test_training(self):
        for make in (lambda p: torch.optim.AdamW(p, 0.01), lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)):
            nets = copy.deepcopy(self.net), copy.deepcopy(self.by_tap)
            optimizers = [make(net.parameters()) for net in nets]
            for _ in range(5):
                for net, optimizer in zip(nets, optimizers):
                    self.step(net)
                    optimizer.step()
            for one, two in zip(*(net.parameters() for net in nets)):
                self.near(one.detach(), two.detach().double())
            self.assertFalse(nets[1][0].weight.is_contiguous())

    def test_checkpoints(self):
        """They load from one layout to the other, and keep that of the network."""
        for source, target in (self.net, self.by_tap), (self.by_tap, self.net):
            file = io.BytesIO()
            torch.save(source.state_dict(), file)
            file.seek(0)
            loaded = copy.deepcopy(target)
            with torch.no_grad():
                for parameter in loaded.parameters():
                    parameter.zero_()
            loaded.load_state_dict(torch.load(file))
            for one, two, like in zip(loaded.parameters(), source.parameters(), target.parameters()):
                self.same(one, two)
                self.assertEqual(one.stride(), like.stride())

    def test_saved_elsewhere(self):
        """Hooks that give saved tensors back in the usual order in memory."""
        for net in self.net, self.by_tap:
            wanted = self.step(net)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().contiguous().clone(), lambda t: t):
                for one, two in zip(self.step(net), wanted):
                    self.same(one, two)

    def test_narrow(self):
        for net in self.net, self.by_tap:
            net.bfloat16()
        x, self.x = self.x, self.x.replace_feature(self.x.features.bfloat16())
        for one, two in zip(self.step(self.by_tap), self.step(self.net)):
            self.same(one, two)
        self.x = x
        for net in self.net, self.by_tap:
            net.float()
        self.assertFalse(self.by_tap[0].weight.is_contiguous())
        with torch.autocast("cpu", torch.bfloat16):
            for one, two in zip(self.step(self.by_tap), self.step(self.net)):
                self.same(one, two)

    def test_operators(self):
        """What torch.compile and others see."""
        wanted = self.net(self.x).features.detach()
        weight = self.by_tap[0].weight
        with Passes():
            self.same(self.by_tap(self.x).features.detach(), wanted)
        y = self.by_tap(self.x).features
        first = torch.autograd.grad(y.sum(), weight, create_graph=True)[0]
        self.same(first.detach(), torch.autograd.grad(self.net(self.x).features.sum(), self.net[0].weight)[0])
        self.refused("no second derivative", first.sum().backward, error=RuntimeError)

    def test_replaced_weights(self):
        """A weight that is no parameter of its own: computed by a parametrization, or given by a call."""
        layer = spconv.SubMConv3d(4, 6, 3)
        wanted = layer(self.x).features.detach()
        parametrize.register_parametrization(layer, "weight", torch.nn.Identity())
        self.same(layer(self.x).features.detach(), wanted)
        plain = spconv.SubMConv3d(4, 6, 3)
        given = {"weight": layer.weight.detach(), "bias": layer.bias.detach()}
        self.same(torch.func.functional_call(plain, given, (self.x,)).features, wanted)
