"""A program of its own, for a lab host's network: ``console_forwarder.py LISTENER PORT``.

Forwards connections to LISTENER, an inherited socket of another network, to PORT in this one. Ends with its standard input.
"""

import socket
import sys
import threading

_CONNECT_SECONDS = 10


def forward(listener: socket.socket, port: int) -> None:
    while True:
        visitor, _ = listener.accept()
        threading.Thread(target=visit, args=(visitor, port), daemon=True).start()


def visit(visitor: socket.socket, port: int) -> None:
    try:
        guest = socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS)
    except OSError:
        visitor.close()
        return
    guest.settimeout(None)
    threading.Thread(target=copy, args=(guest, visitor), daemon=True).start()
    copy(visitor, guest)


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copies until the source ends; then the other direction ends too."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for side in (source, target):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


if __name__ == "__main__":
    threading.Thread(
        target=forward, args=(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])), daemon=True
    ).start()
    sys.stdin.read()
