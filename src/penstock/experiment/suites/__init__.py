"""The papers' experiments on the simulator, one file each: what is run, what was published, what was found."""

from __future__ import annotations

from penstock.experiment.suites import daedalus, ds2, gesscale, koper, phoebe
from penstock.experiment.suites.base import Comparison, Finding, Missing, Published, Sheet, Suite, Summary

__all__ = ["SUITES", "Comparison", "Finding", "Missing", "Published", "Sheet", "Suite", "Summary"]

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (daedalus.SUITE, ds2.SUITE, gesscale.SUITE, koper.SUITE, phoebe.SUITE)
}
