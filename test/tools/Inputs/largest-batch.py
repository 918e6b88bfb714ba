"""The artifact's plan keeps within the limit and uses most of it; its batch is the one that the compiler named."""

import json
import re
import subprocess
import sys

artifact, notice, limit = sys.argv[1], open(sys.argv[2]).read(), int(sys.argv[3])
batch = int(re.fullmatch(r"dlc: the largest batch in [0-9.]+ MiB is (\d+)\n", notice)[1])
described = json.loads(subprocess.run(["dlc", "inspect", artifact, "--json"], capture_output=True, text=True, check=True).stdout)
size, planned = described["memory"]["bytes"], described["programs"][0]["batch"]
if planned != batch or not 0.95 * limit < size <= limit:
    sys.exit(f"batch {planned}, named {batch}, needs {size} bytes of {limit}")
