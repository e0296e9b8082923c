"""The program of a test pod: sends and receives what a test asks for, well-formed or crafted.

It listens on a unix socket. A request is a line, a JSON list of probes, such as [{"do": "udp", "address": "192.0.2.1", ...}];
they run side by side, and the reply is the list of their results in the same order: what the probe's function
returned, or {"error": "..."}. It runs in the pod, and not on demand, so that what it has begun (a transfer, a
listener) goes on while nobody can reach the pod through the apiserver.

On port 9000 (UDP and TCP) it answers with the address of whoever asks, as the servers of the internet do.
"""

import errno
import json
import os
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

SOCKET = "/run/probe.sock"
WHOAMI_PORT = 9000
FOU_PORT = 5555
CHUNK = 65536


# --- what an ordinary program does


def udp(address, port, text, timeout=3, device=None):
    """Sends one datagram and returns the answer."""
    with datagram_socket(address, device) as s:
        s.settimeout(timeout)
        s.connect((address, port))
        s.send(text.encode())
        return {"answer": s.recv(CHUNK).decode().strip()}


def tcp(address, port, timeout=5, device=None):
    """Sends one line over a new connection and returns the answer."""
    with connection(address, port, timeout, device) as s:
        s.sendall(b"who am I\n")
        return {"answer": s.makefile().readline().strip()}


def datagram(address, port, size, timeout=2, tries=3):
    """Sends one datagram of a size in bytes and tells whether the same bytes came back.

    An answer that does not fit a link on its way is lost once: the router's word of the smaller MTU is what its
    sender learns from. Programs that use UDP ask again, and so does this one.
    """
    payload = os.urandom(size)
    with datagram_socket(address) as s:
        s.settimeout(timeout)
        s.connect((address, port))
        for attempt in range(1, tries + 1):
            s.send(payload)
            try:
                return {"intact": s.recv(CHUNK) == payload}
            except TimeoutError:
                if attempt == tries:
                    raise


def exchange(address, port, size, count=1, timeout=60):
    """Sends `size` bytes over a new connection and reads them back, `count` times; returns the errors."""
    payload = os.urandom(size)
    errors = []
    started = time.monotonic()
    for _ in range(count):
        try:
            with connection(address, port, timeout) as s:
                if round_trip(s, payload) != payload:
                    errors.append("other bytes came back")
        except OSError as error:
            errors.append(describe(error))
    return {"errors": errors, "seconds": round(time.monotonic() - started, 1)}


def round_trip(s, payload):
    # Both directions at once: the echo would else fill the buffers and stop the sender.
    sender = threading.Thread(target=lambda: (s.sendall(payload), s.shutdown(socket.SHUT_WR)))
    sender.start()
    received = bytearray()
    while chunk := s.recv(CHUNK):
        received += chunk
    sender.join()
    return bytes(received)


def resolve(name):
    """Asks the pod's DNS for the addresses of a name."""
    return {"addresses": sorted({a[4][0] for a in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})}


def run(command, timeout=120):
    """Runs a command."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


# --- what goes on in the background


class Transfer(threading.Thread):
    """One connection over which a line goes back and forth until it is stopped or breaks."""

    def __init__(self, address, port):
        super().__init__(daemon=True)
        self.target = (address, port)
        self.stopped = threading.Event()
        self.state = {"roundTrips": 0, "longestPauseSeconds": 0.0, "broken": None}

    def run(self):
        try:
            with connection(*self.target, timeout=90) as s:
                last = time.monotonic()
                while not self.stopped.is_set():
                    line = b"%d\n" % self.state["roundTrips"]
                    s.sendall(line)
                    if read_exactly(s, len(line)) != line:
                        raise OSError("another line came back")
                    now = time.monotonic()
                    self.state["longestPauseSeconds"] = max(self.state["longestPauseSeconds"], round(now - last, 2))
                    last = now
                    self.state["roundTrips"] += 1
                    self.stopped.wait(0.25)
        except OSError as error:
            self.state["broken"] = describe(error)


class Listener(threading.Thread):
    """Remembers the datagrams that arrive at one port, v4 and v6."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.heard = []
        self.socket = dual_stack_socket(socket.SOCK_DGRAM)
        self.socket.bind(("::", port))

    def run(self):
        while True:
            payload, sender = self.socket.recvfrom(CHUNK)
            self.heard.append({"source": plain(sender[0]), "text": payload.decode(errors="replace")})


transfers = {}
listeners = {}


def start_transfer(name, address, port):
    transfers[name] = Transfer(address, port)
    transfers[name].start()
    return {}


def transfer(name):
    """How a transfer goes on."""
    return dict(transfers[name].state)


def stop_transfer(name):
    """Ends a transfer and tells how it went."""
    stopped = transfers.pop(name)
    stopped.stopped.set()
    stopped.join(timeout=10)
    return dict(stopped.state)


def listen(port):
    if port not in listeners:
        listeners[port] = Listener(port)
        listeners[port].start()
    return {}


def heard(port):
    """The datagrams that arrived since `listen`."""
    return {"datagrams": list(listeners[port].heard)}


# --- packets that no ordinary program sends


def fou(via, source, destination, port, text):
    """An ordinary UDP socket sends a datagram that holds an IP packet: FoU without any link of the kernel's.

    via: whom the outer packet is for; source, destination: the inner packet's addresses; port: its UDP port
    """
    with datagram_socket(via) as s:
        s.sendto(udp_packet(source, destination, port, text.encode()), (via, FOU_PORT))
    return {}


def ip_in_ip(via, source, destination, port, text):
    """Plain IPIP or IP6IP6, without UDP around it. Needs CAP_NET_RAW."""
    family, protocol = (socket.AF_INET6, 41) if ":" in via else (socket.AF_INET, 4)
    with socket.socket(family, socket.SOCK_RAW, protocol) as s:
        s.sendto(udp_packet(source, destination, port, text.encode()), (via, 0))
    return {}


def forged(source, destination, port, text):
    """One UDP packet with a source address of the sender's choice. Needs CAP_NET_RAW."""
    family = socket.AF_INET6 if ":" in destination else socket.AF_INET
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.sendto(udp_packet(source, destination, port, text.encode()), (destination, 0))
    return {}


def udp_packet(source, destination, port, payload):
    """A whole IP packet with one UDP datagram from port 4444."""
    if ":" in source:
        src, dst = (socket.inet_pton(socket.AF_INET6, a) for a in (source, destination))
        datagram = udp_datagram(src + dst, port, payload)
        return struct.pack("!IHBB", 6 << 28, len(datagram), socket.IPPROTO_UDP, 64) + src + dst + datagram
    src, dst = (socket.inet_aton(a) for a in (source, destination))
    datagram = udp_datagram(src + dst, port, payload)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(datagram), 1, 0, 64, socket.IPPROTO_UDP, 0) + src + dst
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + datagram


def udp_datagram(addresses, port, payload):
    header = struct.pack("!HHHH", 4444, port, 8 + len(payload), 0)
    pseudo_header = addresses + struct.pack("!HH", socket.IPPROTO_UDP, 8 + len(payload))
    return header[:6] + struct.pack("!H", checksum(pseudo_header + header + payload) or 0xFFFF) + payload


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


# --- sockets


def datagram_socket(address, device=None):
    return opened(socket.SOCK_DGRAM, address, device)


def connection(address, port, timeout, device=None):
    s = opened(socket.SOCK_STREAM, address, device)
    try:
        s.settimeout(timeout)
        s.connect((address, port))
        return s
    except OSError:
        s.close()
        raise


def opened(kind, address, device):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    if device is not None:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    return s


def dual_stack_socket(kind):
    s = socket.socket(socket.AF_INET6, kind)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return s


def read_exactly(s, size):
    received = b""
    while len(received) < size:
        chunk = s.recv(size - len(received))
        if not chunk:
            raise OSError("the connection was closed")
        received += chunk
    return received


def plain(address):
    return address.removeprefix("::ffff:")


def describe(error):
    if isinstance(error, TimeoutError):
        return "timeout"
    return errno.errorcode.get(error.errno, str(error))


# --- the server

PROBES = {
    f.__name__: f
    for f in (
        udp, tcp, datagram, exchange, resolve, run, start_transfer, transfer, stop_transfer, listen, heard, fou,
        ip_in_ip, forged,
    )
}  # fmt: skip


def perform(probe):
    arguments = dict(probe)
    try:
        return PROBES[arguments.pop("do")](**arguments)
    except OSError as error:
        return {"error": describe(error)}
    except subprocess.TimeoutExpired:
        return {"error": "timeout"}


class Requests(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            probes = json.loads(line)
            with ThreadPoolExecutor(max_workers=max(1, len(probes))) as pool:
                results = list(pool.map(perform, probes))
            self.wfile.write(json.dumps(results).encode() + b"\n")


class ThreadingUnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def answer_datagrams():
    s = dual_stack_socket(socket.SOCK_DGRAM)
    s.bind(("::", WHOAMI_PORT))
    while True:
        _, sender = s.recvfrom(CHUNK)
        s.sendto(f"{plain(sender[0])}\n".encode(), sender)


def answer_connections():
    s = dual_stack_socket(socket.SOCK_STREAM)
    s.bind(("::", WHOAMI_PORT))
    s.listen(64)
    while True:
        accepted, sender = s.accept()
        with accepted:
            accepted.sendall(f"{plain(sender[0])}\n".encode())


def main():
    # The first process of a container has no default reaction to SIGTERM: the pod would take its whole grace period.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    for answer in (answer_datagrams, answer_connections):
        threading.Thread(target=answer, daemon=True).start()
    with ThreadingUnixServer(SOCKET, Requests) as server:
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
