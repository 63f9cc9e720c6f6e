"""The autoscalers, by name. Adding one: a file here, a line below (sorted), a table test, a page in the docs."""

from __future__ import annotations

from penstock.core import Policy
from penstock.errors import check
from penstock.policies.daedalus import Daedalus
from penstock.policies.hpa import Hpa
from penstock.policies.static import Static
from penstock.settings import Parameter, build, parameters

__all__ = ["POLICIES", "Parameter", "make", "parameters", "register"]

POLICIES: dict[str, type[Policy]] = {
    "daedalus": Daedalus,
    "hpa": Hpa,
    "static": Static,
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
