"""What could follow what was typed: ids and names of the project."""

from adapters.sudocode.rows import by_urgency, table
from adapters.sudocode.session import Sudocode


async def values(sudocode: Sudocode, argument: str, typed: str) -> list[str]:
    """Values for `spec_id`, `issue_id` or `assignee` that begin with what was typed, most urgent first."""
    work = await sudocode.open()
    noun = "spec" if argument == "spec_id" else "issue"
    rows = by_urgency(table(await work.read(noun, "list", options={"limit": "-1"})))
    key = "assignee" if argument == "assignee" else "id"
    found = dict.fromkeys(str(row[key]) for row in rows if row.get(key))
    return [value for value in found if value.casefold().startswith(typed.casefold())]
