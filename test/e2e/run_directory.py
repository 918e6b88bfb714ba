#!/usr/bin/python3
"""What a run keeps: files, their records, and TensorBoard events read by another reader's rules; --resume adds to them,
so that all ends as if nothing had stopped the run."""
import csv
import json
import os
import shutil
import signal
import struct
import subprocess

from jobs import await_steps, fails
from support import BIN, MODELS, check, digits, read_safetensors, run, workspace, write_safetensors

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
        if record.get("part"):
            continue
        prefix = "" if record["event"] == "step" else "val_"
        for key, value in record.items():
            if isinstance(value, (int, float)) and key not in ("step", "epoch") and key.startswith(prefix):
                wanted[record["step"], key] = np.float32(value)
    check(scalars == wanted, f"events {scalars}, the log says {wanted}")
    check({"loss", "lr", "accuracy", "samples_per_s", "val_loss", "val_accuracy"} <= {tag for _, tag in scalars}, f"tags: {scalars}")


TIMES = {"seconds", "samples_per_s", "step_ms", "comm_ms", "exposed_comm_ms", "data_wait_ms"}


def without_times(record):
    return {key: value for key, value in record.items() if key not in TIMES}


def kept(directory):
    """Contents of a run directory by file, measured times left out; files of events are read as the one run that they
    tell of."""
    contents, events = {}, {}
    for file in sorted(directory.iterdir()):
        if file.name.startswith("events."):
            scalars, starts = read_events(file)
            events = {key: value for key, value in events.items() if key[0] < starts[0]}
            events.update({key: value for key, value in scalars.items() if key[1] not in TIMES})
        elif file.suffix == ".jsonl":
            contents[file.name] = [without_times(json.loads(line)) for line in file.read_text().splitlines()]
        elif file.suffix == ".csv":
            contents[file.name] = [without_times(row) for row in csv.DictReader(file.open())]
        else:
            contents[file.name] = file.read_bytes()
    return {**contents, "events": events}


def check_same(one, other):
    ours, theirs = kept(one), kept(other)
    check(ours.keys() == theirs.keys(), f"{one} holds {sorted(ours)}, {other} holds {sorted(theirs)}")
    for name, content in ours.items():
        check(content == theirs[name], f"{name} of {one} and {other} differ")


def interrupt(command, directory):
    """Ends a run by SIGTERM once it has a checkpoint, and checks that it was under way."""
    job = subprocess.Popen([str(part) for part in (BIN / command[0], *command[1:])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True)
    await_steps(job, directory / "last.safetensors")
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=60)
    check(job.returncode == 1 and f"; continue with --resume --run {directory}" in err, f"not interrupted: {err}")


def check_averages(kept, artifact, data):
    """What the last epoch's validation said is what its checkpoint and its averages alone evaluate to, and not what the
    parameters do."""
    last = read_safetensors(kept / "last.safetensors")
    log = [json.loads(line) for line in (kept / "log.jsonl").read_text().splitlines()]
    raw = {name: value for name, value in last.items() if not name.startswith("optimizer.")}
    averages = {name: last.get(f"optimizer.ema.{name}", value) for name, value in raw.items()}
    check("optimizer.ema.fc1.weight" in last and "optimizer.ema.conv1.weight" not in last, f"averages among {last.keys()}")

    def loss(name, tensors):
        write_safetensors(kept.parent / name, tensors)
        return json.loads(run("dlc-run", "eval", artifact, *data, "--init", kept.parent / name, "--json")[0])["loss"]

    ours = [loss("last", last), loss("averages", averages), loss("raw", raw)]
    theirs = log[-1]["val_loss"]
    check(ours[0] == ours[1] > 0 and abs(ours[0] - theirs) < 1e-6 * theirs, f"averages: {ours[:2]}, the last epoch's validation: {theirs}")
    check(ours[2] != ours[1], "averages are the parameters")


def check_resuming(directory, data):
    """A run that --steps cut or a signal interrupted, with schedules that count to the end and all that changes updates:
    resumed, it keeps what a whole one keeps."""
    artifact = directory / "mnist.dlx"
    settings = {"optimizer": "rmsprop(momentum = 0.5, eps = 1.0)", "schedule": "[warm_up(epochs = 0.5), cosine(), poly(power = 0.5), exponential(gamma = 0.9)]",
                "clip_norm": "1.0", "ema": "0.75", "lr_scale": '[["fc2.*", 2]]', "freeze": '["conv1.weight"]'}
    sets = [part for name, value in settings.items() for part in ("--set", f"train.{name}={value}")]
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads=1", *sets, "-o", artifact)
    train = ["dlc-run", "train", artifact, *data, "--val", data[1], "--val", data[3], "--lr", 0.01, "--no-shuffle", "--seed", 3]
    whole, cut, stopped = (directory / name / "run" for name in ("whole", "cut", "stopped"))  # pictures show the last name
    run(*train, "--epochs", 3, "--run", whole)
    run(*train, "--epochs", 3, "--steps", 7, "--run", cut)
    check_averages(whole, artifact, data)
    log = [json.loads(line) for line in (cut / "log.jsonl").read_text().splitlines()]
    check([record["part"] for record in log if record["event"] == "epoch"] == [False, True], f"epochs of the cut run: {log}")
    before = kept(cut)
    fails("'.*last.safetensors' was trained otherwise: lr was 0.01, is 0.4; resume it as it was, or add --override lr$", "train", artifact,
          "--resume", "--run", cut, "--lr", 0.4)
    check(kept(cut) == before, "a refused start changed the run")
    out, _ = run("dlc-run", "train", artifact, "--resume", "--run", cut, "--epochs", 3)
    check("resuming after step 7 of 12\n" in out, out)
    check_same(whole, cut)

    other = directory / "other.dlx"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads=1", *sets, "--set", "train.clip_norm=2.0", "-o", other)
    fails("trained otherwise: updates.clip_norm was 1.0, is 2.0; .* add --override updates$", "train", other, "--resume", "--run", cut,
          "--epochs", 4)

    interrupt([*train, "--epochs", 20, "--run", stopped], stopped)
    out, _ = run("dlc-run", "train", artifact, "--resume", "--run", stopped)
    check("resuming after step" in out, out)
    undisturbed = directory / "undisturbed" / "run"
    run(*train, "--epochs", 20, "--run", undisturbed)
    check_same(undisturbed, stopped)


def spoil(path, sample):
    """Makes a number of a sample NaN, in a part of the file that its fingerprint does not read: a run takes the mended
    file for the same. Returns what mends it."""
    sound, blob = path.read_bytes(), bytearray(path.read_bytes())
    pieces, piece = 16, 4096
    starts = [(len(blob) - piece) * k // (pieces - 1) for k in range(pieces)]
    images = np.load(path, mmap_mode="r")
    begin = len(blob) - images.nbytes + sample * images[0].nbytes
    at = next(at for at in range(begin, begin + images[0].nbytes, 4) if not any(at + 4 > start and at < start + piece for start in starts))
    blob[at:at + 4] = np.float32(np.nan).tobytes()
    path.write_bytes(blob)
    return lambda: path.write_bytes(sound)


def check_bad_rows(directory, data):
    """A bad row that is met in the midst of an epoch, or when it is validated, costs no step: once it is mended, the
    run ends as if it had been sound. One in the first batch leaves nothing."""
    artifact = directory / "mnist.dlx"
    image, other = directory / "float.npy", directory / "float-val.npy"
    np.save(image, np.load(directory / "image.npy").astype(np.float32))
    np.save(other, np.load(image)[::-1])
    train = ["dlc-run", "train", artifact, "--data", f"image={image}", *data[2:], "--val", f"image={other}", "--val", data[3], "--lr", 0.01,
             "--no-shuffle", "--epochs", 2]
    for ranks in (1, 2):
        for bad, sample, steps in ((image, 60, 2 // ranks), (other, 60, 4 // ranks)):
            whole, cut = (directory / f"{bad.stem}-{ranks}-{name}" / "run" for name in ("whole", "cut"))
            run(*train, "-np", ranks, "--threads", 1, "--run", whole)
            mend = spoil(bad, sample)
            fails(f"'{bad}': sample {sample} holds nan.*the steps up to {steps} have trained is saved.* --resume .*--run {cut}$", *train[1:],
                  "-np", ranks, "--threads", 1, "--run", cut)
            mend()
            out, _ = run("dlc-run", "-np", ranks, "train", artifact, "--resume", "--run", cut, "--threads", 1)
            check(f"resuming after step {steps} of" in out, out)
            check_same(whole, cut)
        mend = spoil(image, 3)
        early = directory / f"early-{ranks}"
        fails("sample 3 holds nan", *train[1:], "-np", ranks, "--threads", 1, "--run", early)
        check(not early.exists(), f"{early} is left behind")
        mend()


def check_elsewhere(directory, data):
    """A run that was told of its data by relative paths is resumed in another directory."""
    artifact, kept, elsewhere = directory / "mnist.dlx", directory / "moved", directory / "elsewhere"
    elsewhere.mkdir()
    relative = [part.replace(f"{directory}/", "") for part in data]
    run("dlc-run", "train", artifact, *relative, "--val", relative[1], "--val", relative[3], "--epochs", 1, "--run", "moved", cwd=directory)
    run("dlc-run", "train", artifact, "--resume", "--run", kept, "--epochs", 2, cwd=elsewhere)
    config = json.loads((kept / "config.json").read_text())
    check(config["data"] == config["val"] == {name: f"{directory}/{name}.npy" for name in ("image", "label")}, f"paths: {config}")


def check_names(directory, data):
    """Names of files need not be UTF-8."""
    image = directory / os.fsdecode(b"caf\xe9.npy")
    shutil.copy(directory / "image.npy", image)
    train = ["dlc-run", "train", directory / "mnist.dlx", "--data", f"image={image}", *data[2:], "--run", directory / "latin"]
    run(*train, "--epochs", 1)
    run(*train, "--epochs", 2, "--resume")
    json.loads((directory / "latin" / "config.json").read_text())


def check_outputs(directory, data):
    """Where weights, log and trace cannot go is told before the first step, and nothing that the run reads is lost."""
    train = ["train", directory / "mnist.dlx", *data, "--epochs", 1, "--run", directory / "lost"]
    image = directory / "image.npy"
    before = image.read_bytes()
    for flag in ("--save", "--log", "--trace"):
        fails(f"{flag} {directory}/none/x: there is no folder", *train, flag, directory / "none" / "x")
        fails(f"{flag} would overwrite '{image}', which the run reads", *train, flag, image)
        fails(f"{flag} would overwrite '{directory / 'mnist.dlx'}', which the run reads", *train, flag, directory / "mnist.dlx")
        fails("a file of the run itself", *train, flag, directory / "lost" / "last.safetensors")
    check(image.read_bytes() == before and not (directory / "lost").exists(), "something is lost")
    model = directory / "own.dl"
    shutil.copy(MODELS / "mnist_cnn.dl", model)
    fails(f"--log would overwrite '{model}', which the run reads", "train", model, *data, "--log", model, "--threads", 1)
    # Weights that a run before has left.
    (directory / "left").mkdir()
    (directory / "left" / "best.safetensors").write_bytes(b"best")
    fails("is of a run that would be overwritten", *train[:-1], directory / "left")
    for seed in "-1", str(1 << 64), "1e3":
        out, err = run("dlc-run", *train, f"--seed={seed}", expect=2)
        check("wants a whole number from 0 to below 2^64" in err, err)
    fails("validation = 0.999 holds back all 96 samples and leaves none to train on", "train", MODELS / "mnist_cnn.dl", "--set",
          "data.validation=0.999", "--set", "batch=24", *data, "--steps", 2, "--run", directory / "none", "--threads", 1)


def check_fields(directory):
    """What records have beside losses and metrics is no metric's name."""
    records = [json.loads(line) for line in (directory / "run" / "log.jsonl").read_text().splitlines()]
    fields = {key for record in records for key in record} - {"loss", "accuracy"}
    check({"event", "lr", "step_ms", "seconds", "val_loss", "val_accuracy"} <= fields, f"fields of records: {fields}")
    for field in sorted(fields):
        model = directory / "named.dl"
        model.write_text((MODELS / "mnist_cnn.dl").read_text().replace("metric accuracy =", f"metric {field} ="))
        _, err = run("dlc", "compile", model, "--emit=nn", "-o", directory / "named.mlir", expect=1)
        check("something else in a run's log" in err, f"{field}: {err}")


def check_best(directory, data):
    """Where other samples are held back, or other steps make them, the best epoch of before is none."""
    train = ["dlc-run", "train", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads", 1]
    for fact, changed in ("seed", ["--set", "data.validation=0.25", "--seed", 5]), ("data_block", ["--set", "data.validation=0.5"]):
        kept = directory / f"judged-{fact}"
        run(*train, *data, "--set", "data.validation=0.25", "--epochs", 1, "--run", kept)
        out, _ = run(*train, *changed, "--resume", "--run", kept, "--epochs", 2, "--override", fact)
        check("epochs are judged by another figure from now on: the best one so far, 1, counts no more" in out, f"{fact}: {out}")


def check_cache(directory, data):
    """A compiled model that a crash has damaged is made again."""
    train = ["dlc-run", "train", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads", 1, *data, "--steps", 1, "--run"]
    run(*train, directory / "cached-0")
    cache = directory / "cache" / "dlc"
    for number, damaged in enumerate((lambda content: b"", lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]), 1):
        whole = {file: file.read_bytes() for file in cache.glob("*.dlx") if file.stat().st_size > 0}
        for file, content in whole.items():
            file.write_bytes(damaged(content))
        run(*train, directory / f"cached-{number}")
        check(any(file.read_bytes() == content for file, content in whole.items()), "nothing was compiled again")


def check_full_output(directory, data):
    """What cannot be told is no success."""
    weights = directory / "run" / "last.safetensors"
    for command in (["dlc-run", "eval", directory / "mnist.dlx", *data, "--init", weights, "--json"], ["dlc", "inspect", directory / "mnist.dlx"],
                    ["dlc", "help", "conv"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / command[0], *map(str, command[1:])], stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 1 and "cannot write to the standard output" in done.stderr, f"{command}: {done.returncode} {done.stderr}")


def check_predictions(directory, data):
    """A prediction replaces nothing that it reads, and each of its files has a name of its own."""
    weights, kept = directory / "run" / "last.safetensors", directory / "predicted"
    kept.mkdir()
    own = kept / "probability.npy"
    shutil.copy(directory / "image.npy", own)
    before = own.read_bytes()
    predict = ["predict", directory / "mnist.dlx", "--data", f"image={own}", "--init", weights]
    fails("output 'probability' would overwrite '.*', which is read: choose another -o", *predict, "-o", kept)
    check(own.read_bytes() == before, "what was read is lost")


def main():
    check(crc32c(b"123456789") == 0xE3069283, "the test's own checksum")
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    data = digits(directory)
    kept = directory / "run"
    train = ["dlc-run", "train", MODELS / "mnist_cnn.dl", "--set", "batch=24", "--threads", 1, *data, "--val", data[1], "--val", data[3],
             "--run", kept]
    run(*train, "--steps", 6)
    names = {"best.safetensors", "last.safetensors", "log.jsonl", "log.csv", "config.json", "loss.svg", "lock"}
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

    check_resuming(directory, data)
    check_bad_rows(directory, data)
    check_elsewhere(directory, data)
    check_names(directory, data)
    check_outputs(directory, data)
    check_fields(directory)
    check_best(directory, data)
    check_cache(directory, data)
    check_full_output(directory, data)
    check_predictions(directory, data)


main()
