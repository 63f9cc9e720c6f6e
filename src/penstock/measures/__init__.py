"""What a run cost, how it went, how far it was from the best there could be, and how right its models were.

From a journal alone (`summarise`, `scores`), or from the aligned arrays of a run (`Series`), which a journal gives too:

    series = Series.of(records)
    assess(series, disturbances(records), capacity=lambda n: 5000.0 * n, max_workers=12, latency_target=2)

Downtime is never left out of anything, and what is not known is never made up: measures count only where their input
was known, and say for how long that was.
"""

from penstock.measures.accountability import Accuracy, Score, Scores, scores
from penstock.measures.assessment import Assessment, Backlog, Cost, assess, backlog, cost, downtime
from penstock.measures.latencies import Distribution, Latency, distribution, latency
from penstock.measures.recovery import Disturbance, Recovery, disturbances, mean_recovery, recoveries
from penstock.measures.seeds import Interval, over_seeds
from penstock.measures.series import Series
from penstock.measures.spec import Elasticity, elasticity, excess_time
from penstock.measures.summary import GAP, Measures, Span, spans, summarise

__all__ = [
    "GAP",
    "Accuracy",
    "Assessment",
    "Backlog",
    "Cost",
    "Distribution",
    "Disturbance",
    "Elasticity",
    "Interval",
    "Latency",
    "Measures",
    "Recovery",
    "Score",
    "Scores",
    "Series",
    "Span",
    "assess",
    "backlog",
    "cost",
    "distribution",
    "disturbances",
    "downtime",
    "elasticity",
    "excess_time",
    "latency",
    "mean_recovery",
    "over_seeds",
    "recoveries",
    "scores",
    "spans",
    "summarise",
]
