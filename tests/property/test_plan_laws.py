"""Laws of plans, on generated registries and the locks that npm could have made of them."""

import json
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import Plan
from dependfix_core.versions import Requirement, Version, VulnerableRange, parse_requirement, scheme_for
from fakes.planning import ALL, plan_files
from fakes.universe import alert, npm_project, registry

VERSIONS = ("0.1.0", "0.1.1", "0.2.0", "1.0.0", "1.0.1", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0")
NAMES = ("a", "b", "c", "d", "e", "f")
SCHEME = scheme_for("npm")
Packages = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True)
class Project:
    packages: Packages
    declared: dict[str, str]
    tree: dict[str, str]
    """Place, written short, → version."""
    alerts: tuple[Alert, ...]

    @property
    def files(self) -> dict[str, bytes]:
        return npm_project(self.packages, {"dependencies": self.declared}, self.tree)

    def plan(self, alerts: tuple[Alert, ...] | None = None) -> Plan:
        return plan_files(self.files, self.alerts if alerts is None else alerts, registry(self.packages))


def admits(text: str, version: str) -> bool:
    requirement = parse_requirement("npm", text)
    assert isinstance(requirement, Requirement)
    return requirement.admits(version).is_yes


def key(version: str) -> Any:
    assert SCHEME is not None
    return SCHEME.parse(version).key


@st.composite
def projects(draw: st.DrawFn) -> Project:
    packages: Packages = {}
    for index, name in enumerate(NAMES):
        chosen = draw(st.sets(st.sampled_from(VERSIONS), min_size=1, max_size=6))
        packages[name] = {version: {} for version in sorted(chosen, key=key)}
        for version in packages[name]:
            below = [other for other in NAMES[:index] if other in packages]
            for other in draw(st.sets(st.sampled_from(below), max_size=2)) if below else ():
                packages[name][version][other] = draw(requirements(packages[other]))
    direct = draw(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
    declared = {name: draw(requirements(packages[name])) for name in sorted(direct)}
    tree = draw(installed(packages, declared))
    alerts = tuple(draw(alerts_on(packages, number)) for number in range(1, draw(st.integers(1, 4)) + 1))
    return Project(packages=packages, declared=declared, tree=tree, alerts=alerts)


@st.composite
def requirements(draw: st.DrawFn, versions: Mapping[str, Any]) -> str:
    base = draw(st.sampled_from(sorted(versions)))
    return draw(st.sampled_from(["^", "~", "", ">=", "<="])) + base


@st.composite
def alerts_on(draw: st.DrawFn, packages: Packages, number: int) -> Alert:
    name = draw(st.sampled_from(NAMES))
    low, high = sorted(draw(st.lists(st.sampled_from(VERSIONS), min_size=2, max_size=2, unique=True)), key=key)
    above = [version for version in packages[name] if key(version) >= key(high)]
    patched = draw(st.sampled_from([above[0], above[0], None])) if above else None
    text = draw(st.sampled_from([f"< {high}", f">= {low}, < {high}"]))
    return alert(number, name, text, patched)


@st.composite
def installed(draw: st.DrawFn, packages: Packages, declared: dict[str, str]) -> dict[str, str]:
    """A tree in which every requirement is met, by any of the versions that meet it."""
    tree: dict[str, str] = {}
    waiting = deque(("", name, text) for name, text in declared.items())
    while waiting:
        place, name, text = waiting.popleft()
        found = lookup(tree, place, name)
        if found is not None and admits(text, tree[found]):
            continue
        version = draw(st.sampled_from([v for v in packages[name] if admits(text, v)]))
        where = name if name not in tree else f"{place}/{name}"
        tree[where] = version
        waiting.extend((where, other, asked) for other, asked in packages[name][version].items())
    return tree


def lookup(tree: Mapping[str, str], place: str, name: str) -> str | None:
    here = place
    while True:
        candidate = f"{here}/{name}" if here else name
        if candidate in tree:
            return candidate
        if not here:
            return None
        here = here.rpartition("/")[0]


def after(project: Project, plan: Plan) -> tuple[Project, dict[tuple[str, str], str]]:
    """The project in the plan's end state, and what its overrides force: (parent or empty, package) → text."""
    tree, declared = dict(project.tree), deepcopy(project.declared)
    forced: dict[tuple[str, str], str] = {}
    for one in plan.remediations:
        for move in one.moves:
            place = move.where.replace("node_modules/", "")
            assert tree.get(place) == move.from_version
            if move.to_version is None:
                del tree[place]
            else:
                tree[place] = move.to_version
        for edit in one.edits:
            section, _, what = edit.at.partition(".")
            if section == "dependencies":
                assert declared[what] == edit.from_text
                declared[what] = edit.to_text
            else:
                parent, _, package = what.rpartition(">") if "@" not in what else ("", "", what)
                forced[parent, package] = edit.to_text
    return Project(project.packages, declared, tree, project.alerts), forced


def unmet(project: Project, forced: Mapping[tuple[str, str], str]) -> list[str]:
    """Requirements that the tree does not meet, and copies that nobody asks for, by a naive walk."""
    found = []
    reached = set()
    asked = [("", name, text) for name, text in project.declared.items()]
    for place, version in project.tree.items():
        name = place.rpartition("/")[2]
        asked += [(place, other, text) for other, text in project.packages[name][version].items()]
    for place, name, stated in asked:
        parent = place.rpartition("/")[2]
        text = forced.get((parent, name), stated)
        for (scope, selector), value in forced.items():
            package, _, condition = selector.partition("@")
            if not scope and condition and package == name and place and intersects(stated, condition):
                text = value
        where = lookup(project.tree, place, name)
        if where is None or not admits(text, project.tree[where]):
            found.append(f"{place} asks {name} {text}")
        else:
            reached.add(where)
    return found + [f"{place} is an orphan" for place in project.tree if place not in reached]


def intersects(left: str, right: str) -> bool:
    mine, other = parse_requirement("npm", left), parse_requirement("npm", right)
    assert isinstance(mine, Requirement)
    assert isinstance(other, Requirement)
    return not mine.intersect(other).is_empty


def contains(one: Alert, version: str) -> bool:
    assert SCHEME is not None
    vulnerable = VulnerableRange.parse("npm", one.vulnerable_range)
    assert isinstance(vulnerable, VulnerableRange)
    parsed = SCHEME.try_parse(version)
    return isinstance(parsed, Version) and vulnerable.contains(parsed).is_yes


LAWS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@LAWS
@given(projects())
def test_every_alert_is_accounted_for_once_and_named_by_no_remediation_unless_it_is_answered(project: Project) -> None:
    plan = project.plan()

    assert [one.alert for one in plan.outcomes] == [one.number for one in project.alerts]
    answered = {one.alert for one in plan.outcomes if one.outcome in ("fix", "partial")}
    assert {number for one in plan.remediations for number in one.alerts} == answered
    for one in plan.outcomes:
        staying = [instance for instance in one.instances if instance.reason is not None]
        expected = "fix" if not staying else "partial" if len(staying) < len(one.instances) else "refuse"
        assert one.outcome == (expected if one.instances else one.outcome)
        assert (one.reason is None) == (one.outcome in ("fix", "converged", "not-present"))


@LAWS
@given(projects())
def test_no_target_is_inside_any_range_of_its_package(project: Project) -> None:
    for one in project.plan().remediations:
        for move in one.moves:
            if move.to_version is not None:
                assert move.to_version in project.packages[move.package_name]
                for other in project.alerts:
                    assert other.package_name != move.package_name or not contains(other, move.to_version)


@LAWS
@given(projects(), st.randoms(use_true_random=False))
def test_the_order_of_the_alerts_does_not_matter(project: Project, random: Any) -> None:
    shuffled = list(project.alerts)
    random.shuffle(shuffled)

    assert project.plan(tuple(shuffled)) == project.plan()


@LAWS
@given(projects())
def test_the_end_state_is_a_lock_that_npm_could_have_made(project: Project) -> None:
    plan = project.plan()

    end, forced = after(project, plan)

    assert unmet(project, {}) == []
    assert unmet(end, forced) == []
    moved = {instance.where for one in plan.outcomes for instance in one.instances if instance.reason is None}
    for one in project.alerts:
        for place, version in end.tree.items():
            if place.rpartition("/")[2] == one.package_name and contains(one, version):
                assert f"node_modules/{place.replace('/', '/node_modules/')}" not in moved
                assert end.tree[place] == project.tree.get(place)


@LAWS
@given(projects())
def test_nothing_is_planned_on_the_end_state(project: Project) -> None:
    plan = project.plan()
    end, forced = after(project, plan)
    files = end.files
    if forced:
        manifest = json.loads(files["package.json"])
        manifest["overrides"] = overrides_of(forced)
        files["package.json"] = json.dumps(manifest).encode()

    again = plan_files(files, project.alerts, registry(project.packages), ALL)

    assert again.remediations == ()
    assert {one.outcome for one in again.outcomes} <= {"refuse", "converged", "not-present"}


def overrides_of(forced: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (parent, package), value in forced.items():
        if parent:
            found.setdefault(parent, {})[package] = value
        else:
            found[package] = value
    return found


@LAWS
@given(projects())
def test_an_alert_that_is_not_open_changes_nothing(project: Project) -> None:
    extra = alert(99, "a", "< 9.0.0", "9.0.0", state="fixed")

    plan, more = project.plan(), project.plan((*project.alerts, extra))

    assert more.remediations == plan.remediations
    assert [one for one in more.outcomes if one.alert != 99] == list(plan.outcomes)


# Locks that write down which copy every requirement leads to.


@dataclass(frozen=True)
class Linked:
    packages: Packages
    declared: dict[str, str]
    chosen: dict[tuple[str, str], str]
    """(name, requirement) → version: what yarn 1 keeps, and what pnpm's copies follow from."""
    alerts: tuple[Alert, ...]

    @property
    def copies(self) -> list[tuple[str, str]]:
        return sorted({(name, version) for (name, _), version in self.chosen.items()})

    def yarn(self) -> dict[str, bytes]:
        lines = ["# yarn lockfile v1", "", ""]
        for name, version in self.copies:
            texts = sorted(text for (asked, text), v in self.chosen.items() if (asked, v) == (name, version))
            quoted = ", ".join(f'"{name}@{text}"' for text in texts)
            lines += [f"{quoted}:", f'  version "{version}"']
            lines += [f'  resolved "https://yarn.registry.example/{name}/-/{name}-{version}.tgz#0"']
            needs = self.packages[name][version]
            if needs:
                lines += ["  dependencies:", *(f'    {other} "{text}"' for other, text in needs.items())]
            lines += [""]
        manifest = {"name": "app", "version": "1.0.0", "dependencies": self.declared}
        return {"package.json": json.dumps(manifest).encode(), "yarn.lock": "\n".join(lines).encode()}

    def pnpm(self) -> dict[str, bytes]:
        lines = ["lockfileVersion: '9.0'", "", "importers:", "", "  .:", "    dependencies:"]
        for name, text in self.declared.items():
            lines += [f"      {name}:", f"        specifier: '{text}'", f"        version: {self.chosen[name, text]}"]
        lines += ["", "packages:", ""]
        for name, version in self.copies:
            lines += [f"  {name}@{version}:", f"    resolution: {{integrity: sha512-{name}{version}}}", ""]
        lines += ["snapshots:", ""]
        for name, version in self.copies:
            needs = self.packages[name][version]
            lines += [f"  {name}@{version}:{'' if needs else ' {}'}"]
            if needs:
                lines += ["    dependencies:", *(f"      {o}: {self.chosen[o, t]}" for o, t in needs.items())]
            lines += [""]
        manifest = {"name": "app", "version": "1.0.0", "dependencies": self.declared, "packageManager": "pnpm@9.15.9"}
        return {"package.json": json.dumps(manifest).encode(), "pnpm-lock.yaml": "\n".join(lines).encode()}


@st.composite
def linked(draw: st.DrawFn, lock: str) -> Linked:
    project = draw(projects())
    chosen: dict[tuple[str, str], str] = {}
    waiting = deque(project.declared.items())
    while waiting:
        name, text = waiting.popleft()
        if (name, text) in chosen:
            continue
        fitting = [version for version in project.packages[name] if admits(text, version)]
        chosen[name, text] = draw(st.sampled_from(fitting))
        waiting.extend(project.packages[name][chosen[name, text]].items())
    alerts = tuple(replace(one, manifest_path=lock) for one in project.alerts)
    return Linked(project.packages, project.declared, chosen, alerts)


def check_linked(project: Linked, plan: Plan, where_of: Mapping[str, tuple[str, str]]) -> None:
    """What stays and what comes in serves everybody, and everything in it serves somebody."""
    copies = dict(where_of)
    declared = dict(project.declared)
    forced: dict[tuple[str, str], str] = {}
    for one in plan.remediations:
        for move in one.moves:
            if move.to_version is None:
                del copies[move.where]
            else:
                assert (move.from_version is None) == (move.where not in copies)
                copies[move.where] = (move.package_name, move.to_version)
        for edit in one.edits:
            section, _, what = edit.at.partition(".")
            if section == "dependencies":
                declared[what] = edit.to_text
            else:
                what = what.removeprefix("overrides.")
                parent, _, package = what.replace("/", ">").rpartition(">") if "@" not in what else ("", "", what)
                forced[parent.replace("**>", ""), package] = edit.to_text
    there = set(copies.values())
    used = set()
    asked = [("", name, text) for name, text in declared.items()]
    asked += [(name, other, text) for name, version in there for other, text in project.packages[name][version].items()]
    for parent, name, stated in asked:
        text = forced.get((parent, name), stated)
        for (scope, selector), value in forced.items():
            package, _, condition = selector.partition("@")
            if not scope and condition and package == name and intersects(stated, condition):
                text = value
        serving = {(other, version) for other, version in there if other == name and admits(text, version)}
        assert serving, f"{parent} asks {name} {text}"
        used |= serving
    assert there <= used
    staying = {i.where for one in plan.outcomes for i in one.instances if i.reason is not None}
    for where, (name, version) in copies.items():
        for known in project.alerts:
            assert known.package_name != name or not contains(known, version) or where in staying


@LAWS
@given(linked("yarn.lock"))
def test_the_end_state_is_a_lock_that_yarn_could_have_made(project: Linked) -> None:
    plan = plan_files(project.yarn(), project.alerts, registry(project.packages))

    wheres = {}
    for name, version in project.copies:
        texts = sorted(text for (asked, text), v in project.chosen.items() if (asked, v) == (name, version))
        wheres[f"{name}@{texts[0]}"] = (name, version)
    check_linked(project, plan, wheres)


@LAWS
@given(linked("pnpm-lock.yaml"))
def test_the_end_state_is_a_lock_that_pnpm_could_have_made(project: Linked) -> None:
    plan = plan_files(project.pnpm(), project.alerts, registry(project.packages))

    check_linked(project, plan, {f"{name}@{version}": (name, version) for name, version in project.copies})
