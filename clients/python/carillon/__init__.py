"""A client of the HTTP API of Carillon, a distributed crontab server.

``Client`` has a method for each call of the API, and ``carillon.models`` the types that they take and answer: dictionaries as the JSON is.
Both are written from the OpenAPI document of the server. Nothing but the standard library is needed.

    from carillon import Client

    client = Client.from_environment()
    job = client.put_job("nightly-backup", {"schedule": "0 3 * * *", "params": {"command": "pg_dump app > /backup/app.sql"}})
    print("next due at", job["next_due_at"])
"""

from . import models
from .client import Client, etag, pages
from .errors import Away, CarillonError, Refused, Strange
from .transport import Event

__all__ = ["Away", "CarillonError", "Client", "Event", "Refused", "Strange", "etag", "models", "pages"]
