"""Claims of pages about what the model has and does not have: they agree with the schema of device files."""

import json
import re

import pytest
import tomllib


@pytest.fixture(scope="module")
def features(root):
    return tomllib.loads((root / "docs/features.toml").read_text())


@pytest.fixture(scope="module")
def choices(root):
    """The choices of each option of a device file by its path, such as `mapping.scheme`, and of parts of devices."""
    schema = json.loads((root / "docs/reference/device.schema.json").read_text())
    found = {}

    def walk(node, path):
        if "$ref" in node:
            walk(schema["$defs"][node["$ref"].removeprefix("#/$defs/")], path)
        for name, inner in node.get("properties", {}).items():
            below = f"{path}.{name}".removeprefix(".")
            found.setdefault(below, set())
            walk(inner, below)
        values = [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
        found.setdefault(path, set()).update(value for value in values if isinstance(value, str))
        for inner in [*node.get("anyOf", []), *node.get("oneOf", []), *node.get("allOf", [])]:
            walk(inner, path)

    walk(schema, "")
    assert {"page", "dftl", "block"} <= found["mapping.scheme"]
    return found


def section(root, page, heading):
    """Return the text of a section of a page."""
    text = (root / "docs" / page).read_text().partition(f"\n{heading}\n")[2]
    assert text, f"{page} has no section `{heading}`"
    return re.split(rf"^#{{1,{heading.count('#')}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def plain(cell):
    """Return the text of a cell of a table, without the addresses of its links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell).strip()


def test_the_table_of_the_model_agrees_with_the_schema(root, features, choices):
    lines = section(root, "simulators.md", "## Model").strip().splitlines()[2:]
    cells = {cell[1].strip(): cell[2] for cell in (line.split("|") for line in lines if line.startswith("|"))}
    rows = {row["name"]: row for row in features["row"]}
    assert list(cells) == list(rows)
    for name, row in rows.items():
        shown = plain(cells[name])
        assert not shown.startswith("no"), name
        if "page" in row:
            assert f"({row['page']})" in cells[name]
            continue
        for path in row["options"]:
            assert path in choices, f"{name}: device files have no option {path}"
        known = choices[row["options"][0]]
        labels = row.get("choices", {})
        assert set(labels) <= known, f"{name}: {row['options'][0]} has no such choice"
        for label in labels.values():
            assert label in shown, f"{name}: {label}"
        if row.get("all"):
            assert shown == ", ".join(labels.values())
            # The template in the schema for schemes of other programs is not a scheme.
            assert set(labels) == {choice for choice in known if choice != "external"}
        if "counted" in row:
            assert sum(bool(re.fullmatch(row["counted"], choice)) for choice in known) == row["count"], name
            assert row["shown"] in shown


def test_the_schema_has_nothing_that_is_called_missing(features, choices):
    names = {part for path in choices for part in path.split(".")} | {
        value for values in choices.values() for value in values
    }
    for feature in features["missing"]:
        for word in feature["words"]:
            found = {name for name in names if word in name} - set(feature.get("except", []))
            assert not found, f"{feature}: device files have {found}"


def test_pages_call_missing_what_the_data_file_does(root, features):
    shown = " ".join(section(root, "faq.md", "### Which features are missing?").split())
    listed = [feature["faq"] for feature in features["missing"] if "faq" in feature]
    assert shown.startswith(f"Among others: {', '.join(listed[:-1])} and {listed[-1]}. ")
    titles = re.findall(r"^- \*\*(.*?)\*\*", section(root, "simulators.md", "## Missing features"), re.MULTILINE)
    assert sorted(titles) == sorted(
        {feature["simulators"] for feature in features["missing"] if "simulators" in feature}
    )


def test_no_page_calls_a_choice_missing(root, features):
    """No list of missing features has a feature of the table of the model."""
    present = [label for row in features["row"] for label in row.get("choices", {}).values() if label.isupper()]
    present += ["hybrid mapping", "log blocks", "block mapping", "DFTL", "dynamic allocation", "wear leveling"]
    for page, heading in [
        ("faq.md", "### Which features are missing?"),
        ("simulators.md", "## Missing features"),
        ("model/README.md", "## Not modeled"),
    ]:
        text = section(root, page, heading)
        found = [
            word for word in present if re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE if " " in word else 0)
        ]
        # Types of cells are not features by themselves.
        assert [word for word in found if word not in {"SLC", "QLC"}] == [], page
