"""The way to a server: one call is one request, sent again only where that is safe."""

import http.client
import json
import ssl
import time
import urllib.parse
from typing import Any, Callable, Dict, Generator, List, Mapping, NamedTuple, Optional, TypeVar

from .errors import Away, CarillonError, Refused, Strange

# The longest pause before a call is sent again, whatever the server asks for.
LONGEST_PAUSE = 10.0


T = TypeVar("T")


class Event(NamedTuple):
    """Something that happened. Given as ``last_event_id``, its ``id`` lets the next stream go on behind it."""

    id: Optional[str]
    kind: str
    data: Any


class Transport:
    """Sends calls. ``Client`` is made of it and of the calls."""

    def __init__(
        self,
        server: str,
        token: Optional[str] = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        pause: float = 0.2,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        if not server.startswith(("http://", "https://")):
            raise ValueError(f"{server!r} is no address: write http://HOST:PORT or https://HOST:PORT")
        token = token.strip() if token is not None else None
        if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("the token is not one word of printable ASCII")
        self._server = server.rstrip("/")
        self._address = urllib.parse.urlsplit(self._server)
        self._token = token
        self._timeout = timeout
        self._retries = retries
        self._pause = pause
        self._tls = tls

    def _nothing(self, method: str, path: str, **parts: Any) -> None:
        self._whole(method, path, **parts)

    def _json(self, method: str, path: str, **parts: Any) -> Any:
        body = self._whole(method, path, **parts)
        try:
            return json.loads(body)
        except ValueError as error:
            raise Strange(f"{self._server}{path} answered something else than JSON: {error}") from None

    def _text(self, method: str, path: str, **parts: Any) -> str:
        return self._whole(method, path, **parts).decode("utf-8", "replace")

    def _bytes(self, method: str, path: str, **parts: Any) -> Generator[bytes, None, None]:
        return self._chunks(self._repeating(method, lambda: self._send(method, path, endless=True, **parts)))

    def _events(self, method: str, path: str, **parts: Any) -> Generator[Event, None, None]:
        return self._read_events(self._repeating(method, lambda: self._send(method, path, endless=True, **parts)))

    def _whole(self, method: str, path: str, **parts: Any) -> bytes:
        return self._repeating(method, lambda: self._read(self._send(method, path, **parts)))

    def _repeating(self, method: str, once: Callable[[], T]) -> T:
        pause = self._pause
        for _ in range(self._retries):
            try:
                return once()
            except CarillonError as error:
                if not _is_worth_another_try(method, error):
                    raise
                wait = pause if error.retry_after is None else error.retry_after
                time.sleep(min(wait, LONGEST_PAUSE))
                pause *= 2
        return once()

    def _send(
        self,
        method: str,
        path: str,
        *,
        path_values: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, Optional[str]]] = None,
        body: Any = None,
        endless: bool = False,
    ) -> http.client.HTTPResponse:
        for name, value in (path_values or {}).items():
            path = path.replace("{" + name + "}", urllib.parse.quote(str(value), safe=""))
        pairs = {name: _plain(value) for name, value in (query or {}).items() if value is not None}
        target = self._address.path + path + ("?" + urllib.parse.urlencode(pairs) if pairs else "")
        url = self._server + target[len(self._address.path) :]
        sent: Dict[str, str] = {"User-Agent": "carillon-client (Python)", "Connection": "close"}
        if self._token is not None:
            sent["Authorization"] = "Bearer " + self._token
        if method != "GET":
            sent["Content-Type"] = "application/json"
        sent.update({name: value for name, value in (headers or {}).items() if value is not None})
        data = None if body is None else json.dumps(body).encode()
        connection = self._connection()
        try:
            connection.connect()
        except OSError as error:
            raise Away(url, error, sent=False) from None
        socket = connection.sock
        try:
            connection.request(method, target, body=data, headers=sent)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Away(url, error, sent=True) from None
        if response.status >= 300:
            raise _refusal(url, response)
        if endless:
            # A run may print nothing for days.
            socket.settimeout(None)
        return response

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        with response:
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as error:
                raise Away(self._server, f"the answer broke off: {error}", sent=True) from None

    def _chunks(self, response: http.client.HTTPResponse) -> Generator[bytes, None, None]:
        with response:
            while True:
                try:
                    chunk = response.read1(65536)
                except (OSError, http.client.HTTPException) as error:
                    raise Away(self._server, f"the output broke off: {error}", sent=True) from None
                if not chunk:
                    return
                yield chunk

    def _read_events(self, response: http.client.HTTPResponse) -> Generator[Event, None, None]:
        mark: Optional[str] = None
        kind = ""
        data: List[str] = []
        with response:
            while True:
                try:
                    line = response.readline().decode("utf-8", "replace")
                except (OSError, http.client.HTTPException) as error:
                    raise Away(self._server, f"the events broke off: {error}", sent=True) from None
                if not line:
                    return
                line = line.rstrip("\r\n")
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if not line:
                    # A blank line ends an event; one without data is none.
                    if data:
                        yield Event(mark, kind, json.loads("\n".join(data)))
                    kind, data = "", []
                elif name == "id":
                    mark = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(url: str, response: http.client.HTTPResponse) -> CarillonError:
    with response:
        try:
            refused = Refused(json.loads(response.read()))
        except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
            sentence = f"{url} answered {response.status}, and not as Carillon does: is it the address of a server?"
            return Strange(sentence, response.status)
        wait = response.headers.get("Retry-After", "")
        refused.retry_after = float(wait) if wait.isdigit() else None
        return refused


def _is_worth_another_try(method: str, error: CarillonError) -> bool:
    """Whether a call may be sent again: it reads, was never sent, or was not applied."""
    may_be_repeated = method == "GET"
    if isinstance(error, Away):
        return may_be_repeated or not error.sent
    if isinstance(error, Refused):
        if error.status == 503:
            return may_be_repeated or error.problem.get("outcome") == "not_applied"
        return error.status == 429
    return may_be_repeated and error.status in (502, 503, 504)
