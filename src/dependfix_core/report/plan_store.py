"""Plans that were shown, kept beside the reports, so that exactly they can be applied later."""

import contextlib
import re
from pathlib import Path
from typing import Final

from dependfix_core.errors import NotFoundError, PlanError
from dependfix_core.model.plan import Plan
from dependfix_core.pipeline.plan_json import dump_plan, load_plan
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.store import ReportNotWrittenError, prepare_folder, write_new

FOLDER: Final = "plans"
KEPT: Final = 50
"""Older plans than these go when a new one comes."""
_PLAN_ID: Final = re.compile(r"[0-9a-f]{8,64}")
_MAX_PLAN_BYTES: Final = 256 * 1024 * 1024


class PlanStore:
    """The newest plans, one file each, which appears whole; safe for several processes."""

    def __init__(self, folders: ReportFolders) -> None:
        self._folders = folders

    def save(self, plan: Plan) -> Path:
        """Keeps `plan`; the one that is there already under its identity is the same.

        Raises:
            ReportNotWrittenError: No report folder takes it.
        """
        content = dump_plan(plan)
        reasons = []
        for folder in self._folders.candidates:
            place = folder / FOLDER
            path = place / f"{plan.plan_id}.json"
            try:
                prepare_folder(folder)
                place.mkdir(exist_ok=True)
                try:
                    write_new(path, content)
                except FileExistsError:
                    path.touch()
            except OSError as error:
                reasons.append(f"{place}: {error.strerror or type(error).__name__}")
                continue
            _forget(place)
            return path
        raise ReportNotWrittenError(
            "the plan could not be kept: " + ("; ".join(reasons) or "there is no folder for it"),
            hint="Name a folder that can be written with --report-dir.",
        )

    def load(self, plan_id: str) -> Plan:
        """The plan of this identity.

        Raises:
            NotFoundError: It was never kept, or others came after it.
            PlanError: Its file is no plan, or another one.
        """
        if _PLAN_ID.fullmatch(plan_id) is not None:
            for folder in self._folders.candidates:
                path = folder / FOLDER / f"{plan_id}.json"
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    if path.stat().st_size > _MAX_PLAN_BYTES:
                        raise PlanError("the stored plan is too large to be one")
                    plan = load_plan(path.read_bytes())
                    if plan.plan_id != plan_id:
                        raise PlanError("the stored plan is not the one that its name says")
                    return plan
        raise NotFoundError(
            f"there is no plan {plan_id[:64]!r}", hint=f"The newest {KEPT} plans are kept; plan again with plan_fixes."
        )

    def ids(self) -> tuple[str, ...]:
        """Identities of the plans that are kept, newest first."""
        found = {path.stem: path for folder in self._folders.candidates for path in _files(folder / FOLDER)}
        return tuple(sorted(found, key=lambda name: (-_age(found[name]), name)))


def _files(place: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in place.iterdir() if path.suffix == ".json" and _PLAN_ID.fullmatch(path.stem)]
    return []


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _forget(place: Path) -> None:
    for path in sorted(_files(place), key=_age, reverse=True)[KEPT:]:
        with contextlib.suppress(OSError):
            path.unlink()
