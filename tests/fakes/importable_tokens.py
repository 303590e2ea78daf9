"""Token callables that a source can name."""


def a_token() -> str:
    return " 'ghs_from_a_callable' "


async def a_slow_token() -> str:
    return "ghs_from_a_coroutine"


def no_token() -> str:
    return ""
