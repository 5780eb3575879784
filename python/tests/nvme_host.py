"""A host of NVMe/TCP for tests, written from the specification. It shares no code with the server."""

import socket
import struct

DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
HOST = "nqn.2014-08.org.nvmexpress:uuid:0b0d2f1c-9a52-4c35-8f7b-6d3f5a1e2c4d"

ICREQ, ICRESP, H2CTERM, C2HTERM, CAPSULE, RESPONSE, H2CDATA, C2HDATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9
HDGST, DDGST, LAST, SUCCESS = 1, 2, 4, 8


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc32c(data):
    """Return the CRC of Castagnoli, as digests have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


class CommandError(Exception):
    """A command that completed with an error."""

    def __init__(self, status, result):
        super().__init__(f"status type {status >> 8 & 7}, code {status & 0xFF:#x}")
        self.kind, self.code, self.result = status >> 8 & 7, status & 0xFF, result


class ClosedError(Exception):
    """The controller has closed the connection."""


def entry(opcode, nsid=0, *dwords):
    """Return a submission queue entry without identifier and data pointer. `dwords` are those from 10 on."""
    start = struct.pack("<BBHI", opcode, 0x40, 0, nsid).ljust(40, b"\0")
    return (start + struct.pack(f"<{len(dwords)}I", *dwords)).ljust(64, b"\0")


def fabrics(kind, body):
    """Return a command of fabrics. `body` are the bytes from 40 on."""
    return struct.pack("<BBHB", 0x7F, 0x40, 0, kind).ljust(40, b"\0") + body.ljust(24, b"\0")


class Queue:
    """A queue, and its connection."""

    def __init__(self, address, *, digests=False, align=0, timeout=20):
        self.socket = socket.create_connection(address, timeout=timeout)
        self.digests, self.identifier, self.head = digests, 0, 0
        self.waiting, self.arrived, self.log = {}, {}, []
        try:
            self._initialize(digests, align)
        except BaseException:
            self.close()
            raise

    def _initialize(self, digests, align):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack("<HBBI", 0, align, 3 if digests else 0, 0)
        self.socket.sendall(struct.pack("<BBBBI", ICREQ, 0, 128, 0, 128) + body.ljust(120, b"\0"))
        response = self.exactly(128)
        assert (response[0], response[2], response[11]) == (ICRESP, 128, 3 if digests else 0)
        self.most = struct.unpack_from("<I", response, 12)[0]
        assert self.most >= 4096

    def exactly(self, count):
        """Receive exactly `count` bytes."""
        parts = b""
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise ClosedError
            parts += part
        return parts

    def pdu(self, kind, header, data=b"", flags=0):
        """Send a PDU, with the digests that were agreed."""
        flags |= HDGST if self.digests else 0
        flags |= DDGST if self.digests and data else 0
        size = 8 + len(header)
        offset = size + (4 if self.digests else 0)
        length = offset + len(data) + (4 if self.digests and data else 0)
        head = struct.pack("<BBBBI", kind, flags, size, offset if data else 0, length) + header
        digests = [crc32c(part) if self.digests and part else b"" for part in (head, data)]
        self.socket.sendall(head + digests[0] + data + digests[1])

    def send(self, command, data=b"", room=0, *, inside=True):
        """Send a command. Data of up to 8 KiB travel in the capsule, unless `inside` is false."""
        self.identifier = self.identifier % 0xFFF + 1
        command = bytearray(command)
        struct.pack_into("<H", command, 2, self.identifier)
        inside = inside and 0 < len(data) <= 8192
        pointer = struct.pack("<QI3xB", 0, len(data) or room, 0x01 if inside else 0x5A)
        command[24:40] = pointer
        if data and not inside:
            self.waiting[self.identifier] = data
        self.pdu(CAPSULE, bytes(command), data if inside else b"")
        return self.identifier

    def receive(self):
        """Return the identifier, status, result and data of the next completed command."""
        while True:
            head = self.exactly(8)
            kind, flags, size, offset, length = struct.unpack("<BBBBI", head)
            head += self.exactly(size - 8)
            self.log.append((kind, flags))
            rest = self.exactly(length - size)
            if kind == C2HTERM:
                raise ClosedError(struct.unpack_from("<H", head, 8)[0])
            assert bool(flags & HDGST) == self.digests
            assert not self.digests or rest[:4] == crc32c(head), "digest of a header"
            if kind == RESPONSE:
                result, self.head, _, identifier, status = struct.unpack_from("<QHHHH", head, 8)
                self.waiting.pop(identifier, None)
                return identifier, status >> 1, result, self.arrived.pop(identifier, b"")
            identifier, tag = struct.unpack_from("<HH", head, 8)
            start, count = struct.unpack_from("<II", head, 12)
            if kind == R2T:
                self.transfer(identifier, tag, start, count)
                continue
            assert kind == C2HDATA
            data = rest[offset - size : offset - size + count]
            assert bool(flags & DDGST) == self.digests
            assert len(data) == count
            assert not self.digests or rest[-4:] == crc32c(data), "digest of data"
            before = self.arrived.pop(identifier, b"")
            assert len(before) == start
            self.arrived[identifier] = before + data
            if flags & SUCCESS:
                assert flags & LAST
                return identifier, 0, 0, self.arrived.pop(identifier)

    def transfer(self, identifier, tag, start, count):
        """Send data that the controller has requested."""
        data = self.waiting[identifier][start : start + count]
        for at in range(0, count, self.most):
            part = data[at : at + self.most]
            header = struct.pack("<HHIII", identifier, tag, start + at, len(part), 0)
            self.pdu(H2CDATA, header, part, LAST if at + len(part) == count else 0)

    def call(self, command, data=b"", room=0, **options):
        """Execute a command, and return its result and data."""
        identifier = self.send(command, data, room, **options)
        found, status, result, data = self.receive()
        assert found == identifier
        if status:
            raise CommandError(status, result)
        return result, data

    def connect(self, number, controller, subsystem, *, host=HOST, keep_alive_ms=0, flow_control=True, entries=32):
        """Connect the queue, and return the controller."""
        body = struct.pack("<HHHBBI", 0, number, entries - 1, 0 if flow_control else 4, 0, keep_alive_ms)
        data = bytes(range(16)) + struct.pack("<H", controller)
        data = data.ljust(256, b"\0") + subsystem.encode().ljust(256, b"\0") + host.encode().ljust(512, b"\0")
        controller = self.call(fabrics(1, body), data)[0] & 0xFFFF
        assert self.head == (1 if flow_control else 0xFFFF), "head of the queue after a Connect"
        return controller

    def property(self, offset, *, wide=False):
        """Return a property."""
        return self.call(fabrics(4, struct.pack("<B3xI", int(wide), offset)))[0]

    def set_property(self, offset, value):
        """Set a property."""
        self.call(fabrics(0, struct.pack("<B3xIQ", 0, offset, value)))

    def close(self):
        """Close the connection."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Controller:
    """An enabled controller: its admin queue and its I/O queues."""

    def __init__(self, address, subsystem, queues=1, *, digests=False, align=0, keep_alive_ms=0, **options):
        self.admin, self.queues, self.block = Queue(address, digests=digests, align=align), [], 512
        try:
            self.number = self.admin.connect(0, 0xFFFF, subsystem, keep_alive_ms=keep_alive_ms, **options)
            capabilities = self.admin.property(0, wide=True)
            assert capabilities >> 37 & 1, "the NVM command set"
            assert capabilities >> 59 & 1, "ready with media"
            assert self.admin.property(0x68) == capabilities >> 24 & 0xFF, "time limit of readiness"
            self.admin.set_property(0x14, 6 << 16 | 4 << 20 | 1)
            assert self.admin.property(0x1C) & 1, "ready"
            for number in range(1, queues + 1):
                self.queues.append(Queue(address, digests=digests, align=align))
                assert self.queues[-1].connect(number, self.number, subsystem, **options) == self.number
        except BaseException:
            self.close()
            raise

    def identify(self, structure, nsid=0):
        """Return an Identify data structure."""
        return self.admin.call(entry(0x06, nsid, structure), room=4096)[1]

    def log_page(self, page, size, offset=0):
        """Return a log page, or a part of it."""
        count = size // 4 - 1
        command = entry(0x02, 0xFFFFFFFF, page | (count & 0xFFFF) << 16, count >> 16, offset)
        return self.admin.call(command, room=size)[1]

    def get_feature(self, feature):
        """Return the value of a feature."""
        return self.admin.call(entry(0x0A, 0, feature))[0]

    def set_feature(self, feature, value):
        """Set a feature, and return the result."""
        return self.admin.call(entry(0x09, 0, feature, value))[0]

    def keep_alive(self):
        """Restart the keep alive timer."""
        self.admin.call(entry(0x18))

    def _on(self, opcode, block, count, control=0):
        return entry(opcode, 1, block & 0xFFFFFFFF, block >> 32, (count - 1) | control)

    def read(self, block, count, queue=0):
        """Read logical blocks."""
        return self.queues[queue].call(self._on(0x02, block, count), room=count * self.block)[1]

    def write(self, block, data, queue=0, *, fua=False, **options):
        """Write logical blocks."""
        command = self._on(0x01, block, len(data) // self.block, 1 << 30 if fua else 0)
        self.queues[queue].call(command, data, **options)

    def compare(self, block, data):
        """Compare logical blocks."""
        self.queues[0].call(self._on(0x05, block, len(data) // self.block), data)

    def write_zeroes(self, block, count, *, deallocate=False):
        """Write zeros."""
        self.queues[0].call(self._on(0x08, block, count, 1 << 25 if deallocate else 0))

    def deallocate(self, ranges):
        """Deallocate ranges of first blocks and counts."""
        data = b"".join(struct.pack("<IIQ", 0, count, first) for first, count in ranges)
        self.queues[0].call(entry(0x09, 1, len(ranges) - 1, 4), data)

    def flush(self):
        """Flush the namespace."""
        self.queues[0].call(entry(0x00, 1))

    def close(self):
        """Close all connections."""
        for queue in [*self.queues, self.admin]:
            queue.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def discover(address, **options):
    """Return the NQNs and addresses that the discovery controller lists."""
    found = []
    with Controller(address, DISCOVERY, 0, **options) as controller:
        count = struct.unpack_from("<Q", controller.log_page(0x70, 1024), 8)[0]
        for index in range(count):
            record = controller.log_page(0x70, 1024, 1024 * (index + 1))
            assert (record[0], record[2]) == (3, 2), "TCP, and an NVM subsystem"
            port, name, at = (record[start : start + size] for start, size in [(32, 32), (256, 256), (512, 256)])
            text = [part.decode().strip("\0 ") for part in (name, at, port)]
            found.append((text[0], (text[1], int(text[2]))))
    return found
