<#
.SYNOPSIS
Sets up, runs and checks bridge: one target per task.

.DESCRIPTION
usage: ./build.sh TARGET [ARGUMENTS]     (with PowerShell at hand: ./build.ps1 TARGET [ARGUMENTS])

Targets:
  setup           make what is missing: Python and its packages, the C# build
  demo [ARGS]     train LeNet in Python and in C# side by side: python -m bridge demo ARGS
  test [ARGS]     run the tests of both languages; ARGS go to pytest, the C# tests always run whole
  lint            run ruff, mypy, the C# analyzers and dotnet format; all of them, then the verdict
  bench [ARGS]    measure both trainers: python -m bridge bench ARGS
  clean [--all]   remove what was built, written and cached; with --all the .venv too
  help            print this

Every target but clean and help runs setup first, which does only what is missing.

Python comes from the first of these that is there:
  1. BRIDGE_PYTHON, used as it is
  2. .venv, when it has every package
  3. pip, into .venv, where PyPI answers
  4. Debian's packages, through apt

Environment variables:
  BRIDGE_PYTHON        the Python to use (3.10 or later, with torch, numpy, rich, typer, matplotlib, jinja2)
  BRIDGE_SETUP         pip or system: take way 3 or way 4 without asking whether PyPI answers
  BRIDGE_RUFF_WHEELS   a folder with a ruff wheel, for lint where ruff is not installed
  PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and the others of pip hold too; with
    PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu pip takes the smaller torch without CUDA

Exit codes: 0 done, 1 a check or a command failed, 2 bad usage.

.EXAMPLE
./build.sh demo --steps 40

.EXAMPLE
./build.sh test -k scatter

.NOTES
Arguments are read from $args: a parameter block would take -k or --steps for its own.
#>

#Requires -Version 5.1

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$Root = $PSScriptRoot
foreach ($part in 'steps', 'python', 'debian', 'csharp', 'lint', 'targets') {
    . (Join-Path (Join-Path $Root 'build') "$part.ps1")
}

$target = if ($args.Count) { [string]$args[0] } else { 'help' }
$rest = @($args | Select-Object -Skip 1 | ForEach-Object { [string]$_ })

$environment = @{
    PYTHONPATH = (@($Root, $env:PYTHONPATH) | Where-Object { $_ }) -join [IO.Path]::PathSeparator
    # No build server stays behind.
    MSBUILDDISABLENODEREUSE = '1'
    DOTNET_CLI_USE_MSBUILD_SERVER = '0'
    UseSharedCompilation = 'false'
    DOTNET_NOLOGO = '1'
}
$before = @{}
foreach ($name in $environment.Keys) {
    $before[$name] = [Environment]::GetEnvironmentVariable($name)
    [Environment]::SetEnvironmentVariable($name, $environment[$name])
}
try {
    Invoke-Target $target $rest
}
finally {
    foreach ($name in $before.Keys) { [Environment]::SetEnvironmentVariable($name, $before[$name]) }
}
