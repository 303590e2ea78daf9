"""What can go wrong, as one tree of exceptions with stable codes.

```
DependfixError                     code, message, hint, retryable, retry_after_s, details
├─ ConfigurationError              config_error; before any I/O
├─ ArgumentError                   invalid_arguments
├─ SourceError                     what GitHub or a registry answered, or did not
│  ├─ AuthenticationError          auth_missing, auth_denied
│  ├─ PermissionDeniedError        permission_denied
│  ├─ AlertsDisabledError          alerts_disabled
│  ├─ PolicyBlockedError           policy_blocked
│  ├─ NotFoundError                not_found
│  ├─ ArchivedError                archived
│  ├─ RateLimitedError             rate_limited
│  ├─ NetworkError                 network
│  ├─ GitHubError                  github_error
│  ├─ ConflictError                conflict
│  ├─ AlreadyExistsError           already_exists
│  └─ NothingToDoError             nothing_to_do
├─ UnsupportedError                unsupported
├─ ReadOnlyError                   read_only
├─ ConfirmationRequiredError       confirmation_required
├─ PlanError
│  └─ StalePlanError               stale_plan
├─ WorkspaceError
│  ├─ WorkspaceMismatchError       workspace_mismatch
│  ├─ DirtyCheckoutError           dirty_checkout
│  ├─ CheckoutBusyError            conflict
│  └─ RollbackError                internal_error; the loudest one there is
├─ ProjectFileError                path, position
│  ├─ ManifestError
│  ├─ LockfileError
│  └─ UnsupportedFormatError       reason unsupported-lock-format
├─ VersionError                    text, scheme
├─ TimeLimitError                  timeout
├─ OutputTooLargeError             output_too_large
└─ CommandError                    a child process that could not do its job
   ├─ CommandNotFoundError         cli_missing
   ├─ CommandTimeoutError          timeout
   ├─ CommandOutputTooLargeError   output_too_large
   ├─ CommandBrokenError           cli_broken; it could not be started, or died by a signal
   │  └─ CommandKilledError        the latter: it ran, and what it did until then stays
   └─ CommandFailedError           cli_failed
```

Facts are attributes, never to be parsed from the text. `code` is public and
tested; wording is not. No message holds a token, an environment value or a
traceback.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

ErrorCode = Literal[
    "auth_missing",
    "auth_denied",
    "permission_denied",
    "alerts_disabled",
    "policy_blocked",
    "not_found",
    "archived",
    "rate_limited",
    "network",
    "github_error",
    "invalid_arguments",
    "confirmation_required",
    "read_only",
    "workspace_mismatch",
    "dirty_checkout",
    "conflict",
    "already_exists",
    "nothing_to_do",
    "stale_plan",
    "unsupported",
    "contract_mismatch",
    "cli_missing",
    "cli_broken",
    "cli_failed",
    "cli_refused",
    "bad_output",
    "unsupported_by_cli",
    "not_initialized",
    "config_error",
    "database_invalid",
    "database_incompatible",
    "database_busy",
    "database_stale",
    "outcome_unknown",
    "timeout",
    "output_too_large",
    "internal_error",
]

ERROR_CODES: Final[frozenset[str]] = frozenset(get_args(ErrorCode))


class DependfixError(Exception):
    """The root: everything this library raises on purpose.

    Attributes:
        code: Stable, one of `ERROR_CODES`.
        message: One line for a person.
        hint: What to do next; empty when there is nothing to add.
        retryable: Whether the same call can succeed later without a change.
        retry_after_s: Seconds to wait before that, when known.
        details: Facts as JSON values, for example GitHub's status and request id.
    """

    default_code: ErrorCode = "internal_error"
    default_retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | None = None,
        hint: str = "",
        retryable: bool | None = None,
        retry_after_s: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: ErrorCode = code if code is not None else self.default_code
        self.hint = hint
        self.retryable = retryable if retryable is not None else self.default_retryable
        self.retry_after_s = retry_after_s
        self.details: dict[str, Any] = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state, so that keyword-only constructors survive a process boundary."""
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))

    def to_dict(self) -> dict[str, Any]:
        """The failure envelope: `ok`, `error`, `code`, `retryable`, and what else is known."""
        out: dict[str, Any] = {"ok": False, "error": self.message, "code": self.code}
        if self.hint:
            out["hint"] = self.hint
        out["retryable"] = self.retryable
        if self.retry_after_s is not None:
            out["retryAfterSeconds"] = self.retry_after_s
        if self.details:
            out["details"] = self.details
        return out


def _rebuild(cls: type[DependfixError], args: tuple[Any, ...], state: dict[str, Any]) -> DependfixError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigurationError(DependfixError):
    """A setting is missing or wrong; raised before any I/O."""

    default_code: ErrorCode = "config_error"


class ArgumentError(DependfixError):
    """An argument breaks its rule; `details.argument` names it."""

    default_code: ErrorCode = "invalid_arguments"


class SourceError(DependfixError):
    """GitHub or a registry did not give what was asked for."""

    default_code: ErrorCode = "github_error"


class AuthenticationError(SourceError):
    """There is no token (`auth_missing`) or it is not accepted (`auth_denied`)."""

    default_code: ErrorCode = "auth_denied"


class PermissionDeniedError(SourceError):
    """The token is valid but may not do this; the hint names what it lacks."""

    default_code: ErrorCode = "permission_denied"


class AlertsDisabledError(SourceError):
    """Dependabot alerts are switched off for the repository: not measured, not zero."""

    default_code: ErrorCode = "alerts_disabled"


class PolicyBlockedError(SourceError):
    """A policy of the organisation or a legal block forbids it."""

    default_code: ErrorCode = "policy_blocked"


class NotFoundError(SourceError):
    """There is no such thing, or the token may not see it."""

    default_code: ErrorCode = "not_found"


class ArchivedError(SourceError):
    """The repository is archived: not measured, and read-only."""

    default_code: ErrorCode = "archived"


class RateLimitedError(SourceError):
    """A primary or secondary limit is used up; `retry_after_s` says for how long."""

    default_code: ErrorCode = "rate_limited"
    default_retryable = True


class NetworkError(SourceError):
    """No answer from the service, or one that is not its own (a proxy, a portal)."""

    default_code: ErrorCode = "network"
    default_retryable = True


class GitHubError(SourceError):
    """The service failed (`retryable`) or refuses our request as malformed."""

    default_code: ErrorCode = "github_error"


class ConflictError(SourceError):
    """Somebody else changed the same thing."""

    default_code: ErrorCode = "conflict"
    default_retryable = True


class AlreadyExistsError(SourceError):
    """It is there already."""

    default_code: ErrorCode = "already_exists"


class NothingToDoError(SourceError):
    """The wanted state holds already."""

    default_code: ErrorCode = "nothing_to_do"


class UnsupportedError(DependfixError):
    """A combination that this product does not serve."""

    default_code: ErrorCode = "unsupported"


class ReadOnlyError(DependfixError):
    """The server was started read-only."""

    default_code: ErrorCode = "read_only"


class ConfirmationRequiredError(DependfixError):
    """The operator wants every write confirmed and this client cannot ask."""

    default_code: ErrorCode = "confirmation_required"


class PlanError(DependfixError):
    """A plan cannot be read or applied."""

    default_code: ErrorCode = "internal_error"


class StalePlanError(PlanError):
    """The files are not those the plan was made on."""

    default_code: ErrorCode = "stale_plan"


class WorkspaceError(DependfixError):
    """The checkout cannot be used as asked."""

    default_code: ErrorCode = "workspace_mismatch"


class WorkspaceMismatchError(WorkspaceError):
    """The folder is not a checkout of the asked repository."""

    default_code: ErrorCode = "workspace_mismatch"


class DirtyCheckoutError(WorkspaceError):
    """Files that the plan would touch have uncommitted changes."""

    default_code: ErrorCode = "dirty_checkout"


class CheckoutBusyError(WorkspaceError):
    """Another process works on this checkout, or one was interrupted."""

    default_code: ErrorCode = "conflict"
    default_retryable = True


class RollbackError(WorkspaceError):
    """Files could not be put back; `details` names them."""

    default_code: ErrorCode = "internal_error"


class ProjectFileError(DependfixError):
    """A file of the project cannot be read as what it should be.

    Attributes:
        path: Relative to the top of the tree.
        position: `line:column`, a key path, or empty when unknown.
    """

    default_code: ErrorCode = "internal_error"

    def __init__(self, message: str, *, path: str, position: str = "", hint: str = "") -> None:
        details = {"path": path, "position": position} if position else {"path": path}
        super().__init__(message, hint=hint, details=details)
        self.path = path
        self.position = position


class ManifestError(ProjectFileError):
    """A manifest cannot be parsed."""


class LockfileError(ProjectFileError):
    """A lockfile cannot be parsed, or contradicts itself."""


class UnsupportedFormatError(ProjectFileError):
    """A format or format version that is not read (`unsupported-lock-format`)."""


class VersionError(DependfixError):
    """A text is no version of its scheme. Never read as 0.0.0.

    Attributes:
        text: As written.
        scheme: The ecosystem's name.
    """

    default_code: ErrorCode = "internal_error"

    def __init__(self, text: str, scheme: str) -> None:
        super().__init__(f"not a {scheme} version: {text!r}", details={"text": text, "scheme": scheme})
        self.text = text
        self.scheme = scheme


class TimeLimitError(DependfixError):
    """The time that was allowed is over; what was begun is undone."""

    default_code: ErrorCode = "timeout"
    default_retryable = True


class OutputTooLargeError(DependfixError):
    """An answer is larger than the limit that protects us."""

    default_code: ErrorCode = "output_too_large"


class CommandError(DependfixError):
    """A child process could not do its job.

    Attributes:
        argv: What was run, without values that could be secret.
    """

    default_code: ErrorCode = "cli_failed"

    def __init__(
        self,
        message: str,
        *,
        argv: tuple[str, ...],
        code: ErrorCode | None = None,
        hint: str = "",
        retryable: bool | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, retryable=retryable, details=details)
        self.argv = argv


class CommandNotFoundError(CommandError):
    """There is no such executable."""

    default_code: ErrorCode = "cli_missing"


class CommandTimeoutError(CommandError):
    """It did not end in time; its whole process group was killed."""

    default_code: ErrorCode = "timeout"
    default_retryable = True


class CommandOutputTooLargeError(CommandError):
    """It printed more than the cap; its whole process group was killed."""

    default_code: ErrorCode = "output_too_large"


class CommandBrokenError(CommandError):
    """It could not be started, or was ended by a signal that we did not send."""

    default_code: ErrorCode = "cli_broken"


class CommandKilledError(CommandBrokenError):
    """It ran and was ended by a signal, or left its output open: what it was to do may or may not be done."""


class CommandFailedError(CommandError):
    """It ended with an exit code that means failure.

    Attributes:
        exit_code: As the process gave it.
        stderr_tail: Its last lines, cleaned and redacted.
    """

    default_code: ErrorCode = "cli_failed"

    def __init__(
        self, message: str, *, argv: tuple[str, ...], exit_code: int, stderr_tail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, argv=argv, hint=hint, details={"exitCode": exit_code, "stderr": stderr_tail})
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class CommandOutputError(CommandError):
    """It ended as it may, but what it printed is malformed or contradicts itself or the request."""

    default_code: ErrorCode = "bad_output"


class ContractMismatchError(CommandError):
    """It does not speak the one contract that is understood; `details` has `found` and `needed`."""

    default_code: ErrorCode = "contract_mismatch"
