#!/usr/bin/env python3
"""Work while elect, which runs beside this program, says that this host leads.

    elect run --http 127.0.0.1:4040 billing &
    python3 leader.py

A 200 is true only at the moment when it was sent, so this asks again before each step of
the work, and takes no answer for a no. A program that is frozen between the answer and a
write comes too late all the same: give the token (ELECTION_TOKEN, where elect starts the
program) to whatever you write to, and have it refuse smaller ones.

The steps are short: --grace is how long elect keeps the next leader waiting, and the
pause, the question and a step have to fit into it.
"""

import http.client
import json
import os
import sys
import time
import urllib.request

URL = os.environ.get("LEADER_URL", "http://127.0.0.1:4040/leader")
LIMIT = 1  # seconds for an answer
PAUSE = 1  # seconds between two steps

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def token():
    """The token of the term if this host leads, else None."""
    asked = time.monotonic()
    try:
        with direct.open(URL, timeout=LIMIT) as answer:  # 503 is an error here
            body = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return None
    late = time.monotonic() - asked > min(LIMIT, body["remaining"])
    return None if late else body["token"]


def step(token):
    """One short step of the work. What it writes to gets the token."""
    print(f"working token={token}", flush=True)


def main():
    while True:
        leading = token()
        if leading:
            step(leading)
        time.sleep(PAUSE)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
