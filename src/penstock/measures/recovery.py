"""How long a job took to be itself again after a rescale or a failure.

Normal is what held for 95 % of some minutes before, a little more allowed: latency and backlog, each where it is known
(Phoebe sec. IV-E goes by latency, Daedalus sec. 3.5 by load against throughput, which is what backlog adds up). A job
has recovered when it is normal again and stays so for a while; the recovery lasts from the rescale to the beginning of
that while. What is not known is not normal. A failure is told only when it is detected, so its beginning is looked for
in the time just before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import check
from penstock.journal import Decided, Record, Rescale, Sample
from penstock.measures.latencies import distribution
from penstock.measures.series import Series, mean

Cause = Literal["rescale", "failure"]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """When the job was stopped or lost something.

    quiet: seconds from then on in which nothing shows yet, as when heartbeats are lost and the job works on.
    """

    at: float
    cause: Cause
    quiet: float = 0.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How one disturbance ended.

    at: when it began: for a failure, when things went wrong, which is before it was detected.
    seconds: until all was normal again; None if that was not seen.
    watched: seconds until the next disturbance, or the end: it took at least as long if `seconds` is None.
    interrupted: the next disturbance came before the end of this one.
    """

    at: float
    cause: Cause
    seconds: float | None
    watched: float
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Normal:
    """What is allowed: latency, and records of backlog besides a second or so of load."""

    latency: float | None
    backlog: float | None

    def rows(self, series: Series, slack: float) -> NDArray[np.bool_]:
        """The rows in which nothing that is known is above what is allowed, and something is known."""
        normal, known = np.ones(len(series.at), np.bool_), np.zeros(len(series.at), np.bool_)
        if self.latency is not None:
            normal &= ~(series.latency > self.latency + slack)
            known |= ~np.isnan(series.latency)
        if self.backlog is not None:
            load = np.where(np.isnan(series.input_rate), 0.0, series.input_rate)
            normal &= ~(series.backlog > self.backlog + slack * load)
            known |= ~np.isnan(series.backlog)
        return normal & known


def disturbances(records: Iterable[Record]) -> list[Disturbance]:
    """The rescales that were carried out and the workers that were lost, in a journal."""
    return [disturbance for disturbance, _ in disturbed(records)]


def disturbed(records: Iterable[Record]) -> Iterator[tuple[Disturbance, Decided | None]]:
    """The same, each with the last decision before it of the policy in control."""
    decided: Decided | None = None
    for record in records:
        if isinstance(record, Rescale) and record.outcome == "done" and record.before not in (None, record.after):
            yield Disturbance(record.at, "rescale"), decided
        if isinstance(record, Sample | Decided) and record.observation is not None:
            if any(event.code == "worker.lost" for event in record.observation.events):
                yield Disturbance(record.observation.at, "failure"), decided
            if isinstance(record, Decided):
                decided = record


def recoveries(
    series: Series,
    disturbed: Sequence[Disturbance],
    *,
    before: float = 300.0,
    detection: float = 60.0,
    hold: float = 30.0,
    tolerance: float = 0.2,
    slack: float = 1.0,
    normal_latency: float | None = None,
) -> list[Recovery]:
    """How the disturbances of a run ended, in order of time.

    before: seconds before a disturbance that say what is normal; if they begin within the last one and it is not over
        by then, what was normal for that one still is.
    detection: seconds before a failure was told in which it may have begun.
    hold: seconds for which all has to stay normal.
    tolerance: share by which latency and backlog may be above what they were.
    slack: seconds by which latency, and seconds of load by which backlog, may be above that.
    normal_latency: seconds that are normal, instead of what was before: a job that is behind already is not normal.
    """
    check(normal_latency is None or normal_latency > 0, "normal_latency", "be above 0 seconds", normal_latency)
    numbers = {"before": before, "detection": detection, "hold": hold, "tolerance": tolerance, "slack": slack}
    for name, value in numbers.items():
        check(value >= 0, name, "be 0 or more", value)
    ordered = sorted(disturbed, key=lambda disturbance: disturbance.at)
    ended: list[Recovery] = []
    fixed = None if normal_latency is None else Normal(normal_latency, None)
    normal = Normal(None, None)
    calm = last = -np.inf  # when the last recovery was over, and when it began
    for index, disturbance in enumerate(ordered):
        following = ordered[index + 1].at if index + 1 < len(ordered) else None
        earliest = disturbance.at - (detection if disturbance.cause == "failure" else 0.0)
        if calm < earliest or last <= earliest - before or normal == Normal(None, None):
            since = max(earliest - before, calm) if calm < earliest else earliest - before
            normal = _normal(series, since, earliest, tolerance)
        rows = normal.rows(series, slack) if fixed is None else fixed.rows(series, 0.0)
        begin = _onset(series, rows, max(earliest, min(calm, disturbance.at)), disturbance.at)
        seconds = _until(series, rows, begin, disturbance.quiet, hold)
        last, calm = begin, np.inf if seconds is None else begin + seconds
        watched = max(0.0, (series.end if following is None else following) - begin)
        interrupted = following is not None and following < calm
        ended.append(Recovery(begin, disturbance.cause, seconds, watched, interrupted))
    return ended


def _normal(series: Series, begin: float, end: float, tolerance: float) -> Normal:
    inside = (series.at >= begin) & (series.at < end)
    seconds = series.seconds[inside]
    usual = [distribution(values[inside], seconds).quantile(0.95) for values in (series.latency, series.backlog)]
    return Normal(*(None if value is None else value * (1 + tolerance) for value in usual))


def _onset(series: Series, normal: NDArray[np.bool_], earliest: float, told: float) -> float:
    """Since when, `earliest` at the most, nothing has been normal up to `told`."""
    rows = np.flatnonzero((series.at >= earliest) & (series.at < told))
    fine = np.flatnonzero(normal[rows])
    bad = rows if not fine.size else rows[fine[-1] + 1 :]
    return float(series.at[bad[0]]) if bad.size else told


def _until(series: Series, normal: NDArray[np.bool_], begin: float, quiet: float, hold: float) -> float | None:
    """Seconds from `begin` to the first time, after a quiet at first, from which all is normal for `hold` seconds."""
    since: float | None = None
    for index in np.flatnonzero(series.at + series.seconds > begin + quiet):
        if not normal[index]:
            since = None
            continue
        since = max(float(series.at[index]), begin + quiet) if since is None else since
        if series.at[index] + series.seconds[index] - since >= hold:
            return since - begin
    return None


def mean_recovery(ended: Sequence[Recovery], cause: Cause | None = None) -> float | None:
    """The mean over those that were seen to end, of one cause or of all."""
    lengths = [r.seconds for r in ended if r.seconds is not None and cause in (None, r.cause)]
    return mean(np.array(lengths), np.ones(len(lengths)))
