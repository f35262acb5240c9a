"""Starts Steward once for the session, as a process on a free port, and resets it before each test."""

import json
import os
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

PASSWORD = "correct horse"
# The package, or the executable file of a release, which needs no Node.
COMMAND = os.environ.get("STEWARD_COMMAND", "node_modules/.bin/steward")
START_LIMIT = float(os.environ.get("STEWARD_START_LIMIT", "30"))  # in seconds


class Steward:
    def __init__(self, url):
        self.url = url

    def send(self, path, body=None, content_type=None):
        """Returns the status and the JSON of the answer. Without a body, the request is a GET."""
        headers = {} if body is None else {"Content-Type": content_type}
        request = urllib.request.Request(self.url + path, body and body.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def get(self, path, **fields):
        return self.send(f"{path}?{urllib.parse.urlencode({'f': 'json', **fields})}")

    def post(self, path, **fields):
        form = urllib.parse.urlencode({"f": "json", **fields})
        return self.send(path, form, "application/x-www-form-urlencoded")

    def control(self, path, value=None):
        """Changes the clock, the failures or all of the state; without a value, reads them or the journal."""
        body = None if value is None else json.dumps(value)
        status, answer = self.send(f"/control/{path}", body, "application/json")
        assert status == 200, answer
        return answer

    def sign_in(self):
        _, answer = self.post("/tokens/generateToken", username="admin", password=PASSWORD)
        return answer["token"]


@pytest.fixture(scope="session")
def steward_process():
    environment = {
        "PATH": os.environ["PATH"],
        "PORT": "0",
        "ADMIN_PASSWORD": PASSWORD,
        "LOG_LEVEL": "silent",
        "TEST_CONTROL": "true",
        "UPGRADE_STEP_MS": "0",
    }
    # The command reads no .env, and the variables above replace those of this process.
    process = subprocess.Popen([COMMAND], env=environment, text=True, stderr=subprocess.PIPE)
    # The server accepts requests when it prints this line: "Steward listens on http://127.0.0.1:49152".
    limit = threading.Timer(START_LIMIT, process.kill)
    limit.start()
    line = process.stderr.readline()
    limit.cancel()
    if "listens on" not in line:
        process.kill()
        raise RuntimeError(f"Steward did not start within {START_LIMIT} seconds: {line}{process.stderr.read()}")
    # Without a reader, the server would block when the pipe is full.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield Steward(line.split()[-1])
    process.terminate()
    try:
        process.wait(timeout=20)
    finally:
        process.kill()


@pytest.fixture
def steward(steward_process):
    steward_process.control("reset", {})
    return steward_process
