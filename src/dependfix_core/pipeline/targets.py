"""Where may a locked copy go? Safety, release lines, and the versions worth trying, least first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from dependfix_core.ecosystems.base import Graph, NoCandidate
from dependfix_core.model.alert import Alert
from dependfix_core.model.lock import Instance, ReleaseAgeGate
from dependfix_core.model.plan import RefusalReason
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import PackageRecord, Record, Release, Unavailable
from dependfix_core.model.steps import Step, records_for
from dependfix_core.pipeline.gates import Gates
from dependfix_core.pipeline.group import package_key
from dependfix_core.versions import Answer, Unparsable, Version, VersionScheme, VulnerableRange, is_unsafe, scheme_for

_ZERO_LINE: Final = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One range of one advisory, with what its editors call the first patched version."""

    advisory: str
    vulnerable: VulnerableRange | Unparsable
    patched_text: str | None
    patched: Version | None
    """None when there is none or it is no version."""


class Advisories:
    """Everything that the open alerts of a repository say of vulnerable versions, by package.

    Alerts that are not open, or withdrawn, say nothing here; those below the
    threshold do, since a target has to be safe for every open alert.
    """

    def __init__(self, alerts: Iterable[Alert]) -> None:
        gathered: dict[tuple[str, str], dict[tuple[str, str, str | None], None]] = {}
        for alert in alerts:
            if alert.state != "open" or alert.withdrawn_at is not None or not alert.is_readable:
                continue
            known = gathered.setdefault(_key(alert.ecosystem, alert.package_name), {})
            for affected in alert.affected_ranges:
                if affected.vulnerable_range:
                    known[alert.ghsa_id, affected.vulnerable_range, affected.first_patched_version] = None
        self._texts = gathered
        self._entries: dict[tuple[str, str], tuple[Entry, ...]] = {}
        self._unsafe: dict[tuple[str, str, str], Answer] = {}

    def entries(self, ecosystem: str, package: str) -> tuple[Entry, ...]:
        """All ranges of the package, each once, in an order that does not depend on that of the alerts."""
        key = _key(ecosystem, package)
        found = self._entries.get(key)
        if found is None:
            texts = sorted(self._texts.get(key, ()), key=lambda text: (text[0], text[1], text[2] or ""))
            found = self._entries[key] = tuple(_entry(ecosystem, *text) for text in texts)
        return found

    def unsafe(self, ecosystem: str, package: str, version: str) -> Answer:
        """Whether the version is in any range or gap; a text that is no version is unknown."""
        key = (ecosystem, package, version)
        found = self._unsafe.get(key)
        if found is None:
            found = self._unsafe[key] = self._judge(ecosystem, package, version)
        return found

    def faults(self, ecosystem: str, package: str, version: str) -> frozenset[str] | None:
        """The advisories in whose ranges or gaps the version is or may be; None for a text that is no version."""
        scheme = scheme_for(ecosystem)
        parsed = scheme.try_parse(version) if scheme is not None else None
        if not isinstance(parsed, Version):
            return None
        entries = self.entries(ecosystem, package)
        return frozenset(
            one.advisory for one in entries if not is_unsafe(parsed, [(one.vulnerable, one.patched)]).is_no
        )

    def is_no_worse(self, ecosystem: str, package: str, version: str, than: str) -> bool:
        """Whether `version` is in no advisory that `than` is not in as well."""
        mine, others = (self.faults(ecosystem, package, text) for text in (version, than))
        return mine is not None and others is not None and mine <= others

    def _judge(self, ecosystem: str, package: str, version: str) -> Answer:
        entries = self.entries(ecosystem, package)
        if not entries:
            return Answer.NO
        scheme = scheme_for(ecosystem)
        parsed = scheme.try_parse(version) if scheme is not None else None
        if not isinstance(parsed, Version):
            return Answer.UNKNOWN
        return is_unsafe(parsed, [(entry.vulnerable, entry.patched) for entry in entries])


def _key(ecosystem: str, package: str) -> tuple[str, str]:
    return (ecosystem.lower(), package_key(ecosystem, package))


def _entry(ecosystem: str, advisory: str, text: str, patched_text: str | None) -> Entry:
    scheme = scheme_for(ecosystem)
    patched = scheme.try_parse(patched_text) if scheme is not None and patched_text else None
    return Entry(
        advisory=advisory,
        vulnerable=VulnerableRange.parse(ecosystem, text),
        patched_text=patched_text or None,
        patched=patched if isinstance(patched, Version) else None,
    )


def same_line(scheme: VersionScheme, policy: ScanPolicy, left: Version, right: Version) -> bool:
    """Whether a move between the two is no breaking one; of 0.x the policy says."""
    if scheme.same_line(left, right):
        return True
    if policy.zero_major_minor_is_breaking:
        return False
    mine, other = scheme.line(left), scheme.line(right)
    return mine[:1] == other[:1] == (_ZERO_LINE,) and mine[3:] == other[3:]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A version that a copy may go to."""

    text: str
    version: Version
    same_line: bool
    listed: bool
    """Whether the registry's record has it; else only an advisory names it."""
    release: Release | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """The versions worth trying, ascending; with none at all, `reason` says why."""

    same_line: tuple[Candidate, ...] = ()
    other_lines: tuple[Candidate, ...] = ()
    reason: RefusalReason | None = None
    detail: str = ""
    next_safe: str | None = None
    """The least version outside all ranges, taken or not (young, a pre-release, not confirmed by the advisory)."""

    @property
    def all(self) -> tuple[Candidate, ...]:
        """Own line first."""
        return (*self.same_line, *self.other_lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionFacts:
    """What the registry says of one version that is taken."""

    is_listed: bool
    is_undated: bool = False
    """A release-age gate holds for it, but the registry gives no time."""
    deprecated: str = ""
    held_by: tuple[ReleaseAgeGate, ...] = ()
    """The project's gates that need an exclusion for it."""


@dataclass(slots=True)
class _Listing:
    """The parsed releases of one package, ascending."""

    releases: list[tuple[Version, Release]]
    tags: Mapping[str, str]
    unavailable: Unavailable | None = None
    by_key: dict[object, Release] = field(default_factory=dict)


class Chooser:
    """Picks versions for one unit: safe, published, not withdrawn, old enough, least first.

    Implements `Candidates` for the unit's graph.
    """

    def __init__(
        self, *, advisories: Advisories, graph: Graph, policy: ScanPolicy, gates: Gates, now: datetime
    ) -> None:
        scheme = scheme_for(graph.unit.ecosystem)
        assert scheme is not None, "units exist for ecosystems with an order of versions only"
        self._scheme = scheme
        self._advisories = advisories
        self._graph = graph
        self._policy = policy
        self._gates = gates
        self._now = now
        self._listings: dict[str, _Listing] = {}
        self._targets: dict[tuple[str, str], Targets] = {}

    @property
    def policy(self) -> ScanPolicy:
        """What the caller allows."""
        return self._policy

    @property
    def scheme(self) -> VersionScheme:
        """The order of the unit's versions."""
        return self._scheme

    def is_safe(self, package: str, version: str) -> bool:
        """Certainly outside every range and gap of the open alerts."""
        return self._advisories.unsafe(self._graph.unit.ecosystem, package, version).is_no

    def is_no_worse(self, package: str, version: str, than: str) -> bool:
        """See `Candidates.is_no_worse`."""
        return self._advisories.is_no_worse(self._graph.unit.ecosystem, package, version, than)

    def crosses_line(self, left: str, right: str) -> bool:
        """Whether a move from `left` to `right` is a breaking one; not known counts as such."""
        mine, other = self._scheme.try_parse(left), self._scheme.try_parse(right)
        if isinstance(mine, Unparsable) or isinstance(other, Unparsable):
            return True
        return not same_line(self._scheme, self._policy, mine, other)

    def targets(self, package: str, current: str) -> Step[Targets]:
        """The safe versions above `current`, and what to say when there are none."""
        known = self._targets.get((package, current))
        if known is None:
            listing = yield from self._listing(package)
            known = self._targets[package, current] = self._choose(package, current, listing)
        return known

    def release_of(self, instance: Instance) -> Step[Release | None]:
        """What the registry lists of the locked version."""
        listing = yield from self._listing(instance.name)
        version = self._scheme.try_parse(instance.version)
        return listing.by_key.get(version.key) if isinstance(version, Version) else None

    def facts(self, package: str, version: str) -> Step[VersionFacts]:
        """What a person should know of a version that the plan takes."""
        listing = yield from self._listing(package)
        parsed = self._scheme.try_parse(version)
        release = listing.by_key.get(parsed.key) if isinstance(parsed, Version) else None
        if release is None:
            return VersionFacts(is_listed=False)
        return VersionFacts(
            is_listed=True,
            is_undated=self._gates.is_undated(package, release),
            deprecated=release.deprecated,
            held_by=self._gates.held(package, release, self._now),
        )

    def vulnerable_releases(self, package: str) -> Step[tuple[str, ...]]:
        """All listed versions that are not safe."""
        listing = yield from self._listing(package)
        return tuple(v.text for v, _ in listing.releases if not self.is_safe(package, v.text))

    def least(
        self, package: str, current: str, admits: Callable[[str], bool], named: Sequence[str] = ()
    ) -> Step[str | NoCandidate]:
        """See `Candidates.least`."""
        targets = yield from self.targets(package, current)
        for candidate in targets.all:
            if admits(candidate.text):
                return candidate.text
        for text in (yield from self.as_before(package, current)):
            if admits(text):
                return text
        return (yield from self._unlisted(package, admits, named))

    def as_before(self, package: str, current: str) -> Step[tuple[str, ...]]:
        """Versions above a vulnerable one that have no fault which that one has not, its own line first, ascending.

        Young and withdrawn ones are left out; of a safe version there are none.
        """
        version = self._scheme.try_parse(current)
        if isinstance(version, Unparsable) or self.is_safe(package, current):
            return ()
        listing = yield from self._listing(package)
        return tuple(
            one.text
            for one in sorted(self._pool(version, (), listing), key=lambda one: not one.same_line)
            if one.release is not None
            and not one.release.yanked
            and self._is_stable_for(version, one.version)
            and self._opening(package, one, current) is None
            and self.is_no_worse(package, one.text, current)
        )

    def newest(
        self, package: str, admits: Callable[[str], bool], named: Sequence[str] = (), replaces: str = ""
    ) -> Step[str | NoCandidate]:
        """See `Candidates.newest`."""
        listing = yield from self._listing(package)
        published = [pair for pair in listing.releases if not pair[1].yanked]
        fitting = [pair for pair in published if self.is_safe(package, pair[0].text) and admits(pair[0].text)]
        if not fitting and replaces:
            fitting = [
                pair for pair in published if self.is_no_worse(package, pair[0].text, replaces) and admits(pair[0].text)
            ]
        stable = [pair for pair in fitting if not self._scheme.is_prerelease(pair[0])] or fitting
        kept = [pair for pair in stable if not pair[1].deprecated] or stable
        old = [pair for pair in kept if self._gates.opens_at(package, pair[1], self._now) is None]
        if not old:
            if kept:
                return NoCandidate(reason="cooldown", detail=f"every version of {package} that fits is too young")
            return (yield from self._unlisted(package, admits, named))
        latest = listing.tags.get("latest")
        for version, _ in old:
            # What package managers take where the range allows it, even below newer versions.
            if version.text == latest:
                return version.text
        return old[-1][0].text

    def _unlisted(self, package: str, admits: Callable[[str], bool], named: Sequence[str]) -> Step[str | NoCandidate]:
        """A version that the requirement itself names, where the registry could not be asked."""
        listing = yield from self._listing(package)
        if listing.unavailable is None:
            return NoCandidate(reason="constraint-conflict", detail=f"no safe version of {package} fits")
        for text in named:
            if admits(text) and self.is_safe(package, text):
                return text
        if named:
            return NoCandidate(reason="constraint-conflict", detail=f"{package} {named[0]} is not safe")
        return NoCandidate(reason="metadata-unavailable", detail=unavailable_text(listing.unavailable))

    def _listing(self, package: str) -> Step[_Listing]:
        known = self._listings.get(package)
        if known is None:
            key = self._graph.record_key(package)
            records = yield from records_for([key])
            known = self._listings[package] = self._parse(records[key])
        return known

    def _parse(self, record: Record) -> _Listing:
        if not isinstance(record, PackageRecord):
            unavailable = record if isinstance(record, Unavailable) else None
            return _Listing(releases=[], tags={}, unavailable=unavailable)
        parsed: dict[object, tuple[Version, str]] = {}
        for text in record.releases:
            version = self._scheme.try_parse(text)
            if isinstance(version, Version):
                known = parsed.get(version.key)
                if known is None or text < known[1]:
                    parsed[version.key] = (version, text)
        ordered = [parsed[version.key] for version in self._scheme.sort(pair[0] for pair in parsed.values())]
        releases = [(version, record.releases[text]) for version, text in ordered]
        return _Listing(
            releases=releases, tags=record.tags, by_key={version.key: release for version, release in releases}
        )

    def _choose(self, package: str, current_text: str, listing: _Listing) -> Targets:
        current = self._scheme.try_parse(current_text)
        if isinstance(current, Unparsable):
            return Targets(reason="unparsable-version", detail=f"{package} {current_text!r} is no version")
        entries = self._advisories.entries(self._graph.unit.ecosystem, package)
        covering = [entry for entry in entries if _covers(entry, current)]
        floor, unpatched = _patched_floor(self._scheme, current, covering, entries)
        pool = self._pool(current, entries, listing)
        safe = [one for one in pool if self.is_safe(package, one.text)]
        usable = [one for one in safe if one.release is None or not one.release.yanked]
        stable = [one for one in usable if self._is_stable_for(current, one.version)]
        sound = _without_deprecated(stable, listing.by_key.get(current.key))
        confirmed = [] if unpatched else [one for one in sound if floor is None or self._at_least(one.version, floor)]
        young = {one.text for one in confirmed if self._opening(package, one, current_text) is not None}
        ready = [one for one in confirmed if one.text not in young]
        mine = [one for one in confirmed if one.same_line]
        if mine and not any(one.same_line for one in ready):
            # The own line is only young: waiting is better than another line.
            ready = []
        hint = next(iter([one for one in sound if one.same_line] or sound or stable or usable), None)
        if ready:
            return Targets(
                same_line=tuple(one for one in ready if one.same_line),
                other_lines=tuple(one for one in ready if not one.same_line),
                next_safe=next((one for one in ready if one.same_line), ready[0]).text,
            )
        reason, detail = self._why_none(
            package, current_text, covering, pool, usable, confirmed, listing, unpatched=unpatched
        )
        return Targets(reason=reason, detail=detail, next_safe=hint.text if hint is not None else None)

    def _pool(self, current: Version, entries: Sequence[Entry], listing: _Listing) -> list[Candidate]:
        """Listed versions and those that advisories name, above `current`, ascending."""
        found: dict[object, Release | None] = {version.key: release for version, release in listing.releases}
        versions = [version for version, _ in listing.releases]
        for entry in entries:
            if entry.patched is not None and entry.patched.key not in found:
                found[entry.patched.key] = None
                versions.append(entry.patched)
        out = []
        for version in self._scheme.sort(versions):
            if self._scheme.compare(version, current) != 1:
                continue
            release = found[version.key]
            out.append(
                Candidate(
                    text=release.version if release is not None else version.text,
                    version=version,
                    same_line=same_line(self._scheme, self._policy, current, version),
                    listed=release is not None,
                    release=release,
                )
            )
        return out

    def _is_stable_for(self, current: Version, version: Version) -> bool:
        if not self._scheme.is_prerelease(version):
            return True
        return self._scheme.is_prerelease(current) and self._scheme.same_release(current, version)

    def _at_least(self, version: Version, floor: Version) -> bool:
        return self._scheme.compare(version, floor) in (0, 1)

    def _opening(self, package: str, candidate: Candidate, current: str) -> str | None:
        if candidate.release is None:
            return None
        return self._gates.opens_at(package, candidate.release, self._now, current)

    def _why_none(
        self,
        package: str,
        current: str,
        covering: Sequence[Entry],
        pool: Sequence[Candidate],
        usable: Sequence[Candidate],
        confirmed: Sequence[Candidate],
        listing: _Listing,
        *,
        unpatched: bool,
    ) -> tuple[RefusalReason, str]:
        if any(isinstance(entry.vulnerable, Unparsable) for entry in covering):
            return "unparsable-version", f"a range of {package} cannot be read"
        if confirmed:
            young = [one for one in confirmed if one.same_line] or list(confirmed)
            opening = self._opening(package, young[0], current)
            return "cooldown", f"{package} {young[0].text} is too young: {opening}"
        if unpatched:
            return "no-patch", f"the advisory names no patched version of {package}"
        if usable:
            own = [one for one in usable if one.same_line]
            if listing.unavailable is not None and own:
                return "metadata-unavailable", unavailable_text(listing.unavailable)
            return "no-stable-patch", f"only the pre-release {usable[0].text} of {package} is safe"
        if listing.unavailable is not None and (not covering or any(entry.patched_text for entry in covering)):
            return "metadata-unavailable", unavailable_text(listing.unavailable)
        withdrawn = [one.text for one in pool if self.is_safe(package, one.text)]
        if withdrawn:
            return "no-patch", f"{package} {withdrawn[0]} was withdrawn by its authors"
        return "no-patch", f"no version of {package} is outside all ranges"


def unavailable_text(record: Unavailable) -> str:
    """One line on a record that could not be had."""
    said = f": {record.detail}" if record.detail else ""
    return f"no record of {record.key.name} ({record.why.value}){said}"


def _covers(entry: Entry, version: Version) -> bool:
    return isinstance(entry.vulnerable, Unparsable) or entry.vulnerable.contains(version).may_be


def _patched_floor(
    scheme: VersionScheme, current: Version, covering: Sequence[Entry], entries: Sequence[Entry]
) -> tuple[Version | None, bool]:
    """The least version that advisories without a patch of their own line let one hope for, and whether there is none.

    A range without a patched version that ends somewhere is no cure by being
    left: only another range of the same advisory that has one, further up, is.
    """
    floor: Version | None = None
    for entry in covering:
        if entry.patched_text is not None:
            continue
        above = [
            other.patched
            for other in entries
            if other.advisory == entry.advisory
            and other.patched is not None
            and scheme.compare(other.patched, current) == 1
        ]
        if not above:
            return None, True
        least = scheme.sort(above)[0]
        if floor is None or scheme.compare(least, floor) == 1:
            floor = least
    return floor, False


def _without_deprecated(candidates: Sequence[Candidate], current: Release | None) -> list[Candidate]:
    """Leaves out releases with a deprecation of their own, where their line has others.

    A message that the current release bears as well is about the whole line
    and says nothing against one of its versions.
    """
    accepted = current.deprecated if current is not None else ""

    def is_sound(one: Candidate) -> bool:
        return one.release is None or not one.release.deprecated or one.release.deprecated == accepted

    sound_lines = {one.same_line for one in candidates if is_sound(one)}
    return [one for one in candidates if is_sound(one) or one.same_line not in sound_lines]
