"""A process of its own for a backend, so that one that crashes or hangs does not take the run with it.

The process is told questions and sends replies; what is expected stays on this side of the pipe.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from conformance.adapter import Backend, find
from conformance.asking import Question, Reply, ask, line
from conformance.judging import question, settle
from conformance.loading import CASES, Check
from conformance.results import Result

# A forked process would inherit the threads' locks of the frameworks, not the threads.
_SPAWN = multiprocessing.get_context("spawn")


START_TIMEOUT = 300.0


class Worker:
    """One process that is asked one backend's checks, one after the other.

    `check` is the one in flight; `info` is what the backend says of itself once it has started.
    """

    def __init__(self, spec: str, timeout: float) -> None:
        self.spec = spec
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
        """Put a check's question to the process; `receive` gives its result."""
        self.check = check
        self._expect_answer(timeout)
        try:
            self.connection.send(question(check))
        except BrokenPipeError:
            pass  # the process has died; receive() says of what

    def receive(self) -> Result | dict[str, Any] | str:
        """Take what the process sent: a result, the backend's info when it has started, or why it has ended."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._cause_of_death()
        if self.check is None:
            self.info = message if isinstance(message, dict) else None
            return message
        check, self.check = self.check, None
        return _settled(check, self.spec, message)

    def wait(self) -> Result | dict[str, Any] | str:
        """Take what the process sends; it is ended where it sends nothing in time."""
        return self.receive() if self.connection.poll(max(0.0, self.remaining())) else self.kill()

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


class Desk:
    """Asks backends one check at a time, each in a process of its own, which is started anew after it has ended."""

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._workers: dict[str, Worker] = {}

    def info(self, spec: str) -> dict[str, Any]:
        """Give what the backend says of itself; raises LookupError where it cannot be loaded."""
        return self._worker(spec).info

    def result(self, spec: str, check: Check) -> Result:
        """Give the result of the check; raises LookupError where the backend cannot be loaded."""
        worker = self._worker(spec)
        worker.start(check, self._timeout)
        answer = worker.wait()
        if isinstance(answer, Result):
            return answer
        del self._workers[spec]
        return Result.of(check, spec, "error", answer)

    def _worker(self, spec: str) -> Worker:
        if spec not in self._workers:
            worker = Worker(spec, START_TIMEOUT)
            if isinstance(reason := worker.wait(), str):
                raise LookupError(f"{spec}: {reason}")
            self._workers[spec] = worker
        return self._workers[spec]

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers.values():
            worker.kill()


def _settled(check: Check, spec: str, reply: Reply) -> Result:
    try:
        return settle(check, spec, reply)
    except Exception as error:
        return Result.of(check, spec, "error", f"the judge could not judge it: {line(error)}")


def _serve(connection: Connection, spec: str) -> None:
    """Run in the process: say what the backend is, or why it is none, then reply to each question."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    warnings.simplefilter("ignore")  # a verdict is about values; the progress bar owns the terminal
    os.dup2(2, 1)  # what the backend prints must not mix with the report
    # OpenMP's threads spin while they wait, in the way of the other processes; threads of the implementations stay.
    os.environ.setdefault("ATTENTION_THREADS", str(os.cpu_count() or 1))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    peeks = _watch_cases()
    try:
        backend = find(spec)
        # What an import has made stays: to look through it again and again takes a twentieth of the time.
        gc.freeze()
        gc.set_threshold(20_000)
        connection.send(backend.info())
    except (Exception, SystemExit) as error:
        connection.send(error.args[0] if isinstance(error, LookupError) else line(error))
        return
    while True:
        try:
            asked = connection.recv()
        except EOFError:
            return
        reply = _reply(asked, backend)
        connection.send(Reply(failed=f"it read the expected values: {peeks[0]}") if peeks else reply)


def _reply(asked: Question, backend: Backend) -> Reply:
    try:
        return ask(asked, backend)
    except Exception as error:
        return Reply(failed=f"the adapter failed: {line(error)}")


def _watch_cases() -> list[str]:
    """Give a list that gets the name of each case file which this process opens from now on."""
    opened: list[str] = []
    folder = str(CASES)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if path.startswith(folder + os.sep):
                opened.append(Path(path).name)

    sys.addaudithook(hear)
    return opened
