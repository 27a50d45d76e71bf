"""The exception for refused requests. Each service renders it in its own error body."""


class ApiError(Exception):
    """A refused request.

    `kind`: the service's name of the error, if its body has one (Network's `NeutronError.type`).
    """

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


def bad_request(message: str, kind: str = "InvalidInput") -> ApiError:
    return ApiError(400, message, kind)


def forbidden(message: str = "You are not authorized to perform the requested action.") -> ApiError:
    return ApiError(403, message, "PolicyNotAuthorized")


def not_found(message: str, kind: str = "NotFound") -> ApiError:
    return ApiError(404, message, kind)


def conflict(message: str, kind: str = "Conflict") -> ApiError:
    return ApiError(409, message, kind)
