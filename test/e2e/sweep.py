#!/usr/bin/python3
"""bench over batch sizes and over ranks: the rows that were asked for, as table, CSV, JSON and picture; what cannot be
swept."""
import csv
import json
import os
import re
import xml.etree.ElementTree as xml

from support import MODELS, check, run, workspace


def main():
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    short = ["--warmup", 1, "--iters", 1, "--batches-per-iter", 2]
    model = MODELS / "mnist_cnn.dl"

    out, _ = run("dlc-run", "bench", model, *short, "--threads", 1, "--batches", "4,16", "-o", directory / "batches")
    rows = re.findall(r"^ +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ MiB$", out, re.M)
    check(rows == ["4", "16"], out)
    table = list(csv.DictReader((directory / "batches.csv").open()))
    check([row["batch_per_rank"] for row in table] == ["4", "16"], f"{table}")
    picture = xml.parse(directory / "batches.svg").getroot()
    check(len(picture.findall("{http://www.w3.org/2000/svg}circle")) == 6, "a point for each batch, in three panels")
    check(int(table[0]["planned_bytes"]) < int(table[1]["planned_bytes"]), "a larger batch needs more memory")
    check(len(list((directory / "cache" / "dlc").iterdir())) == 2, "a model is compiled once for each batch")

    out, _ = run("dlc-run", "bench", model, *short, "--threads", 1, "--scaling=strong", "--global-batch", 12, "--ranks", "1,2,3", "--json",
                 "-o", directory / "strong")
    record = json.loads(out)
    check(record["sweep"] == "strong" and record["threads"] == 1, out)
    check([(row["ranks"], row["batch"]) for row in record["rows"]] == [(1, 12), (2, 6), (3, 4)], out)
    check(record["rows"][0]["efficiency"] == 1, out)
    for row in record["rows"]:
        wanted = row["img_per_s_total"] / row["ranks"] / record["rows"][0]["img_per_s_total"]
        check(abs(row["efficiency"] - wanted) < 1e-9, f"{row}")
    picture = xml.parse(directory / "strong.svg").getroot()
    circles = len(picture.findall("{http://www.w3.org/2000/svg}circle"))
    check(circles == 15, "a point for each number of ranks: speed, efficiency, forward, backward, exposed")
    for row in record["rows"]:
        check(abs(row["speed_up"] - row["img_per_s_total"] / record["rows"][0]["img_per_s_total"]) < 1e-9, f"{row}")
        check(0 < row["forward_ms"] < row["step_ms"] and 0 < row["backward_ms"] < row["step_ms"], f"{row}")
    # A rank sends its gradients in slices to the others, and one slice's sum to each of them: 2 (N - 1) / N of them.
    sent = [row["wire_bytes"] for row in record["rows"]]
    check(sent[0] == 0 and abs(sent[2] / sent[1] - (4 / 3) / 1) < 0.01, f"sent bytes: {sent}")

    # Peers say milliseconds per step: here 100 a rank, of batch 3 and one thread.
    peers = directory / "peers.sh"
    peers.write_text('[ "$*" = "fixed $2 3 1" ] && echo "$(($2 * 100)).0"\n')
    out, _ = run("dlc-run", "bench", model, *short, "--threads", 1, "--set", "batch=3", "--scaling=weak", "--ranks", "1,2", "--peers",
                 f"sh {peers} fixed", "-o", directory / "peers")
    table = list(csv.DictReader((directory / "peers.csv").open()))
    check([float(row["peers_img_per_s"]) for row in table] == [30, 30], f"{table}")
    check(out.count(" 30.0\n") == 2, out)
    circles = len(xml.parse(directory / "peers.svg").getroot().findall("{http://www.w3.org/2000/svg}circle"))
    check(circles == 12, "the peers' points beside ours")
    _, err = run("dlc-run", "bench", model, *short, "--threads", 1, "--batches", "4", "--peers", "echo none #", expect=1)
    check("--peers 'echo none #' gave no milliseconds per step for 1 ranks, batch 4, 1 threads" in err and err.count("\n") == 1, err)

    artifact = directory / "m.dlx"
    run("dlc", "compile", model, "--set", "batch=8", "--threads=1", "-o", artifact)
    out, _ = run("dlc-run", "bench", artifact, *short, "--scaling=weak", "--ranks", "1,2", cwd=directory)
    check(re.findall(r"^ +(\d+) +(\d+) .*%", out, re.M) == [("1", "8"), ("2", "8")], out)
    check((directory / "mnist_cnn-weak-scaling.csv").exists() and (directory / "mnist_cnn-weak-scaling.svg").exists(), "files by default")

    _, err = run("dlc-run", "bench", model, *short, "--scaling=strong", "--global-batch", 10, "--ranks", "1,4", expect=1)
    check("a global batch of 10 cannot be split over 4 ranks" in err and err.count("\n") == 1, err)
    for options, text in ((["--batches", "4"], "--batches is for a model"), (["--scaling=strong", "--ranks", "1"], "--scaling=strong is for"),
                          (["--scaling=weak"], "--scaling requires --ranks"), (["--ranks", "1"], "--ranks requires --scaling"),
                          (["--scaling=weak", "--ranks", "1", "--global-batch", "8"], "--scaling=strong for --global-batch"),
                          (["--scaling=weak", "--ranks", "1", "-np", "2"], "-np excludes --scaling"),
                          (["--scaling=odd", "--ranks", "1"], "odd"), (["--scaling=weak", "--ranks", "0"], "--ranks: wants a whole number from 1 "),
                          (["--batches", "4", "--profile"], "--profile excludes"), (["-o", "x"], "-o"), (["--peers", "x"], "--batches or --scaling for --peers")):
        _, err = run("dlc-run", "bench", artifact, *options, expect=2)
        check(text in err and err.count("\n") == 1, f"wanted '{text}', got: {err}")


main()
