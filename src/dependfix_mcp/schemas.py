"""Makes the JSON schemas that pydantic writes acceptable to every client: flat, closed, without nulls."""

from typing import Any

_KEPT_AS_VALUES = ("default", "enum", "const", "examples")
_DROPPED = ("$defs", "discriminator")


def flatten(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` with local references inlined, "X or null" reduced to X, one-value enums, no generated titles.

    Keys of `properties` are names, not keywords; values of `default` and `enum` are left alone.

    Raises:
        ValueError: A model refers to itself.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})

    def inline(node: dict[str, Any], path: tuple[str, ...]) -> Any:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in path:
            raise ValueError(f"{name} refers to itself")
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return keyword({**definitions[name], **beside}, (*path, name))

    def keyword(node: Any, path: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [keyword(item, path) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inline(node, path)
        out: dict[str, Any] = {}
        for key, value in node.items():
            if key in _DROPPED or (key == "title" and isinstance(value, str)):
                continue
            if key == "properties":
                out[key] = {name: keyword(child, path) for name, child in value.items()}
            else:
                out[key] = value if key in _KEPT_AS_VALUES else keyword(value, path)
        if "const" in out:  # one choice is still a choice, in the keyword that every client knows
            out["enum"] = [out.pop("const")]
        return _without_null(out)

    flat = keyword(schema, ())
    assert isinstance(flat, dict)
    return flat


def lean(
    schema: dict[str, Any], undescribed: frozenset[str] = frozenset(), unlisted: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """An output schema that says only what a client can check or a person needs.

    Descriptions stay on the properties of the root (but for those in
    `undescribed`), and those in `unlisted` are left out. Objects are left open: a client of today reads the answers
    of a later version too.
    """

    def inner(node: Any) -> Any:
        if isinstance(node, list):
            return [inner(item) for item in node]
        if not isinstance(node, dict):
            return node
        out: dict[str, Any] = {}
        for key, value in node.items():
            if key in ("description", "default") or (key == "additionalProperties" and isinstance(value, bool)):
                continue
            is_map = key == "properties"
            out[key] = {name: inner(child) for name, child in value.items()} if is_map else inner(value)
        return out

    found: dict[str, Any] = inner(schema)
    for name, child in schema.get("properties", {}).items():
        if name in unlisted:
            del found["properties"][name]
        elif "description" in child and name not in undescribed:
            found["properties"][name]["description"] = child["description"]
    return found


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    arms = node.get("anyOf")
    if not isinstance(arms, list):
        return node
    real = [arm for arm in arms if arm.get("type") != "null"]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if beside.get("default", ...) is None:
        del beside["default"]
    return {**real[0], **beside} if len(real) == 1 else {**beside, "anyOf": real}
