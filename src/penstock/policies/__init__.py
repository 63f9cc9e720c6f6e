"""The autoscalers, by name. Adding one: a file here, a line below (sorted), a table test, a page in the docs."""

from __future__ import annotations

from penstock.core import Policy
from penstock.errors import check
from penstock.policies.daedalus import Daedalus
from penstock.policies.dhalion import Dhalion
from penstock.policies.dhalion_adapted import DhalionAdapted
from penstock.policies.ds2 import Ds2
from penstock.policies.ds2_modern import Ds2Modern
from penstock.policies.ds2_modern_adapted import Ds2ModernAdapted
from penstock.policies.flink_operator import FlinkOperator
from penstock.policies.flink_reactive import FlinkReactive
from penstock.policies.gesscale import Gesscale
from penstock.policies.hpa import Hpa
from penstock.policies.keda_lag import KedaLag
from penstock.policies.mdl_nl_unaware import MdlNlUnaware
from penstock.policies.phoebe import Phoebe
from penstock.policies.spark_dra import SparkDra
from penstock.policies.spark_dstreams import SparkDstreams
from penstock.policies.static import Static
from penstock.policies.thr_nl_aware import ThrNlAware
from penstock.policies.thr_nl_unaware import ThrNlUnaware
from penstock.policies.throughput_memory import ThroughputMemory
from penstock.policies.twres import Twres
from penstock.policies.varga_v1 import VargaV1
from penstock.policies.varga_v2 import VargaV2
from penstock.settings import Parameter, build, parameters

__all__ = ["POLICIES", "Parameter", "make", "parameters", "register"]

POLICIES: dict[str, type[Policy]] = {
    "daedalus": Daedalus,
    "dhalion": Dhalion,
    "dhalion-adapted": DhalionAdapted,
    "ds2": Ds2,
    "ds2-modern": Ds2Modern,
    "ds2-modern-adapted": Ds2ModernAdapted,
    "flink-operator": FlinkOperator,
    "flink-reactive": FlinkReactive,
    "gesscale": Gesscale,
    "hpa": Hpa,
    "keda-lag": KedaLag,
    "mdl-nl-unaware": MdlNlUnaware,
    "phoebe": Phoebe,
    "spark-dra": SparkDra,
    "spark-dstreams": SparkDstreams,
    "static": Static,
    "thr-nl-aware": ThrNlAware,
    "thr-nl-unaware": ThrNlUnaware,
    "throughput-memory": ThroughputMemory,
    "twres": Twres,
    "varga-v1": VargaV1,
    "varga-v2": VargaV2,
}


def make(name: str, **config: object) -> Policy:
    """The policy called `name`, with these settings.

    >>> make("hpa", target_cpu=0.7).interval
    15.0
    >>> make("hpa", targetcpu=0.7)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    penstock.errors.ConfigError: hpa.targetcpu must be a parameter of hpa (...), got 0.7; did you mean 'target_cpu'?
    """
    return build("policy", POLICIES, name, config)


def register(cls: type[Policy]) -> type[Policy]:
    """Make somebody's own policy known by its name; usable as a decorator."""
    known = POLICIES.setdefault(cls.name, cls)
    check(known is cls, "name", "be a name no other policy has", cls.name)
    return cls
