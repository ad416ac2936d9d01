"""Run checks on backends, in processes of their own, and give the results as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from conformance.loading import Check
from conformance.results import Result
from conformance.workers import START_TIMEOUT, Worker

# A further process of the same backend pays only if it finds this much to do when it has started.
WORTH_A_PROCESS = 30


class Run:
    """A run of checks on backends: iterate over it to get one `Result` for each check and backend.

    `backends` are names for `adapter.find`; `jobs` processes work at a time; a check that takes longer than
    `timeout` seconds is an error, and so is one whose process dies: the others go on in a new process. `info`
    holds what each backend says of itself, from its first result on. A backend that cannot be loaded gives no
    result; `unloaded` holds its reason. `fewer` has the checks of those backends that are not asked all of them.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        backends: Sequence[str],
        *,
        jobs: int = 2,
        timeout: float = 60.0,
        fewer: Mapping[str, Sequence[Check]] | None = None,
    ) -> None:
        self.jobs, self.timeout = jobs, timeout
        self.info: dict[str, dict[str, Any]] = {}
        self.unloaded: dict[str, str] = {}
        self._waiting = {spec: deque((fewer or {}).get(spec, checks)) for spec in backends}
        self.total = sum(map(len, self._waiting.values()))
        self._workers: list[Worker] = []

    def __iter__(self) -> Iterator[Result]:
        try:
            while self._staff():
                yield from self._collect()
        finally:
            for worker in self._workers:
                worker.kill()

    def _staff(self) -> bool:
        """Start the processes that have something to do; False when there is nothing left."""
        while len(self._workers) < self.jobs and (spec := self._most_in_need()):
            self._workers.append(Worker(spec, START_TIMEOUT))
        return bool(self._workers)

    def _most_in_need(self) -> str | None:
        """Name the backend that has most checks waiting for each of its processes, if it needs another."""
        busy = {spec: sum(worker.spec == spec for worker in self._workers) for spec in self._waiting}
        needy = [
            spec
            for spec, checks in self._waiting.items()
            if checks and (not busy[spec] or len(checks) > busy[spec] * WORTH_A_PROCESS)
        ]
        return max(needy, key=lambda spec: (not busy[spec], len(self._waiting[spec])), default=None)

    def _collect(self) -> Iterator[Result]:
        """Wait for the next answers or deadlines, and give the results that they bring."""
        soonest = min(worker.remaining() for worker in self._workers)
        ready = wait([worker.connection for worker in self._workers], max(0.0, soonest))
        for worker in list(self._workers):
            if worker.connection in ready:
                yield from self._hear(worker)
            elif worker.remaining() <= 0:
                self._workers.remove(worker)
                yield from self._lost(worker, worker.kill())

    def _hear(self, worker: Worker) -> Iterator[Result]:
        message = worker.receive()
        if isinstance(message, str):
            self._workers.remove(worker)
            yield from self._lost(worker, message)
            return
        if isinstance(message, Result):
            yield message
        else:
            self.info[worker.spec] = message
        self._next(worker)

    def _next(self, worker: Worker) -> None:
        """Give the worker its next check, or send it home."""
        checks = self._waiting[worker.spec]
        if checks:
            # The second process starts at the other end: neighbours have the same shapes, which JAX compiles once.
            first = worker is next(w for w in self._workers if w.spec == worker.spec)
            worker.start(checks.popleft() if first else checks.pop(), self.timeout)
        else:
            self._workers.remove(worker)
            worker.kill()

    def _lost(self, worker: Worker, reason: str) -> Iterator[Result]:
        """Give the error of the check in flight; a backend that cannot even start loses all its checks."""
        if worker.check:
            yield Result.of(worker.check, worker.spec, "error", reason)
        else:
            self.unloaded[worker.spec] = reason
            self._waiting[worker.spec].clear()
