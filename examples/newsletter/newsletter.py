"""A newsletter: three articles for every subscriber at night, rewards from the opens of the day.

python3 newsletter.py send SERVER SUBSCRIBERS ARTICLES [DAY] > mails.ndjson
python3 newsletter.py learn SERVER OPENS

SUBSCRIBERS has one id on each line, ARTICLES one {"id", "features"} on each. A mail is one line of
JSON: subscriber, event, articles. OPENS is a CSV with the columns event and opened (0 or 1), of the
article that stood first. Both steps may be repeated after a failure: events have ids of their own,
made from the day (today, unless it is given) and the subscriber. The server must wait long enough for the opens:
rewards.wait_seconds = 172800.
"""

import csv
import datetime
import json
import sys

import codband


def send(server, subscribers, articles, day):
    with open(articles, encoding="utf-8") as file:
        todays = [json.loads(line) for line in file if line.strip()]
    with open(subscribers, encoding="utf-8") as file:
        everybody = [line.strip() for line in file if line.strip()]
    with codband.Client(server, timeout=60, fallback=False) as client:
        client.put_items(todays)
        for subscriber in everybody:
            reply = client.rank(subscriber, [article["id"] for article in todays],
                                event_id=f"{day}/{subscriber}", top_k=3)
            print(json.dumps({"subscriber": subscriber, "event": reply.event_id, "articles": reply.ids}))


def learn(server, opens):
    failures = []
    with open(opens, newline="", encoding="utf-8") as file, \
            codband.Client(server, on_error=lambda *failure: failures.append(failure)) as client:
        for row in csv.DictReader(file):
            client.report(row["event"], float(row["opened"]))
        client.flush()
    for event, _, error in failures:
        print(f"{event}: {error!r}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "send":
        send(*sys.argv[2:], day=datetime.date.today().isoformat())
    elif len(sys.argv) == 6 and sys.argv[1] == "send":
        send(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "learn":
        learn(*sys.argv[2:])
    else:
        sys.exit(__doc__)
