"""Stores a job unless it is there already, runs it, prints what it prints, and says why its due time came up or did not.

    CARILLON_SERVER=http://127.0.0.1:7650 PYTHONPATH=clients/python python3 clients/python/examples/nightly.py [SCHEDULE]
"""

import sys
import time

from carillon import Client, Refused, etag, pages
from carillon.models import JobDefinition

client = Client.from_environment()
definition: JobDefinition = {
    "schedule": sys.argv[1] if len(sys.argv) > 1 else "0 3 * * *",
    "timezone": "Europe/Berlin",
    "params": {"command": "echo saving; sleep 0.2; echo saved"},
    "retry": {"max_attempts": 3},
    "labels": {"team": "data"},
}
plan = client.plan_job("nightly", definition)
print("nightly would be", plan["change"] + "; it would be due at", ", ".join(plan["next"]))

try:
    job = client.put_job("nightly", definition, if_none_match="*")
except Refused as refusal:
    if refusal.status != 412:
        raise
    job = client.read_job("nightly")
for labelled in pages(client.list_jobs, label="team=data"):
    print(f"{labelled['namespace']}/{labelled['name']} is {labelled['state']}")

asked = client.run_job("nightly")
for chunk in client.read_output(asked["id"], follow=True):
    sys.stdout.write(chunk.decode())
run = client.read_run(asked["id"])
while run["status"] in ("waiting", "running"):
    # The output ends a moment before the run is recorded.
    time.sleep(0.05)
    run = client.read_run(asked["id"])
print("the run", run["status"], "with exit code", run["exit_code"])
print(client.explain_due_time("nightly")["sentence"])

# A change applies only to the generation that was read.
try:
    client.put_job("nightly", definition, if_match=etag(job["generation"] + 7))
except Refused as refusal:
    print(f"refused with {refusal.status}: {refusal}")
