"""Stands in for the sudocode program: the behaviour of its releases, without Node and SQLite.

The tests of the recordings hold it to what the real program printed. It can be
called in this process (`FakeSudocode.run`) or started as a program of its own
through the launcher that `install` writes. The database is a JSON file under
the name that the release uses.
"""

import hashlib
import json
import os
import re
import stat
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]

HEAD, OCT_22, OCT_20 = "head", "2025-10-22", "2025-10-20"
VERSIONS = {HEAD: "0.2.0", OCT_22: "0.1.0", OCT_20: "0.1.0"}
MAGIC = "fake sudocode database"
STATUSES = ["open", "in_progress", "blocked", "needs_review", "closed"]
LINK_TYPES = ["blocks", "related", "discovered-from", "implements", "references", "depends-on"]
FEEDBACK_TYPES = ["comment", "suggestion", "request"]
OLD_FEEDBACK_TYPES = ["ambiguity", "missing_requirement", "technical_constraint", "suggestion", "question"]
UNFINISHED = ("open", "in_progress", "blocked")
PAGES = json.loads((Path(__file__).parents[1] / "data/sudocode/help_pages.json").read_text(encoding="utf-8"))


class Stop(Exception):  # noqa: N818  # an exit, not an error of ours
    """The program ends with this code and these last words."""

    def __init__(self, stderr: str, code: int = 1) -> None:
        super().__init__(stderr)
        self.stderr = stderr
        self.code = code


@dataclass(kw_only=True)
class Options:
    """One command's options: long name → whether it takes a value; short letters."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    positionals: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    many: bool = False


def _command(values: str = "", *positionals: str, flags: str = "", optional: str = "", many: bool = False) -> Options:
    return Options(
        values=frozenset(values.split()),
        flags=frozenset(flags.split()),
        positionals=positionals,
        optional=tuple(optional.split()),
        many=many,
    )


def commands(generation: str) -> dict[str, Options]:
    """What a release takes."""
    old = generation != HEAD
    oct_20 = generation == OCT_20
    typed = "type " if oct_20 else ""
    table = {
        "init": _command(),
        "issue create": _command(
            f"{typed}priority description assignee parent tags {'estimate' if oct_20 else ''}", "title"
        ),
        "issue list": _command(
            f"{typed}status assignee priority limit {'' if oct_20 else 'grep'} {'' if old else 'archived'}"
        ),
        "issue show": _command("", "id"),
        "issue update": _command(
            f"{typed}status priority assignee title description {'' if old else 'parent archived'}", "id"
        ),
        "issue close": _command("reason", "id", many=True),
        "spec create": _command(
            f"{typed}priority description file-path parent tags {'design' if old else ''}", "title"
        ),
        "spec list": _command(f"{typed}priority limit {'status' if oct_20 else 'grep'} {'' if old else 'archived'}"),
        "spec show": _command("", "id"),
        "link": _command("type", "from", "to"),
        "ready": _command(flags="specs issues" if oct_20 else ""),
        "blocked": _command(flags="specs issues" if oct_20 else ""),
        "status": _command(flags="verbose"),
        "stats": _command(),
        "feedback list": _command(f"issue {'spec' if old else 'target'} type status limit"),
        "feedback show": _command("", "id"),
        "feedback stale": _command(),
        "feedback relocate": _command("line", "id"),
        "sync": _command(flags="from-markdown to-markdown"),
        "export": _command("output"),
        "import": _command("input"),
    }
    if old:
        table["feedback add"] = _command("line text type content agent", "issue-id", "spec-id")
        table["feedback acknowledge"] = _command("", "id")
        table["feedback resolve"] = _command("comment", "id")
        table["feedback wont-fix"] = _command("reason", "id")
    else:
        table["feedback add"] = _command("line text type content agent", "target-id", optional="issue-id")
        table["feedback dismiss"] = _command("comment", "id")
        table["spec update"] = _command("priority title description parent tags archived", "id")
    return table


@dataclass(kw_only=True)
class FakeSudocode:
    """One release of the program."""

    generation: str = HEAD
    user: str = "tester"
    new_ids: Iterator[str] | None = None
    """Ids to give out before own ones, as a recording has them."""
    now: Callable[[], datetime] = field(default=lambda: datetime.now(tz=UTC))
    log: list[list[str]] = field(default_factory=list)
    out: list[str] = field(default_factory=list)

    def run(self, arguments: Sequence[str], cwd: Path) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one start."""
        self.log.append(list(arguments))
        self.out = []
        try:
            words, options, positionals, json_wanted, database = self._parse(list(arguments))
            if words is None:
                return 0, "".join(self.out), ""
            self.json = json_wanted
            self._do(words, options, positionals, cwd, database)
        except Stop as stop:
            return stop.code, "".join(self.out), stop.stderr + ("\n" if stop.stderr else "")
        return 0, "".join(self.out), ""

    # What the program's parser does with arguments in the form that cannot be misread.

    def _parse(self, arguments: list[str]) -> tuple[str | None, dict[str, str], list[str], bool, Path | None]:
        if arguments in (["--version"], ["-V"], ["--json", "--version"]):
            self.out.append(VERSIONS[self.generation] + "\n")
            return None, {}, [], False, None
        if arguments[-1:] == ["--help"] and "--" not in arguments[:-1]:
            self.out.append(self._page(arguments[:-1]))
            return None, {}, [], False, None
        table = commands(self.generation)
        json_wanted, database = False, None
        words: list[str] = []
        rest = list(arguments)
        names = {name.split()[0] for name in table}
        while rest:
            head = rest[0]
            if head == "--json":
                json_wanted = True
            elif head.startswith("--db="):
                database = Path(head.removeprefix("--db="))
            elif not head.startswith("-") and len(words) < 2:
                words.append(head)
                if " ".join(words) in table:
                    rest.pop(0)
                    break
                if len(words) == 1 and head not in names:
                    raise Stop(f"error: unknown command '{head}'")
            else:
                break
            rest.pop(0)
        name = " ".join(words)
        if not words:
            raise Stop("Usage: sudocode [options] [command]")
        if name not in table:
            if len(words) == 2:
                raise Stop(f"error: unknown command '{words[1]}'")
            raise Stop(self._page(words).rstrip("\n"))
        options, positionals = self._options(table[name], rest)
        json_wanted = json_wanted or "--json" in options
        if "--db" in options:
            database = Path(options["--db"])
        wanted = table[name]
        if len(positionals) < len(wanted.positionals):
            raise Stop(f"error: missing required argument '{wanted.positionals[len(positionals)]}'")
        most = len(wanted.positionals) + len(wanted.optional)
        if len(positionals) > most and not wanted.many:
            plural = "" if most == 1 else "s"
            raise Stop(
                f"error: too many arguments for '{words[-1]}'. Expected {most} argument{plural} but got {len(positionals)}."
            )
        return name, options, positionals, json_wanted, database

    def _options(self, wanted: Options, rest: list[str]) -> tuple[dict[str, str], list[str]]:
        options: dict[str, str] = {}
        positionals: list[str] = []
        while rest:
            argument = rest.pop(0)
            if argument == "--":
                positionals += rest
                break
            if argument == "--json":
                options["--json"] = ""
            elif argument.startswith("--db="):
                options["--db"] = argument.removeprefix("--db=")
            elif argument.startswith("-") and argument != "-":
                name, equals, value = argument.removeprefix("--").partition("=")
                if argument.startswith("--") and name in wanted.values and equals:
                    options[name] = value
                elif argument.startswith("--") and name in wanted.values and rest:
                    options[name] = rest.pop(0)
                elif argument.startswith("--") and name in wanted.flags and not equals:
                    options[name] = "true"
                else:
                    raise Stop(f"error: unknown option '{argument}'")
            else:
                positionals.append(argument)
        return options, positionals

    def _page(self, words: list[str]) -> str:
        pages = PAGES[self.generation]
        return str(pages.get(" ".join(words), pages.get(" ".join(words[:1]), pages[""])))

    # The database, and the files beside it.

    def _do(self, name: str, options: dict[str, str], positionals: list[str], cwd: Path, database: Path | None) -> None:
        self.cwd = cwd
        self.folder = cwd / ".sudocode"
        file = "sudograph.db" if self.generation == OCT_20 else "cache.db"
        if name == "init":
            self._init(self.folder, file)
            return
        self.database = database or self._found(cwd, file) or self.folder / file
        if database is None:
            self.folder = self.database.parent
        self._open()
        handler = getattr(self, "_" + name.replace(" ", "_").replace("-", "_"))
        handler(options, positionals)

    def _found(self, cwd: Path, file: str) -> Path | None:
        for folder in (cwd, *cwd.parents[:-1]):
            if (folder / ".sudocode" / file).exists():
                return folder / ".sudocode" / file
        return None

    def _open(self) -> None:
        broken = "Error: Failed to open database\n"
        if self.database.parent.exists() and not self.database.parent.is_dir():
            raise Stop(f"{broken}EEXIST: file already exists, mkdir '{self.database.parent}'")
        if self.database.is_dir():
            raise Stop(f"{broken}unable to open database file")
        self.database.parent.mkdir(parents=True, exist_ok=True)
        if not self.database.exists():
            self._print_migrations()
            self.state: Row = {
                "magic": MAGIC,
                "generation": self.generation,
                "issues": [],
                "specs": [],
                "links": [],
                "tags": {},
                "feedback": [],
                "next": 1,
            }
            self._save()
            return
        try:
            self.state = json.loads(self.database.read_text(encoding="utf-8"))
            assert self.state["magic"] == MAGIC
        except (ValueError, KeyError, TypeError, AssertionError):
            raise Stop(f"{broken}file is not a database") from None
        if self.state["generation"] != self.generation:
            raise Stop(
                "  ✗ Migration 1 failed: SqliteError: no such column: from_id\n"
                "    at Database.exec (/opt/lib/node_modules/sudocode/node_modules/better-sqlite3/lib/methods/wrappers.js:9:14)\n"
                f"{broken}no such column: from_id"
            )
        if not os.access(self.database, os.W_OK):
            raise Stop(f"{broken}attempt to write a readonly database")

    def _print_migrations(self) -> None:
        if self.generation == HEAD:
            self.out.append("Running 2 pending migration(s)...\n  Applying migration 1: a-step\n")
            self.out.append("  [migration-1] {not json}\n  ✓ Migration 1 applied successfully\n")

    def _save(self) -> None:
        scratch = self.database.with_name(f"{self.database.name}.{os.getpid()}.new")
        scratch.write_text(json.dumps(self.state), encoding="utf-8")
        scratch.replace(self.database)

    def _print(self, document: object) -> None:
        self.out.append(json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def _sql_now(self) -> str:
        return self.now().strftime("%Y-%m-%d %H:%M:%S")

    def _iso_now(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _init(self, folder: Path, file: str) -> None:
        if folder.exists() and not folder.is_dir():
            raise Stop(f"Error: Failed to open database\nEEXIST: file already exists, mkdir '{folder}'")
        for part in ("specs", "issues"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.database = folder / file
        kept = [name for name in ("cache.db", "specs.jsonl", "issues.jsonl") if (folder / name).exists()]
        self._open()
        if self.generation != HEAD:
            for name, text in (("specs.jsonl", ""), ("issues.jsonl", ""), ("meta.json", "{}")):
                (folder / name).write_text(text)
            product = "sudograph" if self.generation == OCT_20 else "sudocode"
            self.out.append(f"✓ Initialized {product} in {folder}\n")
            return
        for name, text in (("config.json", "{}"), ("config.local.json", "{}")):
            if not (folder / name).exists():
                (folder / name).write_text(text)
        for name in ("specs.jsonl", "issues.jsonl"):
            if not (folder / name).exists():
                (folder / name).write_text("")
        if any((folder / name).read_text().strip() for name in ("specs.jsonl", "issues.jsonl")):
            self.out.append("Importing from existing JSONL files...\n")
            self._take(folder)
        (folder / ".gitignore").write_text("cache.db*\nissues/\nspecs/\nworktrees/\nconfig.local.json")
        self.out.append(f"✓ Initialized sudocode in {folder}\n  Database: {self.database}\n")
        self.out.append(f"  Preserved existing: {', '.join(dict.fromkeys(['cache.db', *kept]))}\n")

    # Rows in the form of the release.

    def _id(self, kind: str) -> str:
        if self.new_ids is not None and (given := next(self.new_ids, None)) is not None:
            return given
        number = self.state["next"]
        self.state["next"] += 1
        if self.generation != HEAD:
            prefix = "sg" if self.generation == OCT_20 else kind.upper()
            path = self.folder / "meta.json"
            counters = json.loads(path.read_text()) if path.exists() else {}
            counters[kind] = counters.get(kind, 0) + 1
            path.write_text(json.dumps(counters))
            return f"{prefix}-{counters[kind]:03d}"
        digest = hashlib.sha256(f"{self.database}{number}{uuid.uuid4()}".encode()).hexdigest()
        return f"{kind[0]}-{int(digest[:10], 16) % 36**4:04x}"

    def _issue_row(self, **given: Any) -> Row:
        now = self._sql_now()
        row: Row = {"id": self._id("issue"), "uuid": str(uuid.uuid4()), "title": "", "content": "", "status": "open"}
        row |= {"priority": 2, "assignee": None, "archived": 0, "archived_at": None, "created_at": now}
        row |= {"updated_at": now, "closed_at": None, "parent_id": None, "parent_uuid": None, "external_links": None}
        if self.generation != HEAD:
            for key in ("archived", "archived_at", "parent_uuid", "external_links"):
                del row[key]
            row["description"] = ""
        if self.generation == OCT_20:
            del row["uuid"]
            row |= {"issue_type": "task", "estimated_minutes": None, "created_by": self.user}
        return row | given

    def _spec_row(self, **given: Any) -> Row:
        now = self._sql_now()
        row: Row = {"id": self._id("spec"), "uuid": str(uuid.uuid4()), "title": "", "file_path": "", "content": ""}
        row |= {"priority": 2, "archived": 0, "archived_at": None, "created_at": now, "updated_at": now}
        row |= {"parent_id": None, "parent_uuid": None, "external_links": None}
        if self.generation != HEAD:
            for key in ("archived", "archived_at", "parent_uuid", "external_links"):
                del row[key]
        if self.generation == OCT_20:
            del row["uuid"]
            row |= {"type": "feature", "status": "draft", "created_by": self.user, "updated_by": self.user}
        return row | given

    @property
    def _text_key(self) -> str:
        return "content" if self.generation == HEAD else "description"

    def _get(self, kind: str, entity_id: str) -> Row | None:
        return next((row for row in self.state[f"{kind}s"] if row["id"] == entity_id), None)

    def _number(self, text: str) -> int | None:
        match = re.match(r"\s*([+-]?\d+)", text)
        return int(match[1]) if match else None

    def _check_new(self, kind: str, row: Row) -> None:
        if self._get(kind, row["id"]) is not None:
            raise Stop(f"✗ Failed to create {kind}\nConstraint violation: UNIQUE constraint failed: {kind}s.id")

    def _check_row(self, kind: str, doing: str, row: Row) -> None:
        if row["priority"] is None:
            raise Stop(
                f"✗ Failed to {doing} {kind}\nConstraint violation: NOT NULL constraint failed: {kind}s.priority"
            )
        if not 0 <= row["priority"] <= 4:
            rule = "priority >= 0 AND priority <= 4"
            raise Stop(f"✗ Failed to {doing} {kind}\nConstraint violation: CHECK constraint failed: {rule}")
        if len(row["title"]) > 500:
            raise Stop(
                f"✗ Failed to {doing} {kind}\nConstraint violation: CHECK constraint failed: length(title) <= 500"
            )

    def _check_parent(self, kind: str, doing: str, parent: str | None) -> None:
        if parent and self._get(kind, parent) is None:
            raise Stop(f"✗ Failed to {doing} {kind}\nParent {kind} not found: {parent}")

    # Issues and specs.

    def _issue_create(self, options: dict[str, str], positionals: list[str]) -> None:
        self._create("issue", options, positionals[0])

    def _spec_create(self, options: dict[str, str], positionals: list[str]) -> None:
        self._create("spec", options, positionals[0])

    def _create(self, kind: str, options: dict[str, str], title: str) -> None:
        given: Row = {"title": title, "priority": self._number(options.get("priority", "2"))}
        given["parent_id"] = options.get("parent") or None
        text_key = self._text_key if kind == "issue" else "content"
        given[text_key] = options.get("description", "")
        if kind == "issue":
            given["assignee"] = options.get("assignee") or None
        self._check_parent(kind, "create", given["parent_id"])
        self._check_row(kind, "create", given)
        if self.generation == OCT_20:
            if kind == "issue":
                given["issue_type"] = options.get("type", "task")
                given["estimated_minutes"] = int(options["estimate"]) if "estimate" in options else None
            else:
                given["type"] = options.get("type", "feature")
        row = self._issue_row(**given) if kind == "issue" else self._spec_row(**given)
        self._check_new(kind, row)
        slug = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:50]
        if kind == "spec":
            name = f"{row['id']}_{slug}.md" if self.generation == HEAD else f"{slug}.md"
            if options.get("file-path"):
                name = options["file-path"].rstrip("/").split("/")[-1]
            row["file_path"] = f"specs/{name}"
        self.state[f"{kind}s"].append(row)
        if options.get("tags"):
            self.state["tags"][self._tag_key(kind, row)] = sorted({tag.strip() for tag in options["tags"].split(",")})
        self._write_markdown(kind, row)
        self._export_own()
        said = {"id": row["id"], "title": title}
        said |= {"status": "open"} if kind == "issue" else {"file_path": row["file_path"]}
        if kind == "spec" and self.generation == OCT_20:
            said["status"] = "draft"
        self._print(said)

    def _tag_key(self, kind: str, row: Row) -> str:
        return f"{kind} {row['id']}"

    def _listed(self, kind: str, options: dict[str, str]) -> list[Row]:
        rows = self.state[f"{kind}s"]
        if "status" in options and kind == "issue" and self.generation == HEAD and options["status"] not in STATUSES:
            raise Stop(f"✗ Invalid status filter: {options['status']}\nValid statuses: {', '.join(STATUSES)}")
        limit = self._number(options.get("limit", "50"))
        if limit is None:
            raise Stop(f"✗ Failed to list {kind}s\ndatatype mismatch")
        if self.generation == HEAD:
            archived = options.get("archived") == "true"
            rows = [row for row in rows if bool(row["archived"]) == archived]
        for name, key in (("status", "status"), ("assignee", "assignee"), ("type", "issue_type")):
            column = "type" if name == "type" and kind == "spec" else key
            if name in options:
                rows = [row for row in rows if row.get(column) == options[name]]
        if "priority" in options:
            rows = [row for row in rows if row["priority"] == self._number(options["priority"])]
        if options.get("grep"):
            pattern = re.escape(options["grep"]).replace("%", ".*").replace("_", ".")
            seen = [
                (row, f"{row['title']}\0{row.get('content') or ''}\0{row.get('description') or ''}") for row in rows
            ]
            rows = [row for row, text in seen if re.search(pattern, text, re.IGNORECASE | re.DOTALL)]
        rows = _newest_first(rows)
        return rows if limit < 0 else rows[:limit]

    def _issue_list(self, options: dict[str, str], _: list[str]) -> None:
        self._print(self._listed("issue", options))

    def _spec_list(self, options: dict[str, str], _: list[str]) -> None:
        self._print(self._listed("spec", options))

    def _issue_show(self, _: dict[str, str], positionals: list[str]) -> None:
        self._show("issue", positionals[0])

    def _spec_show(self, _: dict[str, str], positionals: list[str]) -> None:
        self._show("spec", positionals[0])

    def _show(self, kind: str, entity_id: str) -> None:
        row = self._get(kind, entity_id)
        if row is None:
            raise Stop(f"✗ {kind.capitalize()} not found: {entity_id}")
        outgoing = [self._link_view(link) for link in self.state["links"] if self._end(link, "from", kind, row)]
        incoming = [self._link_view(link) for link in self.state["links"] if self._end(link, "to", kind, row)]
        side = "from_id" if kind == "issue" else "to_id"
        given = [entry for entry in self.state["feedback"] if entry[self._side(side)] == row["id"]]
        self._print(
            {
                **row,
                "relationships": {"outgoing": outgoing, "incoming": incoming},
                "tags": self.state["tags"].get(self._tag_key(kind, row), []),
                "feedback": _feedback_order(given),
            }
        )

    def _end(self, link: Row, side: str, kind: str, row: Row) -> bool:
        return bool(link[f"{side}_id"] == row["id"] and link[f"{side}_type"] == kind)

    def _link_view(self, link: Row) -> Row:
        return {key: value for key, value in link.items() if self.generation == HEAD or not key.endswith("_uuid")}

    def _issue_update(self, options: dict[str, str], positionals: list[str]) -> None:
        self._update("issue", options, positionals[0])

    def _spec_update(self, options: dict[str, str], positionals: list[str]) -> None:
        self._update("spec", options, positionals[0])

    def _update(self, kind: str, options: dict[str, str], entity_id: str) -> None:
        if options.get("status") and self.generation == HEAD and options["status"] not in STATUSES:
            raise Stop(f"✗ Invalid status: {options['status']}\nValid statuses: {', '.join(STATUSES)}")
        row = self._get(kind, entity_id)
        if row is None and kind == "spec":
            raise Stop(f"✗ Spec not found: {entity_id}")
        if row is None:
            raise Stop(f"✗ Failed to update {kind}\n{kind.capitalize()} not found: {entity_id}")
        self._check_parent(kind, "update", options.get("parent"))
        wanted: Row = {name: options[name] for name in ("status", "assignee", "title") if options.get(name)}
        if options.get("priority"):
            wanted["priority"] = self._number(options["priority"])
        if options.get("description"):
            wanted[self._text_key if kind == "issue" else "content"] = options["description"]
        if options.get("parent"):
            wanted["parent_id"] = options["parent"]
        if options.get("type"):
            wanted["issue_type"] = options["type"]
        if "archived" in options:
            wanted["archived"] = int(options["archived"] == "true")
        self._check_row(kind, "update", row | wanted)
        changed = {key: value for key, value in wanted.items() if row.get(key) != value}
        closing = changed.get("status") == "closed"
        if changed:
            if "status" in changed:
                row["closed_at"] = self._sql_now() if closing else None
            if "archived" in changed:
                row["archived_at"] = self._sql_now() if changed["archived"] else None
            if "parent_id" in changed and "parent_uuid" in row:
                parent = self._get(kind, changed["parent_id"])
                row["parent_uuid"] = parent["uuid"] if parent else None
            row.update(changed)
            row["updated_at"] = self._sql_now()
        if closing:
            self._release(row)
        self._write_markdown(kind, row)
        self._export_own()
        self._print(row)

    def _issue_close(self, _: dict[str, str], positionals: list[str]) -> None:
        results: list[Row] = []
        for entity_id in positionals:
            row = self._get("issue", entity_id)
            if row is None:
                results.append({"id": entity_id, "success": False, "error": f"Issue not found: {entity_id}"})
                continue
            if row["status"] != "closed":
                row |= {"status": "closed", "closed_at": self._sql_now(), "updated_at": self._sql_now()}
                self._release(row)
            results.append({"id": entity_id, "success": True})
            self._write_markdown("issue", row)
        self._export_own()
        self._print(results)

    # Waiting.

    def _blockers(self, row: Row, states: Sequence[str]) -> list[Row]:
        found: list[Row] = []
        for link in self.state["links"]:
            if link["from_type"] != "issue" or link["to_type"] != "issue":
                continue
            if link["relationship_type"] == "blocks" and self.generation == HEAD:
                waiting, blocker = link["to_id"], link["from_id"]
            elif link["relationship_type"] in ("blocks", "depends-on"):
                waiting, blocker = link["from_id"], link["to_id"]
            else:
                continue
            other = self._get("issue", blocker)
            if waiting == row["id"] and other is not None and other["status"] in states and other not in found:
                found.append(other)
        return found

    def _release(self, closed: Row) -> None:
        if self.generation != HEAD:
            return
        for row in self.state["issues"]:
            waits = any(blocker["id"] == closed["id"] for blocker in self._blockers(row, STATUSES))
            still = [b for b in self._blockers(row, [s for s in STATUSES if s != "closed"]) if b["id"] != closed["id"]]
            if row["status"] == "blocked" and waits and not still:
                row |= {"status": "open", "updated_at": self._sql_now()}

    def _ready_rows(self) -> list[Row]:
        rows = [row for row in self.state["issues"] if row["status"] == "open" and not row.get("archived")]
        return _newest_first([row for row in rows if not self._blockers(row, UNFINISHED)])

    def _ready(self, options: dict[str, str], _: list[str]) -> None:
        self._print_both(options, self._ready_rows())

    def _blocked_rows(self) -> list[Row]:
        states = UNFINISHED if self.generation == HEAD else ("open", "in_progress", "blocked")
        rows = []
        for row in self.state["issues"]:
            blockers = self._blockers(row, states)
            if row["status"] in states and not row.get("archived") and blockers:
                ids = ",".join(blocker["id"] for blocker in blockers)
                rows.append({**row, "blocked_by_count": len(blockers), "blocked_by_ids": ids})
        return _newest_first(rows)

    def _blocked(self, options: dict[str, str], _: list[str]) -> None:
        self._print_both(options, self._blocked_rows())

    def _print_both(self, options: dict[str, str], issues: list[Row]) -> None:
        if self.generation != OCT_20:
            self._print({"issues": issues})
            return
        specs: list[Row] = []
        only = [name for name in ("specs", "issues") if name in options] or ["specs", "issues"]
        self._print({name: {"specs": specs, "issues": issues}[name] for name in only})

    def _link(self, options: dict[str, str], positionals: list[str]) -> None:
        kind = options.get("type", "references")
        types = LINK_TYPES if self.generation == HEAD else [*LINK_TYPES, "parent-child"]
        if kind not in types:
            raise Stop(f"✗ Invalid relationship type: {kind}\nValid types: {', '.join(types)}")
        ends = []
        for entity_id in positionals:
            found = next((k for k in ("spec", "issue") if self._get(k, entity_id)), None)
            if found is None:
                raise Stop(f"✗ Entity not found: {entity_id}")
            ends.append((found, self._get(found, entity_id) or {}))
        (from_kind, source), (to_kind, target) = ends
        link = {"from_id": source["id"], "from_uuid": source.get("uuid"), "from_type": from_kind}
        link |= {"to_id": target["id"], "to_uuid": target.get("uuid"), "to_type": to_kind, "relationship_type": kind}
        if not any(all(known[key] == value for key, value in link.items()) for known in self.state["links"]):
            self.state["links"].append({**link, "created_at": self._sql_now(), "metadata": None})
            if self.generation == HEAD and kind in ("blocks", "depends-on") and from_kind == to_kind == "issue":
                waiting, blocker = (target, source) if kind == "blocks" else (source, target)
                if blocker["status"] != "closed" and waiting["status"] in ("open", "in_progress"):
                    waiting |= {"status": "blocked", "updated_at": self._sql_now()}
        self._write_markdown(from_kind, source)
        self._export_own()
        self._print({"from": positionals[0], "to": positionals[1], "type": kind, "success": True})

    # Feedback.

    def _side(self, name: str) -> str:
        return name if self.generation == HEAD else {"from_id": "issue_id", "to_id": "spec_id"}[name]

    def _feedback_add(self, options: dict[str, str], positionals: list[str]) -> None:
        types = OLD_FEEDBACK_TYPES if self.generation == OCT_20 else FEEDBACK_TYPES
        kind = options.get("type", types[0])
        if self.generation == HEAD:
            target, source = positionals[0], positionals[1] if len(positionals) > 1 else None
            if kind not in types:
                raise Stop(f"✗ Invalid feedback type: {kind}\nValid types: {', '.join(types)}")
            if not re.match(r"(i|s|ISSUE|SPEC)-", target):
                raise Stop(f"✗ Failed to create feedback\nCannot infer entity type from ID: {target}")
            target_kind = "issue" if target.startswith(("i-", "ISSUE-")) else "spec"
        else:
            source, target, target_kind = positionals[0], positionals[1], "spec"
            if not options.get("line") and not options.get("text"):
                raise Stop("✗ Either --line or --text must be specified")
        issue = self._get("issue", source) if source is not None else None
        if source is not None and issue is None:
            raise Stop(f"✗ Issue not found: {source}")
        row = self._get(target_kind, target)
        if row is None:
            raise Stop(f"✗ {target_kind.capitalize()} not found: {target}")
        anchor = self._anchor_for(str(row["content"]), options)
        if options.get("content") is None:
            raise Stop(
                "✗ Failed to create feedback\nConstraint violation: NOT NULL constraint failed: issue_feedback.content"
            )
        if kind not in types:
            allowed = ", ".join(f"'{name}'" for name in types)
            rule = f"feedback_type IN ({allowed})"
            raise Stop(f"✗ Failed to create feedback\nConstraint violation: CHECK constraint failed: {rule}")
        now = self._iso_now() if self.generation == HEAD else self._sql_now()
        entry: Row = {"id": self._feedback_id(), self._side("from_id"): source}
        if self.generation == HEAD:
            entry["from_uuid"] = issue["uuid"] if issue else None
        entry[self._side("to_id")] = target
        if self.generation == HEAD:
            entry["to_uuid"] = row["uuid"]
        entry |= {"feedback_type": kind, "content": options["content"], "agent": options.get("agent") or self.user}
        entry["anchor"] = json.dumps(anchor, separators=(",", ":"), ensure_ascii=False) if anchor else None
        if self.generation == HEAD:
            entry |= {"dismissed": False, "created_at": now, "updated_at": now}
        else:
            entry |= {"status": "open", "created_at": now, "updated_at": now, "resolution": None}
        self.state["feedback"].append(entry)
        self._export_own()
        self._print(entry)

    def _feedback_id(self) -> str:
        if self.new_ids is not None and (given := next(self.new_ids, None)) is not None:
            return given
        return str(uuid.uuid4()) if self.generation == HEAD else f"FB-{len(self.state['feedback']) + 1:03d}"

    def _anchor_for(self, text: str, options: dict[str, str]) -> Row | None:
        lines = text.split("\n")
        if options.get("line"):
            number = self._number(options["line"])
            if number is None or number < 1:
                raise Stop("✗ Invalid line number")
            if number > len(lines):
                raise Stop(f"✗ Failed to create feedback\nLine number {number} is out of range (1-{len(lines)})")
            return self._anchor(lines, number)
        if options.get("text"):
            for number, line in enumerate(lines, 1):
                at = line.find(options["text"])
                if at >= 0:
                    return self._anchor(lines, number, at)
            word = "target" if self.generation == HEAD else "spec"
            raise Stop(f'✗ Text not found in {word}: "{options["text"]}"')
        return None

    def _anchor(self, lines: list[str], number: int, at: int | None = None) -> Row:
        anchor: Row = {}
        for above in range(number, 0, -1):
            match = re.match(r"(#{1,6})\s+(.+?)\r?$", lines[above - 1])
            if match:
                anchor |= {"section_heading": match[2].strip(), "section_level": len(match[1])}
                anchor |= {"line_number": number, "line_offset": number - above}
                break
        anchor["line_number"] = number
        snippet = _snippet(lines[number - 1], at)
        anchor |= {
            "text_snippet": snippet,
            "context_before": " ".join(lines[max(0, number - 5) : number - 1]).strip()[-50:],
            "context_after": " ".join(lines[number : number + 4]).strip()[:50],
            "content_hash": hashlib.sha256(snippet.encode()).hexdigest()[:16],
            "anchor_status": "valid",
            "last_verified_at": self._iso_now(),
        }
        place = {"line_number": number, "section_heading": anchor.get("section_heading")}
        anchor["original_location"] = {key: value for key, value in place.items() if value is not None}
        return anchor

    def _feedback_list(self, options: dict[str, str], _: list[str]) -> None:
        rows = self.state["feedback"]
        limit = self._number(options.get("limit", "50"))
        if limit is None:
            raise Stop("✗ Failed to list feedback\ndatatype mismatch")
        if "type" in options:
            rows = [row for row in rows if row["feedback_type"] == options["type"]]
        if self.generation != HEAD:
            for name, key in (("issue", "issue_id"), ("spec", "spec_id"), ("status", "status")):
                if name in options:
                    rows = [row for row in rows if row[key] == options[name]]
        rows = _feedback_order(rows)
        self._print(rows if limit < 0 else rows[:limit])

    def _entry(self, feedback_id: str, doing: str = "") -> Row:
        for entry in self.state["feedback"]:
            if entry["id"] == feedback_id:
                return dict(entry)
        raise Stop(
            f"✗ Failed to {doing} feedback\nFeedback not found: {feedback_id}"
            if doing
            else f"✗ Feedback not found: {feedback_id}"
        )

    def _put(self, entry: Row) -> None:
        entry["updated_at"] = self._iso_now() if self.generation == HEAD else self._sql_now()
        rows = self.state["feedback"]
        rows[[row["id"] for row in rows].index(entry["id"])] = entry
        self._export_own()
        self._print(entry)

    def _feedback_show(self, _: dict[str, str], positionals: list[str]) -> None:
        entry = self._entry(positionals[0])
        self._print({**entry, "anchor": json.loads(entry["anchor"]) if entry["anchor"] else None})

    def _feedback_dismiss(self, _: dict[str, str], positionals: list[str]) -> None:
        self._put({**self._entry(positionals[0], "dismiss"), "dismissed": True})

    def _feedback_acknowledge(self, _: dict[str, str], positionals: list[str]) -> None:
        self._put({**self._entry(positionals[0], "acknowledge"), "status": "acknowledged"})

    def _feedback_resolve(self, options: dict[str, str], positionals: list[str]) -> None:
        entry = self._entry(positionals[0], "resolve")
        self._put({**entry, "status": "resolved", "resolution": options.get("comment", entry["resolution"])})

    def _feedback_wont_fix(self, options: dict[str, str], positionals: list[str]) -> None:
        entry = self._entry(positionals[0], "update")
        self._put({**entry, "status": "wont_fix", "resolution": options.get("reason", entry["resolution"])})

    def _feedback_stale(self, _: dict[str, str], __: list[str]) -> None:
        rows = []
        for entry in _feedback_order(self.state["feedback"]):
            if entry["anchor"] is None:
                raise Stop("✗ Failed to list stale feedback\nCannot read properties of null (reading 'anchor_status')")
            if json.loads(entry["anchor"])["anchor_status"] == "stale":
                rows.append(entry)
        self._print(rows)

    def _feedback_relocate(self, options: dict[str, str], positionals: list[str]) -> None:
        number = self._number(options.get("line", ""))
        if number is None or number < 1:
            raise Stop("✗ Invalid line number")
        entry = self._entry(positionals[0])
        target = entry[self._side("to_id")]
        row = self._get("spec", target) or self._get("issue", target) or {"content": ""}
        lines = str(row["content"]).split("\n")
        if number > len(lines):
            raise Stop(f"✗ Failed to relocate feedback\nLine number {number} is out of range (1-{len(lines)})")
        if entry["anchor"] is None:
            raise Stop("✗ Failed to relocate feedback\nCannot read properties of null (reading 'original_location')")
        anchor = self._anchor(lines, number)
        anchor |= {"anchor_status": "relocated", "original_location": json.loads(entry["anchor"])["original_location"]}
        self._put({**entry, "anchor": json.dumps(anchor, separators=(",", ":"), ensure_ascii=False)})

    # Counts.

    def _counts(self) -> Row:
        issues = self.state["issues"]
        states = [state for state in STATUSES if state != "needs_review" or self.generation != OCT_20]
        by_status = {state: sum(row["status"] == state for row in issues) for state in states}
        counted: Row = {"specs": {"total": len(self.state["specs"])}}
        counted["issues"] = {"total": len(issues), "by_status": by_status}
        if self.generation == OCT_20:
            specs = self.state["specs"]
            names: dict[str, tuple[str, Sequence[str]]] = {
                "by_status": ("status", ("draft", "review", "approved", "deprecated")),
                "by_type": ("type", ("architecture", "api", "database", "feature", "research")),
            }
            for key, (column, values) in names.items():
                counted["specs"][key] = {value: sum(row[column] == value for row in specs) for value in values}
            counted["specs"]["ready"] = 0
            kinds = ("bug", "feature", "task", "epic", "chore")
            counted["issues"]["by_type"] = {kind: sum(row["issue_type"] == kind for row in issues) for kind in kinds}
        counted["issues"] |= {"ready": len(self._ready_rows()), "blocked": len(self._blocked_rows())}
        return counted

    def _stats(self, _: dict[str, str], __: list[str]) -> None:
        by_type: dict[str, int] = {}
        for link in self.state["links"]:
            by_type[link["relationship_type"]] = by_type.get(link["relationship_type"], 0) + 1
        issues, specs = self.state["issues"], self.state["specs"]
        activity = {"specs_updated": len(specs), "issues_updated": len(issues), "issues_created": len(issues)}
        activity["issues_closed"] = sum(row["closed_at"] is not None for row in issues)
        links = {"total": len(self.state["links"]), "by_type": by_type}
        self._print({**self._counts(), "relationships": links, "recent_activity": activity})

    def _status(self, _: dict[str, str], __: list[str]) -> None:
        counted = self._counts()
        counted["specs"].pop("by_type", None)
        counted["issues"].pop("by_type", None)
        self._print(counted)

    # The JSONL files and the markdown.

    def _exported(self, kind: str) -> list[Row]:
        rows = []
        for row in self.state[f"{kind}s"]:
            links = [link for link in self.state["links"] if self._end(link, "from", kind, row)]
            out = {key: value for key, value in row.items() if key != "external_links" or value is not None}
            out["relationships"] = sorted(
                (
                    {
                        "from": link["from_id"],
                        "from_type": link["from_type"],
                        "to": link["to_id"],
                        "to_type": link["to_type"],
                        "type": link["relationship_type"],
                    }
                    for link in links
                ),
                key=lambda link: (link["to"], link["to_type"], link["type"]),
            )
            out["tags"] = sorted(self.state["tags"].get(self._tag_key(kind, row), []))
            if kind == "issue":
                given = [entry for entry in self.state["feedback"] if entry[self._side("from_id")] == row["id"]]
                if given:
                    out["feedback"] = [self._exported_entry(entry) for entry in sorted(given, key=lambda e: e["id"])]
            rows.append(out)
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]))

    def _exported_entry(self, entry: Row) -> Row:
        out = {key: value for key, value in entry.items() if key not in ("from_uuid", "to_uuid")}
        return {**out, "anchor": json.loads(entry["anchor"]) if entry["anchor"] else None}

    def _export_own(self) -> None:
        self._save()
        self._write_jsonl(self.folder)

    def _write_jsonl(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for kind in ("spec", "issue"):
            path = folder / f"{kind}s.jsonl"
            rows = self._exported(kind)
            kept = {row["id"]: row["external_links"] for row in _readable(path) if row.get("external_links")}
            for row in rows:
                if row["id"] in kept:
                    row["external_links"] = kept[row["id"]]
            text = "\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "\n"
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            scratch = path.with_name(f"{path.name}.tmp")
            scratch.write_text(_storable(text), encoding="utf-8")
            try:
                scratch.rename(path)
            except FileNotFoundError:
                raise Stop(
                    f"✗ Failed to create issue\nENOENT: no such file or directory, rename '{scratch}' -> '{path}'"
                ) from None
            times = [_instant(row["updated_at"]).timestamp() for row in rows]
            if times:
                os.utime(path, (max(times), max(times)))

    def _export(self, options: dict[str, str], _: list[str]) -> None:
        output = options.get("output", ".sudocode")
        self._write_jsonl(self.cwd / output)
        self._print({"success": True, "outputDir": output})

    def _import(self, options: dict[str, str], _: list[str]) -> None:
        source = options.get("input", ".sudocode")
        self._take(self.cwd / source)
        self._print({"success": True, "inputDir": source})

    def _take(self, folder: Path) -> None:
        """What an import does: rows that the files lack go, rows with another time of change are replaced."""
        incoming = {kind: _readable(folder / f"{kind}s.jsonl") for kind in ("spec", "issue")}
        touched: dict[str, list[Row]] = {"spec": [], "issue": []}
        for kind, rows in incoming.items():
            mine = {self._identity(row): row for row in self.state[f"{kind}s"]}
            theirs = {self._identity(row) for row in rows}
            self.state[f"{kind}s"] = [row for key, row in mine.items() if key in theirs]
            for row in rows:
                known = mine.get(self._identity(row))
                if known is not None and known["updated_at"] == row["updated_at"]:
                    continue
                bare = {
                    k: v for k, v in row.items() if k not in ("relationships", "tags", "feedback", "external_links")
                }
                if self.generation != HEAD:  # the oldest imports make times anew
                    bare |= {"updated_at": self._sql_now()} | ({} if known else {"created_at": self._sql_now()})
                if known is None:
                    blank = self._blank(kind)
                    self.state[f"{kind}s"].append({**blank, **bare})
                else:
                    known.update(bare)
                touched[kind].append(row)
        alive = {(kind, row["id"]) for kind in ("spec", "issue") for row in self.state[f"{kind}s"]}
        self.state["links"] = [
            link
            for link in self.state["links"]
            if (link["from_type"], link["from_id"]) in alive and (link["to_type"], link["to_id"]) in alive
        ]
        for kind, rows in touched.items():
            for row in rows:
                self._take_parts(kind, row, alive)
        if self.database.exists():
            self._save()

    def _blank(self, kind: str) -> Row:
        counter, ids = self.state["next"], self.new_ids
        self.new_ids = iter([""])
        row = self._issue_row() if kind == "issue" else self._spec_row()
        self.state["next"], self.new_ids = counter, ids
        return row

    def _take_parts(self, kind: str, row: Row, alive: set[tuple[str, str]]) -> None:
        self.state["tags"][f"{kind} {row['id']}"] = row.get("tags") or []
        self.state["links"] = [link for link in self.state["links"] if not self._end(link, "from", kind, row)]
        for link in row.get("relationships") or []:
            if (link["to_type"], link["to"]) in alive:
                source, target = self._get(link["from_type"], link["from"]), self._get(link["to_type"], link["to"])
                new = {"from_id": link["from"], "from_uuid": (source or {}).get("uuid"), "from_type": link["from_type"]}
                new |= {"to_id": link["to"], "to_uuid": (target or {}).get("uuid"), "to_type": link["to_type"]}
                new |= {"relationship_type": link["type"], "created_at": self._sql_now(), "metadata": None}
                self.state["links"].append(new)
        if kind != "issue":
            return
        side = self._side("from_id")
        self.state["feedback"] = [entry for entry in self.state["feedback"] if entry[side] != row["id"]]
        for entry in row.get("feedback") or []:
            anchor = json.dumps(entry["anchor"], separators=(",", ":")) if entry.get("anchor") else None
            new = {**entry, "anchor": anchor}
            if self.generation == HEAD:
                target = self._get("spec", entry["to_id"]) or self._get("issue", entry["to_id"]) or {}
                new = {**new, "from_uuid": row["uuid"], "to_uuid": target.get("uuid")}
            self.state["feedback"].append(new)

    def _identity(self, row: Row) -> str:
        return str(row.get("uuid") or row["id"])

    def _write_markdown(self, kind: str, row: Row) -> None:
        path = self.folder / (row["file_path"] if kind == "spec" else f"issues/{row['id']}_x.md")
        if kind == "issue":
            slug = re.sub(r"[^a-z0-9]+", "_", row["title"].lower()).strip("_")[:50]
            path = self.folder / f"issues/{row['id']}_{slug}.md"
            for other in (self.folder / "issues").glob(f"{row['id']}_*.md"):
                if other != path:
                    other.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nid: {row['id']}\ntitle: {json.dumps(row['title'])}\npriority: {row['priority']}\n"
        head += f"created_at: '{row['created_at']}'\n" + (f"status: {row['status']}\n" if kind == "issue" else "")
        text = row["content"] or row.get("description") or ""
        body = f"{head}---\n{text}{'' if text.endswith(chr(10)) else chr(10)}"
        path.write_text(_storable(body), encoding="utf-8")

    def _sync(self, options: dict[str, str], _: list[str]) -> None:
        if "from-markdown" in options:
            for row in self.state["specs"]:
                path = self.folder / row["file_path"]
                body = path.read_text(encoding="utf-8").split("---\n", 2)[2] if path.exists() else row["content"]
                if body.strip() != row["content"].strip():
                    row |= {"content": body, "updated_at": self._iso_now()}
                self._move_anchors(row)
            self._export_own()
        self.out.append("✓ Synced\n")

    def _move_anchors(self, spec: Row) -> None:
        lines = spec["content"].split("\n")
        for entry in self.state["feedback"]:
            if entry[self._side("to_id")] != spec["id"] or not entry["anchor"]:
                continue
            anchor = json.loads(entry["anchor"])
            snippet = anchor["text_snippet"].replace("...", "").strip()
            at = anchor["line_number"]
            if at <= len(lines) and snippet and snippet in lines[at - 1]:
                continue
            found = [number for number, line in enumerate(lines, 1) if snippet and snippet in line]
            status = {"anchor_status": "relocated"} if found else {"anchor_status": "stale"}
            moved = (
                {**self._anchor(lines, found[0]), "original_location": anchor["original_location"]} if found else anchor
            )
            entry["anchor"] = json.dumps({**moved, **status}, separators=(",", ":"), ensure_ascii=False)


def _newest_first(rows: list[Row]) -> list[Row]:
    """The program's order: the least urgent first, then the newest."""
    ordered = sorted(rows, key=lambda row: row["created_at"], reverse=True)
    return sorted(ordered, key=lambda row: row["priority"], reverse=True)


def _feedback_order(rows: list[Row]) -> list[Row]:
    return sorted(sorted(rows, key=lambda row: row["id"]), key=lambda row: row["created_at"], reverse=True)


def _snippet(line: str, at: int | None) -> str:
    trimmed = line.strip()
    start, end = 0, min(len(trimmed), 50)
    if at is not None:
        offset = max(0, at - (len(line) - len(line.lstrip())))
        start, end = max(0, offset - 25), min(len(trimmed), offset + 25)
    cut = trimmed[start:end]
    return f"{'...' if start else ''}{cut}{'...' if end < len(trimmed) else ''}" if trimmed else ""


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _readable(path: Path) -> list[Row]:
    """Rows of a file; lines that are none are passed over without a word, as the program does."""
    rows = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return [row for row in rows if isinstance(row, dict)]


def _storable(text: str) -> str:
    """Half a character becomes the mark for one that cannot be shown, as in the real database."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def install(folder: Path, *, generation: str = HEAD) -> Path:
    """A launcher in `folder` that starts this file as the program `sudocode`."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / "sudocode"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -S {Path(__file__)} {generation} "$@"\n', encoding="utf-8")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return launcher


def main() -> None:
    """Run as a program: the generation, then the arguments."""
    fake = FakeSudocode(generation=sys.argv[1], user=os.environ.get("USER", "cli"))
    code, out, err = fake.run(sys.argv[2:], Path.cwd())
    sys.stdout.buffer.write(out.encode("utf-8", "surrogateescape"))
    sys.stderr.write(err)
    sys.exit(code)


if __name__ == "__main__":
    main()
