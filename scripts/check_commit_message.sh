#!/usr/bin/env bash
# Checks commit messages: the subject is imperative, has at most 72 characters and names one change. A commit that
# changes more than 50 lines has a body, which says why.
#
#   scripts/check_commit_message.sh FILE      checks the message in FILE, as the hook `commit-msg` of Git
#   scripts/check_commit_message.sh           checks all commits since each rule was added
#
# To check each message before it is committed: git config core.hooksPath scripts/hooks
set -euo pipefail

# Words that start a description of a result instead of an instruction.
not_imperative='What|Whether|That|A|An|The|It|Tests|Results|Requests|Writes|Reads'
# Instructions that end like a past tense or a participle.
ending_in_ed_or_ing='Bring|Embed|Feed|Seed|Shed|Speed|Swing'
# Largest number of changed lines (added plus deleted) of a commit without a body.
max_lines_without_body=50
# Files whose lines do not count, because a program writes them. In these patterns, `*` matches `/` too.
written_by_programs=('*Cargo.lock' '*.schema.json' '*.svg' '*.ipynb'
    'crates/core/tests/history/*' 'crates/wheel/data/*' 'validation/results.json'
    'docs/reference/'{commands,config,devices,lifetime,model,profile,summary,synthetic}.md
    'docs/fidelity.md' 'docs/validation.md' 'docs/studies/*'
    'python/floatgate/'{columns,lifetime_of_seed,profile,summary}.py)
counted=("${written_by_programs[@]/#/:(top,exclude)}")

# needs_no_check SUBJECT: succeeds for messages that Git writes.
needs_no_check() {
    case $1 in
    'Merge '* | 'Revert '* | 'fixup! '* | 'squash! '*) return 0 ;;
    esac
    return 1
}

# check_subject SUBJECT: prints what is wrong with a subject, and fails if anything is.
check_subject() {
    local subject=$1 wrong=()
    needs_no_check "$subject" && return 0
    [ -n "$subject" ] || wrong+=('it is empty')
    [ "${#subject}" -le 72 ] || wrong+=("it has ${#subject} characters: at most 72 are allowed")
    [[ $subject != *';'* ]] || wrong+=('it has a semicolon: make one commit per change')
    [[ $subject != *. ]] || wrong+=('it ends with a period')
    [[ $subject =~ ^[A-Z0-9\`] || $subject =~ ^[a-z0-9_-]+: ]] || wrong+=('it does not start with a capital letter')
    if [[ $subject =~ ^($not_imperative)[[:space:]] || $subject =~ ^[A-Z][a-z]+(ed|ing)[[:space:]] ]] &&
        [[ ! $subject =~ ^($ending_in_ed_or_ing)[[:space:]] ]]; then
        wrong+=('it is not an instruction, such as "Fix the size of ..."')
    fi
    [ "${#wrong[@]}" = 0 ] && return 0
    printf 'commit subject "%s":\n' "$subject" >&2
    printf '  %s\n' "${wrong[@]}" >&2
    return 1
}

# check_body LINES: reads a message without comments, and fails if it needs a body and has none.
check_body() {
    local lines=$1 subject body
    IFS= read -r subject || true
    [ "$lines" -gt "$max_lines_without_body" ] || return 0
    needs_no_check "$subject" && return 0
    # Lines such as `Signed-off-by: NAME` are not a reason.
    body=$(grep -vE '^[A-Z][A-Za-z-]+-by: ' || true)
    [[ $body =~ [^[:space:]] ]] && return 0
    printf 'commit "%s":\n' "$subject" >&2
    printf '  it changes %s lines and has no body: leave a blank line after the subject, then say why the change\n' \
        "$lines" >&2
    printf '  is made (required above %s lines; generated files, merges and reverts do not count)\n' \
        "$max_lines_without_body" >&2
    return 1
}

# message FILE: prints a message as Git will store it, without comments and without the diff of `git commit --verbose`.
message() {
    sed '/^# -* >8 -*$/,$d' "$1" | git stripspace --strip-comments
}

# changed_lines: prints the sum of the added and deleted lines of `git diff --numstat`.
changed_lines() {
    awk '{ lines += $1 + $2 } END { print lines + 0 }'
}

if [ $# = 1 ]; then
    failed=0
    check_subject "$(message "$1" | head -n 1)" || failed=1
    # The lines that are about to be committed, or none outside a clone.
    lines=$(git diff --cached --numstat -- ':(top)' "${counted[@]}" 2>/dev/null | changed_lines) || lines=0
    message "$1" | check_body "$lines" || failed=1
    exit "$failed"
fi
cd "$(dirname "$0")/.."
added=$(git log --diff-filter=A --format=%H --max-count=1 -- scripts/check_commit_message.sh 2>/dev/null || true)
if [ -z "$added" ]; then
    echo 'check_commit_message.sh: this is not a clone with history, so no commits were checked'
    exit
fi
failed=0 count=0
while IFS= read -r subject; do
    count=$((count + 1))
    check_subject "$subject" || failed=1
done < <(git log --format=%s "$added..HEAD")

# Bodies are checked of the descendants of the commit that added this rule, whose authors had it.
ruled=$(git log -S 'max_lines_without_body=' --format=%H -- scripts/check_commit_message.sh | tail -n 1)
if [ -n "$ruled" ]; then
    while read -r commit lines; do
        git log --max-count=1 --format=%B "$commit" | check_body "$lines" || failed=1
    done < <(git log --no-merges --ancestry-path --numstat --format='commit %H' "$ruled..HEAD" -- . "${counted[@]}" |
        awk -v most="$max_lines_without_body" '
            function report() { if (lines > most) print commit, lines }
            $1 == "commit" { report(); commit = $2; lines = 0; next }
            { lines += $1 + $2 }
            END { report() }')
fi
[ "$failed" = 0 ] && echo "commit messages that were checked: $count"
exit "$failed"
