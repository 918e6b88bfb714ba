#!/usr/bin/python3
"""What a run keeps: files, their records, and TensorBoard events read by another reader's rules; --resume adds to them."""
import csv
import json
import os
import struct

from support import MODELS, check, digits, run, workspace

import numpy as np


def crc32c(data):
    """Division by the polynomial of Castagnoli, bit by bit, as RFC 3720 12.1 tells it: each byte's low bit first."""
    rest = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            carry = (rest >> 31) ^ (byte >> bit & 1)
            rest = (rest << 1 & 0xFFFFFFFF) ^ (0x1EDC6F41 if carry else 0)
    return int(f"{rest ^ 0xFFFFFFFF:032b}"[::-1], 2)


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(message):
    """(number, value) of a protobuf message: integers, and bytes of what has a length or a fixed size."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at:at + size]
        at += size


def read_events(path):
    """Scalars by (step, tag), and the steps from which on the file starts anew."""
    blob, at, scalars, starts, versions = path.read_bytes(), 0, {}, [], []
    while at < len(blob):
        head = blob[at:at + 8]
        length = struct.unpack("<Q", head)[0]
        check(struct.unpack_from("<I", blob, at + 8)[0] == masked(head), f"checksum of a length at {at} of {path}")
        payload = blob[at + 12:at + 12 + length]
        check(struct.unpack_from("<I", blob, at + 12 + length)[0] == masked(payload), f"checksum of a record at {at} of {path}")
        at += 16 + length
        event = dict(fields(payload))
        check(1.6e9 < struct.unpack("<d", event[1])[0] < 1e10, "wall time in seconds")
        step = event.get(2, 0)
        if 3 in event:
            versions.append(event[3])
        if 7 in event:
            check(dict(fields(event[7])) == {1: 1}, "a session log that says start")
            starts.append(step)
        for number, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            scalars[step, value[1].decode()] = struct.unpack("<f", value[2])[0]
    check(versions == [b"brain.Event:2"], f"file version {versions}")
    return scalars, starts


def check_events(scalars, records):
    wanted = {}
    for record in records:
        prefix = "" if record["event"] == "step" else "val_"
        for key, value in record.items():
            if isinstance(value, (int, float)) and key not in ("step", "epoch") and key.startswith(prefix):
                wanted[record["step"], key] = np.float32(value)
    check(scalars == wanted, f"events {scalars}, the log says {wanted}")
    check({"loss", "lr", "accuracy", "samples_per_s", "val_loss", "val_accuracy"} <= {tag for _, tag in scalars}, f"tags: {scalars}")


def main():
    check(crc32c(b"123456789") == 0xE3069283, "the test's own checksum")
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    data = digits(directory)
    kept = directory / "run"
    train = ["dlc-run", "train", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads", 1, *data, "--val", data[1], "--val", data[3],
             "--run", kept]
    run(*train, "--steps", 6)
    names = {"best.safetensors", "last.safetensors", "log.jsonl", "log.csv", "config.json", "loss.svg"}
    files = sorted(kept.glob("events.out.tfevents.*"))
    check({file.name for file in kept.iterdir()} == names | {files[0].name}, f"the run directory holds {list(kept.iterdir())}")
    records = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
    scalars, starts = read_events(files[0])
    check_events(scalars, records)
    check(starts == [1], f"a fresh run starts at {starts}")

    run(*train, "--epochs", 3, "--resume")
    resumed = sorted(kept.glob("events.out.tfevents.*"))
    check(len(resumed) == 2 and resumed[0] == files[0], f"files of events: {resumed}")
    scalars, starts = read_events(resumed[1])
    records = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
    check(starts == [7], f"the resumed run starts at {starts}")
    check_events(scalars, [record for record in records if record["step"] > 6])
    table = list(csv.DictReader((kept / "log.csv").open()))
    epochs = [record for record in records if record["event"] == "epoch"]
    check([row["val_loss"] for row in table] == [str(record["val_loss"]) for record in epochs], f"log.csv: {table}")


main()
