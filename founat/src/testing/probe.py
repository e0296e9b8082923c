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
SO_BINDTODEVICE, SO_MARK = 25, 36
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
SIOCGIFHWADDR = 0x8927
IP_TOS, IP_MTU_DISCOVER, IP_TRANSPARENT, IPV6_RTHDR, IPV6_TCLASS, IPV6_FREEBIND = 1, 10, 19, 57, 67, 78
IPV6_TRANSPARENT, IP_UNICAST_IF, IP_OPTIONS = 75, 50, 4
IPOPT_NOP, IPOPT_LSRR = 1, 131

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
    """Answers with the source it saw: TCP for each message, UDP for each datagram. port + 1: bulk TCP. To the end. Who
    sends the datagram `stream` gets one every 20 ms for a while."""
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
            if data == b"stream":
                start(stream, udp, peer)
                continue
            try:
                udp.sendto(f"{plain(peer[0])} {len(data)}\n".encode(), peer)
            except OSError:
                pass

    def stream(udp, peer):
        for _ in range(1000):
            udp.sendto(b"stream", peer)
            time.sleep(0.02)

    for number, handle in (port, tcp), (port + 1, bulk):
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("::", number))
        listener.listen(99)
        start(accept, listener, handle)
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.bind(("::", port))
    start(datagrams, udp)


def listen(netns, port, address, peer=None, group=None):
    """A UDP server as {@link serve}'s, on one socket: bound to an address, connected to a peer, in a group. To the end."""
    log = seen[netns, port] = []
    s = socket.socket(family(address), socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if ":" in address:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, port))
    if peer:
        s.connect(tuple(peer))
    if group and ":" in group:
        index = struct.pack("@I", socket.if_nametoindex("eth0"))
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + index)
    elif group:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + struct.pack("@I", 0))

    def datagrams():
        while True:
            data, from_peer = s.recvfrom(65536)
            log.append(f"{from_peer[0]} {len(data)} {data[:40].decode(errors='replace').strip()}")
            try:
                s.send(data) if peer else s.sendto(data, from_peer)
            except OSError:
                pass

    start(datagrams)


def bind(s, address, source, source_port, privileged):
    """Binds to an address that may be another host's: IPV6_FREEBIND takes no privilege, IP_TRANSPARENT does."""
    v6 = ":" in address
    if privileged:
        s.setsockopt(*((socket.IPPROTO_IPV6, IPV6_TRANSPARENT) if v6 else (socket.IPPROTO_IP, IP_TRANSPARENT)), 1)
    elif source and v6:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((source or ("::" if v6 else "0.0.0.0"), source_port))


def ask(
    protocol, address, port=9000, device=None, tos=None, size=0, timeout=20, times=1, pause=0,
    source=None, source_port=0, transparent=False, route=None, lasts=None, towards=None, mark=None,
):
    """Sends something to a server, also all the time that a file is there; its answers, or the name of the error."""
    lines = []
    s = socket.socket(family(address), socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM)
    s.settimeout(timeout)
    try:
        if device:
            s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device.encode())
        if mark:
            s.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
        if towards:
            index = struct.pack("!I", socket.if_nametoindex(towards))
            s.setsockopt(socket.IPPROTO_IP, IP_UNICAST_IF, index)
        if tos:
            level, option = (socket.IPPROTO_IPV6, IPV6_TCLASS) if ":" in address else (socket.IPPROTO_IP, IP_TOS)
            s.setsockopt(level, option, tos)
        if route and ":" in route:
            last, first = (socket.inet_pton(socket.AF_INET6, a) for a in (address, route))
            s.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, routing_header(0, last, first))
        elif route:
            s.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, bytes([IPOPT_NOP, IPOPT_LSRR, 7, 4]) + socket.inet_aton(route))
        if source or source_port:
            bind(s, address, source, source_port, transparent)
        s.connect((address, port))
        if protocol == "bulk":
            s.sendall(struct.pack("!Q", size) + b"x" * size)
            received = 0
            while data := s.recv(1 << 20):
                received += len(data)
            return f"{received} bytes"
        while times > 0:
            s.sendall(b"hello".ljust(size))
            lines.append(s.recv(65536).decode().strip())
            if not (lasts and os.path.exists(lasts)):
                times -= 1
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


def chatter(addresses, devices=("", "eth0")):
    """Sends to all addresses, by the routes and around them, until it is told to stop."""
    sockets = []
    for address in addresses:
        for device in devices:
            s = socket.socket(family(address), socket.SOCK_DGRAM)
            if device:
                s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device.encode())
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


# By address: how many datagrams of its stream have come.
heard = {}


def subscribe(address):
    """Has a server stream datagrams here, and sends one into the flow now and then, until it is told to stop. Returns the
    port here."""
    s = socket.socket(family(address), socket.SOCK_DGRAM)
    s.connect((address, 9000))
    s.send(b"stream")
    heard[address] = 0

    def count():
        while s.recv(100):
            heard[address] += 1

    def go_on():
        while chatting.is_set():
            time.sleep(0.1)
            s.send(b"more")

    chatting.set()
    start(count)
    start(go_on)
    return str(s.getsockname()[1])


def talk(addresses):
    """Asks servers over TCP and UDP again and again, over connections that last, until it is told to stop."""
    def converse(protocol, address):
        while chatting.is_set():
            try:
                with socket.socket(family(address), protocol) as s:
                    s.settimeout(1)
                    s.connect((address, 9000))
                    while chatting.is_set():
                        s.sendall(b"hello")
                        s.recv(65536)
                        time.sleep(0.1)
            except OSError:
                time.sleep(0.03)

    chatting.set()
    for address in addresses:
        for protocol in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            start(converse, protocol, address)


def besiege(packets):
    """Forges packets again and again until it is told to stop."""
    forged = [made(p) for p in packets]

    def send():
        while chatting.is_set():
            for p, inner in forged:
                send_forged(p, inner)
            time.sleep(0.1)

    chatting.set()
    start(send)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


ICMP, TCP, UDP, ROUTING, ICMP6 = 1, 6, 17, 43, 58
# Where in the protocol's header its checksum is.
CHECKSUM_AT = {ICMP: 2, TCP: 16, UDP: 6, ICMP6: 2}


def internet_packet(source, destination, protocol, content, hop_limit=64):
    """An IP packet of either family, with the checksum of its content filled in."""
    v6 = ":" in destination
    version = socket.AF_INET6 if v6 else socket.AF_INET
    a, b = socket.inet_pton(version, source), socket.inet_pton(version, destination)
    if protocol in CHECKSUM_AT:
        at = CHECKSUM_AT[protocol]
        pseudo_header = b"" if protocol == ICMP else a + b + struct.pack("!II", len(content), protocol)
        total = checksum(pseudo_header + content) or 0xFFFF
        content = content[:at] + struct.pack("!H", total) + content[at + 2 :]
    if v6:
        return struct.pack("!IHBB", 6 << 28, len(content), protocol, hop_limit) + a + b + content
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(content), 1, 0, hop_limit, protocol, 0, a, b)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + content


def packet(source, destination, port, payload, source_port=4444, tcp_flags=None, tcp_options=b""):
    """An IP packet of either family, with a UDP datagram or a TCP segment."""
    if tcp_flags is not None:
        words = 5 + len(tcp_options) // 4
        tcp = struct.pack("!HHIIBBHHH", source_port, port, 1000, 2000, words << 4, tcp_flags, 65535, 0, 0)
        return internet_packet(source, destination, TCP, tcp + tcp_options)
    udp = struct.pack("!HHHH", source_port, port, 8 + len(payload), 0) + payload
    return internet_packet(source, destination, UDP, udp)


def routing_header(protocol, last, first):
    """RFC 8754: two segments; the packet goes to the second one of the list first."""
    return struct.pack("!BBBBBBH", protocol, 4, 4, 1, 1, 0, 0) + last + first


def routed(inner, route):
    """An IPv6 packet that goes somewhere else first. The checksum stays that of its last destination (RFC 8200, 8.1)."""
    protocol, hop_limit, last, content = inner[6], inner[7], inner[24:40], inner[40:]
    first = socket.inet_pton(socket.AF_INET6, route)
    content = routing_header(protocol, last, first) + content
    return inner[:4] + struct.pack("!HBB", len(content), ROUTING, hop_limit) + inner[8:24] + first + content


def fragment(inner, first, last):
    """Some bytes of an IP packet's content, as a fragment; all that are made have one identification."""
    v6 = inner[0] >> 4 == 6
    content = inner[40 if v6 else 20 :]
    part, more = content[first:last], last < len(content)
    if v6:
        part = struct.pack("!BBHI", inner[6], 0, first | more, 7) + part
        return inner[:4] + struct.pack("!HBB", len(part), 44, inner[7]) + inner[8:40] + part
    head = struct.pack("!HHH", 20 + len(part), 7, more << 13 | first // 8) + inner[8:10] + b"\0\0" + inner[12:20]
    head = inner[:2] + head
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + part


def forge(packets):
    """Sends packets of own making: in FoU from an ordinary UDP socket, in plain IPIP or IP6IP6, or as they are."""
    for p in packets:
        send_forged(p, made(p))


def made(p):
    payload = p["payload"].encode().ljust(p.get("size", 0))
    port, source_port = p.get("port", 9000), p.get("source_port", 4444)
    tcp = p.get("tcp_flags"), bytes.fromhex(p.get("tcp_options", ""))
    inner = packet(p["source"], p["destination"], port, payload, source_port, *tcp)
    if "icmp" in p:
        protocol = ICMP6 if ":" in p["to"] else ICMP
        inner = internet_packet(p["source"], p["destination"], protocol, bytes.fromhex(p["icmp"]), 255)
    if "route" in p:
        inner = routed(inner, p["route"])
    return fragment(inner, *p["fragment"]) if "fragment" in p else inner


def send_forged(p, inner):
    to, how = p["to"], p["how"]
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
        s.sendto(inner, (to, 0, 0, socket.if_nametoindex("eth0")) if v6 else (to, 0))
    s.close()


def icmpv6(source, destination, message):
    """An IPv6 packet of a neighbour: only those of hop limit 255 count."""
    a, b = socket.inet_pton(socket.AF_INET6, source), socket.inet_pton(socket.AF_INET6, destination)
    total = checksum(a + b + struct.pack("!II", len(message), 58) + message)
    message = message[:2] + struct.pack("!H", total) + message[4:]
    return struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + a + b + message


def lie(device, router, victim):
    """Says all that a neighbour may say of the way to places, as if it were the router: an IPv4 redirect, ARP, NA; and as
    itself, a better router: RA with a prefix, a route and high preference. `router` and `victim` are addresses of both
    families."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        mac = fcntl.ioctl(s, SIOCGIFHWADDR, struct.pack("40s", device.encode()))[18:24]
    v6 = lambda address: socket.inet_pton(socket.AF_INET6, address)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((device, 0))
    everybody, all_nodes = b"\xff" * 6, b"\x33\x33\0\0\0\1"

    advertise(device, prefix="2001:db8:bad::", route="2001:db8::", preference=8)
    gateway, host = socket.inet_aton(router["ipv4"]), socket.inet_aton(victim["ipv4"])
    for operation in 1, 2:
        arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + mac + gateway + everybody + gateway
        link.send(everybody + mac + b"\x08\x06" + arp)
    announcement = struct.pack("!BBHI", 136, 0, 0, 0xA0000000) + v6(router["ipv6"]) + b"\2\1" + mac
    link.send(all_nodes + mac + b"\x86\xdd" + icmpv6(router["ipv6"], "ff02::1", announcement))

    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    about = packet(victim["ipv4"], "192.0.2.2", 9000, b"redirected")
    redirect = struct.pack("!BBH", 5, 1, 0) + socket.inet_aton("10.1.0.5") + about
    redirect = redirect[:2] + struct.pack("!H", checksum(redirect)) + redirect[4:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(redirect), 1, 0, 64, 1, 0)
    raw.sendto(head + gateway + host + redirect, (victim["ipv4"], 0))


def advertise(device, prefix=None, route=None, preference=0):
    """Sends a router advertisement from the link-local address of a device."""
    v6 = lambda address: socket.inet_pton(socket.AF_INET6, address)
    message = struct.pack("!BBHBBHII", 134, 0, 0, 64, preference, 1800, 0, 0)
    if prefix:
        message += struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0) + v6(prefix)
    if route:
        message += struct.pack("!BBBBI", 24, 2, 32, preference, 3600) + v6(route)[:8]
    s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    s.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, device.encode())
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    s.sendto(message, ("ff02::1", 0, 0, socket.if_nametoindex(device)))


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
        "listen": lambda **options: listen(netns, **options),
        "seen": lambda port: "\n".join(seen.get((netns, port), [])),
        "ask": ask,
        "chatter": chatter,
        "subscribe": subscribe,
        "heard": lambda address: str(heard[address]),
        "talk": talk,
        "besiege": besiege,
        "silence": chatting.clear,
        "forge": forge,
        "lie": lie,
        "advertise": advertise,
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
