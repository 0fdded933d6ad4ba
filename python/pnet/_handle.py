"""What models and sessions share: a handle of the library that is freed once."""

from __future__ import annotations

import os
import threading
import weakref

from pnet import _library as library


def _free(function: str, handle: int, process: int) -> None:
    # a forked process has a copy of the memory, but not of the threads that a session may wait for
    if os.getpid() == process:
        library.plain(function, handle)


class Handle:
    """Freed by close(), at the end of `with`, or when nothing refers to it any more.

    Calls of several threads on one object run one after another.
    """

    def __init__(self, what: str, handle: int, free: str):
        self._what = what
        self._handle = handle
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._freed = weakref.finalize(self, _free, free, handle, self._process)
        # the process gives everything back when it ends; a thread may still be inside the library then
        self._freed.atexit = False

    def close(self) -> None:
        """Frees what the object holds. Calls after it raise Error; a second close does nothing."""
        if os.getpid() != self._process:
            return  # and a thread that was not forked may hold the lock for ever
        with self._lock:
            self._freed()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _hold(self) -> threading.RLock:
        """The lock of a thread that calls the library."""
        return self._lock

    def _use(self) -> int:
        """The handle, for a thread that holds the lock."""
        if not self._freed.alive:
            raise library.refuse(f"the {self._what} is closed")
        return self._handle

    def _call(self, name: str, *arguments) -> None:
        with self._hold():
            library.call(name, self._use(), *arguments)


class Computing(Handle):
    """A handle whose calls run OpenMP's threads. A fork does not copy these, so a forked process would wait for them for ever."""

    _first: int | None = None  # the process that computed first

    def __init__(self, what: str, handle: int, free: str):
        Computing.begun()
        super().__init__(what, handle, free)

    @staticmethod
    def begun() -> None:
        """This process computes."""
        Computing._first = os.getpid()

    @staticmethod
    def own_process() -> None:
        """Raises Error in a process that was forked from one that computed."""
        if Computing._first not in (None, os.getpid()):
            raise library.refuse("this process was forked from one with sessions or sets, whose threads it does not have: "
                                 "start it by multiprocessing's \"spawn\" or \"forkserver\"")

    def _hold(self) -> threading.RLock:
        self.own_process()  # first: a thread that was not forked may hold the lock for ever
        return self._lock
