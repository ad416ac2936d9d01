"""Ledgers: what a peer is known to do differently, checked both ways so that no entry outlives its reason."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from conformance.loading import Check
from conformance.results import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "ledgers"
JUDGED_WITHOUT = ("numpy", "torch", "jax")
KINDS = ("differs", "error")


@dataclass(frozen=True)
class Entry:
    """One known difference.

    `case` is the pattern of a check's name (* and ? as in file names), `clause` and `flag` an id; those that are
    given must all fit. `kind` is the outcome, "differs" or "error", and `says` words of the result's reason.
    `applies` is a range of versions such as "torch>=2.13"; outside of it, or where that library is absent, the
    entry rests. `seen` says when and with what.
    """

    kind: str
    reason: str
    seen: str
    case: str | None = None
    clause: str | None = None
    flag: str | None = None
    says: str = ""
    link: str | None = None
    applies: str | None = None

    def __str__(self) -> str:
        given = {"case": self.case, "clause": self.clause, "flag": self.flag}
        return ", ".join(f"{name} {value!r}" for name, value in given.items() if value)

    def fits(self, name: str, clauses: Sequence[str], flags: Sequence[str]) -> bool:
        """Tell whether a check of that name, with these clauses and flags, is meant."""
        return (
            (self.case is None or fnmatchcase(name, self.case))
            and (self.clause is None or self.clause in clauses)
            and (self.flag is None or self.flag in flags)
        )

    def describes(self, result: Result) -> bool:
        """Tell whether the result is as listed."""
        return result.outcome == self.kind and self.says in result.reason

    def in_force(self, info: dict[str, Any]) -> bool:
        """Tell whether the versions that ran are in the range."""
        if self.applies is None:
            return True
        requirement = Requirement(self.applies)
        found = info.get("versions", {}).get(requirement.name)
        return found is not None and requirement.specifier.contains(found, prereleases=True)


def load(backend: str, path: Path | None = None) -> list[Entry]:
    """Read the ledger of a backend: the file at `path`, or the one that the project keeps, which may be absent.

    A list of patterns as `case` stands for as many entries that share the rest.

    Raises ValueError for one of the three implementations, which may have none, and for a broken entry.
    """
    own = FOLDER / f"{backend.replace('-', '_').replace(':', '_')}.toml"
    if path is None and not own.exists():
        return []
    path = path or own
    if backend.partition(":")[0] in JUDGED_WITHOUT:
        raise ValueError(f"{path}: {backend} is judged without a ledger; correct the implementation instead")
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    if set(content) != {"known"}:
        raise ValueError(f"{path}: the file has to be a list of [[known]] entries")
    return [_entry(one, path) for record in content["known"] for one in _each_case(record)]


def _each_case(record: dict[str, Any]) -> list[dict[str, str]]:
    """Make an entry of each pattern where `case` is a list of them, so that each one has to be true."""
    cases = record.get("case")
    return [{**record, "case": case} for case in cases] if isinstance(cases, list) else [record]


def _entry(record: dict[str, str], path: Path) -> Entry:
    try:
        entry = Entry(**record)
    except TypeError as error:
        raise ValueError(f"{path}: {error} in {record}") from None
    if entry.kind not in KINDS:
        raise ValueError(f"{path}: the kind {entry.kind!r} of {record} is not one of {', '.join(KINDS)}")
    if not str(entry):
        raise ValueError(f"{path}: none of case, clause and flag is given in {record}")
    return entry


class Ledger:
    """The entries in force for one backend in one run.

    `settle` turns each result that is listed into "known"; `problems` names, at the end, what is not as listed.
    """

    def __init__(self, entries: Iterable[Entry], info: dict[str, Any]) -> None:
        self._entries = [entry for entry in entries if entry.in_force(info)]
        self._problems: list[str] = []

    def entry(self, check: Check) -> Entry | None:
        """Give the entry that lists the check, if there is one."""
        case = check.case
        return next((entry for entry in self._entries if entry.fits(check.name, case.clauses, case.flags)), None)

    def settle(self, result: Result) -> Result:
        """Give the result as the ledger sees it; a result that is not as listed is kept and becomes a problem."""
        entries = [e for e in self._entries if e.fits(result.check, result.clauses, result.flags)]
        if result.outcome == "unsupported":
            # A pattern may take in what cannot be asked; a name that stands there alone may not.
            entries = [e for e in entries if e.case == result.check]
        if not entries:
            return result
        if len(entries) > 1:
            self._problems.append(f"{result.check}: listed more than once: {'; '.join(map(str, entries))}")
        if not entries[0].describes(result):
            self._problems.append(f"{result.check}: {_contrast(entries[0], result)}")
            return result
        return replace(result, outcome="known", reason=f"{entries[0].reason} ({result.reason})")

    def problems(self, checks: Iterable[Check]) -> list[str]:
        """List what fails the run; `checks` are all those of the suite, also when only some were run."""
        subjects = [(check.name, check.case.clauses, check.case.flags) for check in checks]
        unused = [entry for entry in self._entries if not any(entry.fits(*subject) for subject in subjects)]
        return self._problems + [f"{entry}: the entry fits no case" for entry in unused]


def _contrast(entry: Entry, result: Result) -> str:
    if result.outcome in ("pass", "either"):
        return f"listed as {entry.kind} ({entry}), but it is {result.outcome}: remove it from the ledger"
    said = f" with {entry.says!r}" if entry.says else ""
    return f"listed as {entry.kind}{said} ({entry}), but now it is {result.outcome}: {result.reason}"
