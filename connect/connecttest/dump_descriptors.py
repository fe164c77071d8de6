#!/usr/bin/env python3
"""Writes the Spark Connect protocol of the installed pyspark to stdout, as a FileDescriptorSet.

Run it with the Python of an environment that holds pyspark and protobuf.
"""

import importlib
import importlib.util
import pathlib
import sys
import types

from google.protobuf import descriptor_pb2


def main():
    root = pathlib.Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])
    # Importing pyspark.sql.connect checks for pandas, gRPC and more, which a look at the
    # protocol does not need: empty packages stand in for it and lead to the same folders.
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.connect"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    found = descriptor_pb2.FileDescriptorSet()
    base = importlib.import_module("pyspark.sql.connect.proto.base_pb2").DESCRIPTOR
    add(found, base, set())
    sys.stdout.buffer.write(found.SerializeToString())


def add(found, file, seen):
    if file.name in seen:
        return
    seen.add(file.name)
    for dependency in file.dependencies:
        add(found, dependency, seen)
    file.CopyToProto(found.file.add())


if __name__ == "__main__":
    main()
