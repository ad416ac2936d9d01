"""The directives {file}, {console}, {command-line}: commands that run when the site is built, and what they print."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from conformance.__main__ import app as judge

from .reference import section
from .sources import ROOT

WIDTH = 92
SECONDS = 120


class File(SphinxDirective):
    """Show a file, and write it to where the commands of the page run."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        code = "\n".join(self.content) + "\n"
        (folder(self) / self.arguments[0]).write_text(code, encoding="utf-8")
        caption = nodes.caption("", "", nodes.literal("", self.arguments[0]))
        block = nodes.literal_block(code, code, language="python")
        return [nodes.container("", caption, block, classes=["literal-block-wrapper"], literal_block=True)]


class Console(SphinxDirective):
    """Run a command of Python's and show what it prints; its exit code has to be that of the option (0)."""

    has_content = True
    option_spec: ClassVar = {"exit": directives.nonnegative_int, "from": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        command = " ".join(line.removesuffix("\\").strip() for line in self.content)
        done = run(command, folder(self))
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"{command} ended with exit code {done.returncode}:\n{done.stdout}")
        return [session(command, done.stdout, self.options.get("from", ""))]


class CommandLine(SphinxDirective):
    """Show the help of the judge's command line, and that of each of its commands."""

    def run(self) -> list[nodes.Node]:
        return [self.help(), *(section(nodes.literal(name, name), name, self.help(name)) for name in self.names())]

    def names(self) -> list[str]:
        return list(get_command(judge).commands)

    def help(self, *name: str) -> nodes.Node:
        command = " ".join(["python -m conformance", *name, "--help"])
        return session(command, run(command, folder(self)).stdout)


def session(command: str, output: str, start: str = "") -> nodes.Node:
    """Give a command with its output, from the first line that holds the text of the start."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    first = next((at for at, line in enumerate(lines) if start in line), 0)
    shown = "\n".join([f"$ {command}", *(["…"] if first else []), *lines[first:]])
    return nodes.literal_block(shown, shown, language="console", classes=["output"])


def run(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run `python …` with the Python that builds the site, in that folder, its errors among its output."""
    program, *arguments = shlex.split(command)
    if program != "python":
        raise ValueError(f"{{console}} runs python, not {program}")
    settings = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def folder(directive: SphinxDirective) -> Path:
    """Give the folder in which the commands of the page run."""
    place = Path(directive.env.doctreedir) / "console" / directive.env.docname
    place.mkdir(parents=True, exist_ok=True)
    return place


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_directive("file", File)
    app.add_directive("console", Console)
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
