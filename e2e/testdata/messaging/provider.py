"""A provider of messages that uses the providers' own libraries: it verifies what Vigil sends, and signs what it reports."""
import base64
import datetime
import http.server
import json
import queue
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from standardwebhooks import Webhook
from twilio.request_validator import RequestValidator

service, form, secret, port, public, password = sys.argv[1:]
received = queue.Queue()


class Provider(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        received.put((self.path, dict(self.headers), body))
        answer = b'{"sid": "SM1", "status": "queued"}'
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


threading.Thread(target=http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Provider).serve_forever, daemon=True).start()


def call(method, path, body=None, headers=None):
    request = urllib.request.Request(service + path, method=method, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def api(method, path, token=None, **body):
    headers = {"Content-Type": "application/json"} | ({"Authorization": "Bearer " + token} if token else {})
    status, answer = call(method, "/api/v1/" + path, json.dumps(body).encode() if body else None, headers)
    assert status < 300, (method, path, status, answer)
    return json.loads(answer)


def signed_json(path, body):
    raw = json.dumps(body)
    now = datetime.datetime.now(datetime.timezone.utc)
    signature = Webhook(secret).sign(body["id"], now, raw)
    return call("POST", path, raw.encode(), {"Content-Type": "application/json", "webhook-id": body["id"],
        "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature})[0]


class Form(dict):
    """A form as web frameworks pass it to the library."""
    def getlist(self, name):
        return self[name]


def twilio_form(path, pairs, key=secret):
    params = Form()
    for name, value in pairs:
        params.setdefault(name, []).append(value)
    signature = RequestValidator(key).compute_signature(public + path, params)
    return call("POST", path, urllib.parse.urlencode(pairs).encode(),
        {"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": signature})[0]


nurse = api("POST", "auth/login/", email="nurse@vigil.example", password=password)["access"]
patient = api("GET", "patients/?page_size=1", nurse)["results"][0]
number = "+1" + "".join(c for c in patient["phone"] if c.isdigit())
message = api("POST", f"patients/{patient['id']}/messages/", nurse, template="take_again")
path, headers, body = received.get(timeout=60)
headers = {name.lower(): value for name, value in headers.items()}
status, inbound = "/api/v1/messaging/status/", "/api/v1/messaging/inbound/"

if form == "http":
    sent = Webhook(secret).verify(body, headers)
    assert sent["id"] == message["id"] and sent["to"] == number and "rest for 5 minutes" in sent["text"], sent
    print("the request is signed")
    print("status", signed_json(status, {"id": message["id"], "state": "delivered"}))
    print("text", signed_json(inbound, {"id": "t1", "from": number, "to": sent["from"], "text": "128/82 ñ 😀"}))
    secret = "whsec_" + base64.b64encode(b"another secret of 24 bytes").decode()
    print("forged", signed_json(inbound, {"id": "t2", "from": number, "to": sent["from"], "text": "STOP"}))
else:
    sent = dict(urllib.parse.parse_qsl(body.decode()))
    account = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    assert path == "/2010-04-01/Accounts/AC1/Messages.json" and account == "AC1:" + secret, (path, account)
    assert sent["To"] == number and sent["From"] == "+15185550100" and "rest for 5 minutes" in sent["Body"], sent
    print("the request is signed")
    callback = sent["StatusCallback"]
    assert callback.startswith(public), callback
    print("status", twilio_form(callback.removeprefix(public), [("MessageSid", "SM1"), ("MessageStatus", "delivered"), ("ErrorCode", "")]))
    print("text", twilio_form(inbound, [("MessageSid", "SM2"), ("From", number), ("To", "+15185550100"), ("Body", "128/82 ñ 😀 & + = %"),
        ("MediaContentType0", "image/png"), ("Twice", "b"), ("Twice", "a"), ("Twice", "b"), ("Empty", "")]))
    print("forged", twilio_form(inbound, [("MessageSid", "SM3"), ("From", number), ("To", "+15185550100"), ("Body", "STOP")], "another"))

thread = api("GET", f"patients/{patient['id']}/messages/", nurse)["results"]
print("delivered", next(m["state"] for m in thread if m["id"] == message["id"]) == "delivered")
print("received", sum("128/82" in m["text"] for m in thread if m["direction"] == "in"))
print("stopped", api("GET", f"patients/{patient['id']}/", nurse)["messaging"]["stopped_at"])
