"""The client against a real server (``CARILLON_SERVER``, ``./carillon.token``), and against answers that a real one seldom gives.

A test of the repository starts the server and runs this: ``cargo test -p carillon-tests --test clients``.
"""

import inspect
import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Dict, List, Tuple, get_type_hints

from carillon import Away, Client, Refused, Strange, etag, models, pages
from carillon.calls import Calls

YEARLY = "0 0 1 1 *"


class OnServer(unittest.TestCase):
    """Every call, on a real server."""

    def setUp(self) -> None:
        self.client = Client.from_environment()

    def test_every_call_of_the_document_is_a_method(self) -> None:
        document = self.client.read_document()
        told = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
        methods = {name for name, _ in inspect.getmembers(Calls, inspect.isfunction) if not name.startswith("_")}
        self.assertEqual(methods, {"".join("_" + c.lower() if c.isupper() else c for c in name) for name in told})
        for name in sorted(told):
            operation = next(o for path in document["paths"].values() for o in path.values() if o["operationId"] == name)
            method = getattr(Calls, "".join("_" + c.lower() if c.isupper() else c for c in name))
            taken = set(inspect.signature(method).parameters) - {"self", "body"}
            self.assertEqual(taken, {one["name"].lower().replace("-", "_") for one in operation["parameters"]}, name)

    def test_types_have_the_fields_of_the_document(self) -> None:
        schemas = self.client.read_document()["components"]["schemas"]
        for name, schema in schemas.items():
            model = getattr(models, name, None)
            if model is None:
                self.assertFalse(schema.get("properties"), name)
                continue
            ignored = {field for field, one in schema["properties"].items() if one.get("description", "").endswith("; ignored.")}
            self.assertEqual(set(get_type_hints(model)), set(schema["properties"]) - ignored, name)
            self.assertEqual(model.__required_keys__, frozenset(schema.get("required", [])), name)

    def test_jobs_and_runs(self) -> None:
        client = self.client
        job = client.create_job({"name": "py-a", "schedule": YEARLY, "params": {"command": "echo one; echo two; exit 3"}})
        self.assertEqual((job["name"], job["generation"]), ("py-a", 1))
        changed = client.put_job("py-a", {**job, "timeout": "5m"}, if_match=etag(1))  # type: ignore[typeddict-item]
        self.assertEqual((changed["timeout"], changed["generation"]), ("5m", 2))
        batch = client.put_jobs({"items": [{"name": f"py-b{n}", "schedule": YEARLY, "params": {"command": "true"}} for n in range(5)]})
        self.assertEqual([one["status"] for one in batch["items"]], ["created"] * 5)
        listed = [job["name"] for job in pages(client.list_jobs, prefix="py-b", limit=2)]
        self.assertEqual(listed, [f"py-b{n}" for n in range(5)])
        self.assertTrue(client.pause_job("py-a", {"reason": "moving"})["paused"])
        self.assertFalse(client.resume_job("py-a")["paused"])
        self.assertEqual(len(client.next_due_times("py-a", count=3)["next"]), 3)
        answer = client.explain_schedule({"schedule": "@daily", "count": 2})
        self.assertEqual(len(answer["next"]), 2)
        asked = client.run_job("py-a", {"params": {"env": {"A": "b"}}})
        self.assertEqual(b"".join(client.read_output(asked["id"], follow=True)), b"one\ntwo\n")
        self.assertIn(asked["id"], [run["id"] for run in client.list_runs_of_job("py-a")["items"]])
        self.assertTrue(client.list_runs(namespace="*")["items"])
        long = client.run_job("py-b0", {"params": {"command": "echo begun; sleep 1000"}})
        output = client.read_output(long["id"], follow=True)
        self.assertEqual(next(output), b"begun\n")
        client.cancel_run(long["id"])
        self.assertEqual(list(output), [])
        client.delete_job("py-a")
        self.assertIn("py-a", [entry["job"] for entry in pages(client.list_changes, limit=5)])

    def test_alerts(self) -> None:
        route = self.client.put_alert("py-ops", {"when": ["failed"], "to": [{"type": "mail", "to": ["ops@example.org"]}]})
        self.assertEqual((route["name"], route["to"][0]["type"]), ("py-ops", "mail"))
        self.assertEqual(self.client.read_alert("py-ops")["when"], ["failed"])
        self.assertIn("py-ops", [one["name"] for one in self.client.list_alerts()["items"]])
        self.assertEqual(self.client.list_incidents()["items"], [])
        self.assertEqual(self.client.list_deliveries()["items"], [])
        self.client.delete_alert("py-ops")

    def test_the_node(self) -> None:
        client = self.client
        self.assertEqual(client.is_alive()["status"], "ok")
        self.assertEqual(client.is_ready()["status"], "ready")
        self.assertEqual(client.read_cluster()["items"][0]["state"], "live")
        self.assertIn("shell", [executor["name"] for executor in client.list_executors()["items"]])
        self.assertIn("carillon_runs_started_total", client.read_metrics())
        self.assertTrue(client.make_sign_in_link()["path"].startswith("/"))

    def test_events(self) -> None:
        events = self.client.read_events(namespace="*", types="job.changed")
        first = threading.Timer(0.0, lambda: self.client.put_job("py-e", {"schedule": YEARLY, "params": {"command": "true"}}))
        first.start()
        event = next(event for event in events if event.kind == "job.changed" and event.data["job"]["name"] == "py-e")
        events.close()
        first.join()
        self.assertIsNotNone(event.id)

    def test_a_refusal_is_a_sentence(self) -> None:
        with self.assertRaises(Refused) as refused:
            self.client.put_job("py-c", {"schedule": "61 * * * *", "params": {}, "overlap": "perhaps"})  # type: ignore[typeddict-item]
        self.assertEqual((refused.exception.status, refused.exception.was_not_applied), (400, True))
        self.assertIn("schedule", [error["field"] for error in refused.exception.errors])
        with self.assertRaisesRegex(Refused, "there is no job a/../b|must be|letters|name") as refused:
            self.client.read_job("a/../b")
        with self.assertRaises(Refused) as refused:
            Client(os.environ["CARILLON_SERVER"], "wrong").list_jobs()
        self.assertEqual(refused.exception.status, 401)


class Fake(BaseHTTPRequestHandler):
    """Answers what it is told to, and counts."""

    answers: List[Tuple[int, Dict[str, str], bytes]] = []
    asked: List[str] = []

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Fake.asked.append(self.command)
        status, headers, body = Fake.answers.pop(0)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_: Any) -> None:
        pass


def problem(status: int, **more: Any) -> Tuple[int, Dict[str, str], bytes]:
    body = {"type": "about:blank", "title": "t", "status": status, "detail": "a sentence", "errors": [], **more}
    return status, {"Retry-After": "0"}, json.dumps(body).encode()


class OnFake(unittest.TestCase):
    """Faults, and what is sent again."""

    def setUp(self) -> None:
        self.server = HTTPServer(("127.0.0.1", 0), Fake)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.client = Client(self.url, "token", pause=0.0)
        Fake.asked = []

    def tearDown(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def test_only_what_may_be_repeated_is_sent_again(self) -> None:
        good: Tuple[int, Dict[str, str], bytes] = (200, {}, b'{"id": "8000000000000007-1"}')
        for method, answers, asked in [
            ("GET", [problem(503), problem(503, outcome="unknown"), good], 3),
            ("GET", [(502, {}, b"<html>"), good], 2),
            ("POST", [problem(503, outcome="not_applied"), problem(429), good], 3),
        ]:
            Fake.answers, Fake.asked = list(answers), []
            self.client.read_run("8000000000000007-1") if method == "GET" else self.client.run_job("a")
            self.assertEqual(Fake.asked, [method] * asked)
        for answers, status in [([problem(503, outcome="unknown")], 503), ([problem(503)], 503), ([problem(409)], 409)]:
            Fake.answers, Fake.asked = list(answers), []
            with self.assertRaises(Refused) as refused:
                self.client.run_job("a")
            self.assertEqual((refused.exception.status, Fake.asked), (status, ["POST"]))
        Fake.answers, Fake.asked = [problem(503)] * 3, []
        with self.assertRaises(Refused):
            self.client.list_jobs()
        self.assertEqual(Fake.asked, ["GET"] * 3)

    def test_what_is_no_server_of_ours_is_told(self) -> None:
        Fake.answers = [(404, {}, b"<html>not here</html>")]
        with self.assertRaisesRegex(Strange, "answered 404, and not as Carillon does") as strange:
            self.client.read_job("a")
        self.assertEqual(strange.exception.status, 404)
        Fake.answers = [(302, {"Location": "http://example.org/"}, b"")]
        with self.assertRaises(Strange):
            self.client.read_job("a")
        Fake.answers = [(200, {}, b"<html>")]
        with self.assertRaisesRegex(Strange, "something else than JSON"):
            self.client.read_job("a")

    def test_a_server_that_is_away_is_told(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        with self.assertRaisesRegex(Away, "does not answer") as away:
            self.client.run_job("a")
        self.assertTrue(away.exception.was_not_applied)
        for server, token in [("127.0.0.1:7650", None), (self.url, "two words")]:
            with self.assertRaises(ValueError):
                Client(server, token)


if __name__ == "__main__":
    unittest.main()
