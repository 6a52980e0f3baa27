#!/usr/bin/env bash
# Writes what is made from --help: man pages, and completions for bash and zsh.
#   scripts/cli_documents.sh PROGRAM DIRECTORY
# DIRECTORY/man/codband.1, codband-serve.1, …; DIRECTORY/bash/codband; DIRECTORY/zsh/_codband
set -euo pipefail
program=$(realpath "${1:?usage: scripts/cli_documents.sh PROGRAM DIRECTORY}")
out=${2:?usage: scripts/cli_documents.sh PROGRAM DIRECTORY}
mkdir -p "$out/man" "$out/bash" "$out/zsh"
# The day of the last release in Debian's changelog, so that two builds give the same bytes.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
date=$(LC_ALL=C date -u -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%Y-%m-%d)
version=$("$program" --version | cut -d' ' -f2)
mapfile -t commands < <("$program" --help | awk '/^Subcommands:/{inside=1; next} inside && NF {print $1}')
[ ${#commands[@]} -ge 10 ] || { echo "found only ${#commands[@]} commands in $program --help" >&2; exit 1; }

# Text as roff shows it, line by line.
roff() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\&\\1/"; }

page() { # NAME SUMMARY HELP-FILE
  printf '.TH "%s" "1" "%s" "codband %s" "User Commands"\n' "$(roff <<<"${1^^}")" "$date" "$version"
  printf '.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "$(roff <<<"$1")" "$(roff <<<"$2")"
  roff <"$3"
  printf '.fi\n.SH SEE ALSO\n'
  if [ "$1" = codband ]; then
    printf '%s\n' "${commands[@]}" | sed -e 's/.*/.BR codband\\-& (1),/' -e '$s/,$//'
  else
    printf '.BR codband (1)\n'
  fi
}

flags_of() { # COMMAND
  "$program" "$1" --help | grep -oE '^  (-[a-z],)?--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u | tr '\n' ' '
}

# What may stand first after a command: the words of its ACTION or SET ("add, list or remove"), the names of policies.
first_of() { # COMMAND
  if [ "$1" = policies ]; then
    "$program" policies --format json | grep -oE '^ {6}"name": "[a-z-]+"' | cut -d'"' -f4 | tr '\n' ' '
    return
  fi
  "$program" "$1" --help | awk '/^  [A-Z]|^$/{inside = 0} /^  (ACTION|SET) /{inside = 1; $1 = $2 = $3 = ""} inside' |
    tr '\n' ' ' | sed -E 's/,| or / /g; s/ +/ /g; s/^ | $//g'
}

help=$(mktemp)
trap 'rm -f "$help"' EXIT
"$program" --help >"$help"
page codband "online recommender engine for users whose preferences change" "$help" >"$out/man/codband.1"
cases=
for command in "${commands[@]}"; do
  "$program" "$command" --help >"$help"
  summary=$("$program" --help | awk -v c="$command" '$1 == c && /^  [a-z]/ {sub(/^ *[^ ]+ +/, ""); print; exit}')
  page "codband-$command" "${summary,}" "$help" >"$out/man/codband-$command.1"
  cases+="    $command) words=\"$(flags_of "$command")\"; first=\"$(first_of "$command")\" ;;"$'\n'
done

cat >"$out/bash/codband" <<END
# bash completion for codband
_codband() {
  local words first current=\${COMP_WORDS[COMP_CWORD]}
  case \${COMP_CWORD}:\${COMP_WORDS[1]} in
    1:*) words="${commands[*]} --help --version"; mapfile -t COMPREPLY < <(compgen -W "\$words" -- "\$current"); return ;;
  esac
  words= first=
  case \${COMP_WORDS[1]} in
$cases  esac
  case \$COMP_CWORD:\$current in
    2:[!-]* | 2:) [ -z "\$first" ] || { mapfile -t COMPREPLY < <(compgen -W "\$first" -- "\$current"); return; } ;;
  esac
  case \$current in
    -*) mapfile -t COMPREPLY < <(compgen -W "\$words" -- "\$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "\$current") ;;
  esac
}
complete -o filenames -F _codband codband
END
cat >"$out/zsh/_codband" <<END
#compdef codband
# zsh completion for codband
local flags first
if (( CURRENT == 2 )); then
  compadd -- ${commands[*]} --help --version
  return
fi
case \$words[2] in
${cases//words=/flags=}esac
if [[ \$PREFIX == -* ]]; then
  compadd -- \${=flags}
elif (( CURRENT == 3 )) && [[ -n \$first ]]; then
  compadd -- \${=first}
else
  _files
fi
END
