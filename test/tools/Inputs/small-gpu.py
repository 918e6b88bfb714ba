"""Writes the description of a GPU with another amount of memory: FROM.json TO.json BYTES."""

import json
import sys

given, into, size = sys.argv[1:]
with open(given) as file:
    description = json.load(file)
description["properties"]["totalGlobalMem"] = int(size)
with open(into, "w") as file:
    json.dump(description, file)
