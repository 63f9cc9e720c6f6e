"""The step of Top Speed Windowing: what is remembered of some cars, and what their next records make of it.

A pure function over all cars of a bucket at once, in numpy: one call handles thousands of records, and no Python is
run per record. It travels to the workers as it is, so it uses nothing else of Penstock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

WINDOW_MS = 10_000
EVERY_M = 50
ANEW_MS = 600_000  # a car that was away for longer starts anew: then its state need not be kept for ever
NEVER = -(2**62)

Ints = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]


class Cars(NamedTuple):
    """What is remembered, one place per car; and of the last 10 s only the records that can still be the top one.

    mark: metres at the last result, or at the first record.
    latest: milliseconds of the newest record.
    pending: records since the last result.
    owner, time, speed: the records, by the car's place and time; per car, speeds fall with time.
    """

    car: Texts
    mark: Ints
    latest: Ints
    pending: Ints
    owner: Ints
    time: Ints
    speed: Ints


class Results(NamedTuple):
    """One per 50 m: the car's top speed of the 10 s up to then, and how many records it had since the last result."""

    car: Texts
    time: Ints
    distance: Ints
    top_speed: Ints
    records: Ints


def nobody() -> Cars:
    """Nothing is known yet."""
    none = np.empty(0, np.int64)
    return Cars(np.empty(0, object), none, none, none, none, none, none)


def advance(
    known: Cars, car: Texts, time: Ints, distance: Ints, speed: Ints, forget: int = NEVER
) -> tuple[Cars, Results]:
    """What comes of these records, each car's taken in the order of time, distance and speed.

    forget: cars without a record since then are dropped. No result depends on it as long as no record comes that is
    within 10 minutes of one of these.
    """
    if not len(car):
        none = time[:0]
        return _merged(known, known.owner, known.time, known.speed, forget), Results(car, none, none, none, none)
    # Known cars come first, so that their code is their place.
    codes, names = pd.factorize(np.concatenate([known.car, car]))
    codes = codes[len(known.car) :].astype(np.int64)
    order = np.lexsort((speed, distance, time, codes))
    codes, time, distance, speed = codes[order], time[order], distance[order], speed[order]
    new = len(names) - len(known.car)
    latest = np.concatenate([known.latest, np.full(new, NEVER)])
    mark = np.concatenate([known.mark, np.zeros(new, np.int64)])
    pending = np.concatenate([known.pending, np.zeros(new, np.int64)])

    # A trip is a car's records without a long break; its first ones may go on with what is known of the car.
    first = np.append(True, codes[1:] != codes[:-1])
    before = np.where(first, latest[codes], np.maximum(latest[codes], np.append(NEVER, time[:-1])))
    anew = time - before > ANEW_MS
    start = np.flatnonzero(first | anew)
    end = np.append(start[1:], len(time))
    trip = np.repeat(np.arange(len(start)), end - start)
    code, goes_on = codes[start], ~anew[start]
    zero = np.where(goes_on, mark[code], distance[start])
    had = np.where(goes_on, pending[code], 0)
    newest = np.where(goes_on, latest[code], NEVER)  # of what was known

    at, driven = _firing(trip, end, np.maximum(distance - zero[trip], 0))
    whose = trip[at]
    cut = np.maximum(time[at], newest[whose]) - WINDOW_MS
    top = np.maximum(_top_of_new(trip, time, speed, at, cut), _top_of_known(known, code[whose], goes_on[whose], cut))
    fresh = np.append(True, whose[1:] != whose[:-1])[: len(at)]  # the first result of its trip
    records = np.where(fresh, at - start[whose] + 1 + had[whose], at - np.append(0, at[:-1])[: len(at)])
    results = Results(names[code[whose]], time[at], distance[at], top, records)

    last = np.append(code[1:] != code[:-1], True)  # the trip that a car is on now
    on = code[last]
    fired = np.full(len(start), -1)
    fired[whose] = at  # the last one stays, as they are in order
    mark[on] = (zero + driven)[last]
    latest[on] = np.maximum(time[end - 1], newest)[last]
    pending[on] = np.where(fired < 0, had + end - start, end - 1 - fired)[last]
    gone = np.zeros(len(names), bool)
    gone[code[~(goes_on & last)]] = True  # of whom a trip ended, so that nothing of what was known counts any more
    keep, now = ~gone[known.owner], last[trip]
    cars = Cars(names, mark, latest, pending, *[known.owner[:0]] * 3)
    merged = _merged(
        cars,
        np.concatenate([known.owner[keep], codes[now]]),
        np.concatenate([known.time[keep], time[now]]),
        np.concatenate([known.speed[keep], speed[now]]),
        forget,
    )
    return merged, results


def _firing(trip: Ints, end: Ints, driven: Ints) -> tuple[Ints, Ints]:
    """The records that fire, in order, and how far each trip was at its last one.

    The next one is the first that is more than 50 m on. All trips make this step at once: there are as many steps as
    the busiest trip has results.
    """
    span = int(driven.max()) + EVERY_M + 1
    far = np.maximum.accumulate(trip * span + driven)  # the farthest so far, trip by trip
    mark = np.zeros(len(end), np.int64)
    moving, found = np.arange(len(end)), [np.empty(0, np.int64)]
    while len(moving):
        at = np.searchsorted(far, moving * span + mark[moving] + EVERY_M, side="right")
        fires = at < end[moving]
        moving, at = moving[fires], at[fires]
        mark[moving] = driven[at]
        found.append(at)
    return np.sort(np.concatenate(found)), mark


def _top_of_new(trip: Ints, time: Ints, speed: Ints, at: Ints, cut: Ints) -> Ints:
    """Of each firing record's trip, up to it, and after the cut; -1 where there is none."""
    begin = int(time.min())
    span = int(time.max()) - begin + 2
    after = trip[at] * span + np.clip(cut - begin, -1, span - 1)
    since = np.searchsorted(trip * span + (time - begin), after, side="right")
    padded = np.append(speed, -1)
    tops = np.maximum.reduceat(padded, np.stack([since, at + 1], axis=1).ravel())[::2] if len(at) else at
    return np.where(since <= at, tops, -1)


def _top_of_known(known: Cars, code: Ints, goes_on: npt.NDArray[np.bool_], cut: Ints) -> Ints:
    """Of each firing record's car, after the cut: as speeds fall with time, the first; -1 where there is none."""
    if not len(known.time):
        return np.full(len(cut), -1)
    begin = int(known.time.min())
    span = int(known.time.max()) - begin + 2
    keys = known.owner * span + (known.time - begin)
    place = np.searchsorted(keys, code * span + np.clip(cut - begin, -1, span - 1), side="right")
    held = np.minimum(place, len(keys) - 1)
    mine = goes_on & (place < len(keys)) & (known.owner[held] == code)
    return np.where(mine, known.speed[held], -1)


def _merged(cars: Cars, owner: Ints, time: Ints, speed: Ints, forget: int) -> Cars:
    """The cars with these records, but the ones that can never be the top one again, and without forgotten cars."""
    alive = cars.latest >= forget
    place = np.cumsum(alive) - 1
    kept = alive[owner] & (time > cars.latest[owner] - WINDOW_MS)
    owner, time, speed = place[owner[kept]], time[kept], speed[kept]
    order = np.lexsort((speed, time, owner))
    owner, time, speed = owner[order], time[order], speed[order]
    if len(owner):
        # From the back: the highest speed of what is later, car by car.
        span = int(speed.max()) + 2
        back = ((owner[-1] - owner) * span + speed)[::-1]
        highest = np.append(-1, np.maximum.accumulate(back)[:-1])
        higher = (back > highest)[::-1]
        owner, time, speed = owner[higher], time[higher], speed[higher]
    return Cars(cars.car[alive], cars.mark[alive], cars.latest[alive], cars.pending[alive], owner, time, speed)


def packed(cars: Cars) -> bytes:
    """For the state store: one row per car, as Arrow writes it."""
    first = np.searchsorted(cars.owner, np.arange(len(cars.car) + 1))
    offsets: Any = pa.array(first, pa.int32())
    columns: list[pa.Array[Any]] = [
        pa.array(cars.car, pa.string()),
        *(pa.array(each, pa.int64()) for each in (cars.mark, cars.latest, cars.pending)),
        *(pa.ListArray.from_arrays(offsets, pa.array(each, pa.int64())) for each in (cars.time, cars.speed)),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["car", "mark", "latest", "pending", "time", "speed"])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    return out.getvalue().to_pybytes()


def unpacked(stored: bytes) -> Cars:
    """What `packed` wrote."""
    with pa.ipc.open_stream(stored) as stream:
        batch = stream.read_next_batch()
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    times, speeds = columns["time"], columns["speed"]
    counts = np.diff(times.offsets.to_numpy())
    mark, latest, pending = (columns[name].to_numpy() for name in ("mark", "latest", "pending"))
    owner = np.repeat(np.arange(len(counts)), counts)
    times, speeds = times.flatten().to_numpy(), speeds.flatten().to_numpy()
    return Cars(columns["car"].to_numpy(zero_copy_only=False), mark, latest, pending, owner, times, speeds)
