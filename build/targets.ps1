# What each target does.

$Written = 'out', '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis'

function Invoke-Target([string] $Target, [string[]] $Arguments) {
    if ($Target -in 'setup', 'lint', 'help' -and $Arguments) {
        Stop-Build "${Target}: expected no arguments, got $Arguments" 'see: build.sh help' 2
    }
    switch -CaseSensitive ($Target) {
        'setup' { Initialize-All }
        'demo' { Invoke-Bridge 'demo' $Arguments }
        'bench' { Invoke-Bridge 'bench' $Arguments }
        'test' { Invoke-Test $Arguments }
        'lint' { Invoke-Lint }
        'clean' { Clear-Output $Arguments }
        { $_ -in 'help', '-h', '--help' } { Write-Usage }
        default { Stop-Build "build: expected one of setup, demo, test, lint, bench, clean, help, got '$Target'" 'see: build.sh help' 2 }
    }
}

function Write-Usage {
    Write-Output (Get-Help (Join-Path $Root 'build.ps1')).Description.Text
}

function Initialize-All {
    Assert-DotNet
    Initialize-Python
    Build-CSharp
    if ($LASTEXITCODE -ne 0) {
        Stop-Build 'setup: csharp/ does not build' 'mend what dotnet says above; where NuGet is not reached, go online first'
    }
    Write-Step 'setup' "ready: Python is $script:Python, C# is built"
}

function Invoke-Bridge([string] $Command, [string[]] $Arguments) {
    Initialize-All
    $words = @('-m', 'bridge', $Command) + $Arguments
    Write-Step $Command "runs python $words"
    Invoke-Program $script:Python $words
    exit $(if ($LASTEXITCODE -in 0, 2) { $LASTEXITCODE } else { 1 })
}

function Invoke-Test([string[]] $Arguments) {
    Initialize-All
    Write-Step 'test' $(if ($Arguments) { "runs pytest $Arguments (arguments go to pytest only)" } else { 'runs pytest' })
    Invoke-In $Root { Invoke-Program $script:Python (@('-m', 'pytest') + $Arguments) }
    $python = $LASTEXITCODE
    if ($python -eq 4) { Stop-Build 'test: pytest did not take its arguments' 'see what it says above' 2 }
    Write-Step 'test' 'runs dotnet test'
    Invoke-In $CSharpFolder {
        dotnet test --solution BridgeSharp.slnx --configuration Release --no-build --results-directory (Join-Path $ArtifactsFolder 'TestResults')
    }
    $csharp = $LASTEXITCODE
    Write-Step 'test' "Python $(Get-Verdict $python), C# $(Get-Verdict $csharp)"
    exit [int]($python -ne 0 -or $csharp -ne 0)
}

function Get-Verdict([int] $Code) {
    if ($Code -eq 0) { 'passed' } else { "failed (exit code $Code)" }
}

function Clear-Output([string[]] $Arguments) {
    if ($Arguments -and "$Arguments" -ne '--all') {
        Stop-Build "clean: expected --all or no arguments, got $Arguments" 'see: build.sh help' 2
    }
    $paths = @($ArtifactsFolder, $ToolsFolder) + ($Written | ForEach-Object { Join-Path $Root $_ })
    if ($Arguments) { $paths += $VenvFolder, (Join-Path $Root 'bridge.egg-info') }
    $paths += Get-ChildItem (Join-Path $Root 'bridge'), (Join-Path $Root 'tests') -Recurse -Directory -Filter '__pycache__' | ForEach-Object FullName
    $paths = @($paths | Where-Object { Test-Path $_ })
    if (-not $paths) { Write-Step 'clean' 'nothing to remove' }
    foreach ($path in $paths) {
        Write-Step 'clean' "removes $path"
        Remove-Item $path -Recurse -Force
    }
}
