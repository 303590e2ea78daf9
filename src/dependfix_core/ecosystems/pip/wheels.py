"""For which pythons does a release bring a wheel?"""

from collections.abc import Iterable

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from dependfix_core.model.records import ReleaseFile

_ARCHIVES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz")


def is_installable(filename: str) -> bool:
    """Whether a file is a wheel or a source archive; eggs and installers of old times are neither."""
    return filename.endswith(_ARCHIVES)


def pythons_with_wheel(files: Iterable[ReleaseFile], pythons: Iterable[Version]) -> frozenset[tuple[int, int]]:
    """(major, minor) of the given pythons that some wheel fits, whatever its platform; yanked files do not count."""
    tags: set[Tag] = set()
    for file in files:
        if file.yanked or not file.filename.endswith(".whl"):
            continue
        try:
            tags |= parse_wheel_filename(file.filename)[3]
        except (InvalidWheelFilename, InvalidVersion):
            continue
    minors = {(python.major, python.minor) for python in pythons}
    return frozenset(minor for minor in minors if any(_fits(tag, minor) for tag in tags))


def _fits(tag: Tag, python: tuple[int, int]) -> bool:
    interpreter, abi = tag.interpreter, tag.abi
    kind, numbers = interpreter.rstrip("0123456789"), interpreter.lstrip("abcdefghijklmnopqrstuvwxyz_")
    if not numbers.isdigit():
        return False
    major, minor = int(numbers[0]), int(numbers[1:]) if len(numbers) > 1 else None
    if major != python[0]:
        return False
    if kind == "py":
        return minor is None or minor <= python[1]
    if kind != "cp" or minor is None:
        return False
    return minor <= python[1] if abi in {"abi3", "none"} else minor == python[1]
