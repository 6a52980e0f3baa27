"""A web shop: what to put first is ranked on the server side, a click is the reward.

python3 shop.py http://127.0.0.1:8080 [--listen PORT] [--visits N]

With --visits it makes N visitors of its own, half of whom like jazz and half rock, and tells how
often the first record was the right one.
"""

import argparse
import html
import random
import threading
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import codband

RECORDS = {
    "kind-of-blue": ("Kind of Blue", {"genre": "jazz", "year": 1959}),
    "a-love-supreme": ("A Love Supreme", {"genre": "jazz", "year": 1965}),
    "nevermind": ("Nevermind", {"genre": "rock", "year": 1991}),
    "in-utero": ("In Utero", {"genre": "rock", "year": 1993}),
}


class Shop(BaseHTTPRequestHandler):
    """Two pages: the shop for a visitor, and the click on a record."""

    client: codband.Client
    waiting: dict[str, str] = {}  # by visitor: the event whose outcome is not known yet

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(address.query).items()}
        if address.path == "/":
            self.answer(self.page(query.get("visitor", "somebody")))
        elif address.path == "/click" and self.waiting.get(query.get("visitor")) == query.get("event"):
            self.client.report(self.waiting.pop(query["visitor"]), 1.0)
            self.answer("<p>Thank you!</p>")
        else:
            self.send_error(404)

    def page(self, visitor):
        # Who comes back without a click did not like the record. Of those who never come back the
        # server learns rewards.default after rewards.wait_seconds.
        if visitor in self.waiting:
            self.client.report(self.waiting.pop(visitor), 0.0)
        # If the server does not answer in time, the records come in the order of the catalogue.
        ranked = self.client.rank(visitor, list(RECORDS))
        self.waiting[visitor] = ranked.event_id
        link = urllib.parse.urlencode({"visitor": visitor, "event": ranked.event_id})
        entries = "".join(
            f'<li><a href="/click?{html.escape(link)}" data-id="{record}">'
            f"{html.escape(RECORDS[record][0])}</a>" if place == 0 else f"<li>{html.escape(RECORDS[record][0])}"
            for place, record in enumerate(ranked.ids))
        return f"<h1>Records for {html.escape(visitor)}</h1><ol>{entries}</ol>"

    def answer(self, body):
        page = f"<!doctype html><meta charset=utf-8><title>Records</title>{body}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def visit(shop, visits, client):
    """Visitors who click when the first record is of their taste."""
    draw = random.Random(1)
    right = []
    for _ in range(visits):
        number = draw.randrange(10)
        taste = "jazz" if number % 2 == 0 else "rock"
        page = urllib.request.urlopen(f"{shop}/?visitor=visitor-{number}").read().decode()
        first = page.split('data-id="')[1].split('"')[0]
        right.append(RECORDS[first][1]["genre"] == taste)
        if right[-1]:
            link = html.unescape(page.split('href="')[1].split('"')[0])
            urllib.request.urlopen(shop + link).read()
        client.flush()  # so that this example does not depend on how fast the machine is
    half = len(right) // 2
    print(f"right record first: {sum(right[:half])} of the first {half} visits, "
          f"{sum(right[half:])} of the last {len(right) - half}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="such as http://127.0.0.1:8080")
    parser.add_argument("--listen", type=int, default=0, help="port of the shop")
    parser.add_argument("--visits", type=int, help="make so many visitors, then end")
    options = parser.parse_args()
    with codband.Client(options.server, timeout=0.5) as client:
        client.put_items({"id": i, "features": features} for i, (_, features) in RECORDS.items())
        Shop.client = client
        server = ThreadingHTTPServer(("127.0.0.1", options.listen), Shop)
        shop = f"http://127.0.0.1:{server.server_port}"
        print(f"The shop is at {shop}/?visitor=ann", flush=True)
        if options.visits is None:
            server.serve_forever()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visit(shop, options.visits, client)
        server.shutdown()


if __name__ == "__main__":
    main()
