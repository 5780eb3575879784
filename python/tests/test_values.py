"""Conversion of values to the syntax of device files."""

import math

import numpy as np
import pytest
import tomllib

from floatgate._values import overrides, picoseconds, size_in_bytes, to_toml


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -3,
        2**60,
        0.5,
        1e-7,
        1e300,
        "",
        "a",
        'q"\\\n\t\x7f\x00é',
        [1, 2],
        [],
        ["a", {"b": [1.5]}],
        {"a.b": 1, "c": {}},
        math.inf,
    ],
)
def test_values_round_trip_through_toml(value):
    assert tomllib.loads(f"x = {to_toml(value)}")["x"] == value


def test_scalars_and_arrays_of_numpy():
    assert [to_toml(value) for value in (np.int32(3), np.float64(0.5), np.bool_(True), np.array([1, 2]))] == [
        "3",
        "0.5",
        "true",
        "[1, 2]",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("greedy", "p=greedy"),
        ("25us", "p=25us"),
        ("5%", "p=5%"),
        ("800MT/s", "p=800MT/s"),
        ("8", 'p="8"'),
        ("true", 'p="true"'),
        ("1e5", 'p="1e5"'),
        ("0x10", 'p="0x10"'),
        ("", 'p=""'),
        ("a b", 'p="a b"'),
        ("# no", 'p="# no"'),
        ("inf", 'p="inf"'),
        ("1_0", 'p="1_0"'),
    ],
)
def test_texts_are_unquoted_if_possible(value, text):
    assert list(overrides({"p": value})) == [text]


def test_times_are_exact():
    assert [picoseconds(text) for text in ("25us", "0.001ns", "1.5 ms", 7, "2s")] == [
        25_000_000,
        1,
        1_500_000_000,
        7,
        2 * 10**12,
    ]
    for wrong in ("25", "us", "1h", "-1us", "0.0001ns", -1):
        with pytest.raises(ValueError):
            picoseconds(wrong)
    for wrong in (1.5, None, True):
        with pytest.raises(TypeError):
            picoseconds(wrong)


def test_sizes():
    assert [size_in_bytes(text) for text in ("4KiB", "0.5MiB", 512, "1TiB", "3B")] == [4096, 524288, 512, 1 << 40, 3]
    with pytest.raises(ValueError, match="KiB"):
        size_in_bytes("4KB")
