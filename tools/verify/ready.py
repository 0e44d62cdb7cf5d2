"""ready.py URL: exits 0 when the server says that it is ready."""

import sys
import urllib.request

try:
    # The server is on this machine, behind no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    sys.exit(opener.open(sys.argv[1] + "/readyz", timeout=5).status != 200)
except OSError:
    sys.exit(1)
