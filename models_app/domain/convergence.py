"""What a pass does to the cluster, decided purely: objects wanted against objects seen (design §3, contract D3–D6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Key = tuple[str, str]
"""(kind, name): what identifies an object of one deployment, all in one namespace."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object as rendered and stamped; ``spec_hash`` is the stamp it will carry."""

    key: Key
    spec_hash: str


@dataclass(frozen=True, slots=True)
class Live:
    """The object of that key as read. ``ours``: its labels name this deployment. ``drifted``: by meaning (D2), its live
    fields differ from what was rendered. ``generation``: as stamped, None when there is none."""

    key: Key
    uid: str
    resource_version: str
    ours: bool
    generation: int | None
    spec_hash: str
    drifted: bool = False
    deleting: bool = False


class Act(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    WAIT_GONE = "wait_gone"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do to one object; ``uid`` and ``resource_version`` fence it (D4), empty for a creation."""

    act: Act
    key: Key
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order. ``stale``: a later generation has been here, so this pass does nothing. ``foreign``: names of
    objects that stand where ours should and are not ours; they are left alone, and nothing is applied (D5)."""

    steps: tuple[Step, ...] = ()
    stale: bool = False
    foreign: tuple[Key, ...] = ()


def decide(*, wanted: Sequence[Wanted], live: Mapping[Key, Live], generation: int) -> Plan:
    """The plan that makes ``live`` as ``wanted``; nothing wanted means everything of ours goes.

    ``live`` holds every key that is wanted or was ever applied, as far as it exists: what is missing there is proven
    absent (an unreadable cluster never gets here, D3). Same input, same plan; done twice, the second plan is empty.
    """
    if any(item.ours and item.generation is not None and item.generation > generation for item in live.values()):
        return Plan(stale=True)
    keys = {item.key for item in wanted}
    foreign = tuple(sorted(key for key in keys if key in live and not live[key].ours))
    if foreign:
        return Plan(foreign=foreign)
    steps = [step for item in wanted if (step := _towards(item, live.get(item.key), generation)) is not None]
    for key in sorted(live.keys() - keys):
        if live[key].ours:
            steps.append(_away(live[key]))
    return Plan(steps=tuple(steps))


def _towards(wanted: Wanted, live: Live | None, generation: int) -> Step | None:
    if live is None:
        return Step(Act.CREATE, wanted.key)
    if live.deleting:
        return Step(Act.WAIT_GONE, wanted.key, live.uid)
    if live.spec_hash == wanted.spec_hash and live.generation == generation and not live.drifted:
        return None
    return Step(Act.CHANGE, wanted.key, live.uid, live.resource_version)


def _away(live: Live) -> Step:
    if live.deleting:
        return Step(Act.WAIT_GONE, live.key, live.uid)
    return Step(Act.DELETE, live.key, live.uid)
