"""The JSON schema of device files, as published in docs/reference: a validator accepts valid files, and reports the
faults that an editor should underline."""

import json

import jsonschema
import pytest
import tomllib

import floatgate as fg


@pytest.fixture(scope="module")
def validator(root):
    schema = json.loads((root / "docs/reference/device.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def faults(validator, file):
    """Return the validator's errors for a file."""
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(file)]


def based(key, value):
    """Return a device file that changes one option of another."""
    table, dot, option = key.partition(".")
    return {"base": "tiny", table: {option: value} if dot else value}


def test_device_files_agree_with_the_schema(validator, root):
    files = [*root.glob("crates/core/devices/*"), *root.glob("validation/devices/*")]
    files.append(root / "docs/reference/device.example.toml")
    assert len(files) > 16
    found = {path: faults(validator, tomllib.loads(path.read_text())) for path in files}
    assert found == {path: [] for path in files}


@pytest.mark.parametrize("name", [device.name for device in fg.devices()])
def test_resolved_devices_agree_with_the_schema(validator, name):
    """The device in a result is a valid device file, with all defaults."""
    assert faults(validator, fg.Device(name).config) == []


BROKEN = [
    {},
    [],
    {"base": "tiny2"},
    based("geometri", {}),
    based("geometry.chanels", 4),
    based("geometry.channels", 0),
    based("geometry.channels", -1),
    based("geometry.channels", 1.5),
    based("geometry.channels", "4"),
    based("geometry.page_size", 4096),
    based("geometry.page_size", "4 kilobytes"),
    based("capacity.spare", 1.5),
    based("capacity", {"spare": 0.1, "logical": "1GiB"}),
    based("nand.read", "25"),
    based("nand.read", ["25us", 3]),
    based("nand.cell", "plc"),
    based("nand.endurance", "many"),
    based("bus.width", 9),
    based("bus.protocol", "sdr"),
    based("gc.victim", "greddy"),
    based("gc.victim", {"d-choices": {"d": 0}}),
    based("gc.victim", {"d-choices": {"k": 3}}),
    based("gc.soft_threshold", "5 percent"),
    based("allocation.static", {"order": "s7"}),
    based("scheduler", ["fcfs"]),
    based("sources", {"geometry": 3}),
]


@pytest.mark.parametrize("file", BROKEN, ids=json.dumps)
def test_broken_device_files_are_refused(validator, file):
    assert not validator.is_valid(file)


def test_repaired_device_files_are_accepted(validator):
    """Without its fault, each of these files is valid."""
    assert validator.is_valid({"base": "tiny"})


NEEDED = {
    "geometry": ["channels", "chips", "dies", "planes", "blocks", "pages", "page_size"],
    "nand": ["read", "program", "erase"],
    "bus": ["protocol"],
}


@pytest.mark.parametrize("table", NEEDED)
def test_a_device_without_a_base_needs_its_tables(validator, table):
    whole = fg.Device("tiny").config
    assert validator.is_valid(whole)
    assert not validator.is_valid({key: value for key, value in whole.items() if key != table})
    for option in NEEDED[table]:
        part = {key: value for key, value in whole[table].items() if key != option}
        assert not validator.is_valid(whole | {table: part}), option
