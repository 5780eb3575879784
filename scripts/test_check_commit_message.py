"""Tests of the check of commit subjects."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "check_commit_message.sh"


def said(message: str) -> str:
    """Return what the check prints about a message, or an empty text if it passes."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(message)
        file.flush()
        done = subprocess.run([SCRIPT, file.name], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == bool(done.stderr), done
    return done.stderr


class Subjects(unittest.TestCase):
    """Subjects that pass, and subjects that are refused."""

    def test_instructions_pass(self) -> None:
        for subject in (
            "Fix sector masks of units that are not a multiple of 64 sectors",
            "Speed up the event queue",
            "top: Widen the time columns",
            "A" + "b" * 71,
            "Add a file\n\nThe body may say; what it wants.\n",
            "# a comment of Git\nAdd a file\n",
        ):
            self.assertEqual(said(subject), "", subject)

    def test_other_subjects_are_refused_with_the_reason(self) -> None:
        for subject, reason in (
            ("", "empty"),
            ("B" + "b" * 72, "73 characters"),
            ("Fix this; add that", "semicolon"),
            ("Add a file.", "period"),
            ("add a file", "capital letter"),
            ("What is asked is told", "not an instruction"),
            ("Results of short runs are right", "not an instruction"),
            ("Fixed the queue", "not an instruction"),
            ("Adding a file", "not an instruction"),
        ):
            self.assertIn(reason, said(subject), subject)


if __name__ == "__main__":
    unittest.main()
