"""Times two pieces of work against each other in one run, so that the machine's mood cancels out."""

import gc
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any


def ratio(
    base: Callable[[], Any], ours: Callable[[], Any], *, before: Callable[[], Any] = lambda: None, rounds: int = 15
) -> float:
    """How many times as fast as `base` ours is: the median over alternating rounds of CPU time.

    `before` runs ahead of each round of ours and is not counted.
    """
    quotients = []
    for _ in range(rounds + 1):
        taken = _seconds(base)
        before()
        quotients.append(taken / _seconds(ours))
    return median(quotients[1:])


def _seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    start = process_time()
    work()
    taken = process_time() - start
    gc.enable()
    return max(taken, 1e-9)
