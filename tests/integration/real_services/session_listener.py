"""A program of its own, for a network namespace: a line for each that its callers say, with when it came and on which connection.

Ends with its standard input.
"""

import selectors
import socket
import sys
import time

listener = socket.create_server(("", int(sys.argv[1])))
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
selector.register(sys.stdin, selectors.EVENT_READ)
rests: dict[socket.socket, bytes] = {}
numbers: dict[socket.socket, int] = {}
accepted = 0
print("ready", flush=True)
while True:
    ready = [key.fileobj for key, _events in selector.select()]
    if sys.stdin in ready:
        break
    for each in ready:
        if each is listener:
            caller, _address = listener.accept()
            accepted += 1
            numbers[caller], rests[caller] = accepted, b""
            selector.register(caller, selectors.EVENT_READ)
            continue
        assert isinstance(each, socket.socket)
        try:
            data = each.recv(65536)
        except OSError:
            data = b""
        if not data:
            selector.unregister(each)
            each.close()
            continue
        *lines, rests[each] = (rests[each] + data).split(b"\n")
        for line in lines:
            # The clock is the same in all namespaces of a machine.
            print(f"{time.monotonic():.4f} {numbers[each]} {line.decode()}", flush=True)
