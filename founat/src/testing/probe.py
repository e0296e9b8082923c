"""The programs that tests of the data path run inside network namespaces, in one process: to start one for each question
would take most of the tests' time on an emulated machine. Usage: probe.py SOCKET

A request is one connection: a JSON object `{"netns": NAME, "command": NAME, ...parameters}`, then the end of the stream.
The answer is text."""
import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
SO_BINDTODEVICE = 25
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
IP_TOS, IP_MTU_DISCOVER, IPV6_TCLASS = 1, 10, 67

libc = ctypes.CDLL(None, use_errno=True)


def enter(netns):
    """Moves this thread, and those that it starts, into a network namespace."""
    with open(f"/run/netns/{netns}") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {netns}")


def start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def plain(address):
    return address.removeprefix("::ffff:")


# By namespace and port: the datagrams that a server got.
seen = {}


def serve(netns, port):
    """Answers with the source it saw: TCP for each message, UDP for each datagram. port + 1: bulk TCP. To the end."""
    if (netns, port) in seen:
        return
    log = seen[netns, port] = []

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

    def accept(listener, handle):
        while True:
            start(handle, *listener.accept())

    def datagrams(udp):
        while True:
            data, peer = udp.recvfrom(65536)
            log.append(f"{plain(peer[0])} {len(data)} {data[:40].decode(errors='replace').strip()}")
            try:
                udp.sendto(f"{plain(peer[0])} {len(data)}\n".encode(), peer)
            except OSError:
                pass

    for number, handle in (port, tcp), (port + 1, bulk):
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("::", number))
        listener.listen(99)
        start(accept, listener, handle)
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.bind(("::", port))
    start(datagrams, udp)


def ask(protocol, address, port=9000, device=None, tos=None, size=0, timeout=20, times=1, pause=0):
    """Sends something to a server; its answers, or the name of the error."""
    lines = []
    s = socket.socket(family(address), socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM)
    s.settimeout(timeout)
    try:
        if device:
            s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device.encode())
        if tos:
            level, option = (socket.IPPROTO_IPV6, IPV6_TCLASS) if ":" in address else (socket.IPPROTO_IP, IP_TOS)
            s.setsockopt(level, option, tos)
        s.connect((address, port))
        if protocol == "bulk":
            s.sendall(struct.pack("!Q", size) + b"x" * size)
            received = 0
            while data := s.recv(1 << 20):
                received += len(data)
            return f"{received} bytes"
        for _ in range(times):
            s.sendall(b"hello".ljust(size))
            lines.append(s.recv(65536).decode().strip())
            if pause:
                time.sleep(pause)
    except socket.timeout:
        lines.append("timeout")
    except OSError as e:
        lines.append(errno.errorcode.get(e.errno, str(e)))
    finally:
        s.close()
    return "\n".join(lines)


chatting = threading.Event()


def chatter(addresses):
    """Sends to all addresses, by the routes and around them, until it is told to stop."""
    sockets = []
    for address in addresses:
        for device in (None, b"eth0"):
            s = socket.socket(family(address), socket.SOCK_DGRAM)
            if device:
                s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device)
            sockets.append((s, address))

    def chat():
        while chatting.is_set():
            for s, address in sockets:
                try:
                    s.sendto(b"chatter", (address, 9999))
                except OSError:
                    pass
            time.sleep(0.05)

    chatting.set()
    start(chat)


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


def forge(packets):
    """Sends packets of own making: in FoU from an ordinary UDP socket, in plain IPIP or IP6IP6, or as they are."""
    for p in packets:
        to, how = p["to"], p["how"]
        payload = p["payload"].encode().ljust(p.get("size", 0))
        inner = packet(p["source"], p["destination"], p.get("port", 9000), payload)
        v6 = ":" in to
        if how == "fou":
            s = socket.socket(family(to), socket.SOCK_DGRAM)
            if not v6:
                s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, 0)  # fragments are allowed
            s.sendto(inner, (to, 5555))
        elif how == "plain":
            s = socket.socket(family(to), socket.SOCK_RAW, 41 if v6 else 4)
            s.sendto(inner, (to, 0))
        else:
            s = socket.socket(family(to), socket.SOCK_RAW, socket.IPPROTO_RAW)
            s.sendto(inner, (to, 0))
        s.close()


def software_checksums(device):
    """Has the kernel fill checksums in before packets leave by a device, as cards do; between namespaces it would not."""
    value = ctypes.create_string_buffer(struct.pack("=II", ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sP16x", device.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCETHTOOL, request)


def perform(netns, command, **parameters):
    enter(netns)
    commands = {
        "serve": lambda port: serve(netns, port),
        "seen": lambda port: "\n".join(seen.get((netns, port), [])),
        "ask": ask,
        "chatter": chatter,
        "silence": chatting.clear,
        "forge": forge,
        "software_checksums": software_checksums,
    }
    return commands[command](**parameters) or ""


def answer(connection):
    with connection:
        request = b"".join(iter(lambda: connection.recv(65536), b""))
        try:
            text = perform(**json.loads(request))
        except Exception as error:
            text = f"probe.py failed: {error!r}"
        connection.sendall(text.encode())


def main(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(99)
    while True:
        start(answer, listener.accept()[0])


sys.exit(main(sys.argv[1]))
