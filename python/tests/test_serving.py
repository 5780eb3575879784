"""Live devices with policies in Python."""

import json
import subprocess
import sys
import time

import pytest

import floatgate as fg

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="live devices need Linux")

#: A file that registers a policy.
FILE = """
import floatgate as fg

@fg.policies.register("own-greedy")
class OwnGreedy(fg.policies.Victim):
    def __init__(self, column="order"):
        self.column = column

    def choose(self, plane, blocks, clock):
        return blocks[self.column].argmin()
"""


class Counted(fg.policies.Victim):
    calls = 0

    def choose(self, plane, blocks, clock):
        Counted.calls += 1
        return blocks.order.argmin()


class Failing(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        raise RuntimeError("no victim today")


class Spread(fg.policies.StaticAllocation):
    def planes(self, pages):
        return pages % 8


def client(socket, *commands):
    """Run commands of qemu-io on a live device, and return its output."""
    words = [word for text in commands for word in ("-c", text)]
    done = subprocess.run(
        ["qemu-io", "-f", "raw", *words, f"nbd+unix:///?socket={socket}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


def test_a_live_device_calls_a_policy(tmp_path):
    socket, before = tmp_path / "ssd.sock", Counted.calls
    with fg.serve("tiny", policies=[Counted], nbd=f"unix:{socket}", no_delay=True) as server:
        assert str(socket) in server.clients
        prepared = Counted.calls
        said = client(socket, *(f"write -P {7 + turn} 0 16M" for turn in range(4)), "read -P 10 0 16M")
        assert "read 16777216" in said
        assert "failed" not in said
        assert "live" in repr(server)
    summary = server.stop()
    assert Counted.calls > prepared >= before
    assert summary["requests"]["write"]["count"] > 0
    assert 0 < summary["gc"]["victims"] <= Counted.calls - prepared
    assert summary["live"]["frontends"][0]["name"]
    assert "stopped" in repr(server)


def test_an_exception_in_a_policy_ends_the_server(tmp_path):
    socket = tmp_path / "ssd.sock"
    server = fg.serve("tiny", policies=[Failing], nbd=f"unix:{socket}", no_delay=True, precondition="none")
    client(socket, *("write 0 16M" for _ in range(8)))
    for _ in range(2):
        with pytest.raises(fg.PolicyError, match="no victim today") as caught:
            server.stop()
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert caught.value.__cause__.__traceback__.tb_frame.f_code.co_name == "choose"
    with pytest.raises(fg.PolicyError) as caught_by_run:
        fg.run(fg.Device("tiny", {"gc.victim": Failing}), "rw=randwrite bs=4k number_ios=20k", precondition="none")
    assert str(caught.value) == str(caught_by_run.value)


def test_an_exception_during_preconditioning_is_raised_by_serve(tmp_path):
    with pytest.raises(fg.PolicyError, match="no victim today"):
        fg.serve("tiny", policies=[Failing], nbd=f"unix:{tmp_path}/a.sock", no_delay=True, precondition="steady")


def test_invalid_arguments_are_refused(tmp_path):
    for arguments, error, text in (
        ({"policies": ["fifo"]}, fg.OptionError, "'fifo' is not a class of a policy"),
        ({"policies": [Counted, Failing]}, fg.OptionError, "both for gc.victim"),
        ({"arguments": ["--memory", "x"]}, fg.OptionError, "--memory"),
        ({"nbd": "nowhere"}, fg.OptionError, "nowhere"),
    ):
        with pytest.raises(error, match=text):
            fg.serve("tiny", **{"nbd": f"unix:{tmp_path}/a.sock", **arguments})


def test_a_device_of_a_text_is_served(tmp_path):
    device = fg.Device.from_toml('base = "tiny"\nname = "mine"\n').with_options({"allocation": Spread})
    with fg.serve(device, nbd=f"unix:{tmp_path}/a.sock", no_delay=True) as server:
        assert "read 4096" in client(tmp_path / "a.sock", "write 0 4k", "read 0 4k")
    assert server.stop()["device"]["name"] == "mine"


def policy_files(directory):
    (directory / "policy.py").write_text(FILE)
    (directory / "pol.toml").write_text('base = "tiny"\ngc.victim = { own-greedy = { column = "valid" } }\n')


def test_the_command_serves_a_device_with_policies(tmp_path):
    policy_files(tmp_path)
    command = [
        sys.executable,
        "-m",
        "floatgate",
        "serve",
        "pol.toml",
        "--policies",
        "policy.py",
        "--nbd",
        "unix:a.sock",
    ]
    server = subprocess.Popen(
        [*command, "--no-delay", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "a.sock").exists():
        assert server.poll() is None, server.stderr.read()
        time.sleep(0.01)
    said = client(tmp_path / "a.sock", *("write -P 5 0 16M" for _ in range(4)), "read -P 5 0 16M")
    server.terminate()
    output, errors = server.communicate(timeout=60)
    assert "read 16777216" in said, errors
    assert server.returncode == 0, errors
    external = json.loads(output)["config"]["gc"]["victim"]["external"]
    assert (external["name"], external["options"], len(external["source"])) == ("own-greedy", {"column": "valid"}, 32)


def test_the_command_runs_like_the_package(tmp_path):
    policy_files(tmp_path)
    job = "rw=randwrite bs=4k iodepth=8 number_ios=3000"

    def run(*arguments):
        words = [sys.executable, "-m", "floatgate", "run", *arguments, job, "--json", "--precondition", "fill"]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("tiny", "--set", "gc.victim=own-greedy", "--policies=policy.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    greedy = fg.run(fg.Device("tiny", {"gc.victim": "greedy"}), job, precondition="fill")
    assert found["requests"] == json.loads(greedy.summary.to_json())["requests"]
    assert "--policies" in " ".join(found["arguments"])
    for arguments, text in (
        (["tiny", "--policies", "absent.py"], "absent.py"),
        (["tiny", "--policies", "json"], "registers no policy"),
        (["pol.toml", "--policies", "policy.py", "--set", "gc.victim.own-greedy.columns=1"], "columns"),
    ):
        done = run(*arguments)
        assert done.returncode != 0
        assert text in done.stderr
