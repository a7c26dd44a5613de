# The linters: every one runs, then the verdict.

$RuffFolder = Join-Path $ToolsFolder 'ruff'

function Invoke-Lint {
    Initialize-Python
    Assert-DotNet
    $script:Verdicts = [ordered]@{}
    Invoke-In $Root {
        Initialize-Ruff
        if ($script:Ruff) {
            Invoke-Check 'ruff check' { & $script:Ruff check bridge tests } 'ruff check --fix mends a part of it'
            Invoke-Check 'ruff format' { & $script:Ruff format --check bridge tests } 'ruff format bridge tests mends it'
        }
        Invoke-Check 'mypy' { & $script:Python -m mypy } 'mend the types that it names'
        Invoke-Check 'dotnet build' { Build-CSharp } 'mend what the compiler and the analyzers name'
        Invoke-Check 'dotnet format' { dotnet format csharp/BridgeSharp.slnx --no-restore --verify-no-changes } 'dotnet format csharp/BridgeSharp.slnx mends it'
    }
    $words = $script:Verdicts.GetEnumerator() | ForEach-Object { "$($_.Key) $($_.Value)" }
    Write-Step 'lint' ($words -join ', ')
    exit [int]($script:Verdicts.Values -contains 'failed')
}

function Invoke-Check([string] $Name, [scriptblock] $Check, [string] $Next) {
    Write-Step 'lint' "runs $Name"
    & $Check
    $passed = $LASTEXITCODE -eq 0
    if (-not $passed) { Write-Step 'lint' "$Name failed; next: $Next" }
    $script:Verdicts[$Name] = if ($passed) { 'passed' } else { 'failed' }
}

# Leaves a ruff that runs in $script:Ruff; without one, a verdict that says so.
function Initialize-Ruff {
    $script:Ruff = Find-Ruff
    if (-not $script:Ruff -and $env:BRIDGE_RUFF_WHEELS) {
        Install-Ruff
        $script:Ruff = Find-Ruff
    }
    if ($script:Ruff) { return }
    $reason = 'not in .venv, not on PATH, and not to be had from BRIDGE_RUFF_WHEELS'
    $wanted = $env:CI -eq 'true' -and $env:BRIDGE_RUFF_WHEELS
    Write-Step 'lint' "ruff is $reason"
    $script:Verdicts['ruff'] = if ($wanted) { 'failed' } else { "skipped ($reason)" }
}

function Find-Ruff {
    $bin = Join-Path $RuffFolder 'bin'
    foreach ($candidate in (Join-Path (Split-Path $VenvPython) 'ruff'), 'ruff', (Join-Path $bin 'ruff')) {
        Get-ProgramOutput $candidate '--version' | Out-Null
        if ($LASTEXITCODE -eq 0) { return $candidate }
    }
}

# Debian's Python may come without pip: any other will do, for ruff is a program of its own.
function Install-Ruff {
    foreach ($python in $script:Python, 'python3', 'python') {
        Get-ProgramOutput $python ('-m', 'pip', '--version') | Out-Null
        if ($LASTEXITCODE -ne 0) { continue }
        Write-Step 'lint' "pip installs ruff into .tools from $env:BRIDGE_RUFF_WHEELS"
        & $python -m pip install -qq --disable-pip-version-check --no-index --find-links $env:BRIDGE_RUFF_WHEELS --target $RuffFolder ruff
        return
    }
}
