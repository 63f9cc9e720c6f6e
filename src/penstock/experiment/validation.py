"""Does the simulator agree with reality? Recorded load and worker counts in, errors out, for each run.

A profile is calibrated on part of the runs that there are of it, and validated with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from multiprocessing import get_context

from penstock.experiment.recordings import Evidence
from penstock.targets.simulated import Agreement, Fed, Points, Profile, Run, agree, compare, feed, fit
from penstock.targets.simulated import load as profile_named

# Median error of throughput and CPU at most; share of rows with backlog and latency of the same order at least.
GOALS = {"throughput": 0.10, "cpu": 0.15, "backlog": 0.90, "latency": 0.90}
CEILINGS = ("throughput", "cpu")


@dataclass(frozen=True)
class Lived:
    """A recorded run, lived through again."""

    run: Run
    fed: Fed
    points: Points
    calibrated: bool

    @property
    def agreement(self) -> Agreement:
        return agree(self.points)


@dataclass(frozen=True)
class Change:
    """A quantity of a profile, as shipped and as fitted."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class Validation:
    """A profile and all its runs; `changes` are what calibration moved, none if the profile was taken as it is."""

    profile: str
    lived: tuple[Lived, ...]
    changes: tuple[Change, ...]

    def over(self, *, calibrated: bool) -> Agreement:
        """Over all rows of the runs that were, or were not, used for calibration."""
        return pooled(self.lived, calibrated=calibrated)


def pooled(lived: Sequence[Lived], *, calibrated: bool) -> Agreement:
    return agree(*(each.points for each in lived if each.calibrated == calibrated))


def misses(agreement: Agreement) -> tuple[str, ...]:
    """The goals that are not reached, of those that something was recorded for."""
    return tuple(
        name
        for name, goal in GOALS.items()
        if (value := getattr(agreement, name)) is not None and (value > goal if name in CEILINGS else value < goal)
    )


def validate(
    evidence: Sequence[Evidence],
    *,
    shipped: bool = False,
    rounds: int = 2,
    processes: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Validation]:
    """Every profile with its runs; `shipped`: as it is, without calibration. The order is that of the evidence."""
    for each in evidence:
        profile_named(each.profile)  # so that what is wrong with one is said before the others take minutes
    if processes == 1 or len(evidence) == 1:
        done = []
        for each in evidence:
            progress(each.profile)
            done.append(_validate(each, shipped, rounds))
        return done
    found: dict[str, Validation] = {}
    # Not forked: this process may have threads (a progress bar), and what they hold would be held forever.
    with ProcessPoolExecutor(min(processes, len(evidence)), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_validate, each, shipped, rounds) for each in evidence]
        try:
            for future in as_completed(futures):
                one = future.result()
                found[one.profile] = one
                progress(one.profile)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[each.profile] for each in evidence]


def _validate(evidence: Evidence, shipped: bool, rounds: int) -> Validation:
    before = profile_named(evidence.profile)
    after = before if shipped or not evidence.calibrate else fit(before, evidence.calibrate, rounds)
    runs = [(run, True) for run in evidence.calibrate] + [(run, False) for run in evidence.validate]
    lived = []
    for run, calibrated in sorted(runs, key=lambda pair: pair[0].name):
        fed = feed(after, run)
        lived.append(Lived(run, fed, compare(run, fed), calibrated))
    return Validation(evidence.profile, tuple(lived), _changes(before, after))


def _changes(before: Profile, after: Profile) -> tuple[Change, ...]:
    pairs = ((f.name, getattr(before, f.name), getattr(after, f.name)) for f in fields(Profile))
    return tuple(Change(name, old, new) for name, old, new in pairs if old != new)
