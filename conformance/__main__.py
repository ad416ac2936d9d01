"""The command line: python -m conformance run | list | show | grade | mutants | compare | ledger | export | bench."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance import exchanging, selecting, selfcheck, smoke, tally
from conformance.bench.command import bench
from conformance.ledger import Entry, Ledger, load
from conformance.loading import Case, Check, digest, load_cases, load_flags
from conformance.loading import checks as all_checks
from conformance.results import Header, Result, write
from conformance.running import Run

DEFAULT_BACKENDS = ("numpy", "torch", "jax", "torch-sdpa")
# They compile, or trace, for each case anew; jax:flash makes calls that `jax` makes too, as flash_attention.
SLOW = ("torch:compile", "jax:jit", "jax:eager", "jax:flash", "jax:optimised")
DEFAULT_JOBS = min(len(DEFAULT_BACKENDS), os.cpu_count() or 1)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Judge implementations of attention, masking and retrieval against one contract.",
)

Text = Annotated[str, typer.Option("-k", metavar="TEXT", help="Only what has this text in its name or fact.")]
Ops = Annotated[
    list[str] | None, typer.Option("--op", "--ops", metavar="NAME", help="Only this operation; repeatable.")
]
Dtypes = Annotated[
    list[str] | None, typer.Option("--dtype", metavar="NAME", help="Only inputs of this dtype; repeatable.")
]
Clauses = Annotated[list[str] | None, typer.Option("--clause", metavar="ID", help="Only this clause; repeatable.")]
Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help=f"Repeatable; all: every built-in one and its variants; default: {', '.join(DEFAULT_BACKENDS)}.",
    ),
]
Arrays = Annotated[
    str, typer.Option(metavar="KIND", help="A plain function is called with arrays of this kind: numpy, torch or jax.")
]
Errors = Annotated[bool, typer.Option("--errors", help="Judge also what a plain function refuses.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write the report as one HTML page.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE.jsonl", help="Write the results; several backends: FILE.NAME.jsonl each."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE.toml", help="The ledger of the only backend, instead of a built-in one."),
]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="How many processes work at a time.")]
Full = Annotated[bool, typer.Option("--full", help="Run all checks on each, some minutes, and draw the matrix.")]
Every = Annotated[bool, typer.Option("--every", help=f"Ask {', '.join(SLOW)} every check, not two of each kind.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="Five cases only, to tell a bad adapter from a bad backend.")]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first wrong answer.")]


@app.command()
def run(
    backend: Backends = None,
    arrays: Arrays = "",
    errors: Errors = False,
    report: Report = None,
    json: Json = None,
    text: Text = "",
    op: Ops = None,
    dtype: Dtypes = None,
    clause: Clauses = None,
    ledger: LedgerFile = None,
    jobs: Jobs = DEFAULT_JOBS,
    fail_fast: FailFast = False,
    every: Every = False,
    smoke_: Smoke = False,
) -> None:
    """Run the cases on backends and report. Exit code: 0 nothing differs, 1 something does, 2 wrong usage."""
    from conformance import report as terminal

    cases = load_cases()
    with usage_errors():
        specs = selecting.backends(selecting.with_settings(backend or DEFAULT_BACKENDS, arrays, errors))
        checks = selecting.select(cases, text, ops=op or (), dtypes=dtype or (), clauses=clause or ())
        checks = smoke.only(checks) if smoke_ else checks
        own = selecting.ledger(ledger, specs)
    trust_the_judge()
    slow = [] if every or text or op or dtype or clause else [spec for spec in specs if spec in SLOW]
    running = Run(checks, specs, jobs=jobs, fewer=dict.fromkeys(slow, selecting.two_of_each_kind(checks)))
    ledgers: dict[str, Ledger] = {}
    found = collect(running, ledgers, own, running.total, fail_fast)
    results = sorted(found, key=_order(checks, specs))
    refuse(running.unloaded)
    problems = [line for name in ledgers for line in _problems(name, ledgers[name], cases)]
    problems += [f"{name}: every check is unsupported, so nothing was judged" for name in tally.unasked(results)]
    chosen = list({check.case.id: check.case for check in checks}.values())
    if slow:
        few = len(selecting.two_of_each_kind(checks))
        typer.echo(f"{', '.join(slow)}: asked {few} of {len(checks)} checks, two of each kind; --every asks all")
    terminal.show(results, chosen, load_flags(), problems, Console())
    if smoke_:
        smoke.show(results, Console())
    if json:
        write_json(json, results, running.info, cases)
    if report:
        write_html(report, results, chosen, problems, running.info)
    raise typer.Exit(1 if problems or tally.wrong(results) else 0)


@app.command("list")
def list_(text: Text = "", op: Ops = None, dtype: Dtypes = None, clause: Clauses = None) -> None:
    """List the cases."""
    from conformance import showing

    with usage_errors():
        found = selecting.select(load_cases(), text, ops=op or (), dtypes=dtype or (), clauses=clause or ())
    cases = list({check.case.id: check.case for check in found}.values())
    Console().print(showing.overview(cases), f"\n{len(cases)} cases, {len(found)} checks", sep="\n")


@app.command()
def show(case: Annotated[str, typer.Argument(help="The id of a case, or the name of one of its checks.")]) -> None:
    """Show one case: fact, clauses, flags, arrays, mask and what is expected."""
    from conformance import showing

    with usage_errors():
        found = selecting.one(load_cases(), case)
    showing.show(found, load_flags(), Console())


@app.command()
def grade(file: Annotated[Path, typer.Argument(help="Like docs/exercises/heads/answer_numpy.py.")]) -> None:
    """Grade the answer to an exercise. Exit code: 0 right, 1 wrong, 2 wrong usage, 3 not started."""
    from conformance import grading
    from conformance.grading import report as graded

    with usage_errors():
        answer = grading.submission(file)
    findings = grading.grade(answer)
    graded.show(f"{answer.exercise.title}, {answer.framework}", findings, Console())
    raise typer.Exit(grading.EXIT_CODES[graded.together(findings)])


@app.command()
def mutants(full: Full = False) -> None:
    """Show that the cases reject wrong attentions. Exit code: 0 each one is rejected, 1 one is not."""
    from conformance.mutants import proving

    raise typer.Exit(0 if proving.show(load_cases(), Console(), full=full) else 1)


for command in (exchanging.compare, exchanging.ledger, exchanging.export):
    app.command()(command)


app.command()(bench)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn what the user got wrong into a message and exit code 2."""
    try:
        yield
    except ValueError as error:
        typer.secho(str(error), err=True, fg="red")
        raise typer.Exit(2) from None


def trust_the_judge() -> None:
    """End the program where the judge takes a wrong answer for a right one, or the other way round."""
    if fault := selfcheck.fault():
        raise SystemExit(f"the judge is broken, so no verdict of it counts: {fault}")


def refuse(unloaded: dict[str, str]) -> None:
    """End with exit code 2 where a backend could not be loaded; what the others gave is not worth a report."""
    for spec, reason in unloaded.items():
        typer.secho(f"{spec}: {reason}", err=True, fg="red")
    if unloaded:
        raise typer.Exit(2)


def collect(
    running: Run, ledgers: dict[str, Ledger], own: list[Entry] | None, total: int, fail_fast: bool
) -> list[Result]:
    """Run to the end, or to the first wrong answer, with a bar; `ledgers` gets that of each backend that ran.

    `own` are the entries that the user has given; without them each backend has those that the project keeps.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    results: list[Result] = []
    wrong = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar, closing(iter(running)) as answers:
        task = bar.add_task(_state(wrong), total=total)
        for result in answers:
            results.append(_settled(result, ledgers, own, running.info))
            wrong += results[-1].outcome in tally.WRONG
            bar.update(task, advance=1, description=_state(wrong))
            if fail_fast and wrong:
                break
    return results


def _settled(result: Result, ledgers: dict[str, Ledger], own: list[Entry] | None, infos: dict) -> Result:
    """Give the result as its backend's ledger sees it; the versions that ran decide what of it is in force."""
    name = result.backend
    if name not in ledgers:
        ledgers[name] = Ledger(load(name) if own is None else own, infos.get(name, {}))
    return ledgers[name].settle(result)


def _problems(name: str, ledger: Ledger, cases: Sequence[Case]) -> list[str]:
    every = [check for case in cases for check in all_checks(case)]
    return [f"ledger of {name}: {problem}" for problem in ledger.problems(every)]


def _state(wrong: int) -> str:
    return f"[red]{wrong} wrong[/]" if wrong else "[green]nothing differs[/]"


def _order(checks: Sequence[Check], specs: Sequence[str]):
    """Sort as the backends were named and the cases stand in their files, not as the processes happen to answer."""
    place = {name: at for at, name in enumerate([*specs, *(check.name for check in checks)])}
    return lambda result: (place.get(result.backend, len(specs)), place[result.check])


def write_json(path: Path, results: Sequence[Result], infos: dict, cases: Sequence[Case]) -> None:
    """Write one file of JSON lines for each backend; the name of the only one is kept as it is."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    names = list(dict.fromkeys(result.backend for result in results))
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        plain = re.sub(r"[^\w.-]+", "_", name)  # a backend may be named by a path or a command
        file = path if len(names) == 1 else path.with_name(f"{path.stem}.{plain}{path.suffix}")
        header = Header(digest(list(cases)), name, infos.get(name, {}), started)
        write(file, header, [result for result in results if result.backend == name])
        typer.echo(f"results: {file}")


def write_html(
    path: Path, results: Sequence[Result], cases: Sequence[Case], problems: Sequence[str], infos: dict
) -> None:
    """Write the HTML page; matplotlib is imported only here, since it takes a second."""
    from conformance import html

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html.page(results, cases, load_flags(), problems, infos), encoding="utf-8")
    typer.echo(f"report: {path}")


if __name__ == "__main__":
    app()
