"""Strangers of a job, as a program of its own: it runs where they are, in a network namespace or as another user.

Reads one JSON object, `{"what": "scan" | "attack" | "datagrams" | "unix", ...}`, from standard input and says one. `attack` has
ways to talk to a listener; each session ends when the listener ends it, when enough was said, or when the patience of a stranger does.
"nice" is how little of the processor it gets.
"""

import asyncio
import contextlib
import json
import math
import os
import random
import resource
import select
import socket
import ssl
import sys
import time

import doors

PORTS = range(1, 65536)
AT_ONCE = 1200
SCANNED_AT_ONCE = 400
SCAN_PATIENCE_S = 10
PATIENCE_S = 60
DRIP_S = 0.3
ALERT, HANDSHAKE = 21, 22
FILLER = bytes((HANDSHAKE, 3, 1)) + (4000).to_bytes(2, "big") + bytes(4000)  # a record that is in order
ENDLESS_BYTES_MAX = 4 << 20
ANSWERS_WITHIN_S = 1


class ended(Exception):
    """The listener has ended the session."""


def beyond_tls(said):
    """How many of the bytes are neither alert nor handshake; of who was not greeted back."""
    while len(said) >= 5 and said[0] in (ALERT, HANDSHAKE) and said[1] == 3:
        said = said[5 + int.from_bytes(said[3:5], "big"):]
    return len(said)


class line:
    """A connection, and what came of it."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.heard = reader, writer, b""

    async def send(self, words):
        try:
            self.writer.write(words)
            await self.writer.drain()
        except OSError:
            raise ended from None

    async def receive(self):
        try:
            words = await self.reader.read(1 << 16)
        except OSError:
            words = b""
        if not words:
            raise ended
        self.heard += words
        return words

    async def listen(self):
        while True:
            await self.receive()


# ---- ways to talk; each returns when the listener has closed in order, else it raises `ended`


async def raw(link, way, source):
    """One of its words, and nothing more."""
    await link.send(bytes.fromhex(source.choice(way["words"])))
    await link.listen()


async def held(link, way, source):
    await link.listen()


async def while_listening(link, talk_to):
    """Talks, and ends when the listener does. @param talk_to gets the task that listens"""
    heard = asyncio.ensure_future(link.listen())
    try:
        await talk_to(heard)
        await heard
    finally:
        heard.cancel()
        with contextlib.suppress(ended, asyncio.CancelledError):
            await heard


async def drip(link, way, source):
    """A greeting of TLS that is in order, a byte now and then."""
    async def talk_to(heard):
        for byte in client_hello():
            await link.send(bytes((byte,)))
            await asyncio.wait([heard], timeout=DRIP_S)
            if heard.done():
                return

    await while_listening(link, talk_to)


async def endless(link, way, source):
    """Says that much is to come, and sends it."""
    async def talk_to(heard):
        await link.send(bytes.fromhex(source.choice(way["words"])))
        sent = 0
        while sent < ENDLESS_BYTES_MAX and not heard.done():
            await link.send(FILLER)
            sent += len(FILLER)

    await while_listening(link, talk_to)


def client_hello():
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context_of({}).wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


CONTEXTS = {}


def context_of(way):
    """A client that checks nobody."""
    key = (way.get("certificate"), way.get("version"))
    if key not in CONTEXTS:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        if way.get("version") == "1.2":
            made.maximum_version = ssl.TLSVersion.TLSv1_2
        if way.get("certificate"):
            made.load_cert_chain(way["certificate"], way["key"])
        CONTEXTS[key] = made
    return CONTEXTS[key]


class secret_line:
    """TLS over a line. An alert of the listener ends it."""

    def __init__(self, link, context):
        self.link, self.incoming, self.outgoing = link, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)

    async def do(self, call):
        while True:
            try:
                done = call()
                await self.flush()
                return done
            except ssl.SSLWantReadError:
                await self.flush()
                self.incoming.write(await self.link.receive())
            except ssl.SSLError:
                await self.flush()
                raise ended from None

    async def flush(self):
        if self.outgoing.pending:
            await self.link.send(self.outgoing.read())


async def tls(link, way, source):
    """As a client does, with the certificate that it has, and one of its words."""
    over = secret_line(link, context_of(way))
    link.plain = b""
    await over.do(over.tls.do_handshake)
    words = bytes.fromhex(source.choice(way["words"]))
    await over.do(lambda: over.tls.write(words))
    while said := await over.do(lambda: over.tls.read(1 << 16)):
        link.plain += said
        if len(link.plain) >= way.get("enough", math.inf):
            return


WAYS = {"raw": raw, "held": held, "drip": drip, "endless": endless, "tls": tls}


# ---- an attack


class outcome:
    """Of all sessions of a kind."""

    def __init__(self):
        self.sessions = self.refused = self.unconnected = self.said = 0
        self.longest_s, self.told = 0.0, ""

    def add(self, seconds, is_over, said):
        self.sessions += 1
        self.refused += is_over and not said
        self.said += len(said)
        self.longest_s = max(self.longest_s, seconds)
        self.told = self.told or said[:64].hex()


class open_sessions(set):
    """How many there are, and have been at once."""

    most = 0

    def add(self, one):
        super().add(one)
        self.most = max(self.most, len(self))


open_now = open_sessions()


async def talk(way, at, source, into):
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(*at), PATIENCE_S)
    except (OSError, asyncio.TimeoutError):
        into.unconnected += 1
        return
    link, begin, is_over = line(reader, writer), time.monotonic(), False
    open_now.add(link)
    try:
        await asyncio.wait_for(WAYS[way["way"]](link, way, source), PATIENCE_S)
        is_over = True  # TLS was closed
    except ended:
        is_over = True
    except asyncio.TimeoutError:
        pass
    finally:
        seconds = time.monotonic() - begin
        open_now.remove(link)
        writer.transport.abort()
    plain = getattr(link, "plain", None)
    into.add(seconds, is_over, link.heard[len(link.heard) - beyond_tls(link.heard):] if plain is None else plain)


async def attack(order):
    """So many sessions with each way, spread over `seconds` and over all listeners in turn."""
    source, found, may = random.Random(order["seed"]), {}, asyncio.Semaphore(AT_ONCE)
    plan = [way for way in order["ways"] for _ in range(way["sessions"])]
    source.shuffle(plan)
    first = source.randrange(len(order["listeners"]))
    begin = time.monotonic()

    async def one(number, way):
        async with may:
            at = order["listeners"][(first + number) % len(order["listeners"])]
            words = random.Random(f"{order['seed']} {number}")
            await talk(way, at, words, found.setdefault(way["name"], outcome()))

    sessions = []
    for number, way in enumerate(plan):
        await asyncio.sleep(max(0.0, begin + number * order["seconds"] / len(plan) - time.monotonic()))
        sessions.append(asyncio.ensure_future(one(number, way)))
    await asyncio.gather(*sessions)
    return {"most_open": open_now.most, "kinds": {name: vars(one) for name, one in found.items()}}


# ---- the rest


def scan(order):
    """Ports to which a connection comes about, by address."""
    return {address: open_ports(address) for address in order["addresses"]}


def open_ports(address):
    found, waiting, left = [], {}, iter(PORTS)
    with select.epoll() as poller:
        while True:
            for port in take(left, SCANNED_AT_ONCE - len(waiting)):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex((address, port))
                waiting[one.fileno()] = (one, port)
                poller.register(one, select.EPOLLOUT)
            if not waiting:
                return sorted(found)
            ready = poller.poll(SCAN_PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{address} neither takes nor refuses connections to {[port for _, port in waiting.values()]}")
            for descriptor, _ in ready:
                one, port = waiting.pop(descriptor)
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    found.append(port)
                one.close()


def take(iterator, count):
    for _ in range(count):
        with contextlib.suppress(StopIteration):
            yield next(iterator)


def datagrams(order):
    """@returns how many were sent, and how many came back"""
    sent, source = 0, random.Random(order["seed"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        for at in order["to"]:
            for _ in range(order["each"]):
                with contextlib.suppress(OSError):
                    peer.sendto(bytes.fromhex(source.choice(order["words"])), tuple(at))
                    sent += 1
        answers, end = 0, time.monotonic() + ANSWERS_WITHIN_S
        while select.select([peer], [], [], max(0.0, end - time.monotonic()))[0]:
            with contextlib.suppress(OSError):
                peer.recvfrom(4096)
                answers += 1
    return {"sent": sent, "answers": answers}


def unix(order):
    """As another user of the host. @returns sessions, and bytes that were said in them"""
    doors.become(doors.NOBODY)
    said = [doors.talk(kind, bytes.fromhex(name).decode(), bytes.fromhex(words))
            for _ in range(order["each"]) for kind, name in order["doors"] for words in order["words"]]
    return {"sessions": len(said), "said": sum(said)}


def main():
    order = json.load(sys.stdin)
    os.nice(order["nice"])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1 << 16), most))
    what = {"scan": scan, "datagrams": datagrams, "unix": unix, "attack": lambda order: asyncio.run(attack(order))}
    json.dump(what[order["what"]](order), sys.stdout)


if __name__ == "__main__":
    main()
