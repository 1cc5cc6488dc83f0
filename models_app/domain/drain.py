"""Drain budgets (G5, case C44): new traffic leaves first, accepted work ends whole, and the grace covers both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrainBudget:
    """Seconds. ``prestop`` outlasts the spread of the endpoint's removal, ``drain`` the longest accepted work,
    ``margin`` is for the process to exit once it is idle."""

    prestop: int = 5
    drain: int = 600
    margin: int = 25

    @property
    def grace(self) -> int:
        """``terminationGracePeriodSeconds`` that lets both run to their end."""
        return self.prestop + self.drain + self.margin


def drain_problem(*, prestop: int, drain: int, grace: int) -> str:
    """Why a pod with this preStop, drain budget and grace (seconds) would cut accepted work; "" when it would not.

    The grace period starts before preStop does, so it must exceed the sum (G5).
    """
    if prestop < 1:
        return "There is no preStop: new calls would reach a pod that is closing. Set one of at least 1 s."
    if grace <= prestop + drain:
        return (
            f"terminationGracePeriodSeconds {grace} does not exceed preStop {prestop} s + drain {drain} s: "
            f"accepted work would be cut. Set it above {prestop + drain}."
        )
    return ""
