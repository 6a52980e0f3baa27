#!/usr/bin/env python3
"""The JavaScript client in a real browser (headless Chromium): a page of another origin, which the server
allows, ranks and reports while the server is killed and started again. No reward is lost or doubled, errors
arrive by their kind, rank falls back when nobody answers. Skipped (77) without chromium.

Usage: browser_client_test.py PROGRAM SOURCE
"""

import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

EVENTS = 200
KEY = "cb_test_0123456789abcdef0123456789abcdef"
PAGE = """<!doctype html><script type="module">
import {Client, CodbandError} from './codband.js';
const tell = (path, value) => fetch(path, {method: 'POST', body: JSON.stringify(value)});
const nowhere = new Client({url: location.origin + '/nowhere', timeoutMs: 200});
const result = {};
try {
  const client = new Client({url: 'URL', key: 'KEY', timeoutMs: 60000, retryForMs: 60000, fallback: false});
  result.ready = await client.isReady();
  result.items = await client.putItems([{id: 'a/b ü', features: {genre: 'jazz'}}, {id: 'rock', features: {genre: 'rock'}}]);
  result.item = (await client.getItem('a/b ü')).id;
  result.error = await client.reward('nosuch', 1).catch(e => [e instanceof CodbandError, e.status, e.isUnavailable]);
  result.key = await new Client({url: 'URL', key: 'wrong'}).models().catch(e => [e instanceof CodbandError, e.status]);
  const load = async part => {
    for (let i = part; i < EVENTS; i += 4) {
      const reply = await client.rank('user-' + i % 5, ['a/b ü', 'rock'], {eventId: 'e-' + i});
      client.report(reply.eventId, 1);
      if (i === 40 || i === 120) await tell('/kill', i);
    }
  };
  await Promise.all([0, 1, 2, 3].map(load));
  await client.flush();
  result.failed = client.failed;
  result.again = (await client.reward('e-0', 1)).status;
  result.fallback = (await nowhere.rank('ann', ['x', 'y'])).isDefault;
} catch (error) {
  result.thrown = String(error && error.stack || error);
}
await tell('/result', result);
</script>"""


class Codband:
    """The server, which may be killed and started again on the same port."""

    def __init__(self, program, directory, origin):
        self._command = [program, "serve", "--data", directory, "--set", f"http.allowed_origins={origin}"]
        self._port = 0
        self.start()

    def start(self):
        # The key is in the environment, as CODBAND_API_KEY.
        self.process = subprocess.Popen([*self._command, "--listen", f"127.0.0.1:{self._port}"],
                                        env={"PATH": "/usr/bin:/bin", "CODBAND_API_KEY": KEY},
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self._port = int(found.group(1))
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return
        sys.exit("FAILED: the server did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def observations(self, user):
        request = urllib.request.Request(f"{self.url}/v1/users/{user}", headers={"X-API-Key": KEY})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["observations"]


def serve_page(source, told):
    """The site of the page, on a port of its own: told is a queue of (path, what the page posted)."""
    files = {"/codband.js": ("text/javascript", (source / "clients/js/codband.js").read_bytes())}

    class Site(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            kind, body = files.get(self.path, (None, b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            known = self.path in ("/kill", "/result")
            if known:
                told.put((self.path, json.loads(body)))
            self.send_response(204 if known else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    return site, files


def browse(program, source, work, chromium):
    told = queue.Queue()
    site, files = serve_page(source, told)
    origin = f"http://127.0.0.1:{site.server_address[1]}"
    server = Codband(program, str(work / "data"), origin)
    page = PAGE.replace("URL", server.url).replace("KEY", KEY).replace("EVENTS", str(EVENTS))
    files["/"] = ("text/html; charset=utf-8", page.encode())
    browser = subprocess.Popen(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={work / 'profile'}",
         "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
         "--remote-debugging-port=0", origin + "/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kills = 0
    try:
        while True:
            path, value = told.get(timeout=240)
            if path == "/result":
                break
            kills += 1
            server.kill()
            server.start()
        print(f"kills {kills}, the page says {value}")
        learned = sum(server.observations(f"user-{u}") for u in range(5))
        return kills, value, learned
    finally:
        browser.terminate()
        browser.wait()
        server.kill()
        site.shutdown()


def main():
    program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("SKIPPED: chromium is not installed (apt-get install chromium)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        kills, page, learned = browse(str(program), source, pathlib.Path(work), chromium)
    expected = {"ready": True, "items": 2, "item": "a/b ü", "error": [True, 404, False], "key": [True, 401],
                "failed": 0, "again": "duplicate", "fallback": True}
    if page != expected:
        sys.exit(f"FAILED: expected {expected}")
    if kills != 2 or learned != EVENTS:
        sys.exit(f"FAILED: {learned} rewards were learned, expected {EVENTS}; {kills} kills")
    print(f"{learned} rewards, each learned once")


if __name__ == "__main__":
    main()
