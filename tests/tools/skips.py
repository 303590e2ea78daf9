"""Compares the tests that were skipped with the reviewed list.

usage: python tests/tools/skips.py FILE     (written by a run with DEPENDFIX_SKIPS_FILE)

Prints each skip. A reason that no line of `skips.txt` is the beginning of fails.
"""

import sys
from pathlib import Path


def main(path: str) -> int:
    """1 when something is skipped that nobody reviewed."""
    reviewed = Path(__file__).with_name("skips.txt").read_text(encoding="utf-8").splitlines()
    allowed = tuple(line for line in reviewed if line and not line.startswith("#"))
    skips = Path(path).read_text(encoding="utf-8").splitlines()
    for line in sorted(skips):
        print(f"skipped {line}")
    surprises = [line for line in skips if not line.partition("\t")[2].startswith(allowed)]
    for line in surprises:
        print(f"not in the reviewed list: {line}", file=sys.stderr)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
