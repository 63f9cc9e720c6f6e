"""How well the load is forecast, fifteen minutes ahead from every minute, and what that costs.

    python benchmarks/forecast.py [--json] [--arima] [--origins N] [--hours H] [--series NAME ...]

Series: six shapes of the papers, made here, and the arrivals in ../shared/data/arrivals where they are. Those are by
five minutes, so they are drawn straight from row to row at one second, with time compressed ten times: a day takes
2.4 h, and fifteen minutes stand for two and a half hours. Errors are WAPE over the whole horizon on 10 s means.

`--arima` adds pmdarima's auto-ARIMA as in Daedalus: at one second, trained after half an hour, then updated. It takes
long, so it is asked at `--origins` instants only, and the experts' error there is printed beside it. A bound holds
when no minute's mean of its span was above it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.models.forecast import AutoArima, Forecast, Forecaster, Scored, make

Floats = NDArray[np.float64]

ARRIVALS = Path(__file__).parents[2] / "shared" / "data" / "arrivals"
COMPRESSED = 10
WARM_UP = 10  # minutes before the first forecast that counts
TRAINED = 30  # minutes before auto-ARIMA is trained, and the first bound that counts
AHEAD = 15


@dataclass(frozen=True, slots=True)
class Row:
    """One series. WAPE and coverage in percent; `above` is how far a bound is over the realised maximum, percent."""

    series: str
    experts: float
    outlook: float
    linear: float
    last: float
    fell_back: float
    matured: float
    next_covered: float
    next_above: float
    horizon_covered: float
    horizon_above: float
    median_ms: float
    p99_ms: float
    auto_arima: float | None = None
    experts_there: float | None = None
    origins: int = 0
    silent: int = 0


class Error:
    """Sums up a WAPE."""

    def __init__(self) -> None:
        self.wrong = self.total = 0.0

    def add(self, forecast: Forecast | None, actual: Floats) -> None:
        if forecast is not None:
            self.wrong += float(np.abs(forecast.means(10.0, len(actual)) - actual).sum())
            self.total += float(actual.sum())

    @property
    def percent(self) -> float:
        return 100 * self.wrong / self.total


def measure(series: str, rates: Floats, arima_origins: int = 0) -> Row:
    """Rolling origin over one series of rates by the second."""
    rates = rates[: len(rates) // 60 * 60]
    tens, minutes = rates.reshape(-1, 10).mean(axis=1), rates.reshape(-1, 60).mean(axis=1)
    others: dict[str, Forecaster] = {name: make(name) for name in ("experts", "linear", "last")}
    arima = make("auto-arima") if arima_origins else None
    asked = set(np.linspace(TRAINED, len(minutes) - AHEAD, arima_origins).astype(int).tolist()) if arima else set()
    scored = Scored(make("experts"))
    errors = {name: Error() for name in (*others, "outlook", "arima", "there")}
    matured: list[float] = []
    bounds: list[tuple[float, float, float, float]] = []  # next, realised; horizon, realised
    costs: list[float] = []
    fallen = silent = 0
    for minute in range(1, len(minutes) + 1):
        samples = [(float(at), float(rates[at])) for at in range((minute - 1) * 60, minute * 60)]
        begin = time.process_time()
        for at, rate in samples:
            scored.learn(at, rate)
        outlook = scored.outlook()
        costs.append(1000 * (time.process_time() - begin))
        for model in others.values():
            for at, rate in samples:
                model.learn(at, rate)
        said = {name: model.forecast() for name, model in others.items()}
        if arima is not None:
            for at, rate in samples:
                arima.learn(at, rate)
        if minute < WARM_UP or minute + AHEAD > len(minutes) or outlook is None:
            continue
        actual = tens[minute * 6 : (minute + AHEAD) * 6]
        for name, forecast in (*said.items(), ("outlook", outlook.forecast)):
            errors[name].add(forecast, actual)
        fallen += outlook.fell_back
        if outlook.matured_wape is not None:
            matured.append(outlook.matured_wape)
        if minute >= TRAINED:
            soon, whole = float(minutes[minute : minute + 2].max()), float(minutes[minute : minute + AHEAD].max())
            bounds.append((outlook.upper_next, soon, outlook.upper_horizon, whole))
        if isinstance(arima, AutoArima) and minute in asked:
            by_arima = ask(arima)
            errors["arima"].add(by_arima, actual)
            errors["there"].add(None if by_arima is None else said["experts"], actual)
            silent += by_arima is None
    upper_next, soonest, upper_horizon, highest = np.array(bounds).T
    return Row(
        series,
        errors["experts"].percent,
        errors["outlook"].percent,
        errors["linear"].percent,
        errors["last"].percent,
        100 * fallen / (len(minutes) - AHEAD - WARM_UP + 1),
        100 * statistics.fmean(matured),
        100 * float((soonest <= upper_next).mean()),
        100 * float((upper_next / soonest - 1).mean()),
        100 * float((highest <= upper_horizon).mean()),
        100 * float((upper_horizon / highest - 1).mean()),
        statistics.median(costs),
        float(np.quantile(costs, 0.99)),
        errors["arima"].percent if errors["arima"].total else None,
        errors["there"].percent if errors["there"].total else None,
        len(asked),
        silent,
    )


def ask(arima: AutoArima) -> Forecast | None:
    """Its forecast, trained first if it never was; in the loop that happens in the background."""
    if arima.untrained:
        work = arima.training()
        if work is not None:
            arima.adopt(work())
    return arima.forecast()


def shapes(hours: float) -> dict[str, Floats]:
    """Six shapes of the papers, by the second; the real ad clicks and taxis are among the arrivals."""
    n = round(hours * 60) * 60
    at = np.arange(n) / n  # 0 to 1
    noise = [np.random.default_rng(seed) for seed in range(6)]

    def bump(centre: float, width: float) -> Floats:
        return np.asarray(np.exp(-0.5 * ((at - centre) / width) ** 2))

    def wander(seed: int, memory: float, size: float) -> Floats:
        """Noise that stays for some minutes."""
        steps = noise[seed].normal(0.0, size * np.sqrt(1 - memory**2), n // 60)
        for i in range(1, len(steps)):
            steps[i] += memory * steps[i - 1]
        return np.asarray(1 + np.interp(np.arange(n) / 60, np.arange(n // 60), steps))

    def jitter(seed: int, size: float) -> Floats:
        return 1 + noise[seed].normal(0.0, size, n)

    sine = 30_000 - 25_000 * np.cos(4 * np.pi * at)
    clicks = 12_000 + 16_000 * bump(0.3, 0.1) + 9_000 * bump(0.5, 0.04) + 22_000 * bump(0.72, 0.12)
    traffic = 6_000 + 3_000 * np.sin(np.pi * at) + 42_000 * bump(0.33, 0.025) + 36_000 * bump(0.7, 0.03)
    minute = np.arange(n // 60)
    cosine = 150_000 + 100_000 * np.cos(minute * 2 * np.pi / 60) + noise[4].uniform(-10_000, 10_000, n // 60)
    day = 2 * at % 1
    taxi = 14_000 - 9_000 * np.cos(2 * np.pi * (day - 0.15)) + 4_000 * np.cos(4 * np.pi * (day - 0.8))
    taxi = taxi + 2_500 * np.sin(6 * np.pi * day)
    made = {
        "sine (Daedalus)": sine,
        "noisy sine": sine * jitter(1, 0.1),
        "ad clicks": clicks * wander(2, 0.8, 0.03) * jitter(2, 0.03),
        "city traffic": traffic * jitter(3, 0.03),
        "cosine (Koper)": np.repeat(cosine, 60),
        "taxi": taxi * wander(5, 0.7, 0.05) * jitter(5, 0.03),
    }
    return {name: np.maximum(0.0, rates) for name, rates in made.items()}


def arrivals(folder: Path, hours: float) -> dict[str, Floats]:
    """The recorded arrivals, where they are."""
    found = {}
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt") as file:
            rows = list(csv.DictReader(file))
        if "date" in rows[0]:
            when = np.array([datetime.fromisoformat(row["date"]).timestamp() for row in rows]) / COMPRESSED
            values = np.array([float(row["messages"]) for row in rows])
        else:
            when = np.array([float(row["seconds"]) for row in rows])
            values = np.array([float(row["rate"]) for row in rows])
        when -= when[0]
        length = int(min(when[-1], hours * 3600))
        found["recorded " + path.name.split("-")[0]] = np.interp(np.arange(length), when, values)
    return found


def table(rows: Sequence[Row]) -> str:
    """For people. The bounds are of 90 % confidence."""
    arima = any(row.auto_arima is not None for row in rows)
    head = f"{'WAPE over 15 min, %':<21}{'experts':>8}{'outlook':>8}{'linear':>8}{'last':>8}"
    head += f"{'ARIMA':>8}{'experts*':>9}" if arima else ""
    head += (
        f"{'fell back':>11}{'matured':>9}  {'next covered/above':>18}  {'horizon covered/above':>21}{'ms':>6}{'p99':>6}"
    )
    lines = [head]
    for row in rows:
        line = f"{row.series:<21}{row.experts:>8.1f}{row.outlook:>8.1f}{row.linear:>8.1f}{row.last:>8.1f}"
        if arima:
            there = (row.auto_arima, row.experts_there)
            line += "".join(f"{'–' if v is None else f'{v:.1f}':>{w}}" for v, w in zip(there, (8, 9), strict=True))
        line += f"{row.fell_back:>10.1f}%{row.matured:>9.1f}  {row.next_covered:>11.1f} /{row.next_above:>5.1f}"
        line += f"  {row.horizon_covered:>14.1f} /{row.horizon_above:>5.1f}{row.median_ms:>6.1f}{row.p99_ms:>6.1f}"
        lines.append(line)
    if arima:
        lines.append("* at the instants when auto-ARIMA was asked, and answered")
        lines += [f"{r.series}: no answer at {r.silent} of {r.origins} instants" for r in rows if r.silent]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--arima", action="store_true", help="pmdarima's auto-ARIMA too; needs the extra `arima`")
    parser.add_argument("--origins", type=int, default=16, help="instants at which auto-ARIMA is asked")
    parser.add_argument("--hours", type=float, default=6.0, help="of each shape; recorded ones take twice as long")
    parser.add_argument("--series", nargs="*", help="only those whose name contains one of these")
    arguments = parser.parse_args()
    every = shapes(arguments.hours) | arrivals(ARRIVALS, 2 * arguments.hours)
    if not ARRIVALS.is_dir():
        print("no recorded arrivals here; shapes only", file=sys.stderr)
    rows = []
    for name, rates in every.items():
        if arguments.series and not any(part in name for part in arguments.series):
            continue
        print(f"{name} ({len(rates) / 3600:g} h) ...", file=sys.stderr)
        rows.append(measure(name, rates, arguments.origins if arguments.arima else 0))
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else table(rows))


if __name__ == "__main__":
    main()
