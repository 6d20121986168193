"""Why a call failed, in a sentence."""

from typing import Optional

from .models import Fault, Problem


class CarillonError(Exception):
    """A call failed. ``was_not_applied`` tells whether it is known to have changed nothing."""

    status: Optional[int] = None
    was_not_applied = False
    retry_after: Optional[float] = None


class Refused(CarillonError):
    """The server refused the call. ``problem`` is its answer, as RFC 9457 has it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem["detail"])
        self.problem = problem
        self.status = problem["status"]
        self.errors: "list[Fault]" = problem["errors"]
        self.was_not_applied = problem.get("outcome", "not_applied") == "not_applied"


class Strange(CarillonError):
    """Something else than the API of Carillon answered, or an answer cannot be read."""

    def __init__(self, sentence: str, status: Optional[int] = None) -> None:
        super().__init__(sentence)
        self.status = status


class Away(CarillonError):
    """No server answered, or its answer broke off. Whether it did anything is not known, unless ``sent`` is false."""

    def __init__(self, url: str, reason: object, sent: bool) -> None:
        super().__init__(f"{url} does not answer: {reason}")
        self.sent = sent
        self.was_not_applied = not sent
