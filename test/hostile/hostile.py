"""What programs must bear from a network that is not their friend, and whether they still answer.

Usage: hostile.py COMMAND ARGUMENT...
    datagrams ADDRESS PORT                          a heartbeat's responder
    http ADDRESS PORT...                            health ports
    lines PATH                                      the agent's socket
    requests PATH                                   the same, by requests that it understands; prints how each is answered
    hold FILE SOURCE COUNT ADDRESS PORT...          silent connections; those that are closed are opened again. Makes the
                                                    file when it has opened all of them, and ends when that is gone
    silent ADDRESS PORT                             one silent connection, until it is closed
    probe SECONDS SOURCE ADDRESS PORT...            prints the different answers of /healthz and /readyz, "none" too
    heartbeat ADDRESS PORT                          prints the type and the length of the answer
"""
import json
import os
import resource
import select
import socket
import struct
import sys
import time

# As the kubelet waits.
PROBE_TIMEOUT = 5
# An agent without an API server lets a request wait for ten seconds before it answers.
ANSWER_TIMEOUT = 60
# On emulated processors a connection takes milliseconds: who opens more of them has used up the processor.
SWEEP = 0.5
REOPENED_PER_SWEEP = 5

REQUEST = b"EGHB\x01\x01\x00\x01" + b"n" * 16 + bytes([5, 255]) + b"uid-1" + b"\0" * 20
NOT_TEXT = b"EGHB\x01\x01\x00\x01" + b"n" * 16 + bytes([128, 255]) + b"\xff" * 128 + b"\0" * 20


def datagrams(address, port):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    corpus = [NOT_TEXT, b"", REQUEST[:-1], REQUEST + b"\0", b"\xff" * 1200, b"x" * 65_000]
    corpus += [b"EGHB\x01\x02" + REQUEST[6:], b"EGHB\x01\x01\xff\xff" + REQUEST[8:]]
    for datagram in corpus:
        sender.sendto(datagram, (address, int(port)))
    # From port 0: no checksum, which IPv4 allows.
    header = struct.pack("!HHHH", 0, int(port), 8 + len(REQUEST), 0)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    raw.sendto(header + REQUEST, (address, 0))


def http(address, *ports):
    whole = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    corpus = [
        b"",
        b"\0" * 5000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: a",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: " + b"b" * 1_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 100_000,
        b"GET /%00%ff\xff?\xfe HTTP/1.1\r\nHost: a\r\nExpect: the unexpected\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        whole * 200,
    ]
    for port in ports:
        for request in corpus:
            for reset in (False, True):
                send(socket.create_connection((address, int(port))), request, reset)


def lines(path):
    corpus = [b"\n", b"{", b"null\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"a" * 8_000_000]
    for line in corpus:
        for reset in (False, True):
            send(connected(path), line, reset)


def requests(path):
    records = ["c" * 5_000, "c1\0:eth0:pods", "c1:eth0:%2e%2e%2fpods", "c1:..:%", "c1:eth0:../pods", "../../etc"]
    pod = {"namespace": "../apps", "name": "web\0", "uid": "u" * 5_000}
    add = {
        **{"operation": "add", "network": "n" * 10_000, "containerId": "c..1", "ifname": ".."},
        **{"netns": "/proc/1/../1/ns/net", "pod": pod, "addresses": ["127.0.0.1", "::ffff:10.9.0.1", "::"] * 100},
        "annotations": {"__proto__": "x", "egress.coil.cybozu.com/../..": "," * 100_000},
    }
    corpus = [{"operation": "delete", "records": [record]} for record in records]
    corpus += [
        {"operation": "check", "record": record, "netns": "/proc/1/../1/ns/net", "addresses": ["::"]} for record in records
    ]
    corpus += [add, {"operation": "mention", "pod": pod, "keys": ["k" * 5_000, "__proto__", ""] * 100}]
    lines = [json.dumps(request).encode() + b"\n" for request in corpus]
    for line in lines:
        send(connected(path), line * 100, reset=True)
    connections = [connected(path) for _ in lines]
    for connection, line in zip(connections, lines):
        connection.sendall(line)
    for connection, request in zip(connections, corpus):
        connection.settimeout(ANSWER_TIMEOUT)
        answer = json.loads(connection.makefile().readline())
        print(request["operation"], answer.get("code", "ok"))


def connected(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def send(connection, request, reset):
    """Sends what the other side takes, then reads its answer, or breaks the connection."""
    connection.settimeout(2)
    try:
        connection.sendall(request)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
    except OSError:
        pass
    connection.close()


def hold(file, source, count, address, *ports):
    limit = int(count) * len(ports) + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    held = {port: [] for port in map(int, ports)}
    for connections in held.values():
        connections.extend(open_silent(source) for _ in range(int(count)))
    for port, connections in held.items():
        for index, connection in enumerate(connections):
            connection.connect_ex((address, port))
            if index % 50 == 49:
                time.sleep(0.1)
    open(file, "w").close()
    while os.path.exists(file):
        for port, connections in held.items():
            watch = select.poll()
            by_file = {connection.fileno(): index for index, connection in enumerate(connections)}
            for descriptor in by_file:
                watch.register(descriptor, select.POLLIN)
            for descriptor, _ in watch.poll(0)[:REOPENED_PER_SWEEP]:
                index = by_file[descriptor]
                connections[index].close()
                connections[index] = open_silent(source)
                connections[index].connect_ex((address, port))
        time.sleep(SWEEP)


def open_silent(source):
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    connection.bind((source, 0))
    return connection


def silent(address, port):
    connection = socket.create_connection((address, int(port)))
    while connection.recv(100):
        pass


def probe(seconds, source, address, *ports):
    answers = set()
    until = time.monotonic() + float(seconds)
    while True:
        for port in ports:
            for path in ("/healthz", "/readyz"):
                answers.add(f"{port}{path} {status(source, address, int(port), path)}")
        if time.monotonic() >= until:
            break
        time.sleep(0.5)
    print("\n".join(sorted(answers)))


def status(source, address, port, path):
    try:
        connection = socket.create_connection((address, port), PROBE_TIMEOUT, (source, 0))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return connection.recv(100).split()[1].decode()
    except (OSError, IndexError):
        return "none"


def heartbeat(address, port):
    asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.settimeout(PROBE_TIMEOUT)
    asker.sendto(REQUEST, (address, int(port)))
    answer = asker.recv(2000)
    print(answer[5], len(answer) - len(REQUEST))


globals()[sys.argv[1]](*sys.argv[2:])
