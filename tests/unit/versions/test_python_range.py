"""Sets of Python versions, and markers on them."""

import pytest

from dependfix_core.versions import Answer, judge_marker, marker_always_true, marker_possibly_true, python_covers


@pytest.mark.parametrize(
    ("project", "release", "answer", "without_upper_bound"),
    [
        (">=3.8", ">=3.8", Answer.YES, Answer.YES),
        (">=3.8", ">=3.7", Answer.YES, Answer.YES),
        (">=3.7.2", ">=3.8", Answer.NO, Answer.NO),
        (">=3.6", ">=3.6.2", Answer.NO, Answer.NO),
        (">=3.8", ">=3.8,<4", Answer.NO, Answer.YES),
        (">=3.8,<4", ">=3.8,<4.0", Answer.YES, Answer.YES),
        ("~=3.9", ">=3.9,<4", Answer.YES, Answer.YES),
        ("==3.11.*", ">=3.11", Answer.YES, Answer.YES),
        ("<3.13", "<=3.12", Answer.NO, Answer.YES),
        ("<=3.12", "<3.13", Answer.YES, Answer.YES),
        (">3.7", ">=3.8", Answer.NO, Answer.NO),
        (">=3.8", ">=3.8,!=3.9.0", Answer.NO, Answer.NO),
        (">=2.7,!=3.0.*,!=3.1.*,!=3.2.*", ">=2.7, !=3.0.*, !=3.1.*", Answer.YES, Answer.YES),
        (">=2.7,!=3.0.*,!=3.1.*", ">=2.7, !=3.0.*, !=3.1.*, !=3.2.*", Answer.NO, Answer.NO),
        (">=3.4", ">=2.7,!=3.0.*,!=3.1.*,!=3.2.*,<4", Answer.NO, Answer.YES),
        (">=3.9,<3.12", ">=3.8,!=3.12.*", Answer.YES, Answer.YES),
        (None, ">=3", Answer.NO, Answer.NO),
        (">=3", None, Answer.YES, Answer.YES),
        (None, "", Answer.YES, Answer.YES),
        (">=3.8", "3.8", Answer.UNKNOWN, Answer.UNKNOWN),
        ("junk", ">=3.8", Answer.UNKNOWN, Answer.UNKNOWN),
        (">=3.8,<3.8", ">=3.9", Answer.YES, Answer.YES),
    ],
)
def test_release_covers_the_project(
    project: str | None, release: str | None, answer: Answer, without_upper_bound: Answer
) -> None:
    assert python_covers(project, release) is answer
    assert python_covers(project, release, upper_bounds=False) is without_upper_bound


@pytest.mark.parametrize(
    ("marker", "requires_python", "answer"),
    [
        (None, ">=3.8", Answer.YES),
        ("", ">=3.8", Answer.YES),
        ('python_version < "3.8"', ">=3.8", Answer.NO),
        ('python_version < "3.8"', ">=3.7", Answer.UNKNOWN),
        ('python_version >= "3.8"', ">=3.8", Answer.YES),
        ('python_version ~= "3.9"', ">=3.9,<4", Answer.YES),
        ('python_version in "2.7 3.5"', ">=3.6", Answer.NO),
        ('"3.10" <= python_version', ">=3.10", Answer.YES),
        ('python_full_version < "3.11.3"', ">=3.11.3", Answer.NO),
        ('python_full_version < "3.11.3"', ">=3.11", Answer.UNKNOWN),
        ('python_full_version >= "3.11.3"', ">=3.11.3,<3.12", Answer.YES),
        ('sys_platform == "win32"', ">=3.8", Answer.UNKNOWN),
        ('os.name == "nt"', None, Answer.UNKNOWN),
        ("'linux' in sys_platform", ">=3.8", Answer.UNKNOWN),
        ('platform_python_implementation != "PyPy"', ">=3.8", Answer.UNKNOWN),
        ('sys_platform == "win32" or sys_platform != "win32"', ">=3.8", Answer.YES),
        ('python_version < "3" and sys_platform == "win32"', ">=3.8", Answer.NO),
        ('python_version < "3" or sys_platform == "win32"', ">=3.8", Answer.UNKNOWN),
        ('extra == "socks"', ">=3.8", Answer.NO),
        ("this is no marker", ">=3.8", Answer.UNKNOWN),
        ('python_version < "3.8"', "junk", Answer.UNKNOWN),
        ('python_version < "3.8"', ">=3.8,<3.8", Answer.UNKNOWN),
    ],
)
def test_marker_on_a_range(marker: str | None, requires_python: str | None, answer: Answer) -> None:
    assert judge_marker(marker, requires_python=requires_python) is answer
    assert marker_always_true(marker, requires_python=requires_python) is answer.is_yes
    assert marker_possibly_true(marker, requires_python=requires_python) is answer.may_be


def test_marker_with_extras_that_are_asked_for() -> None:
    marker = 'extra == "socks" and python_version >= "3"'

    assert marker_always_true(marker, requires_python=">=3.8", extras=["Socks", "other"])
    assert not marker_possibly_true(marker, requires_python=">=3.8", extras=["other"])


def test_marker_with_too_many_platforms_is_unknown() -> None:
    names = ["os_name", "sys_platform", "platform_machine", "platform_system", "implementation_name"]
    marker = " or ".join(f'{name} == "{value}"' for name in names for value in "abcdefgh")

    assert judge_marker(marker, requires_python=">=3.8") is Answer.UNKNOWN
