"""The client, and what goes with its calls."""

import os
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from .calls import Calls

DEFAULT_SERVER = "http://127.0.0.1:7650"
TOKEN_FILE = "carillon.token"


class Client(Calls):
    """A server, and what to tell it: ``Client("http://127.0.0.1:7650", token)``.

    ``timeout`` is how long an answer may take, in seconds. ``retries`` is how often a call is sent again that failed, after a ``pause``
    that doubles; only one that reads, that was never sent, or that the server says it did not apply. ``tls`` is an ``ssl.SSLContext``
    with the certificates to trust and to show.
    """

    @classmethod
    def from_environment(cls, **settings: Any) -> "Client":
        """As the command line does it: ``CARILLON_SERVER`` and ``CARILLON_TOKEN``, or else this machine and ``./carillon.token``."""
        server = os.environ.get("CARILLON_SERVER", "").strip() or DEFAULT_SERVER
        token: Optional[str] = os.environ.get("CARILLON_TOKEN", "").strip() or None
        if token is None and Path(TOKEN_FILE).exists():
            token = Path(TOKEN_FILE).read_text()
        return cls(server, token, **settings)


def etag(generation: int) -> str:
    """The entity tag of a generation, for ``if_match``."""
    return f'"{generation}"'


def pages(call: Callable[..., Any], **parameters: Any) -> Iterator[Any]:
    """The items of all pages of a listing: ``for job in pages(client.list_jobs, namespace="*")``."""
    cursor: Optional[str] = None
    while True:
        page = call(cursor=cursor, **parameters)
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return
