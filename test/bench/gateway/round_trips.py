"""Measures UDP round trips, in microseconds each.

`serve` answers whatever comes. `ask FAMILY SOURCE TARGET [GATEWAY]` asks a server: by itself, or by packets that it puts
into the tunnel of a gateway by hand, so that what the gateway does is all that is added.
"""

import socket
import struct
import sys
import time

PORT = 7000
TUNNEL_PORT = 5555
COUNT = 1000
PAYLOAD = bytes(64)
# linux/udp.h: what comes over IPv6 may have no checksum, as in a tunnel.
UDP_NO_CHECK6_RX = 102


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def datagram(pseudo_header, source_port):
    length = 8 + len(PAYLOAD)
    header = struct.pack("!HHHH", source_port, PORT, length, 0)
    total = checksum(pseudo_header + struct.pack("!HH", 17, length) + header + PAYLOAD)
    return header[:6] + struct.pack("!H", total or 0xFFFF) + PAYLOAD


def packet(family, source, target):
    addresses = socket.inet_pton(family, source) + socket.inet_pton(family, target)
    udp = datagram(addresses, 40000)
    if family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + addresses + udp
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + udp


def serve():
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.bind(("::", PORT))
    while True:
        server.sendto(*server.recvfrom(2048))


def ask(name, source, target, gateway=None):
    family = socket.AF_INET6 if name == "ipv6" else socket.AF_INET
    client = socket.socket(family, socket.SOCK_DGRAM)
    client.settimeout(10)
    client.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
    client.bind((source, TUNNEL_PORT))
    client.connect((gateway, TUNNEL_PORT) if gateway else (target, PORT))
    sent = packet(family, source, target) if gateway else PAYLOAD
    for count in (100, COUNT):
        began = time.perf_counter()
        for _ in range(count):
            client.send(sent)
            client.recv(2048)
    print((time.perf_counter() - began) / COUNT * 1e6)


if sys.argv[1] == "serve":
    serve()
else:
    ask(*sys.argv[2:])
