"""A process that is spoken to in lines of JSON, one object a line, with a time limit for each answer."""

from __future__ import annotations

import json
import queue
import subprocess
from contextlib import suppress
from threading import Thread
from typing import Any

from conformance.adapter import Failed


class Lines:
    """The process of a command. Raises LookupError where it cannot be started."""

    def __init__(self, command: list[str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        try:
            self._process = subprocess.Popen(command, text=True, encoding="utf-8", errors="replace", **pipes)
        except (OSError, IndexError) as error:
            raise LookupError(f"the command cannot be started: {error}") from None
        self._answers: queue.Queue[str] = queue.Queue()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")  # the end

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send a message and give the answer; raises Failed, which says how the process failed and that it is ended."""
        with suppress(OSError):  # where it has died, its end is its answer
            print(json.dumps(message, allow_nan=False), file=self._process.stdin, flush=True)
        try:
            return _object(self._next(timeout))
        except Failed:
            self.end()
            raise

    def _next(self, timeout: float) -> str:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise Failed(f"no answer within {timeout:g} s, the process was killed") from None
        if line:
            return line
        code = self._process.wait()
        raise Failed(f"the process was killed by signal {-code}" if code < 0 else f"the process ended with code {code}")

    def end(self) -> None:
        """Kill the process, if it still runs."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        with suppress(OSError):  # it may flush what the process has not read
            self._process.stdin.close()


def _object(line: str) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Failed(f"its answer is no JSON object: {line.strip()[:80]!r}")
    return answer
