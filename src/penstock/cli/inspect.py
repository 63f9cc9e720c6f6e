"""Commands that look: at what there is, and at what a journal tells.

What takes long to import (the journal's checks, numpy, Arrow) is imported by the commands that need it.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter
from rich.markup import escape

from penstock.cli import render
from penstock.errors import ConfigError, check

if TYPE_CHECKING:
    from penstock import settings
    from penstock.journal import Record, Start
    from penstock.report.story import Entry

T = TypeVar("T")
BOUNDS = ("min_workers", "max_workers")
Json = Annotated[
    bool, Parameter(name="--json", negative=(), show_default=False, help="One JSON document instead of text.")
]
File = Annotated[Path, Parameter(help="The journal: a file that a run has written.")]
Set = Annotated[
    tuple[str, ...],
    Parameter(name="--set", negative=(), show_default=False, help="A parameter, as key=value; may be repeated."),
]


def policies(
    name: Annotated[str | None, Parameter(help="Show the parameters of this one.")] = None, /, *, as_json: Json = False
) -> None:
    """The autoscalers, and the parameters of each.

    penstock policies
    penstock policies hpa
    penstock policies hpa --json
    """
    from penstock.policies import POLICIES
    from penstock.policies import parameters as parameters_of

    chosen = [_pick("policy", POLICIES, name)] if name else list(POLICIES.values())
    if as_json:
        plain = [
            {"name": cls.name, "idea": _idea(cls), "paper": cls.paper or None, "inputs": list(cls.inputs)}
            | {"parameters": _plain(parameters_of(cls))}
            for cls in chosen
        ]
        render.emit(plain[0] if name else plain)
        return
    shown = render.table("policy", "idea, inputs, paper")
    for cls in chosen:
        inputs = f"looks at {', '.join(cls.inputs)}" if cls.inputs else "looks at nothing"
        about = "\n".join(escape(line) for line in (_idea(cls), inputs, cls.paper) if line)
        shown.add_row(f"[bold]{cls.name}[/]", about)
    console = render.console()
    console.print(shown)
    if name:
        console.print()
        console.print(render.parameters(f"Parameters of {name}", parameters_of(chosen[0])))
    else:
        console.print("\n[dim]penstock policies NAME shows the parameters of one.[/]")


def jobs(
    name: Annotated[str | None, Parameter(help="Show this one only.")] = None, /, *, as_json: Json = False
) -> None:
    """The streaming jobs that can be run and scaled.

    With a name, its parameters too, if it has any; an experiment gives them in its table job_settings.

        penstock jobs
        penstock jobs wordcount --json
    """
    from penstock.jobs import JOBS
    from penstock.settings import parameters

    chosen = [_pick("job", JOBS, name)] if name else list(JOBS.values())
    if as_json:
        plain = [
            {"name": job.name, "summary": job.summary, "operators": list(job.operators), "keys": job.keys}
            | {"state": job.state, "paper": job.paper, "schema": {field.name: str(field.type) for field in job.schema}}
            | {"parameters": _plain(parameters(job))}
            for job in chosen
        ]
        render.emit(plain[0] if name else plain)
        return
    shown = render.table("job", "what it does", "operators", "keys and state")
    for job in chosen:
        what = f"{escape(job.summary)}\n[dim]{escape(job.paper)}[/]"
        shown.add_row(
            f"[bold]{job.name}[/]", what, " → ".join(job.operators), f"{escape(job.keys)}\n[dim]{escape(job.state)}[/]"
        )
    console = render.console()
    console.print(shown)
    if name and (own := parameters(chosen[0])):
        console.print()
        console.print(render.parameters(f"Parameters of {name}", own))


def workloads(
    kind: Annotated[str | None, Parameter(help="Show the parameters of this one.")] = None, /, *, as_json: Json = False
) -> None:
    """The loads that a job can be put under: records per second over time.

    With a kind, its parameters, and those that every kind takes.

        penstock workloads
        penstock workloads sine
    """
    from penstock.workloads import KINDS, Transforms
    from penstock.workloads import parameters as parameters_of

    chosen = {kind: _pick("workload", KINDS, kind)} if kind else KINDS
    if as_json:
        plain = [
            {"kind": name, "idea": _idea(cls), "parameters": _plain(parameters_of(cls))} for name, cls in chosen.items()
        ]
        render.emit({"kinds": plain, "every_kind_takes": _plain(parameters_of(Transforms))})
        return
    console = render.console()
    shown = render.table("kind", "idea", *([] if kind else ["parameters"]))
    for name, cls in chosen.items():
        names = [] if kind else [", ".join(p.name for p in parameters_of(cls))]
        shown.add_row(f"[bold]{name}[/]", escape(_idea(cls)), *names)
    console.print(shown)
    console.print()
    if kind:
        console.print(render.parameters(f"Parameters of {kind}", parameters_of(chosen[kind])))
        console.print()
    console.print(render.parameters("Every kind also takes", parameters_of(Transforms)))


def explain(
    journal: File,
    /,
    *,
    last: Annotated[int | None, Parameter(help="Only the last so many entries.")] = None,
    all_: Annotated[
        bool,
        Parameter(name="--all", negative=(), show_default=False, help="Every decision, also those that repeat."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell why a job had the workers it had, decision by decision.

    Decisions that repeat are told once, with their count and the last of them.

        penstock explain journal.jsonl
        penstock explain journal.jsonl --last 5
        penstock explain journal.jsonl --all --json
    """
    from penstock.measures import summarise
    from penstock.report.story import tell
    from penstock.report.terminal import story, summary

    check(last is None or last >= 1, "--last", "be at least 1", last)
    records = _read(journal)
    first = _start(records)
    most = first.policy.config.get("max_workers")
    measures = summarise(records, most if isinstance(most, int) else 1)
    if not isinstance(most, int):  # somebody's own policy may know no most
        measures = replace(measures, share_of_max=None)
    began, entries = first.at, tell(records, fold=not all_)
    left_out = 0 if last is None else max(0, len(entries) - last)
    shown = entries[left_out:]
    if as_json:
        plain = [_entry(entry, began) for entry in shown]
        about = {"journal": str(journal), "began": began, "max_workers": most, "measures": asdict(measures)}
        render.emit({**about, "left_out": left_out, "entries": plain})
        return
    console = render.console()
    console.print(f"{summary(measures, most)}\n")
    if left_out:
        console.print(f"[dim]{left_out} entries before are left out.[/]")
    console.print(story(shown, began))


def replay(
    journal: File,
    /,
    *,
    policy: Annotated[str | None, Parameter(help="Ask this policy instead of the journal's own.")] = None,
    set_: Set = (),
    as_json: Json = False,
) -> int:
    """Decide again on what a journal recorded, as it was or otherwise.

    As it was: the journal's own policy and guards must decide the same, byte for byte; exit code 1 if they do not.
    Otherwise: with --policy or --set, how often and where another policy, or other parameters, want another number.
    The load and the workers stay as they were recorded: this compares decisions, not what would have come of them.

        penstock replay journal.jsonl
        penstock replay journal.jsonl --policy static --set workers=4
        penstock replay journal.jsonl --set target_cpu=0.7
    """
    records = _read(journal)
    if policy is None and not set_:
        return _same(journal, records, as_json)
    _other(journal, records, policy, assignments(set_), as_json)
    return 0


def _same(journal: Path, records: Sequence[Record], as_json: bool) -> int:
    from penstock.report.again import same_again

    pairs = same_again(records)
    differing = [pair for pair in pairs if not pair.same]
    first = differing[0] if differing else None
    then, now = ([], []) if first is None else (_lines(first.then), _lines(first.now))
    if as_json:
        changed = {"at": first.at, "journal": _json(first.then), "replay": _json(first.now)} if first else None
        about = {"journal": str(journal), "decisions": len(pairs), "same": not differing}
        render.emit({**about, "differing": len(differing), "first_difference": changed})
    elif first is None:
        print(f"All {len(pairs)} decisions are the same, byte for byte.")
    else:
        print(f"{len(differing)} of {len(pairs)} decisions are not the same; the first, at {first.at:.3f}:")
        print("\n".join(difflib.unified_diff(then, now, "journal", "replay", lineterm="")))
    return 1 if differing else 0


def _other(
    journal: Path, records: Sequence[Record], name: str | None, changes: Mapping[str, object], as_json: bool
) -> None:
    from penstock import guards, policies
    from penstock.report.again import compare, otherwise
    from penstock.report.terminal import differences

    start = _start(records)
    own = start.policy.config
    if name is not None and name != start.policy.name:  # another policy has only the bounds in common
        own = {key: value for key, value in own.items() if key in BOUNDS}
    policy = policies.make(name or start.policy.name, **{**own, **changes})
    bounds = {key: value for key, value in changes.items() if key in BOUNDS}
    rails = tuple(
        guards.make(guard.name, **{**guard.config, **(bounds if guard.name == "bounds" else {})})
        for guard in start.guards
    )
    comparison = compare(otherwise(records, policy, rails))
    if as_json:
        about = {"journal": str(journal), "journal_policy": start.policy.name, "policy": policy.name}
        render.emit({**about, "config": policy.config(), "differing": comparison.differing, **asdict(comparison)})
        return
    other = " ".join((policy.name, *(f"{key}={value}" for key, value in changes.items())))
    render.console().print(differences(comparison, other, start.at))


def _json(record: Record | None) -> object:
    from penstock.journal import encode

    return None if record is None else json.loads(encode(record))


def _lines(record: Record | None) -> list[str]:
    return [] if record is None else json.dumps(_json(record), indent=1, ensure_ascii=False).splitlines()


def _entry(entry: Entry, began: float) -> dict[str, object]:
    """An entry as JSON: the journal's own records, and what folding them says."""
    from penstock.report.story import Begun, Judged

    since = {"since_start": entry.at - began, "at": entry.at}
    if isinstance(entry, Begun):
        return {"kind": "start", **since, "away": entry.away, "start": _json(entry.start)}
    folded = {**since, "until": entry.until, "count": entry.count}
    if isinstance(entry, Judged):
        about = {"kind": "decision", **folded, "requested": entry.requested}
        return {**about, "last": _json(entry.decided), "rescale": _json(entry.rescale)}
    return {"kind": "event", **folded, "reason": asdict(entry.reason)}


def _read(path: Path) -> list[Record]:
    from penstock.journal import read

    records = list(read(path))
    if not records:  # its only line is torn
        raise ConfigError(f"journal must have at least one whole line, got {str(path)!r}")
    return records


def _start(records: Sequence[Record]) -> Start:
    """The first one; a journal begins with it."""
    from penstock.journal import Start

    return next(record for record in records if isinstance(record, Start))


def _pick(kind: str, known: Mapping[str, T], name: str) -> T:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{kind} must be one of {', '.join(known)}, got {name!r}{hint}")


def _idea(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0]


def _plain(parameters: Iterable[settings.Parameter]) -> list[dict[str, object]]:
    return [
        {
            "name": p.name,
            "type": p.type,
            "required": render.default(p) == "required",
            "default": p.default,
            "doc": p.doc,
        }
        for p in parameters
    ]


def assignments(given: Sequence[str]) -> dict[str, object]:
    """Settings from `key=value` words; a value is TOML, but a bare word is a text.

    >>> assignments(["target_cpu=0.7", "scale_up_select=min", "parts=[1, 2]"])
    {'target_cpu': 0.7, 'scale_up_select': 'min', 'parts': [1, 2]}
    """
    found: dict[str, object] = {}
    for word in given:
        key, equals, text = word.partition("=")
        check(bool(equals) and key.isidentifier(), "--set", "be key=value", word)
        check(key not in found, "--set", f"give {key} once", word)
        try:
            (found[key],) = tomllib.loads(f"value = {text}").values()
        except ValueError:
            check(re.fullmatch(r"[\w./-]+", text) is not None, f"--set {key}", "be a TOML value", text)
            found[key] = text
    return found
