"""The tasks of this project: `nox -l` lists them, `nox -s NAME -- ARGUMENTS` runs one."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"  # uv does not look where pip finds the CPU build of torch
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True

FRAMEWORKS = ("numpy", "torch", "jax")

VERSIONS = """
import sys
from importlib.metadata import version
print("python", sys.version.split()[0], *(f"| {name} {version(name)}" for name in sys.argv[1:]))
"""
ABSENT = """
import sys
from importlib.util import find_spec
found = [name for name in sys.argv[1:] if find_spec(name)]
sys.exit(f"this environment is not isolated: it has {', '.join(found)}" if found else 0)
"""


# --- the three together: one environment, installed once ---------------------------------------------------


@nox.session(default=False)
def everything(session: nox.Session) -> None:
    """Install the project with all three frameworks; the next three sessions run in this environment."""
    session.install("-e", ".[all,test]")
    session.run("python", "-c", VERSIONS, *FRAMEWORKS, "ml_dtypes", "onnx", "pytest")


@nox.session(python=False, requires=["everything"])
def conformance(session: nox.Session) -> None:
    """Judge the three implementations by all cases and write the report: the main job."""
    report = ["--report", "results/report.html"]
    session.run(_python(session), "-m", "conformance", "run", *report, *session.posargs)


@nox.session(python=False, default=False, requires=["everything"])
def tests(session: nox.Session) -> None:
    """Run all tests with pytest, on the three frameworks in one process."""
    session.run(_python(session), "-m", "pytest", *session.posargs)


@nox.session(python=False, default=False, requires=["everything"])
def together(session: nox.Session) -> None:
    """Import the three in every order, then run the facts of the lesson on them in one process."""
    for order in permutations(FRAMEWORKS):
        session.run(_python(session), "-c", "; ".join(f"import impl_{name}" for name in order))
    session.run(_python(session), "-m", "pytest", "conformance/tests/test_lesson.py", *session.posargs)


def _python(session: nox.Session) -> str:
    environment = session.cache_dir.parent / "everything"
    return str(next(path for path in environment.glob("*/python*") if path.stem == "python"))


# --- one framework alone: the package is installed, and the other frameworks are not -------------------------


@nox.session(default=False, python=["3.10", "3.11", "3.12", "3.13"])
def numpy(session: nox.Session) -> None:
    """Judge the NumPy implementation in an environment without PyTorch and JAX, on each Python that is installed."""
    _alone(session, "numpy")


@nox.session(default=False)
def torch(session: nox.Session) -> None:
    """Judge the PyTorch implementation in an environment without JAX."""
    _alone(session, "torch")


@nox.session(default=False, python=["3.11", "3.12", "3.13"])
def jax(session: nox.Session) -> None:
    """Judge the JAX implementation in an environment without PyTorch, on each Python that is installed."""
    _alone(session, "jax")


def _alone(session: nox.Session, framework: str) -> None:
    session.install(".[test]" if framework == "numpy" else f".[{framework},test]")
    session.run("python", "-c", VERSIONS, *dict.fromkeys(["numpy", framework]))
    session.run("python", "-c", ABSENT, *({"torch", "jax"} - {framework}))
    # As a module, so that the tests and the plugin that pytest loads come from the same folder, this one.
    session.run("python", "-m", "pytest", "-k", framework, *session.posargs)
    with session.chdir(session.create_tmp()):  # away from the sources, so that the installed package is judged
        session.run("conformance", "run", "--backend", framework)


# --- the judge, its data, the sources ------------------------------------------------------------------------


@nox.session(default=False)
def judge(session: nox.Session) -> None:
    """Test the judge itself, with NumPy alone."""
    session.install("-e", ".[test]")
    session.run("python", "-c", VERSIONS, "numpy", "pytest")
    session.run("pytest", "conformance/tests", *session.posargs)


@nox.session(default=False)
def cases(session: nox.Session) -> None:
    """Make the case files anew and compare them with those of the repository, byte by byte."""
    session.install("-e", ".")
    session.run("python", "-c", VERSIONS, "numpy", "mpmath")
    session.run("python", "-m", "conformance.making", "--check", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation twice, compare the bytes, check the site, and test what builds it."""
    session.install("-e", ".[all,docs,test]")
    session.run("python", "-c", VERSIONS, *FRAMEWORKS, "sphinx")
    site = Path("docs", "_build")
    shutil.rmtree(site, ignore_errors=True)
    for build in ("html", "again"):
        strict = ["-n", "-W", "--keep-going", "-j1", "-q", "-d", f"{site}/doctrees-{build}"]
        session.run("python", "-m", "sphinx", *strict, "docs", f"{site}/{build}")
    session.run("python", "docs/check.py", f"{site}/html", f"{site}/again")
    session.run("pytest", "docs/tests", *session.posargs)


@nox.session(python=False, default=False)
def device(session: nox.Session) -> None:
    """Time and judge on an accelerator, in less than ten minutes, with the frameworks that this Python already has."""
    session.run("python", "-m", "conformance.bench.device", *session.posargs, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the sources with ruff."""
    session.install("ruff==0.17.6")
    session.run("ruff", "--version")
    session.run("ruff", "check", *session.posargs)
