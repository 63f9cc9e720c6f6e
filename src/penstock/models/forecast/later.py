"""A computation that is under way: it starts elsewhere at once, and is asked for when it is due.

Because it is pure, and asked for at a fixed loop and not when it happens to be ready, a live run and its replay agree.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A pure computation, running in a thread of its own. A copy forgets the thread, and computes when asked.

    The thread cannot be stopped: a process that ends in the meantime waits for it.

    >>> Later(lambda: 6 * 7).result()
    42
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="penstock-later")
        self._future: Future[T] | None = pool.submit(work)
        pool.shutdown(wait=False)

    def result(self) -> T:
        """Waits for it, if it must."""
        if self._future is None:
            done: Future[T] = Future()
            try:
                done.set_result(self._work())
            except Exception as error:  # kept, as the thread does, for whoever asks again
                done.set_exception(error)
            self._future = done
        return self._future.result()

    def __deepcopy__(self, memo: dict[int, object]) -> Later[T]:
        other: Later[T] = Later.__new__(Later)
        other.__setstate__(deepcopy(self._work, memo))
        return other

    def __getstate__(self) -> Callable[[], T]:
        return self._work

    def __setstate__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._future = None
