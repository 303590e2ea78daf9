"""Findings that are judged the same way in every ecosystem: requirements that land where they do not fit."""

from dependfix_core.ecosystems.base import Finding, Graph
from dependfix_core.model.lock import DependencyKind
from dependfix_core.model.steps import Step, together

_MUST_BE_MET = frozenset({DependencyKind.PROD, DependencyKind.DEV, DependencyKind.BUILD})


def edge_findings(graph: Graph) -> Step[list[Finding]]:
    """V4: each copy with the dependents that certainly do not admit it, and needed requirements that nothing meets."""
    unit = graph.unit
    places = list(unit.instances)
    asked = yield from together([graph.dependents(where) for where in places])
    found = []
    for where, dependents in zip(places, asked, strict=True):
        version = unit.instances[where].version
        found += [
            Finding(check="V4", where=where, detail=f"{dependent}, and {version} is locked")
            for dependent in dependents
            if version and dependent.admits(version).is_no
        ]
    for where, instance in unit.instances.items():
        found += [
            Finding(check="V4", where=where, detail=f"{instance.name} needs {edge.name}, which is not there")
            for edge in instance.edges
            if edge.target is None and edge.kind in _MUST_BE_MET and not edge.marker and not instance.optional
        ]
    return found
