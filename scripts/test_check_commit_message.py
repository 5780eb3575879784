"""Tests of the check of commit messages."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
SCRIPT = SCRIPTS / "check_commit_message.sh"
# Git must find neither the clone of these tests nor the settings of the user.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def run(*command: str | Path, inside: str | Path) -> subprocess.CompletedProcess:
    """Run a command in a directory, without a check of its status."""
    return subprocess.run(command, cwd=inside, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def said(message: str) -> str:
    """Return what the check prints about a message outside a clone, or an empty text if it passes."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "message"
        file.write_text(message)
        done = run(SCRIPT, file, inside=directory)
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


class Bodies(unittest.TestCase):
    """Bodies of commits in a new repository, which has the hook and this rule from its first commit on."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.clone = Path(directory.name)
        (self.clone / "scripts/hooks").mkdir(parents=True)
        for file in ("check_commit_message.sh", "hooks/commit-msg"):
            shutil.copy(SCRIPTS / file, self.clone / "scripts" / file)
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "Add the scripts")
        self.git("config", "core.hooksPath", "scripts/hooks")

    def git(self, *arguments: str) -> str:
        """Run Git, and return what it printed as an error, or an empty text if it succeeded."""
        done = run("git", *arguments, inside=self.clone)
        return done.stderr if done.returncode else ""

    def commit(self, message: str, lines: int, name: str = "file", *options: str) -> str:
        """Commit a file with a number of new lines, and return why this was refused."""
        path = self.clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{message} {line}\n" for line in range(lines)))
        self.git("add", ".")
        return self.git("commit", "--quiet", "--message", message, *options)

    def test_small_commits_need_no_body(self) -> None:
        self.assertEqual(self.commit("Add a file", 50), "")

    def test_large_commits_need_a_body(self) -> None:
        refused = self.commit("Add a file", 51)
        self.assertIn("it changes 51 lines and has no body", refused)
        self.assertIn("say why", refused)
        self.assertIn("no body", self.commit("Add a file\n\nSigned-off-by: a <a@example.org>", 51))
        self.assertEqual(self.commit("Add a file\n\nTests read it.", 51), "")

    def test_deleted_lines_count(self) -> None:
        self.assertEqual(self.commit("Add a file", 30), "")
        self.assertIn("it changes 60 lines", self.commit("Replace the file", 30))

    def test_comments_and_the_diff_of_verbose_commits_are_no_body(self) -> None:
        (self.clone / "file").write_text("a\n" * 51)
        self.git("add", ".")
        self.git("config", "core.editor", "sed -i 1iAdd'\\ 'a'\\ 'file")
        self.assertIn("no body", self.git("commit", "--verbose"))

    def test_generated_files_do_not_count(self) -> None:
        for name in ("fuzz/Cargo.lock", "crates/core/tests/history/page.txt", "docs/reference/config.md"):
            self.assertEqual(self.commit("Record the results", 500, name), "", name)
        self.assertIn("no body", self.commit("Explain the image", 500, "docs/reference/image.md"))

    def test_messages_of_git_need_no_body(self) -> None:
        for message in ("Merge branch 'a'", 'Revert "Add a file"', "fixup! Add a file"):
            self.assertEqual(self.commit(message, 51), "", message)

    def test_history_is_checked_from_this_rule_on(self) -> None:
        check = self.clone / "scripts/check_commit_message.sh"
        text = check.read_text()
        self.git("checkout", "--quiet", "--orphan", "earlier")
        check.write_text("")
        self.commit("Add a script without this rule", 500, "file", "--no-verify")
        self.git("branch", "side")
        check.write_text(text)
        self.assertEqual(self.commit("Add the rule\n\nIt was missing.", 1), "")
        done = run(check, inside=self.clone)
        self.assertEqual((done.returncode, done.stdout), (0, "commit messages that were checked: 1\n"), done.stderr)

        # A branch from before the rule passes when it is merged, and a commit after the rule fails.
        self.git("checkout", "--quiet", "side")
        self.commit("Add a large file on a side branch", 500, "other", "--no-verify")
        self.git("checkout", "--quiet", "earlier")
        self.assertEqual(self.git("merge", "--quiet", "--no-edit", "side"), "")
        self.assertEqual(run(check, inside=self.clone).returncode, 0)
        self.commit("Add a third file", 60, "third", "--no-verify")
        done = run(check, inside=self.clone)
        self.assertEqual(done.returncode, 1)
        self.assertIn('commit "Add a third file":\n  it changes 60 lines and has no body', done.stderr)


if __name__ == "__main__":
    unittest.main()
