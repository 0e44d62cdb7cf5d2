"""ready.py URL CA: exits 0 when the server says that it is ready, over TLS that the CA vouches for."""

import ssl
import sys
import urllib.request

try:
    # The server is on this machine, behind no proxy.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sys.argv[2])),
    )
    sys.exit(opener.open(sys.argv[1] + "/readyz", timeout=5).status != 200)
except OSError:
    sys.exit(1)
