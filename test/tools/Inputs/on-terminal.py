"""Runs a command with a terminal for its output, and prints what it writes there."""

import os
import pty
import sys

sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
