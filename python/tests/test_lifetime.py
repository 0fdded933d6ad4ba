"""Handles are freed once, memory stays constant, threads and forked processes do no harm, the import is quick."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock
import warnings

import pnet
import support
from pnet import _library as library


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Lifetime(support.Case):
    def counted(self, work):
        """The calls of functions that free, while work() runs."""
        with unittest.mock.patch.object(library, "plain", wraps=library.plain) as plain:
            work()
            gc.collect()
        return sorted(call.args[0] for call in plain.call_args_list if call.args[0].endswith("_free"))

    def test_freed_once(self):
        def closed():
            with pnet.Model(support.SCENE) as model, model.session() as session:
                session.init()
                session.close()
            model.close()

        def dropped():
            session = support.session()
            self.assertIsInstance(session.model, pnet.Model)

        def in_a_circle():
            session = support.session()
            session.me = session

        for work in closed, dropped, in_a_circle:
            self.assertEqual(self.counted(work), ["pnet_model_free", "pnet_session_free"], work.__name__)

    def test_failures_free_too(self):
        def wrong():
            self.refused(pnet.Status.BAD_MODEL, "", pnet.Model, "pnet 1\n\n?\n")

        self.assertEqual(self.counted(wrong), ["pnet_model_free"])

    def test_closed(self):
        model = pnet.Model(support.SCENE, purpose="train")
        session = model.session()
        model.close()
        self.refused(pnet.Status.USAGE, "the model is closed", model.peak, 10)
        self.refused(pnet.Status.USAGE, "the model is closed", model.session)
        session.init()  # a session keeps what it needs of its model
        session.bind(support.cloud())
        session.gradients()
        self.assertEqual(session.weight("scene.a.unit.out.bn.weight").shape, (16,))
        session.close()
        session.close()
        self.refused(pnet.Status.USAGE, "the session is closed", session.forward)
        self.refused(pnet.Status.USAGE, "the session is closed", support.session("eval").copy_weights, session)

    def test_a_thousand_sessions(self):
        model, batch = pnet.Model(support.SCENE), support.cloud(300)

        def once():
            with model.session() as session:
                session.init()
                support.result(session, batch)
                self.refused(pnet.Status.USAGE, "missing", session.bind, {})

        for _ in range(100):
            once()
        gc.collect()
        before = resident()
        for _ in range(1000):
            once()
        gc.collect()
        self.assertLess(resident() - before, 2 ** 20)  # a session takes 100 KiB and more


class Threads(support.Case):
    def together(self, *work):
        """Runs functions in threads of their own; an exception of one is one of the test."""
        failures = []

        def guarded(function):
            try:
                function()
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive(), "a thread waits for ever")
        if failures:
            raise failures[0]

    def test_sessions_of_one_model(self):
        model, batches = pnet.Model(support.SCENE), [support.cloud(1000, seed) for seed in range(4)]

        def compute(batch):
            with model.session() as session:
                session.init()
                return support.result(session, batch)

        wanted = [compute(batch) for batch in batches]

        def check(index):
            for _ in range(10):
                self.same(compute(batches[index]), wanted[index])

        self.together(*[lambda index=index: check(index) for index in range(4)])

    def test_one_session(self):
        session = support.session()
        wanted = support.result(session, support.cloud())

        def check():
            for _ in range(50):
                session.forward()
                self.same(session.result(), wanted)

        self.together(check, check, check, lambda: [session.memory() for _ in range(1000)])

    def test_copies_in_both_directions(self):
        a, b = support.session("eval"), support.session("eval")
        self.together(lambda: [a.copy_weights(b) for _ in range(200)], lambda: [b.copy_weights(a) for _ in range(200)])

    def test_other_threads_run_during_a_call(self):
        session = support.session("train")
        session.bind(support.cloud(100_000))
        count, over = 0, threading.Event()

        def counting():
            nonlocal count
            while not over.is_set():
                count += 1

        thread = threading.Thread(target=counting)
        thread.start()
        before = count
        try:
            session.gradients()
        finally:
            during = count - before
            over.set()
            thread.join()
        self.assertGreater(during, 1000)


def status_of(work):
    """Runs work() in a forked process; 0: it raised nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads here
        child = os.fork()
    if not child:
        status = 1
        signal.alarm(30)  # a child that waits for ever ends, too
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def python(folder, *arguments):
    """Another Python with the same modules, and those of a folder."""
    path = os.pathsep.join([folder, *sys.path])
    return subprocess.run([sys.executable, *arguments], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


class Processes(support.Case):
    def test_fork_after_work(self):
        session = support.session()
        wanted = support.result(session, support.cloud())

        def child():
            self.refused(pnet.Status.USAGE, "was forked", session.forward)
            self.refused(pnet.Status.USAGE, "was forked", session.result)
            self.refused(pnet.Status.USAGE, "was forked", session.model.session)
            self.assertGreater(len(pnet.Model(support.SCENE).weights), 10)
            session.close()

        session._lock.acquire()  # as by a thread that is in the library
        try:
            self.assertEqual(status_of(child), 0)
        finally:
            session._lock.release()
        session.forward()
        self.same(session.result(), wanted)

    def test_fork_after_a_set(self):
        code = ("import numpy, pnet, support, test_lifetime\n"
                "at = numpy.zeros((1, 4), numpy.int32)\n"
                "x, w = numpy.ones((1, 4), numpy.float32), numpy.ones((27, 4, 4), numpy.float32)\n"
                "made = pnet.VoxelSet(at, (4, 4, 4))\n"
                "made.conv(x, w)\n"
                "refused = support.Case().refused\n"
                "def child():\n"
                "    refused(pnet.Status.USAGE, 'was forked', made.conv, x, w)\n"
                "    refused(pnet.Status.USAGE, 'was forked', pnet.VoxelSet, at, (4, 4, 4))\n"
                "    made.close()\n"
                "print(test_lifetime.status_of(child), float(made.conv(x, w)[0, 0]))\n")
        done = python(os.path.dirname(__file__), "-c", code)
        self.assertEqual((done.returncode, done.stdout), (0, "0 4.0\n"), done.stderr)

    def test_fork_before_work(self):
        code = ("import support, test_lifetime\n"
                "print(test_lifetime.status_of(lambda: support.result(support.session(), support.cloud())))\n"
                "support.result(support.session(), support.cloud())\n")
        done = python(os.path.dirname(__file__), "-c", code)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)

    def test_import_time(self):
        """Processor time, which other programs on the machine hardly change, without that of NumPy, which varies by version."""
        def least(code: str) -> float:
            times = []
            for _ in range(5):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = python("", "-c", code)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                self.assertEqual(done.returncode, 0, done.stderr)
                times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            return min(times)
        self.assertLess(least("import pnet") - least("import numpy"), 0.1, "seconds")


if __name__ == "__main__":
    unittest.main()
