"""Entries of a ledger that list what went wrong in a run, ready to be pasted, with the reasons left to their author."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from conformance import tally
from conformance.results import Header, Result


def entries(header: Header, results: Sequence[Result]) -> str:
    """Give TOML with an entry for each kind of difference, and in it the checks that show it."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result in results:
        if result.outcome in tally.WRONG:
            groups[result.outcome, _words(result.reason)].append(result.check)
    return "\n".join(_entry(*key, names, header) for key, names in groups.items())


def _words(reason: str) -> str:
    """Give the longest part of a reason that has no numbers and no quoted words: it stays when those change."""
    return max(re.split(r"[\d'\"\[\](){}]+", reason), key=len).strip(" ,:;.")


def _entry(kind: str, says: str, names: Sequence[str], header: Header) -> str:
    versions = [item for item in header.info.get("versions", {}).items() if item[0] != "python"]
    ran = ", ".join(f"{name} {version}" for name, version in versions)
    fields = {"kind": kind, "says": says, "reason": "say here why it is so", "seen": f"{header.started[:10]}, {ran}"}
    if versions:
        name, version = versions[0]
        fields["applies"] = f"{name}=={version.partition('+')[0]}"
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())
    return f"[[known]]\n{text}case = [\n" + "".join(f"    {json.dumps(name)},\n" for name in sorted(names)) + "]\n"
