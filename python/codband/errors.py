"""What goes wrong apart from wrong arguments, which are ``ValueError``, and unknown names, ``KeyError``."""


class Error(Exception):
    """The base of the errors below."""


class ConflictError(Error):
    """What is there already does not allow it, such as an event id of another request."""


class LateError(Error):
    """The event's wait for a reward is over; nothing is changed."""


class NotLearnedError(Error):
    """The reward is kept, but cannot be learned."""


class UnavailableError(Error, ConnectionError):
    """The server, or the store, cannot be used now: try again."""


class DataError(Error):
    """Stored data is damaged, or the disk failed."""


class AuthError(Error):
    """The key is missing or wrong, or its role does not allow the request."""


_BY_CODE = {
    "kConflict": ConflictError,
    "kGone": LateError,
    "kRejected": NotLearnedError,
    "kUnavailable": UnavailableError,
    "kCorruption": DataError,
    "kIoError": DataError,
}


def of_code(code: str) -> type:
    """The class for a status code of the C++ core."""
    return _BY_CODE.get(code, Error)
