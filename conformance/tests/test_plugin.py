"""A package that someone else has written adds a backend by its entry point, once it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the sample plug-in into a folder, without any index, and give an environment that has it."""
    folder = tmp_path_factory.mktemp("plugin")
    source = copytree(Path(__file__).parent / "sample_plugin", folder / "source")  # building leaves files behind
    options = "--quiet --no-deps --no-index --no-build-isolation --disable-pip-version-check --target".split()
    subprocess.run([sys.executable, "-m", "pip", "install", *options, folder / "site", source], check=True)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)]), "COLUMNS": "200"}


def run(environment, *arguments):
    command = [sys.executable, "-m", "conformance", "run", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)


def test_an_installed_backend_is_judged_by_its_name(installed):
    done = run(installed, "--backend", "sample", "-k", "plain-float32")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing differs: 1 pass, 4 unsupported." in done.stdout


def test_its_variant_is_judged_too_and_a_wrong_one_fails(installed):
    done = run(installed, "--backend", "sample:negated", "-k", "plain-float32")
    assert done.returncode == 1
    assert "--backend sample:negated -k plain-float32" in done.stdout


def test_its_names_are_listed_where_one_is_misspelled(installed):
    done = run(installed, "--backend", "sampel")
    assert done.returncode == 2
    assert "Did you mean sample" in done.stderr
