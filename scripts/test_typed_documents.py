"""Tests of scripts/typed_documents.py."""

import unittest

from typed_documents import MODULES, ROOT, _absent, _docstring, _type, columns_in, is_fraction, module, tables


class TypedDocuments(unittest.TestCase):
    def test_the_modules_are_up_to_date(self):
        for name in MODULES:
            with self.subTest(name):
                text = (ROOT / "python/floatgate" / f"{name}.py").read_text(encoding="utf-8")
                self.assertEqual(text, module(name), "run make bless")

        self.assertEqual((ROOT / "python/floatgate/columns.py").read_text(encoding="utf-8"), tables(), "run make bless")

    def test_columns_are_those_of_the_page(self):
        page = """
| column | unit | meaning |
|---|---|---|
| `start_ps`, `end_ps` | ps | the window |
| `O_count`, `O_iops` | | `O` is `read` or `write` |
| `O_p99_us` | us | their latency |
| `merges_C` | | merges, `C` is `switch`, `partial` or `full` |
"""
        found = columns_in(page)
        self.assertEqual(found[:6], ["start_ps", "end_ps", "read_count", "write_count", "read_iops", "write_iops"])
        self.assertEqual(found[-3:], ["merges_switch", "merges_partial", "merges_full"])
        self.assertEqual([is_fraction(name) for name in found[:6]], [False, False, False, False, True, True])

    def test_types_follow_the_schema(self):
        cases = {
            "int": {"type": "integer"},
            # A number that is missing is NaN.
            "float": {"type": ["number", "null"]},
            "int | None": {"type": ["integer", "null"]},
            "list[Bound]": {"type": "array", "items": {"$ref": "#/$defs/Bound"}},
            "list[int] | None": {"type": ["array", "null"], "items": {"type": "integer"}},
            "Gc | None": {"anyOf": [{"$ref": "#/$defs/Gc"}, {"type": "null"}]},
            "list[Summary]": {"type": "array", "items": {"$ref": "#"}},
            "Free": {"type": "object", "additionalProperties": True},
            "Any": {"description": "anything"},
        }
        for expected, part in cases.items():
            self.assertEqual(_type(part, "Summary"), expected)

    def test_absent_keys_have_values(self):
        self.assertEqual(_absent({"type": "integer"}), 0)
        self.assertEqual(_absent({"type": "number", "default": 1.5}), 1.5)
        self.assertEqual(_absent({"type": "array", "items": {}}), [])
        self.assertIsNone(_absent({"type": ["integer", "null"]}))

    def test_a_docstring_starts_with_a_sentence(self):
        text = _docstring("Short. " + "More words. " * 20)
        self.assertEqual(text.split("\n\n")[0], "Short.")
        self.assertTrue(all(len(line) <= 116 for line in text.splitlines()))


if __name__ == "__main__":
    unittest.main()
