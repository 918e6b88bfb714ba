#!/usr/bin/python3
"""scripts/scaling: runs of real data on 1 and 2 ranks, here and as jobs of a stand-in for Slurm; its table and picture
are those of the runs, and a second call trains nothing again."""
import csv
import os
import subprocess
import xml.etree.ElementTree as xml

from support import BIN, MODELS, ROOT, check, digits, run, workspace


def scaling(*arguments, path="", expect=0):
    environment = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}")
    done = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "scaling", "--bin", BIN, *map(str, arguments)], capture_output=True,
                          text=True, timeout=200, env=environment)
    check(done.returncode == expect, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main():
    directory = workspace()
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    data = digits(directory)
    artifact, out = directory / "m.dlx", directory / "out"
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--set", "batch=8", "--set", "train.schedule=[]", "--threads=1", "-o", artifact)
    options = [*data, "--val", data[1], "--val", data[3], "--epochs", 3, "--scale-lr=linear"]
    text = scaling(artifact, "--ranks", "2,1", "-o", out, "--threads", 1, "--", *options)
    rows = table(out / "scaling.csv")
    check([(row["ranks"], row["epoch"]) for row in rows] == [(n, e) for n in "12" for e in "123"], f"{rows}")
    for row in rows:
        own = table(out / f"n{row['ranks']}" / "log.csv")[int(row["epoch"]) - 1]
        check(all(own[name] == value for name, value in row.items() if name != "ranks"), f"{row} is not {own}")
        check({"seconds", "loss", "lr", "val_accuracy"} <= row.keys(), f"{row.keys()}")
    check(float(rows[-1]["lr"]) == 2 * float(rows[2]["lr"]), "the options of training are passed on")

    # The figures of the report, from the logs.
    seconds = {n: sorted(float(row["seconds"]) for row in rows if row["ranks"] == n)[1] for n in "12"}
    lines = [line.split() for line in text.splitlines() if line[:6].strip() in ("1", "2")]
    check([line[0] for line in lines] == ["1", "2"] and lines[0][3] == "1.00", text)
    check(abs(float(lines[1][3]) - seconds["1"] / seconds["2"]) < 0.006 and lines[1][4] == "2.00", text)
    best = max(float(row["val_accuracy"]) for row in rows if row["ranks"] == "2")
    check(abs(float(lines[1][5]) - best) < 1e-3, text)
    picture = xml.parse(out / "scaling.svg").getroot()
    check(len(picture.findall("{*}circle")) == 2 + 2 + 6, "points: speed-up, metric, losses")
    check(len(picture.findall("{*}polyline")) == 5, "lines: ideal, speed-up, metric, two of losses")

    before = (out / "n2" / "log.csv").read_bytes()
    check("nothing to do" in scaling(artifact, "--ranks", "1,2", "-o", out, "--threads", 1, "--metric", "val_loss", "--", *options), "resumed")
    check((out / "n2" / "log.csv").read_bytes() == before, "a run that was done has been trained again")

    # sbatch runs the script that it gets, srun starts as many ranks as the script asks for.
    tools = directory / "slurm"
    tools.mkdir()
    (tools / "sbatch").write_text("""#!/bin/sh
[ "$1 $2" = "--wait --partition=short" ] || exit 9
SLURM_NTASKS=$(sed -n 's/.*--ntasks=\\([0-9]*\\).*/\\1/p' "$3") exec sh "$3"
""")
    (tools / "srun").write_text("""#!/bin/sh
[ "$1 $2" = "--mpi=pmix --cpus-per-task=1" ] || exit 9
shift 2
n=$SLURM_NTASKS; unset SLURM_NTASKS
exec mpirun --allow-run-as-root --oversubscribe --bind-to none -np "$n" "$@"
""")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    slurm = directory / "jobs"
    scaling(artifact, "--ranks", "1,2", "-o", slurm, "--threads", 1, "--slurm=--partition=short", "--", *options, path=tools)
    same = [{name: row[name] for name in ("ranks", "epoch", "loss", "val_accuracy")} for row in table(slurm / "scaling.csv")]
    check(same == [{name: row[name] for name in ("ranks", "epoch", "loss", "val_accuracy")} for row in rows], "jobs train alike")
    check("#SBATCH --job-name=n2 --ntasks=2 --cpus-per-task=1" in (slurm / "n2.sh").read_text(), "a job's request")
    err = scaling(artifact, "--ranks", "1", "-o", slurm, "--threads", 1, "--slurm=--partition=long", "--", *options, path=tools, expect=1)
    check("n1.log" in err, err)
    check("do not compile" in scaling(MODELS / "mnist_cnn.dl", "--ranks", 1, "-o", slurm, "--slurm=", "--", *options, expect=2), "a model")
    check("there is no val_iou" in scaling(artifact, "--ranks", "1,2", "-o", out, "--threads", 1, "--metric", "val_iou", "--", *options, expect=1),
          "a metric that is none")


main()
