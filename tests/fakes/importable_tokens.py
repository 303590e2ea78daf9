"""Token callables that a source can name."""


def a_token() -> str:
    return " 'ghs_from_a_callable' "


async def a_slow_token() -> str:
    return "ghs_from_a_coroutine"


def corpus_token() -> str:
    """The one that the corpus service takes."""
    return "ghp_0123456789abcdefghij0123456789abcdef"


def no_token() -> str:
    return ""
