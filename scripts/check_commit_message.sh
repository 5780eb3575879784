#!/usr/bin/env bash
# Checks the subjects of commit messages: imperative, at most 72 characters, one change.
#
#   scripts/check_commit_message.sh FILE      checks the message in FILE, as the hook `commit-msg` of Git
#   scripts/check_commit_message.sh           checks all commits since this script was added
#
# To check each message before it is committed: git config core.hooksPath scripts/hooks
set -euo pipefail

# Words that start a description of a result instead of an instruction.
not_imperative='What|Whether|That|A|An|The|It|Tests|Results|Requests|Writes|Reads'
# Instructions that end like a past tense or a participle.
ending_in_ed_or_ing='Bring|Embed|Feed|Seed|Shed|Speed|Swing'

# check SUBJECT: prints what is wrong with a subject, and fails if anything is.
check() {
    local subject=$1 wrong=()
    case $subject in
    'Merge '* | 'Revert '* | 'fixup! '* | 'squash! '*) return 0 ;;
    esac
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

if [ $# = 1 ]; then
    check "$(grep -vm 1 '^#' "$1")"
    exit
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
    check "$subject" || failed=1
done < <(git log --format=%s "$added^!" "$added..HEAD")
[ "$failed" = 0 ] && echo "$count commit subjects are fine"
exit "$failed"
