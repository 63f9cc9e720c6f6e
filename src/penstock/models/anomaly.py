"""When a job is not itself, and how long it took to be so again after a rescale or a failure.

Daedalus (Pfister et al., ICPE 2024) sec. 3.5: what comes in minus what is processed has a running mean and variance;
a sample more than one standard deviation away from the mean, on either side, is abnormal, and a rescale is over when
nothing is abnormal any more. Both sides count because catching up, when more is processed than comes in, belongs to
the recovery too. Deviations, all to make that usable on a job that runs for weeks:

- The old fades (`half_life`), and what is seen during a recovery, or a run of abnormal samples that becomes one, is not
  learned: one long stop would otherwise widen "normal" for days.
- The deviation has a floor, a share of the load (`least`): a quiet job has almost none, and every ripple would hurt.
- A job that processes what arrives, within that floor, is itself, even if it was overloaded for as long as is known.
- One standard deviation calls every third sample of an ordinary noisy job abnormal, so that it would never be calm. How
  often that happens in normal times is learned, and as much is forgiven: where it never happens, nothing is.
- A sample is not the end while records are still waiting. How many are normal is learned in seconds of load, since a
  job that reads twice as much keeps twice as much in flight.
- What has been abnormal for `longest` is how the job is now: it is learned from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, log, sqrt

from penstock.errors import check
from penstock.models.recovery import Way
from penstock.models.welford import Moments

RARE = 1e-4  # a run of abnormal samples that chance makes less often than this is not chance
USUAL = 2.0  # standard deviations of the count of abnormal samples that pass for chance in a calm spell
FAINTEST = 1e-12  # the share that is left after a gap, however long


@dataclass(slots=True)
class Detector:
    """What is normal of workload minus throughput.

    threshold: standard deviations away from the mean that are still normal.
    half_life: seconds after which a sample counts for half.
    least: the smallest standard deviation to reckon with, as a share of the workload.
    enough: samples needed before anything is called abnormal.

    >>> detector = Detector(enough=3)
    >>> for at, throughput in enumerate((1010, 1000, 990)):
    ...     detector.learn(at, 1000, throughput)
    >>> detector.abnormal(15, workload=1000), detector.abnormal(1000), detector.abnormal(-500)
    (False, True, True)
    """

    threshold: float = 1.0
    half_life: float = 3600.0
    least: float = 0.02
    enough: int = 30
    _differences: Moments = field(default_factory=Moments, init=False)
    _workloads: Moments = field(default_factory=Moments, init=False)
    _strays: Moments = field(default_factory=Moments, init=False)
    _samples: int = field(default=0, init=False)
    _at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check(self.threshold > 0, "threshold", "be above 0", self.threshold)
        check(self.half_life > 0, "half_life", "be above 0 seconds", self.half_life)
        check(self.least >= 0, "least", "be 0 or more", self.least)
        check(self.enough >= 1, "enough", "be at least 1", self.enough)

    @property
    def mean(self) -> float | None:
        """Of workload minus throughput: not 0 where the two are counted at different places."""
        return self._differences.mean

    @property
    def deviation(self) -> float | None:
        return self._differences.deviation

    @property
    def strays(self) -> float:
        """The share of normal times' samples that are called abnormal; 0 while none was."""
        return self._strays.mean or 0.0

    def abnormal(self, difference: float, workload: float | None = None) -> bool | None:
        """Whether `difference`, seen at `workload` (the usual one where not given), is out of the ordinary."""
        mean, deviation = self._differences.mean, self._differences.deviation
        if self._samples < self.enough or mean is None or deviation is None:
            return None
        of_load = self._workloads.mean if workload is None else workload
        floor = self.least * (of_load or 0.0)
        if abs(difference) <= floor:
            return False
        return abs(difference - mean) > self.threshold * max(deviation, floor)

    def learn(self, at: float, workload: float, throughput: float) -> None:
        """Take in a sample of normal times."""
        difference = workload - throughput
        stray = self.abnormal(difference, workload)
        if self._at is not None and at > self._at:
            share = max(0.5 ** ((at - self._at) / self.half_life), FAINTEST)
            for moments in (self._differences, self._workloads, self._strays):
                moments.fade(share)
        self._at = at
        self._differences.add(difference)
        self._workloads.add(workload)
        if stray is not None:
            self._strays.add(float(stray))
        self._samples += 1

    def forget(self) -> None:
        """Start anew."""
        self._differences, self._workloads, self._strays, self._samples = Moments(), Moments(), Moments(), 0

    def by_chance(self, run: int) -> bool:
        """Whether `run` abnormal samples in a row are no wonder in normal times; never where there were none."""
        strays = min(self.strays, 0.5)
        return strays > 0 and run * log(strays) > log(RARE)

    def forgiven(self, samples: int) -> int:
        """How many of `samples` may be abnormal and the time still be normal; 0 where none ever was."""
        strays = min(self.strays, 0.5)
        return floor(strays * samples + USUAL * sqrt(strays * (1 - strays) * samples))


@dataclass(frozen=True, slots=True)
class Recovery:
    """One episode, at its end.

    before, after: workers; None where not known.
    hurt_at: since when the job was abnormal; None: it was not seen to be.
    over_at: since when it has been normal again; `began_at` if it never hurt; None: cut short, given up, or not seen.
    observed: seconds from `began_at` to `over_at`; 0 if it never hurt; None like `over_at`.
    predicted: what the recovery was thought to take; waiting: records that were waiting already, as that reckoned.
    lag: seconds of `observed` in which the stop did not show yet, or no longer waited for anything: means of a minute
        tell of it for a minute more. What is left is the time that it took to catch up.
    """

    way: Way
    before: int | None
    after: int | None
    began_at: float
    hurt_at: float | None
    over_at: float | None
    observed: float | None
    predicted: float | None
    waiting: float = 0.0
    lag: float = 0.0


@dataclass(slots=True)
class _Run:
    """Abnormal samples in a row (a gap does not break it), held back from learning until it is clear what they are."""

    since: float
    backlog_before: float | None
    length: int = 0
    held: list[tuple[float, float, float, float | None]] = field(default_factory=list)


@dataclass(slots=True)
class _Calm:
    """A spell that may turn out to be the end."""

    since: float
    samples: int = 1
    abnormal: int = 0


@dataclass(slots=True)
class _Episode:
    way: Way
    before: int | None
    after: int | None
    began_at: float
    predicted: float | None
    backlog: float | None
    waiting: float = 0.0
    hurt_at: float | None = None
    caught_up_at: float | None = None
    calm: _Calm | None = None
    seen: bool = False
    blind: bool = False
    blind_since: float | None = None

    def interrupt(self, at: float) -> None:
        """A sample without numbers: neither normal nor abnormal, but calm it was not seen to be."""
        self.calm = None
        if self.blind_since is None:
            self.blind_since = at

    def end(self, over_at: float | None) -> Recovery:
        observed = None if over_at is None else over_at - self.began_at
        return Recovery(
            way=self.way,
            before=self.before,
            after=self.after,
            began_at=self.began_at,
            hurt_at=self.hurt_at,
            over_at=over_at,
            observed=observed,
            predicted=self.predicted,
            waiting=self.waiting,
            lag=0.0 if over_at is None or observed is None else observed - self._catching_up(over_at),
        )

    def _catching_up(self, over_at: float) -> float:
        """Subtracted from the whole, so that lag is never more than that, however times are rounded."""
        begin = self.began_at if self.hurt_at is None else self.hurt_at
        end = over_at if self.caught_up_at is None else min(self.caught_up_at, over_at)
        return max(0.0, end - begin)


@dataclass(slots=True)
class Recoveries:
    """Watches rescales and failures until the job is itself again.

    detector: what is abnormal; it learns from the samples given here.
    onset: seconds after a rescale in which it must begin to hurt, if it does.
    calm: seconds that all must be normal for a recovery to be over, or abnormal for a failure nobody told of.
    longest: seconds after which a recovery is given up.

    >>> watch = Recoveries(Detector(enough=3), calm=2)
    >>> for at in range(5):
    ...     _ = watch.learn(at, 1000, 1000)
    >>> watch.begin(4, "out", before=2, after=3, predicted=5.0)
    >>> for at, throughput in enumerate((0, 0, 2000, 2000, 1000, 1000, 1000), start=5):
    ...     for recovery in watch.learn(at, 1000, throughput):
    ...         print(recovery.hurt_at, recovery.over_at, recovery.observed)
    5 9 5
    """

    detector: Detector = field(default_factory=Detector)
    onset: float = 60.0
    calm: float = 15.0
    longest: float = 1800.0
    _episode: _Episode | None = field(default=None, init=False)
    _run: _Run | None = field(default=None, init=False)
    _ended: tuple[Recovery, ...] = field(default=(), init=False)
    _delays: Moments = field(default_factory=Moments, init=False)
    _delays_at: float | None = field(default=None, init=False)
    _backlog: float | None = field(default=None, init=False)
    _workers: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check(self.onset >= 0, "onset", "be 0 or more seconds", self.onset)
        check(self.calm >= 0, "calm", "be 0 or more seconds", self.calm)
        check(self.longest > self.onset, "longest", f"be above onset ({self.onset:g})", self.longest)

    @property
    def watching(self) -> bool:
        return self._episode is not None

    def begin(
        self,
        at: float,
        way: Way,
        before: int | None = None,
        after: int | None = None,
        predicted: float | None = None,
        waiting: float = 0.0,
    ) -> None:
        """A rescale or a failure happens now. One that is still watched is cut short; the next `learn` returns it."""
        if self._episode is not None:
            self._ended += (self._episode.end(None),)
        self._episode = _Episode(way, before, after, at, predicted, self._backlog, waiting)
        self._run = None
        self._workers = after

    def learn(
        self, at: float, workload: float | None, throughput: float | None, backlog: float | None = None
    ) -> tuple[Recovery, ...]:
        """Take in a sample; the episodes that are over with it."""
        if self._episode is not None and at - self._episode.began_at > self.longest:
            self._give_up(self._episode)
        elif self._episode is not None and at < self._episode.began_at:  # the clock stepped back: nobody knows how long
            self._end(self._episode, None)
        if workload is None or throughput is None:
            if self._episode is not None:
                self._episode.interrupt(at)
        else:
            abnormal = self.detector.abnormal(workload - throughput, workload)
            if self._episode is None or not self._watch(self._episode, at, abnormal, workload, backlog):
                self._idle(at, abnormal, workload, throughput, backlog)
        if backlog is not None:
            self._backlog = backlog
        ended, self._ended = self._ended, ()
        return ended

    def _watch(
        self, episode: _Episode, at: float, abnormal: bool | None, workload: float, backlog: float | None
    ) -> bool:
        """Whether the sample still belongs to the episode."""
        if episode.hurt_at is None and not self._hurts(episode, at, abnormal):
            return self._episode is not None
        caught_up = self._caught_up(episode, workload, backlog)
        if backlog is None or not caught_up:
            episode.caught_up_at = None
        elif episode.caught_up_at is None:
            episode.caught_up_at = at
        calm = episode.calm
        if calm is not None:
            calm.samples += 1
            calm.abnormal += bool(abnormal)
            if calm.abnormal > self.detector.forgiven(calm.samples):
                calm = None
        elif not abnormal and caught_up:
            calm = _Calm(at)
        episode.calm = calm
        if calm is not None and at - calm.since >= self.calm:
            self._end(episode, calm.since)
        return True

    def _hurts(self, episode: _Episode, at: float, abnormal: bool | None) -> bool:
        """Whether it turns out to hurt with this sample. Ends the episode where it is clear that it did not."""
        in_time = at <= episode.began_at + self.onset
        if episode.blind_since is not None:
            # A stop may hide in a long gap: after one, "it did not hurt" is not known any more.
            episode.blind |= at - episode.blind_since > self.calm
            episode.blind_since = None
        unseen = episode.blind or not episode.seen
        episode.seen |= in_time and abnormal is not None
        if abnormal and (self._run is not None or in_time or unseen):
            self._run = self._run or _Run(at, self._backlog)
            self._run.length += 1
            if not self.detector.by_chance(self._run.length):
                episode.hurt_at, self._run = self._run.since, None
                return True
        else:
            self._run = None
            if not in_time:
                self._end(episode, None if unseen else episode.began_at)
        return False

    def _idle(
        self, at: float, abnormal: bool | None, workload: float, throughput: float, backlog: float | None
    ) -> None:
        sample = (at, workload, throughput, backlog)
        if not abnormal:
            held, self._run = (self._run.held if self._run is not None else []), None
            for each in (*held, sample):
                self._take_in(*each)
            return
        run = self._run = self._run or _Run(at, self._backlog)
        run.length += 1
        run.held.append(sample)
        if at - run.since > self.calm and not self.detector.by_chance(run.length):
            workers = self._workers
            self._episode = _Episode(
                "failure", workers, workers, run.since, None, run.backlog_before, hurt_at=run.since
            )
            self._run = None

    def _take_in(self, at: float, workload: float, throughput: float, backlog: float | None) -> None:
        self.detector.learn(at, workload, throughput)
        if backlog is not None and workload > 1e-9:  # less is nothing
            if self._delays_at is not None and at > self._delays_at:
                self._delays.fade(max(0.5 ** ((at - self._delays_at) / self.detector.half_life), FAINTEST))
            self._delays_at = at
            self._delays.add(backlog / workload)

    def _caught_up(self, episode: _Episode, workload: float, backlog: float | None) -> bool:
        if backlog is None:
            return True
        normal = [] if episode.backlog is None else [episode.backlog]
        mean, deviation = self._delays.mean, self._delays.deviation
        if mean is not None and deviation is not None:
            normal.append((mean + max(deviation, self.detector.least * mean)) * workload)
        return not normal or backlog <= max(1.0, *normal)  # less than one record is none

    def _end(self, episode: _Episode, over_at: float | None) -> None:
        self._ended += (episode.end(over_at),)
        self._episode = None
        self._run = None

    def _give_up(self, episode: _Episode) -> None:
        self._end(episode, None)
        if episode.hurt_at is not None:
            self.detector.forget()
            self._delays = Moments()
