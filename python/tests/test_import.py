"""Configurations of other simulators."""

import pathlib

import pytest

import floatgate as fg

INPUTS = pathlib.Path(__file__).parents[2] / "crates/import/tests/inputs"


@pytest.mark.parametrize(
    ("file", "simulator"),
    [("ssdconfig.xml", "MQSim"), ("page.parameters", "SSDsim"), ("ssd.parv", "DiskSim"), ("run-blackbox.sh", "FEMU")],
)
def test_files_are_devices(file, simulator):
    imported = fg.import_config(INPUTS / file)
    assert imported.simulator == simulator
    assert imported.lost
    device = fg.Device.from_import(INPUTS / file)
    assert device.config == fg.Device.from_toml(imported.text).config
    assert fg.Device.from_import((INPUTS / file).read_text()).logical_bytes == device.logical_bytes


def test_a_workload_of_mqsim_is_a_job_file(tmp_path):
    jobs = tmp_path / "jobs.fio"
    jobs.write_text(fg.import_config(INPUTS / "workload.xml", scenario=2).text)
    result = fg.run("tiny", fg.JobFile(jobs))
    assert result.summary.requests.all.count == 500


def test_errors_name_the_file():
    with pytest.raises(fg.ConfigError, match="tiny.toml: not a configuration that can be imported"):
        fg.import_config(pathlib.Path(__file__).parents[2] / "crates/core/devices/tiny.toml")
    with pytest.raises(fg.ConfigError, match="page.parameters is a parameter file of SSDsim; to convert it"):
        fg.Device(INPUTS / "page.parameters")
