#!/usr/bin/python3
"""--accumulate K: K batches on one rank give the bits of K ranks, batch norm, dropout and random tensors included;
resuming; what cannot be summed."""
import os
import re

from support import MODELS, check, digits, read_safetensors, run, same_file, without_data, workspace

import numpy as np

directory = workspace()
os.environ["XDG_CACHE_HOME"] = str(directory / "cache")


def trained(model, data, name, *options, ranks=1):
    weights = directory / f"{name}.safetensors"
    out, _ = run("dlc-run", "-np", ranks, "train", *model, "--threads", 1, *data, "--val", data[1], "--val", data[3], "--run",
                 directory / name, "--save", weights, *options)
    return weights, out


def run_noise2void(model, data, name, *options, ranks):
    weights = directory / f"{name}.safetensors"
    run("dlc-run", "-np", ranks, "train", *model, "--threads", 1, *data, "--steps", 5, "--run", directory / name, "--save", weights, *options)
    return weights


def refuses(directory, name, text, data, reason):
    model, artifact = directory / f"{name}.dl", directory / f"{name}.dlx"
    model.write_text(text)
    run("dlc", "compile", model, "--threads=1", "-o", artifact)
    _, err = run("dlc-run", "train", artifact, "--threads", 1, *data, "--steps", 1, "--run", directory / name, "--accumulate", 2, expect=1)
    check(re.fullmatch(f"dlc-run: error: --accumulate cannot train {re.escape(str(artifact))}: {reason}\n", err), err)


def main():
    data = digits(directory)
    constant = [MODELS / "mnist_cnn.dl", "--set", "train.schedule=[]"] # a schedule over the whole run would know its total
    mnist = [*constant, "--set", "batch=8"]
    ranks, _ = trained(mnist, data, "ranks", "--steps", 6, ranks=3)
    alone, out = trained(mnist, data, "alone", "--steps", 6, "--accumulate", 3)
    check(out.startswith("1 rank x 3 x batch 8 = 24 samples a step, 4 steps an epoch\n"), out)
    same_file(ranks, alone, "3 batches on one rank and 3 ranks")
    log = [(directory / name / "log.csv").read_text().splitlines() for name in ("ranks", "alone")]
    losses = [[row.split(",")[2:7] for row in rows[1:]] for rows in log]
    check(np.allclose(np.array(losses[0], float), np.array(losses[1], float), rtol=1e-12, atol=0), f"losses and metrics: {log}")

    large, small = (read_safetensors(file) for file in (trained([*constant, "--set", "batch=24"], data, "large", "--steps", 6)[0], alone))
    for name in large:
        check(np.linalg.norm(large[name] - small[name]) < 1e-3 * np.linalg.norm(large[name]), f"{name}: 3 batches of 8 and one of 24 differ")

    trained(mnist, data, "cut", "--steps", 2, "--accumulate", 3)
    weights, _ = trained(mnist, data, "cut", "--steps", 6, "--resume") # which knows how many batches
    same_file(alone, weights, "a resumed run of several batches a step")

    random = np.random.default_rng(3)
    image = random.normal(size=(24, 32, 32)).astype(np.float32)
    np.save(directory / "cells.npy", image)
    np.save(directory / "mask.npy", (image > 0).astype(np.uint8))
    cells = ["--data", f"image={directory}/cells.npy", "--data", f"mask={directory}/mask.npy"]
    unet = [without_data("unet2d.dl", directory)]
    for name, value in (("base", 4), ("depth", 2), ("size", 32), ("predict.size", 32), ("batch", 2)):
        unet += ["--set", f"{name}={value}"]
    same_file(trained(unet, cells, "unet-2", "--steps", 5, ranks=2)[0], trained(unet, cells, "unet-1", "--steps", 5, "--accumulate", 2)[0],
              "2 batches on one rank and 2 ranks, with batch norm")
    four, two = (read_safetensors(trained(unet, cells, name, "--steps", 2, *options, ranks=count)[0]) for name, count, options in
                 (("unet-4", 4, []), ("unet-2x2", 2, ["--accumulate", 2])))
    # Adam's first steps take the sign of a gradient, so rounding may show where it is all but zero; it is rare.
    far = sum((~(np.abs(four[name] - two[name]) <= 1e-4)).sum() for name in four) / sum(value.size for value in four.values())
    check(far < 0.01, f"2 ranks x 2 batches: {far:.1%} of the numbers differ from those of 4 ranks")

    noisy = directory / "noisy.dl"
    noisy.write_text("""fn layer(x) { return batch_norm(conv(x, 1, kernel = 3, padding = 1, name = "a"), name = "n") }
model noisy(batch = 2) {
  input image : f32[batch, 1, 32, 32]
  input mask : f32[batch, 1, 32, 32]
  y = layer(image + normal(image.shape, std = 0.5, name = "noise"), name = "l")
  y = layer(group_norm(y, 1, name = "group") * uniform(y.shape, name = "scale"), name = "l", reuse = true)
  loss = mse(y, mask) + mean(y * bernoulli(y.shape, 0.3, name = "some"))
}
""")
    same_file(trained([noisy], cells, "noisy-2", "--steps", 5, ranks=2)[0], trained([noisy], cells, "noisy-1", "--steps", 5, "--accumulate", 2)[0],
              "2 batches on one rank and 2 ranks, with random tensors and a layer that is used twice")

    text = """model masked(batch = 4) {
  input image : f32[batch, 1, 8, 8]
  input mask : f32[batch, 1, 8, 8]
  y = conv(image, 1, kernel = 3, padding = 1, name = "a")
  output p = y
  loss = mse(y, image, where = mask > 0.5) + 0.5 * mae(y, image, where = MASK)
}
"""
    masked = directory / "masked.dl"
    masked.write_text(text.replace("MASK", "image > 0.0"))
    np.save(directory / "cells.npy", image[:, :8, :8])
    density = np.linspace(-2, 2, len(image))[:, None, None] # so that batches count differently
    np.save(directory / "mask.npy", (image > density)[:, :8, :8].astype(np.uint8))
    few = ["--no-shuffle", "--steps", 7] # within the third epoch of three steps
    ranks, _ = trained([masked], cells, "masked-2", *few, ranks=2)
    alone, out = trained([masked], cells, "masked-1", *few, "--accumulate", 2)
    check("what the loss counts over all batches of a step is counted first: batches are loaded twice" in out, out)
    same_file(ranks, alone, "2 batches on one rank and 2 ranks, masked")
    large, halves = (read_safetensors(file) for file in (trained([masked, "--set", "batch=8"], cells, "masked-8", *few)[0], alone))
    for name in large:
        check(np.linalg.norm(large[name] - halves[name]) < 1e-5 * np.linalg.norm(large[name]), f"masked, {name}: 2 batches of 4 and one of 8")
    trained([masked], cells, "masked-cut", "--no-shuffle", "--steps", 4, "--accumulate", 2)
    same_file(alone, trained([masked], cells, "masked-cut", "--steps", 7, "--resume")[0], "a resumed run that counts ahead")
    same_file(trained([masked], cells, "masked-4", *few, ranks=4)[0], trained([masked], cells, "masked-2x2", *few, "--accumulate", 2, ranks=2)[0],
              "2 ranks of 2 batches and 4 ranks, masked")
    counted = text.replace("MASK", "image > 0.0")
    normed = counted.replace("  output", "  y = batch_norm(y, sync = true, name = \"norm\")\n  output")
    for name, other, members, cause, change in (
            ("unknown", text.replace("MASK", "y > 0.5"), "loss", "what the network computes", "let the loss count by inputs alone"),
            # A kernel that draws may compute something of the network's, too.
            ("drawn", text.replace("MASK", "uniform(y.shape) > 0.5"), "loss",
             "(random numbers that the model draws|what the network computes or draws)",
             "make what is drawn an input, so that the loss counts by inputs alone"),
            ("synced", normed, "norm", "what the network computes", "give batch_norm sync = false")):
        refuses(directory, name, other, cells, f"'{members}' needs a sum over the whole batch that depends on {cause}, and only sums of inputs can "
                f"be formed ahead; {change}, or use more ranks or a smaller batch")

    volume = directory / "volume.npy"
    np.save(volume, random.normal(500, 50, size=(16, 64, 64)).astype(np.uint16))
    denoised = ["--data", f"volume={volume}"]
    noise2void = [MODELS / "n2v3d.dl"]
    for setting in ("batch=2", "base=4", "patch=[8,16,16]", "train.steps_per_epoch=3", "data.validation=0"):
        noise2void += ["--set", setting]
    ranks, alone = (run_noise2void(noise2void, denoised, name, *options, ranks=count) for name, count, options in
                    (("n2v-2", 2, []), ("n2v-1", 1, ["--accumulate", 2])))
    same_file(ranks, alone, "2 batches on one rank and 2 ranks, Noise2Void")


main()
