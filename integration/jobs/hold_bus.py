#!/usr/bin/env python3
"""Holds the listener bus of a session, as a job with a listener of its own does.

    hold_bus.py 'sc://host:port/;user_id=u;session_id=<uuid>' [--later]

Prints one JSON object a line: {"fact": "session", "sessionId": …}, {"fact": "held"} once the
listener is registered, which with --later it is when it is told to hold, then for each event
{"fact": "progress" | "idle" | "terminated" | "started", "id": …, "runId": …}. The call that
registers a listener hangs for ever while another client holds the bus: then "held" does not come.
Follows commands on standard input:
    release    removes the listener   -> released
    hold       registers it again     -> held
    quit       ends the script without removing it, as the end of the input does
"""

import argparse
import warnings

from pyspark.sql.streaming import StreamingQueryListener

from session import join, obey, tell


def main():
    parser = argparse.ArgumentParser(description="Holds the listener bus of a Spark Connect session.")
    parser.add_argument("remote", help="connection string")
    parser.add_argument("--later", action="store_true", help="register nothing before the command hold")
    options = parser.parse_args()
    spark = join(options.remote)
    listener = Teller()

    def hold(_):
        with warnings.catch_warnings(record=True) as warned:  # a refusal is no more than a warning
            warnings.simplefilter("always")
            spark.streams.addListener(listener)
        refused = [str(w.message) for w in warned if "Failed to add" in str(w.message)]
        tell("error", message=refused[0]) if refused else tell("held")

    def release(_):
        spark.streams.removeListener(listener)
        tell("released")

    if not options.later:
        hold("")
    obey({"hold": hold, "release": release})


class Teller(StreamingQueryListener):
    """Tells of each event as a fact."""

    def onQueryStarted(self, event):
        tell("started", id=str(event.id), runId=str(event.runId), name=event.name)

    def onQueryProgress(self, event):
        progress = event.progress
        tell("progress", id=str(progress.id), runId=str(progress.runId), name=progress.name, batchId=progress.batchId)

    def onQueryIdle(self, event):
        tell("idle", id=str(event.id), runId=str(event.runId), timestamp=event.timestamp)

    def onQueryTerminated(self, event):
        tell("terminated", id=str(event.id), runId=str(event.runId), exception=event.exception)


if __name__ == "__main__":
    main()
