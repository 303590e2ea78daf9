"""Takes secrets and unprintable characters out of text that leaves the process."""

import re
import unicodedata
from typing import Final

# Prose speaks of token authentication and of bearer tokens; no credential is spelled as words are.
_WORDS: Final = r"(?:[A-Za-z][a-z]*(?:[/-][A-Za-z][a-z]*)*[./-]*(?![A-Za-z0-9._~+/=-]))"
_SECRETS: Final = re.compile(
    rf"""
    (?P<token>
        gh[pousr]_[A-Za-z0-9]{{16,255}}
      | github_pat_[A-Za-z0-9_]{{16,255}}
      | npm_[A-Za-z0-9]{{30,}}
      | pypi-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{{16,}}
      | glpat-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{{16,}}
      | sk-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{{20,}}
    )
    | (?P<scheme>\b(?:[Bb]earer|[Bb]asic|[Tt]oken)[ ]+)(?!{_WORDS})(?P<credential>[A-Za-z0-9._~+/=-]{{8,}})
    | (?P<auth>(?:_authToken|_auth|_password)["']?\s*[=:]\s*["']?|[Aa]uthorization["']?\s*[=:]\s*
        (?:(?=(?:[Bb]earer|[Bb]asic|[Tt]oken)[ ])|(?!{_WORDS})))
      (?P<value>[^\s"']{{4,}}(?:[ ][^\s"']{{8,}})?)
    | (?P<url>\b[a-z][a-z0-9+.-]*://)(?P<userinfo>[^\s/@'"<>]+)@
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)

REDACTED: Final = "[redacted]"

# What every match of the pattern holds; nearly all texts hold none of it, and looking for it is cheap.
_TRACES: Final = (
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "npm_",
    "pypi-",
    "glpat-",
    "sk-",
    "earer ",
    "asic ",
    "oken ",
    "_auth",
    "_password",
    "uthorization",
    "PRIVATE KEY-----",
)


def redact(text: str, *secrets: str) -> str:
    """`text` without credentials: known token shapes, credentials in URLs, and each of `secrets`."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, REDACTED)

    if not any(trace in text for trace in _TRACES) and not ("@" in text and "://" in text):
        return text

    def hide(match: re.Match[str]) -> str:
        groups = match.groupdict()
        kept = groups["scheme"] or groups["auth"]
        if kept:
            return f"{kept}{REDACTED}"
        if groups["url"]:
            return f"{groups['url']}{REDACTED}@"
        return REDACTED

    return _SECRETS.sub(hide, text)


_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# A joiner is kept between emoji and between letters of scripts that need it;
# a variation selector only right after a character that it can vary.
_ASCII_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_JOINERS: Final = {"\u200c", "\u200d"}


def clean_text(text: str, *, max_chars: int | None = None, one_line: bool = False) -> str:
    """Untrusted text as data: no escapes, controls, bidi marks or invisible characters.

    Tabs and newlines stay unless `one_line`. Text above `max_chars` ends in `…`.
    """
    if text.isascii() and text.isprintable():
        return _cut(text, max_chars)
    if text.isascii() and not _ASCII_CONTROL.search(text):
        cleaned = text.replace("\n", " ").replace("\t", " ") if one_line else text
        return _cut(cleaned, max_chars)
    out: list[str] = []
    previous = ""
    for char in _ANSI.sub("", text.replace("\r\n", "\n")):
        if char in "\n\t":
            kept = " " if one_line else char
        elif char in _JOINERS or "\ufe00" <= char <= "\ufe0f":
            kept = char if previous and unicodedata.category(previous)[0] in "LSM" and ord(previous) > 0x2FF else ""
            if char == "\ufe0f" and previous and previous in "#*0123456789":
                kept = char
        else:
            kept = "" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else char
        if kept:
            out.append(kept)
            previous = kept
    return _cut("".join(out), max_chars)


def _cut(cleaned: str, max_chars: int | None) -> str:
    if max_chars is not None and len(cleaned) > max_chars:
        cleaned = cleaned[: max(0, max_chars - 1)].rstrip() + "…"
    return cleaned
