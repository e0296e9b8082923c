"""As `serve` it closes each connection that it accepts; else it prints how many of them a second it gets to an address."""

import socket
import sys
import time

PORT = 7000
COUNT = 100

if sys.argv[1] == "serve":
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=COUNT)
    while True:
        listener.accept()[0].close()

began = time.perf_counter()
for _ in range(COUNT):
    with socket.create_connection((sys.argv[1], PORT)) as connection:
        connection.recv(1)
print(COUNT / (time.perf_counter() - began))
