#!/usr/bin/env bash
# Every command has a man page and completion, made from its --help.
# Usage: cli_documents_test.sh PROGRAM SOURCE
set -euo pipefail
program=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
"$source/scripts/cli_documents.sh" "$program" "$work"
for command in $("$program" --help | awk '/^Subcommands:/{inside=1; next} inside && NF {print $1}'); do
  grep -q "^codband\\\\-$command " "$work/man/codband-$command.1" || fail "the man page of $command"
  grep -q -- '--help' <(grep "^    $command) " "$work/bash/codband") || fail "completion of $command"
done
# shellcheck source=/dev/null
source "$work/bash/codband"
completed() { # WORDS...      what the last one, which is begun, may become
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _codband
  echo "${COMPREPLY[*]}"
}
check() { # EXPECTED WORDS...
  local got
  got=$(completed "${@:2}")
  [ "$got" = "$1" ] || fail "'${*:2}' is completed by '$got', expected '$1'"
}
check serve codband se
check --data codband serve --dat
check "status move drain doctor backup restore import export" codband cluster ""
check "--to" codband cluster move --t
check "add" codband keys a
check "lastfm" codband prepare la
check "club" codband policies clu
check "" codband keys zzz
if command -v zsh >/dev/null; then zsh -n "$work/zsh/_codband" || fail "zsh"; fi
