"""The command that makes a profile for Phoebe and TWRES."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from penstock.cli import render
from penstock.cli.inspect import Json
from penstock.cli.live import progress_console, stoppable
from penstock.errors import ConfigError, check
from penstock.experiment.profiling import MEASURE, SETTLE, Plan, Rig, SimulatedRig
from penstock.models.latency import Capacities
from penstock.models.outage import outage
from penstock.models.profiling import ProfilingData

REPLAY = 10.0  # Phoebe's default checkpoint interval, for the downtime that is shown
SPARK = """
job = {job}
max_workers = {most}
[workload]
kind = "constant"
level = 0
[policy]
name = "static"
[cluster]
cpu = {cpu}
"""


def make_profile(
    what: Annotated[str, Parameter(help="A simulated job (its name, or a .toml file), or a job, see `penstock jobs`.")],
    /,
    *,
    into: Annotated[Path, Parameter(help="The JSON file to write.")],
    least: Annotated[int, Parameter(name="--min", help="The smallest scale-out.")] = 2,
    most: Annotated[int | None, Parameter(name="--max", help="The largest. Default: the simulated job's; 6.")] = None,
    count: Annotated[int, Parameter(help="How many scale-outs, evenly spaced.")] = 8,
    first: Annotated[float | None, Parameter(help="The first rate, records/s. Default: --step.")] = None,
    step: Annotated[float, Parameter(help="By how much the rate rises, records/s.")] = 20_000.0,
    settle: Annotated[float, Parameter(help="Seconds to settle at each rate.")] = SETTLE,
    measure: Annotated[float, Parameter(help="Seconds to measure at each rate.")] = MEASURE,
    failures: Annotated[int, Parameter(help="How many failures to inject, for the time to recover.")] = 6,
    cpu: Annotated[float, Parameter(help="Share of a core that each worker is bounded to, on Spark.")] = 0.2,
    seed: Annotated[int, Parameter(help="Another seed, another simulated run.")] = 0,
    as_json: Json = False,
) -> int:
    """Profile a job: what every scale-out can do, how late it is, and how it recovers from a failure.

    Phoebe and TWRES go by a profile: put `profile = "FILE.json"` under [policy] of an experiment. A simulated job is
    profiled at all scale-outs in parallel, and in no time; a job on Spark at one after the other, which takes
    (settle + measure) for each scale-out at each rate.

        penstock profile top-speed-windowing --into tsw.json
        penstock profile wordcount --into wordcount.json --max 3 --count 2 --step 12000 --settle 15 --measure 20
    """
    console = progress_console(as_json)
    plan = Plan(least, most, count, first, step, settle, measure, failures)
    check(into.parent.is_dir() and not into.is_dir(), "into", "be a file in a directory that exists", str(into))
    with ExitStack() as stack:
        rig, largest = _rig(what, plan, cpu, seed, stack, console)
        data = plan.run(rig, largest, console.print)
    into.write_text(data.text() + "\n", encoding="utf-8")
    _show(what, data, into, as_json)
    return 0


def _rig(what: str, plan: Plan, cpu: float, seed: int, stack: ExitStack, console: Console) -> tuple[Rig, int]:
    """Where to profile, and the largest scale-out there is."""
    from penstock.targets import simulated

    if what in simulated.profiles() or what.endswith(".toml"):
        job = simulated.load(what)
        largest = job.max_workers
        check(plan.most is None or plan.most <= largest, "max", f"be at most {largest}, the job's own", plan.most)
        return SimulatedRig(job, settle=plan.settle, measure=plan.measure, seed=seed), largest
    from penstock.jobs import JOBS

    if what not in JOBS:
        known = ", ".join((*simulated.profiles(), *JOBS))
        raise ConfigError(f"what to profile must be one of {known}, or the path of a .toml file, got {what!r}")
    from penstock.experiment import spec
    from penstock.experiment.pipeline import Pipeline
    from penstock.experiment.serial_rig import SerialRig
    from penstock.experiment.spark_rig import SparkSite
    from penstock.loop import SystemClock

    largest = plan.most or 6
    experiment = spec.parse(SPARK.format(job=json.dumps(what), most=largest, cpu=cpu), f"profile {what}")
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True))
    stop = stack.enter_context(stoppable())
    pipeline = stack.enter_context(Pipeline(experiment, Path(directory), workers=largest, tell=console.print))
    console.print("warming up: the first batches load and compile")
    pipeline.warm_up(stop)
    site, every = SparkSite(pipeline), experiment.head.sample_every
    rig = SerialRig(site, SystemClock(), every=every, settle=plan.settle, measure=plan.measure, stop=stop)
    return rig, site.most


def _show(what: str, data: ProfilingData, into: Path, as_json: bool) -> None:
    capacities = Capacities.fit(data.limits)
    found = outage(data.recoveries, capacities.at, REPLAY, 0.0) if data.recoveries else None
    if as_json:
        limits = [{"workers": limit.workers, "rate": limit.rate} for limit in data.limits]
        costs = {"worker_seconds": data.worker_seconds, "failure_seconds": data.failure_seconds}
        render.emit({"job": what, "limits": limits, **costs, "downtime": found and found.down, "file": str(into)})
        return
    table = render.table("workers", "records/s at most", "as fitted", "latency when fine", title=f"{what}: its profile")
    for limit in data.limits:
        # The last point of a scale-out is the one at which it fell behind.
        fine = [point.latency for point in data.points if point.workers == limit.workers][:-1]
        shown = f"{min(fine):.1f} to {max(fine):.1f} s" if fine else ""
        table.add_row(str(limit.workers), f"{limit.rate:,.0f}", f"{capacities.at(limit.workers):,.0f}", shown)
    console = render.console()
    console.print(table)
    for each in data.recoveries:
        at = f"{each.workers} workers at {each.rate:,.0f} records/s"
        said = found and found.recovery(each.rate, capacities.at(each.workers), REPLAY)
        console.print(
            f"A failure of {at}: over after {each.seconds:.0f} s{f', {said:.0f} s as fitted' if said else ''}"
        )
    if found is not None:
        late = f", whose end shows {found.lag:,.0f} s later" if found.lag else ""
        console.print(f"That is {found.down:,.0f} s of downtime{late}, by Phoebe's closed form.")
    hours, part = data.worker_seconds / 3600, data.failure_seconds / 3600
    console.print(
        f"It cost {data.worker_seconds:,.0f} worker-seconds ({hours:,.1f} h, {part:,.1f} h of it for failures)."
    )
    console.print(escape(f"Put `profile = {json.dumps(str(into))}` under [policy] of an experiment."))
