"""A webhook receiver that accepts only genuine deliveries. It uses nothing but the standard library of Python.

    SIGNATURE_KEYS=whsec_… PORT=9000 python3 receiver.py

SIGNATURE_KEYS is the key that Steward returned when you created the webhook. Separate several keys with spaces.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

SECRETS = [
    base64.b64decode(key[len("whsec_") :], validate=True)
    for key in os.environ.get("SIGNATURE_KEYS", "").split()
    if key.startswith("whsec_")
]
# Refuses recorded deliveries that an attacker sends again later, and allows for clocks that differ.
TOLERANCE_SECONDS = 300
# A payload has at most 256 KiB; a form encodes one byte as up to three.
MAX_BODY_BYTES = 1024 * 1024
REMEMBERED_IDS = 10_000


def is_genuine(headers, body):
    """Checks the bytes as they arrived: JSON that was parsed and written again has other bytes and another signature."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not event_id or not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    # Steward sends one signature for each key that is valid during a key rotation: any of them may match.
    given = headers.get("webhook-signature", "").encode("utf-8", "replace").split(b" ")
    content = f"{event_id}.{timestamp}.".encode("utf-8", "replace") + body
    expected = [
        b"v1," + base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest())
        for secret in SECRETS
    ]
    return any(hmac.compare_digest(one, other) for one in expected for other in given)


def read_event(headers, body):
    if headers.get_content_type() == "application/x-www-form-urlencoded":
        return json.loads(parse_qs(body.decode())["payload"][0])
    return json.loads(body)


def handle(event):
    """Put your own code here. Answer fast: do work that takes long after the answer."""
    data = json.dumps(event["data"], separators=(",", ":"))
    # One string: print writes several values one by one where Python does not buffer its output.
    print(f"accepted {event['type']} {event['id']} {data}", flush=True)


handled_ids = {}
lock = threading.Lock()


def handle_once(event):
    """Steward may deliver an event more than once, always with the same id."""
    with lock:
        if event["id"] in handled_ids:
            return
        handle(event)
        handled_ids[event["id"]] = True
        if len(handled_ids) > REMEMBERED_IDS:
            del handled_ids[next(iter(handled_ids))]


class Receiver(BaseHTTPRequestHandler):
    timeout = 30  # Seconds without a byte until the connection is closed.

    def do_POST(self):
        self.send_response(self.receive())
        self.end_headers()

    def receive(self):
        """Returns the status of the answer. Steward repeats a delivery unless the status is 2xx."""
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,12}", length):
            return 411
        if int(length) > MAX_BODY_BYTES:
            return 413
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return 400
        if not is_genuine(self.headers, body):
            print("refused", flush=True)
            return 401
        try:
            handle_once(read_event(self.headers, body))
            return 204
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
            return 500

    def log_message(self, *_):
        pass


if not SECRETS:
    sys.exit("SIGNATURE_KEYS must hold at least one key that begins with whsec_")
server = ThreadingHTTPServer(
    (os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "9000"))), Receiver
)
print("listening on http://{}:{}".format(*server.server_address), flush=True)
server.serve_forever()
