"""What the jobs share: the session they join, the facts they print, the commands they follow."""

import json
import os
import sys
import threading

from pyspark.sql import SparkSession

_printing = threading.Lock()


def tell(fact, **fields):
    """Prints one fact as a line of JSON."""
    with _printing:
        print(json.dumps({"fact": fact, **fields}, ensure_ascii=False), flush=True)


def join(remote):
    """The session named by a connection string, which is made if it is not there."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    tell("session", sessionId=spark.session_id, version=spark.version)  # asking for the version makes it
    return spark


def obey(commands):
    """Runs `name argument` lines of standard input until quit or the end of the input, then ends the program.

    A command that fails is told as a fact and does not end the job. The end asks nothing of
    Spark: its client would clear caches on the way out, which takes minutes when the server has
    gone, and would wait for the thread of a listener that is still registered.
    """
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        if name == "quit":
            break
        if name:
            _run(commands, name, argument)
    os._exit(0)


def _run(commands, name, argument):
    if name not in commands:
        tell("error", message=f"unknown command {name!r}: use {', '.join(commands)} or quit")
        return
    try:
        commands[name](argument)
    except Exception as err:  # whatever Spark answers
        tell("error", message=f"{name} {argument}: {err!r}")
