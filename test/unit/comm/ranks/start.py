#!/usr/bin/python3
"""usage: start.py -np N PROGRAM ARGUMENTS...   Starts ranks that meet by TCP, as dlc-run does where there is no mpirun."""
import os
import socket
import subprocess
import sys
import time

ranks, command = int(sys.argv[2]), sys.argv[3:]
holder = socket.socket() # of the port, at which rank 0 will listen
holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
holder.bind(("127.0.0.1", 0))
facts = {"DLC_RANKS": str(ranks), "DLC_PORT": str(holder.getsockname()[1]), "DLC_KEY": str(os.getpid())}
running = {rank: subprocess.Popen(command, env={**os.environ, **facts, "DLC_RANK": str(rank)}) for rank in range(ranks)}
failed, deadline = False, None
while running:
    for rank, process in list(running.items()):
        code = process.poll()
        if code is None:
            with open(f"/proc/{process.pid}/stat") as stat:
                is_stopped = stat.read().rsplit(")", 1)[1].split()[0] == "T"
            if failed and (is_stopped and len(running) == 1 or time.monotonic() > deadline):
                process.kill()
            continue
        del running[rank]
        if code and not failed: # others are to end by themselves, in less time than this
            failed, deadline = True, time.monotonic() + 15
    time.sleep(0.01)
sys.exit(failed)
