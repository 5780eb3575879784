"""NVMe/TCP: a live device with the host of `nvme_host`."""

import random
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

import floatgate as fg
from nvme_host import HOST, SUCCESS, ClosedError, CommandError, Controller, Queue, discover, entry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="live devices need Linux")

INVALID_OPCODE, INVALID_FIELD, INVALID_NAMESPACE, LBA_RANGE = (0, 0x01), (0, 0x02), (0, 0x0B), (0, 0x80)

#: Data without a period, so that exchanged or shifted blocks are noticed.
DATA = random.Random(1).randbytes(256 << 10)


class Server:
    """A server of `tiny`, as fast as possible."""

    def __init__(self, program, *arguments, port=0):
        words = [program, "serve", "tiny", "--nvme", f"tcp://127.0.0.1:{port}", "--no-delay", *map(str, arguments)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        while not lines or not lines[-1].startswith("Ctrl-C"):
            lines.append(self.process.stderr.readline())
            if not lines[-1]:
                self.end()
                pytest.fail("".join(lines))
        text = "".join(lines)
        self.address = ("127.0.0.1", int(re.search(r"NVMe at tcp://127\.0\.0\.1:(\d+)\n", text)[1]))
        self.nqn = re.search(r"nvme connect .* -n (\S+)", text)[1]

    def connect(self, queues=1, **options):
        return Controller(self.address, self.nqn, queues, **options)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


@pytest.fixture
def server(program):
    with Server(program) as started:
        yield started


def status(call, *arguments, **options):
    """Return the type and code of the status of a command that fails."""
    with pytest.raises(CommandError) as caught:
        call(*arguments, **options)
    return caught.value.kind, caught.value.code


def test_a_host_discovers_and_identifies_the_drive(server):
    assert discover(server.address) == [(server.nqn, server.address)]
    assert re.fullmatch(r"nqn\.2026-01\.example\.floatgate:tiny:[0-9a-f]{32}", server.nqn)
    with server.connect() as host:
        controller, namespace = host.identify(1), host.identify(0, 1)
        assert controller[4:24].decode().strip() == server.nqn[-32:-16].upper()
        assert controller[24:64].decode().strip() == "Floatgate tiny"
        assert struct.unpack_from("<H", controller, 78)[0] == host.number
        assert controller[111] == 1
        assert controller[768:1024].rstrip(b"\0").decode() == server.nqn
        blocks = struct.unpack_from("<Q", namespace)[0]
        assert blocks * 2 ** namespace[130] == 13107 * 4096
        assert namespace[104:120].hex() == server.nqn[-32:]
        assert host.identify(2)[:8] == struct.pack("<II", 1, 0)
        assert host.identify(3, 1)[:2] == b"\x02\x10"
        assert host.identify(3, 1)[4:20] == namespace[104:120]
        # Limits: 1 MiB, 32 MiB, 64 ranges, 1 GiB and 64 GiB in blocks of 512 bytes.
        assert host.identify(6)[:16] == struct.pack("<BBBBIQ", 8, 13, 0, 64, 1 << 21, 1 << 27)
        assert status(host.identify, 0, 2) == INVALID_NAMESPACE
        assert status(host.identify, 0, 0xFFFFFFFF) == INVALID_NAMESPACE
        assert status(host.read, blocks, 1) == LBA_RANGE


@pytest.mark.parametrize(("digests", "align", "flow_control"), [(False, 0, True), (True, 0, False), (True, 31, True)])
def test_data_is_sent_in_capsules_and_on_request(server, digests, align, flow_control):
    with server.connect(4, digests=digests, align=align, flow_control=flow_control) as host:
        host.write(0, DATA[:4096])
        host.write(8, DATA[4096:8192], inside=False)
        host.write(16, DATA, queue=1)
        assert host.read(0, 16, queue=2) == DATA[:8192]
        assert host.read(16, 512, queue=3) == DATA
        assert any(flags & SUCCESS for _, flags in host.queues[3].log) != flow_control
        host.compare(16, DATA)
        assert status(host.compare, 0, DATA) == (2, 0x85)
        host.write_zeroes(16, 8)
        host.deallocate([(24, 8), (40, 16)])
        assert host.read(16, 40) == bytes(8192) + DATA[8192:12288] + bytes(8192)
        assert host.read(56, 472) == DATA[40 * 512 :][: 472 * 512]
        host.flush()


def test_many_commands_are_outstanding_on_a_queue(server):
    with server.connect() as host:
        queue, sent = host.queues[0], {}
        parts = [DATA[32 * index :][:32768] for index in range(30)]
        for index, part in enumerate(parts):
            sent[queue.send(entry(0x01, 1, 64 * index, 0, 63), part)] = index
        for _ in parts:
            identifier, state, _, _ = queue.receive()
            assert state == 0
            del sent[identifier]
        assert not sent
        assert all(host.read(64 * index, 64) == part for index, part in enumerate(parts))


def test_large_writes_of_a_full_queue_complete(server):
    # 100 MiB. The server requests at most 64 MiB at a time.
    size = 1 << 20
    with Controller(server.address, server.nqn, entries=128) as host:
        queue, part = host.queues[0], DATA * 4
        sent = {queue.send(entry(0x01, 1, 2048 * (index % 50), 0, 2047), part) for index in range(100)}
        while sent:
            identifier, state, _, _ = queue.receive()
            assert state == 0
            sent.remove(identifier)
        assert all(host.read(2048 * index, 2048) == part[:size] for index in (0, 49))


def test_health_features_and_refusals(server):
    with server.connect() as host:
        host.write(0, bytes(8192))
        host.read(0, 16)
        health = host.log_page(2, 512)
        counters = [int.from_bytes(health[at : at + 16], "little") for at in (32, 48, 64, 80)]
        assert counters == [1, 1, 1, 1]
        assert health[3] == 100
        assert status(host.set_feature, 0x07, 0x003F_003F) == (0, 0x0C)
        host.set_feature(0x0B, 0x1FF)
        assert host.get_feature(0x0B) == 0x1FF
        for opcode in (0x80, 0x84, 0x10, 0xC0):
            assert status(host.admin.call, entry(opcode, 1)) == INVALID_OPCODE
        assert status(host.set_feature, 0x7E, 0) == INVALID_FIELD
        assert status(host.log_page, 0x70, 1024) == (1, 0x09)
        assert struct.unpack_from("<Q", host.log_page(1, 4096))[0] == 7
    with server.connect(0) as host:
        assert host.set_feature(0x07, 0x00FF_00FF) == 0x003F_003F


def test_a_host_that_is_silent_loses_its_controller(server):
    with server.connect(keep_alive_ms=1000) as host:
        for _ in range(4):
            time.sleep(0.5)
            host.keep_alive()
        begun = time.monotonic()
        for queue in (host.admin, host.queues[0]):
            with pytest.raises((ClosedError, ConnectionError)):
                queue.receive()
        assert 0.9 < time.monotonic() - begun < 5
        server.connect().close()


def test_a_shutdown_flushes_the_device(server):
    with server.connect() as host:
        host.write(0, DATA[:4096])
        host.admin.set_property(0x14, 6 << 16 | 4 << 20 | 1 << 14 | 1)
        for _ in range(100):
            if host.admin.property(0x1C) == 1 | 2 << 2:
                break
            time.sleep(0.01)
        else:
            pytest.fail("the shutdown does not complete")
        with pytest.raises((ClosedError, ConnectionError)):
            host.queues[0].receive()


def test_an_event_reports_that_the_device_is_read_only(program):
    # Erases fail until too few blocks are left for the data.
    with Server(program, "--set", "faults={ erase_rate = 0.5 }") as server, server.connect() as host:
        host.set_feature(0x0B, 0x1FC)
        events = [host.admin.send(entry(0x0C)) for _ in range(2)]

        def overwrite():
            for index in range(20000):
                host.write(64 * (index * 7 % 1500), DATA[:32768])

        assert status(overwrite) == (0, 0x20)
        results = [host.admin.receive() for _ in events]
        assert {found[0] for found in results} == set(events)
        assert {found[2] for found in results} == {0x02_00_01, 0x04_00_02}
        health = host.log_page(2, 512)
        assert health[0] & 0b1100 == 0b1100
        assert bool(health[0] & 1) == (health[3] < 10)
        assert host.log_page(4, 4096)[:4] == b"\x01\0\0\0"
        assert host.identify(0, 1)[99] & 1


def test_a_program_serves_hosts():
    with fg.serve("tiny", nvme="tcp://127.0.0.1:0", no_delay=True) as server:
        port = re.search(r"NVMe at tcp://127\.0\.0\.1:(\d+)\n", server.clients)[1]
        [(nqn, address)] = discover(("127.0.0.1", int(port)))
        with Controller(address, nqn) as host:
            host.write(0, DATA[:4096])
            assert host.read(0, 8) == DATA[:4096]
    summary = server.stop()
    assert [frontend.name for frontend in summary.live.frontends] == ["nvme-tcp"]
    assert (summary.requests.read.count, summary.requests.write.count) == (1, 1)


def test_only_hosts_of_the_list_connect(program):
    nqn = "nqn.2026-01.example:drive"
    with Server(program, "--allow-host", HOST, "--nqn", nqn) as server:
        server.connect().close()
        assert discover(server.address) == [(nqn, server.address)]
        with Queue(server.address) as queue:
            assert queue.most == 128 << 10
            assert status(queue.connect, 0, 0xFFFF, server.nqn, host="nqn.2026-01.example:other") == (1, 0x84)


def test_a_hostile_pdu_ends_only_its_connection(server):
    with server.connect() as host:
        for garbage in (b"\xff" * 64, b"\x04\0\x48\0\xff\xff\xff\xff", b"\x06\0\x18\0\x18\0\0\0" + bytes(16)):
            with Queue(server.address) as queue:
                queue.socket.sendall(garbage)
                with pytest.raises((ClosedError, ConnectionError)):
                    queue.receive()
        host.write(0, bytes(4096))


def test_flushed_data_survives_kill_9(program, tmp_path):
    image = ["--image", tmp_path / "flash.img"]
    with Server(program, *image) as server, server.connect() as host:
        host.write(0, DATA[:65536])
        host.flush()
        host.write(1024, DATA[4096:8192], fua=True)
        host.write(2048, DATA[:65536])
        server.process.kill()
        server.process.wait()
        with pytest.raises((ClosedError, ConnectionError)):
            host.read(0, 1)
    with Server(program, *image) as again, again.connect() as host:
        assert again.nqn == server.nqn, "the host finds the same drive, although the port differs"
        assert host.read(0, 128) == DATA[:65536]
        assert host.read(1024, 8) == DATA[4096:8192]
    with Server(program) as other:
        assert other.nqn != server.nqn
