"""Which alerts are decided together: those of one package in one unit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dependfix_core.model.alert import Alert
from dependfix_core.model.lock import LockUnit
from dependfix_core.versions import normalise_name


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """All chosen alerts of one package in one unit, by number."""

    unit: LockUnit
    ecosystem: str
    package: str
    """The name as the unit spells it; the alert's canonical name when the unit does not have it."""
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """Groups sorted by unit and package, and the alerts whose manifest is in none of the units."""

    groups: tuple[Group, ...]
    homeless: tuple[Alert, ...]


def clean_manifest_path(path: str) -> str | None:
    """`path` relative to the top level; None for one that points outside or is no path.

    Paths in alerts are untrusted: backslashes, a leading slash and `./` occur,
    and labels of submitted dependency graphs that are no files.
    """
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in path:
        return None
    return "/".join(parts)


def package_key(ecosystem: str, name: str) -> str:
    """The key under which names of one package come together, whatever their spelling."""
    canonical = normalise_name(ecosystem, name)
    return canonical.lower() if ecosystem.lower() == "npm" else canonical


def group_alerts(alerts: Iterable[Alert], units: Sequence[LockUnit]) -> Grouping:
    """Brings each alert to the unit of its manifest and to the others of its package."""
    homes = _unit_by_path(units)
    names = {(unit.unit, unit.ecosystem): UnitNames(unit) for unit in units}
    gathered: dict[tuple[str, str, str], list[Alert]] = {}
    homeless: list[Alert] = []
    for alert in sorted(alerts, key=lambda one: one.number):
        path = clean_manifest_path(alert.manifest_path)
        unit = homes.get((alert.ecosystem.lower(), path)) if path is not None else None
        if unit is None:
            homeless.append(alert)
            continue
        package = names[unit.unit, unit.ecosystem].spelled(alert.package_name)
        gathered.setdefault((unit.unit, unit.ecosystem, package), []).append(alert)
    by_name = {(unit.unit, unit.ecosystem): unit for unit in units}
    groups = (
        Group(unit=by_name[unit, ecosystem], ecosystem=ecosystem, package=package, alerts=tuple(found))
        for (unit, ecosystem, package), found in sorted(gathered.items())
    )
    return Grouping(groups=tuple(groups), homeless=tuple(homeless))


class UnitNames:
    """How one unit spells its packages."""

    def __init__(self, unit: LockUnit) -> None:
        self._ecosystem = unit.ecosystem
        self._exact = {instance.name for instance in unit.instances.values()}
        self._exact |= {constraint.package for constraint in unit.constraints}
        self._folded: dict[str, str] = {}
        for name in sorted(self._exact):
            self._folded.setdefault(package_key(self._ecosystem, name), name)

    def has(self, spelled: str) -> bool:
        """Whether the unit locks or declares a package of exactly this name."""
        return spelled in self._exact

    def spelled(self, name: str) -> str:
        """`name` as the unit has it: exactly, else by the ecosystem's idea of equal names; else its canonical form."""
        canonical = normalise_name(self._ecosystem, name)
        if canonical in self._exact:
            return canonical
        return self._folded.get(package_key(self._ecosystem, name), canonical)


def _unit_by_path(units: Sequence[LockUnit]) -> Mapping[tuple[str, str], LockUnit]:
    """(ecosystem, path) → unit; a path that is a unit's own name belongs to it before it belongs to others."""
    homes: dict[tuple[str, str], LockUnit] = {}
    for paths in (lambda unit: (unit.unit,), lambda unit: unit.manifests, lambda unit: unit.files):
        for unit in sorted(units, key=lambda one: one.unit):
            for path in paths(unit):
                homes.setdefault((unit.ecosystem.lower(), path), unit)
    return homes
