"""NVMe/TCP: a live device with the host of `nvme_host`."""

import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from nvme_host import SUCCESS, ClosedError, CommandError, Controller, Queue, discover, entry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="live devices need Linux")

INVALID_OPCODE, INVALID_FIELD, LBA_RANGE = (0, 0x01), (0, 0x02), (0, 0x80)


class Server:
    """A server of `tiny`, as fast as possible."""

    def __init__(self, program, *arguments, port=0):
        if port == 0:
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                port = found.getsockname()[1]
        self.address = ("127.0.0.1", port)
        words = [program, "serve", "tiny", "--nvme", f"tcp://127.0.0.1:{port}", "--no-delay", *map(str, arguments)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while True:
            line = self.process.stderr.readline()
            assert line, "the server has ended"
            if line.startswith("Ctrl-C"):
                break
        self.nqn = discover(self.address)[0][0]

    def connect(self, queues=1, **options):
        return Controller(self.address, self.nqn, queues, **options)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)


@pytest.fixture
def server(program):
    started = Server(program)
    yield started
    started.end()


def status(call, *arguments, **options):
    """Return the type and code of the status of a command that fails."""
    with pytest.raises(CommandError) as caught:
        call(*arguments, **options)
    return caught.value.kind, caught.value.code


def test_a_host_discovers_and_identifies_the_drive(server):
    [(nqn, address)] = discover(server.address)
    assert address == server.address
    assert nqn.startswith("nqn.2026-01.example.floatgate:tiny:")
    host = server.connect()
    controller, namespace = host.identify(1), host.identify(0, 1)
    assert controller[24:64].decode().strip() == "Floatgate tiny"
    assert struct.unpack_from("<H", controller, 78)[0] == host.number
    assert controller[111] == 1
    assert controller[768:1024].rstrip(b"\0").decode() == nqn
    blocks = struct.unpack_from("<Q", namespace)[0]
    assert blocks * 2 ** namespace[130] == 51.2 * 2**20
    assert host.identify(2)[:8] == struct.pack("<II", 1, 0)
    assert host.identify(3, 1)[:2] == b"\x02\x10"
    assert host.identify(3, 1)[4:20] == namespace[104:120]
    assert status(host.identify, 0, 2) == (0, 0x0B)
    assert status(host.read, blocks, 1) == LBA_RANGE
    host.close()


@pytest.mark.parametrize(("digests", "align", "flow_control"), [(False, 0, True), (True, 0, False), (True, 31, True)])
def test_data_travel_in_capsules_and_on_request(server, digests, align, flow_control):
    host = server.connect(4, digests=digests, align=align, flow_control=flow_control)
    data = bytes(range(256)) * 1024
    host.write(0, data[:4096])
    host.write(8, data[:4096], inside=False)
    host.write(16, data, queue=1)
    assert host.read(0, 8, queue=2) == host.read(8, 8, queue=3) == data[:4096]
    assert host.read(16, 512, queue=3) == data
    assert any(flags & SUCCESS for _, flags in host.queues[3].log) != flow_control
    host.compare(16, data)
    assert status(host.compare, 0, data) == (2, 0x85)
    host.write_zeroes(16, 8)
    host.deallocate([(24, 8), (40, 16)])
    zeros, rest = bytes(4096), data[8192:12288]
    assert host.read(16, 32) == zeros + zeros + rest + zeros
    host.flush()
    host.close()


def test_many_commands_are_outstanding_on_a_queue(server):
    host = server.connect()
    queue, sent = host.queues[0], {}
    for index in range(30):
        command = entry(0x01, 1, 64 * index, 0, 63)
        sent[queue.send(command, bytes([index]) * 32768)] = index
    for _ in range(30):
        identifier, state, _, _ = queue.receive()
        assert state == 0
        assert sent.pop(identifier) is not None
    assert all(host.read(64 * index, 64) == bytes([index]) * 32768 for index in range(30))
    host.close()


def test_health_features_and_refusals(server):
    host = server.connect()
    host.write(0, bytes(8192))
    host.read(0, 16)
    health = host.log_page(2, 512)
    figures = [int.from_bytes(health[at : at + 16], "little") for at in (32, 48, 64, 80)]
    assert figures == [1, 1, 1, 1]
    assert health[3] == 100
    assert host.set_feature(0x07, 0x003F_003F) == 0x003F_003F
    host.set_feature(0x0B, 0x1FF)
    assert host.get_feature(0x0B) == 0x1FF
    for opcode in (0x80, 0x84, 0x10, 0xC0):
        assert status(host.admin.call, entry(opcode, 1)) == INVALID_OPCODE
    assert status(host.set_feature, 0x7E, 0) == INVALID_FIELD
    assert status(host.log_page, 0x70, 1024) == (1, 0x09)
    assert struct.unpack_from("<Q", host.log_page(1, 4096))[0] == 6
    host.close()


def test_a_host_that_is_silent_loses_its_controller(server):
    host = server.connect(keep_alive_ms=1000)
    for _ in range(4):
        time.sleep(0.5)
        host.keep_alive()
    begun = time.monotonic()
    for queue in (host.admin, host.queues[0]):
        with pytest.raises((ClosedError, ConnectionError)):
            queue.receive()
    assert 0.9 < time.monotonic() - begun < 5
    server.connect().close()


def test_an_event_reports_that_the_device_is_read_only(program):
    # A device without spare blocks for failures becomes read-only when some blocks have failed.
    options = ["--set", "faults.erase_rate=0.5", "--set", "faults.program_rate=0"]
    server = Server(program, *options)
    host = server.connect()
    host.set_feature(0x0B, 0x1FF)
    events = [host.admin.send(entry(0x0C)) for _ in range(2)]

    def overwrite():
        for index in range(2000):
            host.write(64 * (index * 7 % 1500), bytes([index % 251]) * 32768)

    assert status(overwrite) == (0, 0x20)
    results = [host.admin.receive() for _ in events]
    assert {(found[0], found[2]) for found in results} <= {
        (event, result) for event in events for result in (0x02_00_01, 0x04_00_02)
    }
    assert {found[2] for found in results} == {0x02_00_01, 0x04_00_02}
    assert host.log_page(2, 512)[0] & 8
    assert host.log_page(4, 4096)[:4] == b"\x01\0\0\0"
    assert host.identify(0, 1)[99] & 1
    host.close()
    server.end()


def test_only_hosts_of_the_list_connect(program):
    host = "nqn.2014-08.org.nvmexpress:uuid:0b0d2f1c-9a52-4c35-8f7b-6d3f5a1e2c4d"
    server = Server(program, "--allow-host", host)
    server.connect().close()
    assert discover(server.address)
    assert Queue(server.address)
    queue = Queue(server.address)
    assert status(queue.connect, 0, 0xFFFF, server.nqn, host="nqn.2026-01.example:other") == (1, 0x84)
    server.end()


def test_a_hostile_pdu_ends_only_its_connection(server):
    host = server.connect()
    for garbage in (b"\xff" * 64, b"\x04\0\x48\0\xff\xff\xff\xff", b"\x06\0\x18\0\x18\0\0\0" + bytes(16)):
        queue = Queue(server.address)
        queue.socket.sendall(garbage)
        with pytest.raises((ClosedError, ConnectionError)):
            queue.receive()
    host.write(0, bytes(4096))
    host.close()


def test_flushed_data_survive_kill_9(program, tmp_path):
    image = ["--image", tmp_path / "flash.img"]
    server = Server(program, *image)
    host, data = server.connect(), bytes(range(256)) * 512
    host.write(0, data)
    host.flush()
    host.write(1024, data[:4096], fua=True)
    host.write(2048, data)
    server.process.kill()
    server.process.wait()
    with pytest.raises((ClosedError, ConnectionError)):
        host.read(0, 1)
    again = Server(program, *image, port=server.address[1])
    assert again.nqn == server.nqn, "the host finds the same drive"
    host = again.connect()
    assert host.read(0, 256) == data
    assert host.read(1024, 8) == data[:4096]
    host.close()
    again.end()
