# Finds or makes the Python that everything runs on, and leaves its path in $script:Python.

$RunModules = 'torch', 'numpy', 'rich', 'typer', 'matplotlib', 'jinja2'
$DevModules = 'pytest', 'pytest_timeout', 'hypothesis', 'mypy', 'psutil', 'jsonschema'
$VenvModules = $RunModules + $DevModules + 'pythonnet'
$SystemPython = '/usr/bin/python3'
$VenvFolder = Join-Path $Root '.venv'
$VenvPython = if ($OnWindows) { Join-Path $VenvFolder 'Scripts\python.exe' } else { Join-Path $VenvFolder 'bin/python' }
# Remembers the Python chosen last, so that PyPI is asked only once.
$ChosenFile = Join-Path $ToolsFolder 'python'

function Initialize-Python {
    if ($env:BRIDGE_PYTHON) {
        $script:Python = $env:BRIDGE_PYTHON
        Assert-Module $RunModules 'install them there, or unset BRIDGE_PYTHON'
        $script:Python = (Get-Command $env:BRIDGE_PYTHON -CommandType Application | Select-Object -First 1).Source
        return
    }
    if ((Get-SetupWay) -eq 'pip') { Initialize-Venv } else { Initialize-Debian }
    New-Item $ChosenFile -Value $script:Python -Force | Out-Null
}

# 'pip' or 'system': what BRIDGE_SETUP says, else what is there already, else what can be reached.
function Get-SetupWay {
    if ($env:BRIDGE_SETUP -in 'pip', 'system') { return $env:BRIDGE_SETUP }
    if ($env:BRIDGE_SETUP) {
        Stop-Build "setup: expected BRIDGE_SETUP to be pip or system, got '$env:BRIDGE_SETUP'" 'set one of them, or unset it' 2
    }
    if (-not (Get-MissingModule $VenvPython $VenvModules)) { return 'pip' }
    if ((Test-Path $ChosenFile) -and (Get-Content $ChosenFile) -eq $SystemPython) { return 'system' }
    if (Test-PyPI) { return 'pip' }
    if (Test-Program 'apt-get') { return 'system' }
    Stop-Build 'setup: expected PyPI to answer or apt-get on PATH, found neither' `
        'go online, set PIP_INDEX_URL, or set BRIDGE_PYTHON to a Python that has the packages (see: build.sh help)'
}

function Test-PyPI {
    if ($env:PIP_NO_INDEX) { return $false }
    $index = if ($env:PIP_INDEX_URL) { $env:PIP_INDEX_URL.TrimEnd('/') } else { 'https://pypi.org/simple' }
    try {
        Invoke-WebRequest -UseBasicParsing -Method Head -TimeoutSec 3 "$index/torch/" | Out-Null
        $true
    }
    catch { $false }
}

# The modules that a Python lacks: all of them where it does not run, or is older than 3.10.
function Get-MissingModule([string] $Program, [string[]] $Modules) {
    $code = 'import sys, importlib.util as u; print(*[m for m in sys.argv[1:] if not u.find_spec(m)]); sys.exit(sys.version_info < (3, 10))'
    $missing = Get-ProgramOutput $Program (@('-c', $code) + $Modules)
    if ($LASTEXITCODE -ne 0) { return $Modules }
    -split $missing
}

function Assert-Module([string[]] $Modules, [string] $Next) {
    $missing = Get-MissingModule $script:Python $Modules
    if (-not $missing) { return }
    $version = Get-ProgramOutput $script:Python '--version'
    $found = if ($version) { "$version without $missing" } else { 'nothing that runs' }
    Stop-Build "setup: expected $script:Python to be Python 3.10 or later with $Modules, got $found" $Next
}

function Initialize-Venv {
    $script:Python = $VenvPython
    $missing = @(Get-MissingModule $VenvPython $VenvModules)
    if (-not $missing) { return }
    if ($missing.Count -eq $VenvModules.Count) {
        $base = Get-BasePython
        Write-Step 'setup' "makes .venv with $base, for Python's packages"
        & $base -m venv --clear $VenvFolder
        if ($LASTEXITCODE -ne 0) { Stop-Build "setup: $base could not make .venv" 'mend what it says above' }
    }
    Write-Step 'setup' "lets pip install into .venv: $missing"
    # The build family of the libtorch that TorchSharp runs on: the same bits on both sides.
    & $VenvPython -m pip install --disable-pip-version-check 'torch==2.10.*' -e "$Root[dev,dotnet]"
    if ($LASTEXITCODE -ne 0) {
        Stop-Build 'setup: pip could not install the packages' 'mend what pip says above; without PyPI set BRIDGE_SETUP=system, or BRIDGE_PYTHON'
    }
    Assert-Module $VenvModules 'remove .venv and run setup again'
    Initialize-DataSet
}

# A Python that can make a .venv, and that torch 2.10 has packages for.
function Get-BasePython {
    $versions = '3.13', '3.12', '3.11', '3.10', '3.14'
    $candidates = if ($OnWindows) { @($versions | ForEach-Object { "py -$_" }) + 'python' }
    else { @('python3') + ($versions | ForEach-Object { "python$_" }) + $SystemPython }
    $code = 'import sys, venv, ensurepip; (3, 10) <= sys.version_info[:2] <= (3, 14) and print(sys.executable)'
    foreach ($candidate in $candidates) {
        $words = -split $candidate
        $path = Get-ProgramOutput $words[0] (@($words | Select-Object -Skip 1) + '-c' + $code)
        if ($path) { return $path }
    }
    if (Test-Program 'apt-get') {
        Install-DebianPackage 'python3-venv' 'to make .venv' | Out-Host
        return $SystemPython
    }
    Stop-Build 'setup: expected a Python from 3.10 to 3.14 with venv, found none' 'install one (https://www.python.org/downloads) and put it on PATH'
}
