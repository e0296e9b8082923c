"""What tests of the data path run inside network namespaces. Usage: probe.py serve LOG | ask ... | fou ... (see below)"""
import argparse
import errno
import json
import socket
import struct
import sys
import threading
import time

SO_BINDTODEVICE = 25
IP_TOS, IP_HDRINCL, IPV6_TCLASS = 1, 3, 67


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def plain(address):
    return address.removeprefix("::ffff:")


def serve(log, port):
    """Answers with the source it saw: TCP for each message, UDP for each datagram. port + 1: bulk TCP."""
    log = open(log, "a", buffering=1)

    def tcp(connection, peer):
        try:
            while connection.recv(65536):
                connection.sendall((plain(peer[0]) + "\n").encode())
        except OSError:
            pass

    def bulk(connection, _):
        received = 0
        size = struct.unpack("!Q", connection.recv(8, socket.MSG_WAITALL))[0]
        while received < size:
            data = connection.recv(1 << 20)
            if not data:
                return
            received += len(data)
        connection.sendall(b"k" * size)
        connection.close()

    def listen(number, handle):
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("::", number))
        listener.listen(99)
        while True:
            threading.Thread(target=handle, args=listener.accept(), daemon=True).start()

    threading.Thread(target=listen, args=(port, tcp), daemon=True).start()
    threading.Thread(target=listen, args=(port + 1, bulk), daemon=True).start()
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.bind(("::", port))
    log.write("ready\n")
    while True:
        data, peer = udp.recvfrom(65536)
        log.write(f"{plain(peer[0])} {len(data)} {data[:40].decode(errors='replace').strip()}\n")
        try:
            udp.sendto(f"{plain(peer[0])} {len(data)}\n".encode(), peer)
        except OSError:
            pass


def ask(o):
    kind = socket.SOCK_STREAM if o.protocol in ("tcp", "bulk") else socket.SOCK_DGRAM
    s = socket.socket(family(o.address), kind)
    s.settimeout(o.timeout)
    try:
        if o.device:
            s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, o.device.encode())
        if o.source:
            s.bind((o.source, 0))
        if o.tos:
            level, option = (socket.IPPROTO_IPV6, IPV6_TCLASS) if ":" in o.address else (socket.IPPROTO_IP, IP_TOS)
            s.setsockopt(level, option, o.tos)
        start = time.monotonic()
        s.connect((o.address, o.port))
        if o.protocol == "bulk":
            s.sendall(struct.pack("!Q", o.size) + b"x" * o.size)
            received = 0
            while received < o.size:
                data = s.recv(1 << 20)
                if not data:
                    break
                received += len(data)
            print(f"{received} bytes in {time.monotonic() - start:.1f} s")
            return
        for _ in range(o.times):
            s.sendall(o.payload.encode().ljust(o.size))
            print(s.recv(65536).decode().strip(), flush=True)
            if o.pause:
                time.sleep(o.pause)
    except socket.timeout:
        print("timeout")
    except OSError as e:
        print(errno.errorcode.get(e.errno, str(e)))


def chatter(addresses):
    """Sends to all addresses for ever, by the routes and around them."""
    sockets = []
    for address in addresses:
        for device in (None, b"eth0"):
            s = socket.socket(family(address), socket.SOCK_DGRAM)
            if device:
                s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device)
            sockets.append((s, address))
    while True:
        for s, address in sockets:
            try:
                s.sendto(b"chatter", (address, 9999))
            except OSError:
                pass
        time.sleep(0.05)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def packet(source, destination, port, payload):
    """An IP packet with a UDP datagram, of either family."""
    udp = struct.pack("!HHHH", 4444, port, 8 + len(payload), 0) + payload
    if ":" not in destination:
        a, b = socket.inet_aton(source), socket.inet_aton(destination)
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, a, b)
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + udp
    a, b = socket.inet_pton(socket.AF_INET6, source), socket.inet_pton(socket.AF_INET6, destination)
    total = checksum(a + b + struct.pack("!II", len(udp), 17) + udp) or 0xFFFF
    udp = udp[:6] + struct.pack("!H", total) + udp[8:]
    return struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + a + b + udp


def forge():
    """Sends packets of own making, as the JSON list on standard input says: in FoU from an ordinary UDP socket, in plain
    IPIP or IP6IP6, or as they are."""
    for p in json.load(sys.stdin):
        to, how = p["to"], p["how"]
        payload = p["payload"].encode().ljust(p.get("size", 0))
        inner = packet(p["source"], p["destination"], p.get("port", 9000), payload)
        v6 = ":" in to
        if how == "fou":
            s = socket.socket(family(to), socket.SOCK_DGRAM)
            if not v6:
                s.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: fragments are allowed
            s.sendto(inner, (to, 5555))
        elif how == "plain":
            socket.socket(family(to), socket.SOCK_RAW, 41 if v6 else 4).sendto(inner, (to, 0))
        else:
            socket.socket(family(to), socket.SOCK_RAW, socket.IPPROTO_RAW).sendto(inner, (to, 0))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("serve")
    p.add_argument("log")
    p.add_argument("--port", type=int, default=9000)
    p = commands.add_parser("ask")
    p.add_argument("protocol", choices=["tcp", "udp", "bulk"])
    p.add_argument("address")
    p.add_argument("payload", nargs="?", default="hello")
    p.add_argument("--port", type=int, default=9000)
    p.add_argument("--device")
    p.add_argument("--source")
    p.add_argument("--tos", type=int)
    p.add_argument("--size", type=int, default=0)
    p.add_argument("--timeout", type=float, default=20)
    p.add_argument("--times", type=int, default=1)
    p.add_argument("--pause", type=float, default=0)
    p = commands.add_parser("chatter")
    p.add_argument("addresses", nargs="+")
    commands.add_parser("forge")
    o = parser.parse_args()
    if o.command == "serve":
        serve(o.log, o.port)
    elif o.command == "ask":
        ask(o)
    elif o.command == "chatter":
        chatter(o.addresses)
    else:
        forge()


sys.exit(main())
