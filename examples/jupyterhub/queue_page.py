"""A page of the hub on which students see their own submissions: who waits, and what was graded.

The hub starts it (jupyterhub_config.py) in the course's folder, where `make watch` writes the queue.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from datetime import datetime, timezone
from urllib.parse import urlparse

from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from tornado.template import Template
from tornado.web import Application, RequestHandler, authenticated

from autograder.extras.watch.queue_file import QUEUE, Place, Queue, read_queue

REFRESH_SECONDS = 10
# Nothing but this page itself: no scripts, nothing from elsewhere, and in no other page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
POLICY += "; frame-ancestors 'none'"

PAGE = Template(
    """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="{{ refresh }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Your submissions</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: auto; padding: 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .4rem 1.2rem .4rem 0; }
tr { border-bottom: 1px solid #d9d9d9; }
</style>
</head>
<body>
<main>
<h1>Your submissions, {{ name }}</h1>
<p>{{ sentence }}</p>
{% if rows %}
<table>
<thead>
<tr><th scope="col">Assignment</th><th scope="col">Handed in</th><th scope="col">What became of it</th></tr>
</thead>
<tbody>
{% for assignment, arrived, words in rows %}
<tr><td>{{ assignment }}</td><td>{{ arrived }}</td><td>{{ words }}</td></tr>
{% end %}
</tbody>
</table>
{% end %}
<p>This page shows what is new by itself, every {{ refresh }} seconds.</p>
</main>
</body>
</html>
"""
)


class QueuePage(HubOAuthenticated, RequestHandler):
    """The page of whoever is logged in."""

    known: tuple[int, Queue | None] = (0, None)  # the file's time, and what it says

    @authenticated
    def get(self) -> None:
        """The page, made anew for each request; the file is read when it has changed."""
        name = self.current_user["name"]
        queue = self._read()
        rows = [
            (place.assignment, clock(place.arrived), in_words(place, before))
            for place, before in (queue.of(name) if queue else [])
        ]
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Cache-Control", "no-store")
        self.finish(PAGE.generate(name=name, sentence=state(queue, rows), rows=rows, refresh=REFRESH_SECONDS))

    def _read(self) -> Queue | None:
        try:
            changed = os.stat(QUEUE).st_mtime_ns
        except FileNotFoundError:
            return None
        if changed != QueuePage.known[0]:
            QueuePage.known = changed, read_queue(QUEUE)
        return QueuePage.known[1]


def state(queue: Queue | None, rows: list) -> str:
    """What grading does at the moment."""
    if queue is None or not queue.alive(datetime.now(timezone.utc)):
        return "Nothing is graded at the moment. What you hand in is kept, and graded later."
    if queue.trouble:
        return "Grading had to stop for a while. It goes on by itself, and nothing is lost."
    if not rows:
        return "You have handed in nothing since grading began."
    return "Grading is at work: what you hand in is graded in its turn."


def in_words(place: Place, before: int) -> str:
    """What became of a submission; ``before`` it wait so many others."""
    if place.stage == "waiting":
        return f"It waits; {before} are before it." if before else "It waits, and is next."
    if place.stage == "grading":
        return "It is being graded."
    if place.stage == "failed":
        return "It could not be graded. Your instructor sees why."
    ended = f"Graded at {clock(place.ended or place.arrived)}"
    points = "" if place.points is None else f": {place.points:.4g} of {place.most:.4g} points"
    if place.stage == "passed over":
        counts = "" if place.before is None else f", with {place.before:.4g}"
        return f"{ended}{points}. Your earlier submission has more points and still counts{counts}."
    fetch = " Nbgrader's Assignment List fetches the feedback." if place.handed_back else ""
    return f"{ended}{points}.{fetch}"


def clock(moment: str) -> str:
    """A time as the hub's clock shows it."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S %Z}"


async def main() -> None:
    """Serve the page where the hub expects it."""
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    address = urlparse(os.environ["JUPYTERHUB_SERVICE_URL"])
    pages = [(prefix, QueuePage), (f"{prefix}oauth_callback", HubOAuthCallbackHandler)]
    Application(pages, cookie_secret=secrets.token_bytes(32)).listen(address.port, address.hostname)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
