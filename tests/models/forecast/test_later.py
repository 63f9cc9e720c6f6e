from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from functools import partial
from operator import add, truediv
from threading import Event

import pytest

from penstock.models.forecast import Later


@dataclass
class Gate:
    """A computation that waits until it is let go; a copy does not wait."""

    go: Event

    def __call__(self) -> str:
        assert self.go.wait(10)
        return "done"

    def __deepcopy__(self, memo: dict[int, object]) -> Gate:
        opened = Event()
        opened.set()
        return Gate(opened)


def test_it_runs_elsewhere_and_is_asked_for_when_due() -> None:
    go = Event()
    later = Later(Gate(go))  # comes back at once, though the work cannot be done yet
    go.set()
    assert later.result() == "done"
    assert later.result() == "done"


def test_a_copy_in_the_middle_computes_on_demand() -> None:
    go = Event()
    later = Later(Gate(go))
    assert copy.deepcopy(later).result() == "done"  # while the first still waits
    go.set()
    assert later.result() == "done"


def test_pickled() -> None:
    later = Later(partial(add, 2, 3))
    assert pickle.loads(pickle.dumps(later)).result() == 5  # noqa: S301 - our own bytes


def test_an_error_comes_with_the_result() -> None:
    for later in (Later(partial(truediv, 1, 0)), copy.deepcopy(Later(partial(truediv, 1, 0)))):
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                later.result()
