import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.sudocode.graph import Node, Snapshot, Waiting

Row = dict[str, Any]


def issue(name: str, *waits_for: str, kind: str = "depends-on", **more: Any) -> Row:
    """An issue with links from itself; `blocks` links name whom it blocks in the new direction."""
    links = [{"from": name, "from_type": "issue", "to": to, "to_type": "issue", "type": kind} for to in waits_for]
    return {"id": name, "title": name, "status": "open", "relationships": links, **more}


def waiting(*issues: Row, specs: tuple[Row, ...] = (), new: bool = True) -> Waiting:
    return Waiting(Snapshot(issues=issues, specs=specs), first_blocks_second=new)


@pytest.mark.parametrize(
    ("kind", "new", "expected"),
    [
        ("depends-on", True, {"a": ["b"]}),
        ("depends-on", False, {"a": ["b"]}),
        ("blocks", True, {"b": ["a"]}),
        ("blocks", False, {"a": ["b"]}),
        ("related", True, {}),
    ],
)
def test_who_waits_depends_on_the_kind_and_the_release(kind: str, new: bool, expected: dict[str, list[str]]) -> None:
    graph = waiting(issue("a", "b", kind=kind), issue("b"), new=new)

    assert {node[1]: [b[1] for b in blockers] for node, blockers in graph.blockers.items()} == expected


def test_closed_issues_and_archived_specs_hold_up_nobody() -> None:
    spec = {"id": "s", "archived": 1}
    link = {"from": "a", "from_type": "issue", "to": "s", "to_type": "spec", "type": "depends-on"}
    graph = waiting(
        issue("a", "b", "c", relationships=None) | {"relationships": [link]}, issue("b", status="closed"), specs=(spec,)
    )

    assert graph.open_blockers(("issue", "a")) == []


def test_an_issue_and_a_spec_with_one_id_are_two() -> None:
    link = {"from": "x-1", "from_type": "issue", "to": "x-1", "to_type": "spec", "type": "depends-on"}
    graph = waiting({"id": "x-1", "status": "open", "relationships": [link]}, specs=({"id": "x-1"},))

    assert graph.open_blockers(("issue", "x-1")) == [("spec", "x-1")]
    assert graph.cycles() == []


def test_cycles_and_the_critical_path_of_what_is_left() -> None:
    graph = waiting(
        issue("a", "b"),
        issue("b", "a"),
        issue("self", "self"),
        issue("3", "2", "a"),
        issue("2", "1"),
        issue("1"),
        issue("0"),
    )

    assert [[node[1] for node in group] for group in graph.cycles()] == [["a", "b"], ["self"]]
    assert [node[1] for node in graph.critical_path()] == ["1", "2", "3"]
    assert [node[1] for node in graph.path(("issue", "3"), ("issue", "1"))] == ["3", "2", "1"]
    assert graph.path(("issue", "1"), ("issue", "3")) == []


NAMES = "abcdefgh"
EDGES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)


def reachable(edges: list[tuple[str, str]], start: str) -> set[str]:
    """Plain transitive closure, as the judge."""
    found: set[str] = set()
    queue = [to for source, to in edges if source == start]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += [to for source, to in edges if source == node]
    return found


@given(edges=EDGES)
def test_cycles_are_exactly_the_nodes_that_reach_themselves(edges: list[tuple[str, str]]) -> None:
    graph = waiting(*(issue(name, *dict.fromkeys(to for source, to in edges if source == name)) for name in NAMES))

    in_cycles = [node[1] for group in graph.cycles() for node in group]

    assert sorted(in_cycles) == [name for name in NAMES if name in reachable(edges, name)]


@given(edges=EDGES)
def test_the_critical_path_is_a_longest_chain(edges: list[tuple[str, str]]) -> None:
    graph = waiting(*(issue(name, *dict.fromkeys(to for source, to in edges if source == name)) for name in NAMES))
    free = [name for name in NAMES if name not in reachable(edges, name)]

    def longest(name: str) -> int:
        nexts = [to for source, to in set(edges) if source == name and to in free]
        return 1 + max(map(longest, nexts), default=0)

    path = [node[1] for node in graph.critical_path()]

    best = max(map(longest, free), default=0)
    assert len(path) == (best if best > 1 else 0)
    assert all((later, earlier) in edges for earlier, later in itertools.pairwise(path))


@given(edges=EDGES, start=st.sampled_from(NAMES), goal=st.sampled_from(NAMES))
def test_a_path_is_there_exactly_when_one_reaches_the_other(
    edges: list[tuple[str, str]], start: str, goal: str
) -> None:
    graph = waiting(*(issue(name, *dict.fromkeys(to for source, to in edges if source == name)) for name in NAMES))
    nodes: tuple[Node, Node] = (("issue", start), ("issue", goal))

    path = [node[1] for node in graph.path(*nodes)]

    assert bool(path) == (goal == start or goal in reachable(edges, start))
    assert all(pair in edges for pair in itertools.pairwise(path))
