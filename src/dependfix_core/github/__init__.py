"""Reads GitHub: alerts, repositories, files, pull requests, and what its refusals mean."""

from dependfix_core.github.alerts import AlertListing, AlertPage
from dependfix_core.github.api import GitHubApi, Rate
from dependfix_core.github.client import GitHubReader
from dependfix_core.github.decode import AlertProblem, Asked, Failure, classify, classify_graphql, error_of
from dependfix_core.github.owners import Coverage, CoverageStatus, OwnerListing, coverage_status
from dependfix_core.github.pulls import PullRequest
from dependfix_core.github.query import AlertQuery, AlertSort, package_identity
from dependfix_core.github.repositories import NameFilter, RepositoryFacts, RepositoryListing, matches_any
from dependfix_core.github.token import ImportedToken, StaticToken, TokenKind, TokenSource, token_kind
from dependfix_core.github.tree import GitHubTree

__all__ = [
    "AlertListing",
    "AlertPage",
    "AlertProblem",
    "AlertQuery",
    "AlertSort",
    "Asked",
    "Coverage",
    "CoverageStatus",
    "Failure",
    "GitHubApi",
    "GitHubReader",
    "GitHubTree",
    "ImportedToken",
    "NameFilter",
    "OwnerListing",
    "PullRequest",
    "Rate",
    "RepositoryFacts",
    "RepositoryListing",
    "StaticToken",
    "TokenKind",
    "TokenSource",
    "classify",
    "classify_graphql",
    "coverage_status",
    "error_of",
    "matches_any",
    "package_identity",
    "token_kind",
]
