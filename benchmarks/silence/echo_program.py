"""A program of its own, for a network namespace: asks an address for an echo again and again, and prints when answers come.

Ends with its standard input. Arguments: its own address, the address that it asks, seconds between two requests.
"""

import os
import select
import socket
import struct
import sys
import time

own, address, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
NUMBER = os.getpid() & 0xFFFF
REQUEST, ANSWER = 8, 0


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def request(sequence: int) -> bytes:
    head = struct.pack("!BBHHH", REQUEST, 0, 0, NUMBER, sequence & 0xFFFF)
    return head[:2] + struct.pack("!H", checksum(head)) + head[4:]


asker = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
asker.bind((own, 0))
print("ready", flush=True)
sequence, due = 0, time.monotonic()
while True:
    if time.monotonic() >= due:
        try:
            asker.sendto(request(sequence), (address, 0))
        except OSError as failure:
            # Nobody answers for the address at the moment.
            print(failure, file=sys.stderr, flush=True)
        sequence, due = sequence + 1, time.monotonic() + pause
    readable, _, _ = select.select([asker, sys.stdin], [], [], max(0.0, due - time.monotonic()))
    if sys.stdin in readable:
        break
    if asker in readable:
        data, (sender, _port) = asker.recvfrom(2048)
        kind, _, _, number, _ = struct.unpack("!BBHHH", data[(data[0] & 15) * 4 :][:8])
        if (sender, kind, number) == (address, ANSWER, NUMBER):
            # The clock is the same in all namespaces of a machine.
            print(f"{time.monotonic():.4f}", flush=True)
