#!/bin/sh
# Hands every argument, unchanged, to build.ps1 in a PowerShell that is found or fetched. See: ./build.sh help
set -eu

powershell=7.6.9
# Git for Windows has `pwd -W`, a path that pwsh understands.
root=$(CDPATH='' cd -- "$(dirname -- "$0")" && { pwd -W 2>/dev/null || pwd; })

# PowerShell takes typographic quotes for plain ones, and a doubled quote for itself.
quote() {
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g; s/‘/‘‘/g; s/’/’’/g; s/‚/‚‚/g; s/‛/‛‛/g")"
}

# `pwsh -File` would take --name=a:b apart; quoted strings in a command arrive as they are.
command="& $(quote "$root/build.ps1")"
for argument in "$@"; do
    command="$command $(quote "$argument")"
done
command="$command; exit \$LASTEXITCODE"

if command -v pwsh >/dev/null 2>&1; then
    exec pwsh -NoProfile -Command "$command"
fi

# `dotnet tool exec` came with the .NET 10 SDK.
export DOTNET_NOLOGO=1
case $(dotnet --version 2>/dev/null || true) in
    [1-9][0-9].*) exec dotnet tool exec "PowerShell@$powershell" --yes -- -NoProfile -Command "$command" ;;
esac

echo "build.sh: expected pwsh or the .NET SDK 10 or later on PATH, found neither" >&2
echo "  next: install the .NET 10 SDK (https://dotnet.microsoft.com/download), then run this again" >&2
exit 2
