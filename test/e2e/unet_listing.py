#!/usr/bin/python3
"""The U-Net of docs/unet.md: what it shows of ours compiles to the parameters that it tells; where torch is installed,
PyTorch's listing has as many."""
import re
import subprocess

from support import ROOT, check, run, workspace


def main():
    directory = workspace()
    text = (ROOT / "docs" / "unet.md").read_text()
    told = re.search(r"([\d,]+) parameters", text).group(1)
    ours = "\n".join(re.findall(r"^dlc:\n\n```\n(.*?)^```", text, re.M | re.S))
    (directory / "unet2d.dl").write_text(ours)
    out, _ = run("dlc", "compile", directory / "unet2d.dl", "-o", directory / "unet2d.dlx")
    check(f" {told} parameters" in out, f"wanted {told}: {out}")

    torch = "\n".join(re.findall(r"^PyTorch:\n\n```python\n(.*?)^```", text, re.M | re.S)[:2])
    peers = ROOT / "build" / "peers" / "bin" / "python"
    if peers.exists():
        code = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n" + torch
        code += "\nprint(sum(parameter.numel() for parameter in UNet().parameters()))"
        done = subprocess.run([peers, "-c", code], capture_output=True, text=True)
        check(done.stdout.strip() == told.replace(",", ""), done.stdout + done.stderr)


main()
