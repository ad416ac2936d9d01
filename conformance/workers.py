"""A process of its own for a backend, so that one that crashes or hangs does not take the run with it."""

from __future__ import annotations

import multiprocessing
import signal
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from conformance.adapter import find
from conformance.asking import line
from conformance.judging import judge
from conformance.loading import Check
from conformance.results import Result

# A forked process would inherit the threads' locks of the frameworks, not the threads.
_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """One process that runs one backend's checks, one after the other.

    `check` is the one in flight, `name` and `info` are the backend's own once it has started.
    """

    def __init__(self, spec: str, timeout: float) -> None:
        self.spec = self.name = spec
        self.info: dict[str, Any] | None = None
        self.check: Check | None = None
        self.connection, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(theirs, spec), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the process is seen as the end of the pipe
        self._expect_answer(timeout)

    def _expect_answer(self, timeout: float) -> None:
        self.timeout, self.deadline = timeout, time.monotonic() + timeout

    def start(self, check: Check, timeout: float) -> None:
        """Hand the process a check; `receive` gives its result."""
        self.check = check
        self._expect_answer(timeout)
        try:
            self.connection.send(check)
        except BrokenPipeError:
            pass  # the process has died; receive() says of what

    def receive(self) -> Result | dict[str, Any] | str:
        """Take what the process sent: a result, the backend's info when it has started, or why it has ended."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._cause_of_death()
        if isinstance(message, tuple):
            self.name, self.info = message
            return self.info
        self.check = None
        return message

    def remaining(self) -> float:
        """Give the seconds that are left for the answer."""
        return self.deadline - time.monotonic()

    def kill(self) -> str:
        """End the process at once; gives the sentence for a check that was in flight for too long."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        return f"no answer within {self.timeout:g} s, the process was killed"

    def _cause_of_death(self) -> str:
        self.process.join()
        self.connection.close()
        code = self.process.exitcode or 0
        if code < 0:
            return f"the process was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"the process ended with exit code {code}"


def _serve(connection: Connection, spec: str) -> None:
    """Run in the process: say what the backend is, then answer each check with its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    warnings.simplefilter("ignore")  # a verdict is about values; the progress bar owns the terminal
    try:
        backend = find(spec)
        connection.send((backend.name, backend.info()))
    except Exception as error:
        connection.send(line(error))
        return
    while True:
        try:
            check = connection.recv()
        except EOFError:
            return
        connection.send(_judge(check, backend))


def _judge(check: Check, backend: Any) -> Result:
    try:
        return judge(check, backend)
    except Exception as error:
        return Result.of(check, backend.name, "error", f"the judge could not run it: {line(error)}")
