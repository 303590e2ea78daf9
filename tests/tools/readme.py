"""Writes the README's tables that follow from the code.

usage: python tests/tools/readme.py          rewrites README.md in place

Tables stand between `<!-- NAME -->` and `<!-- /NAME -->`.
"""

import re
import sys
from pathlib import Path

from dependfix_mcp.server import TOOLSET_BUILDERS
from dependfix_mcp.services import Services
from dependfix_mcp.settings import SETTINGS, Settings

README = Path(__file__).parents[2] / "README.md"


def settings_table() -> str:
    rows = ["| flag | environment | default | what |", "|---|---|---|---|"]
    for one in SETTINGS:
        flag = f"`{one.flag}{' ' + one.metavar if one.metavar else ''}`" if one.flag else "–"
        names = list(one.environment)
        shown = ", ".join(f"`{name}`" for name in names[:4])
        if len(names) > 4:
            shown = f"`{names[0]}`, … (one for each ecosystem)"
        default = (
            one.default if " " in one.default or one.default in ("none", "off", "any", "all") else f"`{one.default}`"
        )
        about = one.about + (" (repeatable)" if one.repeatable else "")
        rows.append(f"| {flag} | {shown or '–'} | {default} | {about} |".replace("…|", "…"))
    return "\n".join(rows)


def tools_table() -> str:
    rows = ["| toolset | tool | what | changes something |", "|---|---|---|---|"]
    services = Services(settings=Settings(sudocode_extras=True))
    plain = {spec.name for build in TOOLSET_BUILDERS.values() for spec in build(Services(settings=Settings())).tools}
    for name, build in TOOLSET_BUILDERS.items():
        for spec in build(services).tools:
            changes = "no" if spec.read_only else "yes"
            if spec.read_only_fn is not None:
                changes = "only with `mode=fix`"
            extra = "" if spec.name in plain else " (with `--sudocode-extras`)"
            rows.append(f"| {name} | `{spec.name}` | {spec.title}{extra} | {changes} |")
    return "\n".join(rows)


TABLES = {"settings": settings_table, "tools": tools_table}


def with_tables(text: str) -> str:
    """`text` with every table as the code has it now."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        found = pattern.search(text)
        if found is None:
            sys.exit(f"README.md has no place for the table {name}")
        text = f"{text[: found.start()]}{found[1]}{table()}\n{found[2]}{text[found.end() :]}"
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
