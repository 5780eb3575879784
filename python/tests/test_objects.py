"""Traces of objects."""

import pytest

import floatgate as fg


def test_a_profile_has_objects_and_reuse(tmp_path):
    trace = tmp_path / "kv.csv"
    trace.write_text("key,op,size,op_time\na,SET,4096,1\nb,SET,8192,2\na,GET,4096,5\n")
    info = fg.object_info(trace)
    assert (info["objects"], info["bytes"], info["unlimited_hit_ratio"]) == (2, 12288, 1.0)
    with pytest.raises(fg.TraceError, match="cannot open the trace"):
        fg.object_info(tmp_path / "none.csv")


def test_a_key_value_cache_is_generated():
    words = "objects=kv-cache prompts=50 block=64KiB think=1s placement=log segment=1MiB"
    result = fg.run("tiny", words, warn=False)
    assert result.summary.objects[0].gets > 100
    again = fg.run("tiny", words, warn=False)
    assert result.summary.requests == again.summary.requests
