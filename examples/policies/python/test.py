"""The policies of this example, from Python."""

import itertools
import json
import tempfile
import unittest
from pathlib import Path

import append
import floatgate as fg
import log_block
from floatgate import _floatgate

JOB = "rw=randrw rwmixread=70 bs=4k iodepth=16 number_ios=4000"


class NewestFirst(fg.policies.Scheduler):
    def rank(self, cls):
        return 0

    def pick(self, queue, now):
        return len(queue) - 1


# Options that the mapping scheme of this example needs.
APPEND = {"mapping.scheme": "append", "gc.soft_threshold": 4}


class Policies(unittest.TestCase):
    def test_devices_name_them_like_built_in_ones(self):
        plain = fg.Device("tiny")
        other = plain.with_options({"gc.victim": "cost-age-times", "scheduler": {"deadline": {"read": "1ms"}}})
        results = [fg.run(device, JOB, precondition="steady").summary for device in (plain, other)]
        self.assertNotEqual(*[result.requests.write.latency_us.p99 for result in results])
        self.assertEqual(other.config["gc"]["victim"]["external"]["name"], "cost-age-times")

    def test_a_device_may_have_policies_of_both_kinds(self):
        device = fg.Device("tiny", {"gc.victim": "cost-age-times", "scheduler": NewestFirst})
        self.assertEqual(list(device.policies), ["scheduler"])
        self.assertEqual(fg.run(device, JOB).summary.requests.all.count, 4000)

    def test_a_mapping_scheme_of_the_module_moves_data(self):
        plain = fg.Device("tiny", APPEND)
        other = fg.Device("tiny", {**APPEND, "scheduler": NewestFirst})
        self.assertEqual(plain.config["mapping"]["scheme"]["external"]["name"], "append")
        for device in (plain, other):
            result = fg.run(device, JOB, precondition="fill").summary
            self.assertEqual(result.requests.all.count, 4000)
            self.assertGreater(result.write_amplification, 1)

    def test_the_schemes_in_python_give_the_same_results(self):
        job = "rw=randtrimwrite bs=4k iodepth=16 number_ios=8000"
        shapes = (
            {},
            {"geometry.page_size": "16KiB"},
            {"geometry.page_size": "2KiB", "geometry.mapping_unit": "4KiB"},
            {"geometry.planes": 2, "nand.concurrency": "plane-reads"},
        )
        pairs = ("append", append.AppendLog), ("log-block", log_block.LogBlock)
        for shape, schemes in itertools.product(shapes, pairs):
            results = []
            for scheme in schemes:
                device = fg.Device("tiny", {**APPEND, "capacity.spare": 0.4, **shape, "mapping.scheme": scheme})
                result = json.loads(fg.run(device, job, precondition="fill").summary.to_json())
                for key in ("config", "config_digest", "device", "changes", "arguments", "run"):
                    result.pop(key)
                results.append(result)
            self.assertEqual(*results)
            self.assertGreater(results[0]["write_amplification"], 1)

    def test_errors_suggest_them(self):
        with self.assertRaisesRegex(fg.ConfigError, "did you mean `deadline`"):
            fg.Device("tiny", {"scheduler": "deadlin"})
        with self.assertRaisesRegex(fg.ConfigError, "did you mean `append`.* page, dftl, block"):
            fg.Device("tiny", {"mapping.scheme": "appends"})
        with self.assertRaisesRegex(fg.OptionError, "use another name"):
            fg.policies.register("deadline")(NewestFirst)

    def test_the_command_knows_them(self):
        with tempfile.TemporaryDirectory() as directory:
            words = ["run", "tiny", JOB, "--set", "gc.victim=cost-age-times", "--out", directory + "/result"]
            self.assertEqual(_floatgate.command(["floatgate", *words]), 0)
            self.assertTrue((Path(directory) / "result" / "summary.json").is_file())


if __name__ == "__main__":
    unittest.main()
