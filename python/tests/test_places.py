"""Arrays with __cuda_array_interface__, streams and allocators. A session on the CPU takes such arrays where they lie, so that
this runs without a GPU."""

import ctypes
import gc
import unittest

import numpy

import pnet
import support
from pnet import _library as library

TEXT = support.SCENE.replace("return cat(", "r = cat(").replace("-> linear(12)", "-> linear(12)\n  return r")


class Lent:
    """An array as a library for GPUs lends it."""

    def __init__(self, array, steps=False, **more):
        self.array, self.steps, self.more = array, steps, more

    @property
    def __cuda_array_interface__(self):
        own = self.array.__array_interface__
        steps = self.array.strides if self.steps else None
        return {name: own[name] for name in ("shape", "typestr", "data")} | {"strides": steps, "version": 3} | self.more


class Heap:
    """An allocator, and what it gave."""

    def __init__(self):
        self.blocks, self.used, self.peak = {}, 0, 0
        self.struct = library.pnet_allocator(take=library.TAKE(self.take), give=library.GIVE(self.give))

    def take(self, _, size, stream):
        block = ctypes.create_string_buffer(size + 64)
        at = (ctypes.addressof(block) + 63) // 64 * 64
        self.blocks[at] = block
        self.used += size
        self.peak = max(self.peak, self.used)
        return at

    def give(self, _, memory, size, stream):
        del self.blocks[memory]
        self.used -= size


def session(arrays, allocator=None):
    model = pnet.Model(TEXT, purpose="train", outputs=["y", "scene.b"], input_gradients=True)
    made = model.session(seed=3, optimizer="adam", arrays=arrays, allocator=allocator)
    made.init()
    return made


class Places(support.Case):
    def setUp(self):
        self.batch = support.cloud(rows=700)
        self.batch["cloud.label"] = self.batch["cloud.label"].astype(numpy.int64)
        self.batch["cloud"] = numpy.array([0, 300, 700])

    def run_all(self, made, lent):
        """A step of training with a loss of one's own; everything that it gives."""
        lend = Lent if lent else lambda array: array
        made.bind({name: lend(array) for name, array in self.batch.items()})
        made.forward_training()
        given, gradients = [], {}
        for name in ("y", "scene.b"):
            out = numpy.zeros(made.output_shape(name), numpy.float32)
            filled = lend(out)
            self.assertIs(made.output(name, out=filled), filled)
            given.append(out)
            gradients[name] = lend(numpy.cos(out))
        made.backward(gradients, scale=1)
        by_colour = numpy.zeros((700, 3), numpy.float32)
        made.input_gradient("cloud.rgb", out=lend(by_colour))
        made.step(0.01, wait=not lent)
        weights = [numpy.zeros(w.shape, numpy.float32) for w in made.model.weights]
        for weight, to in zip(made.model.weights, weights):
            made.weight(weight.name, out=lend(to))
        trained = [w for w in made.model.weights if w.trained]
        slopes = [numpy.zeros(w.shape, numpy.float32) for w in trained]
        for weight, to in zip(trained, slopes):
            made.gradient(weight.name, out=lend(to))
            made.set_gradient(weight.name, lend(to))
            made.set_weight(weight.name, lend(2 * to))
            weights.append(made.weight(weight.name, out=numpy.zeros(weight.shape, numpy.float32)))
        return [*given, by_colour, *weights, *slopes]

    def test_same(self):
        heap = Heap()
        there = session("device", heap.struct)
        for x, y in zip(self.run_all(session("host"), False), self.run_all(there, True)):
            self.same(x, y)
        memory = there.memory()
        self.assertEqual((heap.used, heap.peak), (memory.used, memory.peak))
        self.assertGreater(heap.used, 0)
        del there
        gc.collect()
        self.assertEqual((heap.used, heap.blocks), (0, {}))

    def test_result(self):
        made = pnet.Model(support.SCENE).session(arrays="device")
        made.init()
        made.bind({name: Lent(self.batch[name]) for name in ("cloud.xyz", "cloud.rgb")})
        made.forward()
        out = numpy.zeros(made.result_shape(), numpy.float32)
        made.result(Lent(out))
        wanted = support.session("infer", seed=0)
        wanted.bind({name: self.batch[name] for name in ("cloud.xyz", "cloud.rgb")})
        wanted.forward()
        self.same(wanted.result(), out)
        self.same(wanted.result(out=numpy.zeros_like(out)), out)

    def test_columns(self):
        """Rows that are contiguous each are described as they lie; on a GPU the library refuses the gaps."""
        records = numpy.hstack([self.batch["cloud.xyz"], self.batch["cloud.rgb"]])
        made = pnet.Model(support.SCENE).session(arrays="device")
        made.init()
        made.bind({"cloud.xyz": Lent(records[:, :3], True), "cloud.rgb": Lent(records[:, 3:], True)})
        made.forward()
        out = made.result(numpy.zeros(made.result_shape(), numpy.float32))
        made.bind({name: Lent(self.batch[name]) for name in ("cloud.xyz", "cloud.rgb")})
        made.forward()
        self.same(out, made.result(numpy.zeros(made.result_shape(), numpy.float32)))

    def test_refused(self):
        made, usage = session("device"), pnet.Status.USAGE
        lent = {name: Lent(array) for name, array in self.batch.items()}
        xyz = self.batch["cloud.xyz"]
        for wrong, says in ((Lent(xyz.astype(float)), "the type float64"), (Lent(xyz.T, True), "rows of arrays on a GPU"),
                            (Lent(xyz.reshape(-1)[0]), "0 dimensions"), (Lent(xyz, mask=lent["cloud"]), "the type float32")):
            self.refused(usage, says, made.bind, {**lent, "cloud.xyz": wrong})
        made.bind(lent)
        made.forward_training()
        shape = made.output_shape("y")
        self.refused(usage, "`out` is missing", made.output, "y")
        self.refused(usage, "expected float32", made.output, "y", out=Lent(numpy.zeros(shape)))
        self.refused(usage, "is not contiguous", made.output, "y", out=Lent(numpy.zeros(shape[::-1], numpy.float32).T, True))
        self.refused(usage, "no contiguous float32 array", made.output, "y", out=numpy.zeros(shape))
        self.refused(usage, "no output `z`", made.output, "z", out=numpy.zeros((1, 1), numpy.float32))
        self.refused(usage, "arrays is 'gpu'", session, "gpu")
        self.refused(usage, "stream: the session is on the CPU", made.model.session, stream=16)
        name = made.model.weights[0].name
        self.refused(usage, "`out` is missing", made.weight, name)
        self.refused(usage, "expected float32", made.set_weight, name, Lent(numpy.zeros(3, numpy.float32)))
        host = session("host")
        self.refused(usage, "", host.bind, lent)  # no arrays of a GPU


if __name__ == "__main__":
    unittest.main()
