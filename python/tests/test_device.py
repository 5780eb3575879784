"""Devices."""

import pickle

import numpy as np
import pytest

import floatgate as fg
from floatgate._words import in_python


def test_options_have_the_paths_of_set(command):
    device = fg.Device("hu2011").with_options({"gc.victim": "fifo", "geometry.channels": 8})
    assert device.overrides == ("gc.victim=fifo", "geometry.channels=8")
    printed = command("device", "check", "hu2011", "--set", "gc.victim=fifo", "--set", "geometry.channels=8")
    assert device.digest in printed
    assert device.config["geometry"]["channels"] == 8
    assert device.logical_bytes < device.physical_bytes == 32 << 30


def test_values_of_all_types():
    options = {
        "gc.victim": {"d-choices": {"d": 4}},
        "geometry.channels": np.int64(4),
        "capacity": {"spare": np.float64(0.3)},
        "nand.read": "30us",
        "gc": {"frontiers": "single"},
        "name": "8",
        "description": 'with "quotes" and a \\',
    }
    device = fg.Device("tiny", options)
    config = device.config
    assert config["gc"]["victim"] == {"d-choices": {"d": 4}}
    assert (config["geometry"]["channels"], config["capacity"]["spare"]) == (4, 0.3)
    assert (config["gc"]["frontiers"], device.name, device.description) == ("single", "8", 'with "quotes" and a \\')


def test_later_options_override_earlier_ones():
    device = fg.Device("tiny").with_options({"geometry.channels": 4}).with_options({"geometry.channels": 8})
    assert device.config["geometry"]["channels"] == 8
    assert fg.Device("tiny").config["geometry"]["channels"] == 2


def test_a_scaled_device_is_that_of_the_command(command):
    device = fg.Device("tlc-direct", {"gc.victim": "fifo"}).scaled("1/16")
    assert device.config["geometry"]["blocks"] == 57
    assert device.digest in command("device", "check", "tlc-direct", "--set", "gc.victim=fifo", "--scale", "1/16")
    # Later options are those of the scaled device, and its pickle keeps the scale.
    assert device.with_options({"geometry.blocks": 64}).config["geometry"]["blocks"] == 64
    assert pickle.loads(pickle.dumps(device)) == device
    assert fg.Device("tlc-direct").scaled("1/1") == fg.Device("tlc-direct")


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("tlc-direct", "0.1", "invalid scale `0.1`: expected a fraction of at most 1, such as 1/16"),
        ("tlc-direct", "1/900", "the least scale of this device is 1/"),
        ("tiny", "1/32", "too few of the 32 blocks of each plane remain, 1: at least 8 have to hold data"),
    ],
)
def test_a_scale_that_is_not_possible_is_an_error(name, scale, message):
    with pytest.raises(fg.ConfigError) as error:
        fg.Device(name).scaled(scale)
    assert message in str(error.value)


def test_an_effect_that_does_not_scale_is_a_warning():
    with pytest.warns(fg.FloatgateWarning, match="the buffer of 1GiB is 1.8% of the capacity, instead of 0.1%"):
        fg.Device("tlc-direct", {"buffer.capacity": "1GiB"}).scaled("1/16")


def test_devices_with_equal_parameters_are_equal():
    device = fg.Device("tiny", {"geometry.channels": 4})
    other = fg.Device.from_toml('base = "tiny"\ngeometry.channels = 4')
    assert device == other
    assert hash(device) == hash(other)
    assert device != fg.Device("tiny")
    assert device != "tiny"


def test_toml_round_trips():
    device = fg.Device("hu2011")
    again = fg.Device.from_toml(device.to_toml())
    assert again.digest == device.digest
    assert again.name == "hu2011"


def test_from_toml_takes_paths(tmp_path, monkeypatch):
    (tmp_path / "mine").write_text('base = "tiny"\nname = "mine"')
    monkeypatch.chdir(tmp_path)
    assert fg.Device.from_toml(tmp_path / "mine").name == "mine"
    assert fg.Device.from_toml("mine").name == "mine"
    with pytest.raises(fg.ConfigError, match="cannot read the device file"):
        fg.Device.from_toml("tiny")


@pytest.mark.parametrize(
    "make", [lambda: fg.Device("tiny", {"gc.victim": "fifo"}), lambda: fg.Device.from_toml('base = "tiny"', name="x")]
)
def test_devices_are_pickled(make):
    device = make()
    again = pickle.loads(pickle.dumps(device))
    assert (again.digest, again.name, again.overrides) == (device.digest, device.name, device.overrides)


def test_built_in_devices_are_listed(command):
    names = [device.name for device in fg.devices()]
    lines = [line.split() for line in command("device", "list").splitlines()]
    # Each group has a title. The lines of a group have as many columns as the header, and more words.
    assert set(names) <= {words[0] for words in lines if words}
    assert "hu2011" in names


def test_parameters_have_their_sources():
    figures = {path: (value, source) for path, value, source in fg.Device("hu2011", {"nand.read": "30us"}).figures}
    assert figures["geometry.channels"][0] == 4
    assert figures["nand.read"] == ("30us", "--set")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fg.Device("hu2012"), "did you mean `hu2011`"),
        (lambda: fg.Device("tiny", {"gc.victm": "fifo"}), "did you mean `victim`"),
        (lambda: fg.Device("tiny", {"gc.victim": "fifi"}), "did you mean `fifo`"),
        (lambda: fg.Device("tiny", {"geometry.channels": "8"}), "geometry.channels"),
        (lambda: fg.Device.from_toml("geometry = 1"), "geometry"),
    ],
)
def test_mistakes_are_config_errors(make, message):
    with pytest.raises(fg.ConfigError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def test_error_messages_are_those_of_the_command(command):
    with pytest.raises(fg.ConfigError) as caught:
        fg.Device("tiny", {"gc.soft_threshold": 40, "geometry.channels": 0})
    printed = command(
        "device", "check", "tiny", "--set", "gc.soft_threshold=40", "--set", "geometry.channels=0", status=2
    )
    assert in_python(printed) == f"error: {caught.value}\n"
    assert {problem.path for problem in caught.value.problems} >= {"geometry.channels"}


@pytest.mark.parametrize("options", [{"gc.victim": None}, {"gc.victim": {1: 2}}, {3: "x"}, {"gc.victim": object()}])
def test_invalid_values_are_type_errors(options):
    with pytest.raises(TypeError):
        fg.Device("tiny", options)


def test_notebook_output():
    device = fg.Device.from_toml('base = "tiny"\nname = "<b>x"')
    assert "&lt;b&gt;x" in device._repr_html_()
    assert "<b>x" not in device._repr_html_().replace("<b>&lt;b&gt;x", "")
    assert repr(fg.Device("tiny", {"gc.victim": "fifo"})) == "<floatgate.Device tiny, gc.victim=fifo>"
