"""Runs a command that must exit with the given code and say why in exactly one line on standard error."""

import subprocess
import sys

code, command = int(sys.argv[1]), sys.argv[2:]
result = subprocess.run(command, capture_output=True, text=True)
print(result.stderr, end="")
if result.returncode != code:
    sys.exit(f"exit code {result.returncode}, expected {code}")
if result.stdout or result.stderr.count("\n") != 1:
    sys.exit(f"expected one line on standard error, got:\n{result.stdout}{result.stderr}")
