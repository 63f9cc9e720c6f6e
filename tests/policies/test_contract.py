"""Every registered policy keeps the contract."""

from __future__ import annotations

import pytest

from penstock.core import Policy
from penstock.policies import POLICIES, make
from penstock.testing import PolicyContract


@pytest.mark.parametrize("name", POLICIES)
class TestRegistered(PolicyContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def make(self) -> Policy:
        return make(self.name, min_workers=2, max_workers=9)
