"""Usage: kernels-add-up.py PROFILE.json INSPECT.json: the kernels of a profile are those of the artifact, and add up to
its kinds."""
import collections
import json
import sys

profile, artifact = (json.load(open(path)) for path in sys.argv[1:])
known = {(each["kernel"], each["category"]) for each in artifact["programs"][0]["dispatches"]}
sums = collections.defaultdict(collections.Counter)
launches = []
for row in profile["profile.kernels"]:
    assert (row["kernel"], row["kind"]) in known or row["kind"] in ("copy", "all-reduce"), row
    assert 0 <= row["best_ms"] <= row["ms"] * (1 + 1e-12), row  # a mean of equal times may round below them
    launches += row["instructions"]
    for key in ("ms", "bytes", "bound_ms"):
        sums[row["kind"]][key] += row[key]
assert len(launches) == len(set(launches)) and max(launches) < artifact["programs"][0]["instructions"], launches
over = [row["best_ms"] - row["bound_ms"] for row in profile["profile.kernels"]]
assert all(before >= after - 1e-12 for before, after in zip(over, over[1:])), over  # but for rounding in the difference
for kind, totals in sums.items():
    for key, value in totals.items():
        if value > 0 or kind not in ("copy", "all-reduce"):
            wanted = profile[f"profile.{kind}.{key}"]
            assert abs(value - wanted) <= 1e-6 * wanted, (kind, key, value, wanted)
# Events and reads by the host have no kind: a few hundred nanoseconds.
whole = profile.get("profile.idle.ms", 0) + sum(totals["ms"] for totals in sums.values())
assert abs(whole - profile["profile.step_ms"]) <= 0.01 * whole, (whole, profile["profile.step_ms"])
