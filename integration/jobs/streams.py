#!/usr/bin/env python3
"""Runs streaming queries of several kinds in one session of a Spark Connect server.

    streams.py 'sc://host:port/;user_id=u;session_id=<uuid>' --dir DIR [--queries KIND,KIND=NAME,…]

Kinds of query, each started once (KIND=NAME gives it another name in Spark):
    healthy    a rate source that always has rows, and a sink that drops them
    stateful   the same with a watermark and a windowed count, so progress has state operators
    failing    as healthy, until an error in its rows ends it after --fail-after seconds
    unnamed    as healthy, without a name
    idle       a folder of files that gets one file: one batch, then an idle event every 10 s
    odd        as healthy, with a name of characters that few programs expect
    kafka      reads a topic, given by --kafka BROKERS/TOPIC

A number behind a kind (healthy2) makes it another query of that kind.

Every query has its checkpoint in DIR/checkpoints, by its kind, so a second run of this script
with the same DIR goes on where the first one stopped. --conf sets something in Spark's session.

Prints one JSON object a line, first {"fact": "session", "sessionId": …}, then of each query
{"fact": "started", "query": KIND, "name": …, "id": …, "runId": …}, then {"fact": "ready"}, or
{"fact": "error", "message": …}. Follows commands on standard input:
    start KIND[=NAME]   starts a query (again)     -> started
    stop KIND           stops it                   -> stopped, with query, id and runId
    stop_all            stops all that run         -> stopped, for each
    drop KIND           gives the idle query a new file -> dropped
    close               stops the session, for ever (spark.stop()) -> closed
    quit                ends the script, as the end of the input does; session and queries stay
"""

import argparse
import os
import pathlib

from pyspark.sql import functions as F

from session import join, obey, tell

ODD_NAME = "заказы/€ \"a.b\" *> 🚀"


def main():
    options = parse()
    spark = join(options.remote)
    for setting in options.conf:
        spark.conf.set(*setting.split("=", 1))
    streams = Streams(spark, options)
    for spec in filter(None, options.queries.split(",")):
        try:
            streams.start(spec)
        except Exception as err:  # whatever Spark answers
            tell("error", query=spec, message=str(err))
    tell("ready")
    obey({
        "start": streams.start,
        "stop": streams.stop,
        "stop_all": streams.stop_all,
        "drop": streams.drop,
        "close": lambda _: (spark.stop(), tell("closed")),
    })


def parse():
    parser = argparse.ArgumentParser(description="Runs streaming queries in a Spark Connect session.")
    parser.add_argument("remote", help="connection string")
    parser.add_argument("--dir", required=True, help="folder for checkpoints and source files")
    parser.add_argument("--queries", default="healthy", help="kinds of query to start, with commas")
    parser.add_argument("--trigger", default="500 milliseconds", help="time between batches")
    parser.add_argument("--fail-after", type=int, default=10, metavar="SECONDS", help="life of the failing query")
    parser.add_argument("--rows", type=int, default=10, help="rows per second of the rate source")
    parser.add_argument("--kafka", default="", metavar="BROKERS/TOPIC", help="source of the kafka query")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="setting of the session; may be repeated")
    options = parser.parse_args()
    options.dir = pathlib.Path(options.dir).absolute()
    return options


class Streams:
    """The queries of one session, by kind."""

    def __init__(self, spark, options):
        self.spark = spark
        self.options = options
        self.running = {}

    def start(self, spec):
        kind, _, name = spec.partition("=")
        frame, sink = getattr(self, f"_{kind.rstrip('0123456789')}", self._unknown)(kind)
        writer = (frame.writeStream.format(sink)
                  .option("checkpointLocation", str(self.options.dir / "checkpoints" / kind))
                  .trigger(processingTime=self.options.trigger))
        name = name or {"unnamed": None, "odd": ODD_NAME}.get(kind, kind)
        if name:
            writer = writer.queryName(name)
        if kind == "stateful":
            writer = writer.outputMode("update")
        query = writer.start()
        self.running[kind] = query
        tell("started", query=kind, name=name, id=str(query.id), runId=str(query.runId))

    def stop(self, kind):
        query = self.running.pop(kind)
        query.stop()
        tell("stopped", query=kind, id=str(query.id), runId=str(query.runId))

    def stop_all(self, _):
        for kind in list(self.running):
            self.stop(kind)

    def drop(self, kind):
        folder = self.options.dir / "files" / kind
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.iterdir()))
        hidden = folder / f".{number}.txt"
        hidden.write_text(f"line {number}\n")
        os.rename(hidden, folder / f"{number}.txt")
        tell("dropped", query=kind)

    # Kinds: each gives a streaming DataFrame and the sink's format.

    def _healthy(self, _):
        return self._rate(), "noop"

    _unnamed = _odd = _healthy

    def _rate(self):
        return self.spark.readStream.format("rate").option("rowsPerSecond", self.options.rows).load()

    def _stateful(self, _):
        counts = (self._rate().withWatermark("timestamp", "2 seconds")
                  .groupBy(F.window("timestamp", "1 second"), (F.col("value") % 3).alias("key")).count())
        return counts, "noop"

    def _failing(self, _):
        last = self.options.fail_after * self.options.rows
        fail = F.raise_error(F.concat(F.lit("value "), F.col("value"), F.lit(" is beyond the end")))
        return self._rate().withColumn("checked", F.when(F.col("value") >= last, fail)), "noop"

    def _idle(self, kind):
        self.drop(kind)
        return self.spark.readStream.text(str(self.options.dir / "files" / kind)), "noop"

    def _kafka(self, _):
        brokers, _, topic = self.options.kafka.rpartition("/")
        return (self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
                .option("subscribe", topic).option("startingOffsets", "earliest").load()), "noop"

    def _unknown(self, kind):
        raise KeyError(kind)


if __name__ == "__main__":
    main()
