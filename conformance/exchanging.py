"""The commands about files that travel: compare, ledger, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[list[Path], typer.Argument(help="Two files or more that run --json has written.")]
Source = Annotated[Path, typer.Option("--from", metavar="FILE.jsonl", help="A file that run --json has written.")]
Folder = Annotated[Path, typer.Argument(help="A folder, which is made if it is not there.")]


def compare(files: Files) -> None:
    """Compare results made in different places. Exit code: 0 all agree, 1 some do not, 2 they cannot be compared."""
    from conformance import comparing

    raise typer.Exit(comparing.main([str(file) for file in files]))


def ledger(source: Source) -> None:
    """Print ledger entries that list what went wrong in a run, to be pasted and given their reasons."""
    from conformance import proposing, results

    try:
        print(proposing.entries(*results.read(source)), end="")
    except (ValueError, OSError) as error:
        typer.secho(str(error), err=True, fg="red")
        raise typer.Exit(2) from None


def export(folder: Folder) -> None:
    """Write all cases as JSON and safetensors, for judges in other languages."""
    from conformance import exporting, loading

    for path in exporting.export(loading.load_cases(), folder):
        typer.echo(f"wrote {path}, {path.stat().st_size:,} bytes")
