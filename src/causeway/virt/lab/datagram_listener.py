"""A program of its own, for a network namespace: prints a line with the time for each datagram. Ends with its standard input."""

import select
import socket
import sys
import time

listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    readable, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in readable:
        break
    data, (address, _port) = listener.recvfrom(2048)
    # The clock is the same in all namespaces of a machine.
    print(f"{time.monotonic():.4f} {address} {data.decode(errors='replace').strip()}", flush=True)
