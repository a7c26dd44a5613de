# How a step speaks, looks around and stops.

$OnWindows = $env:OS -eq 'Windows_NT'
$ToolsFolder = Join-Path $Root '.tools'

# Says in one line what a step does and why.
function Write-Step([string] $Name, [string] $Text) {
    Write-Host "${Name}: $Text"
}

# Ends the build with what went wrong and what to do next.
function Stop-Build([string] $Problem, [string] $Next, [int] $Code = 1) {
    [Console]::Error.WriteLine($Problem)
    [Console]::Error.WriteLine("  next: $Next")
    exit $Code
}

# True where PATH has the program.
function Test-Program([string] $Program) {
    [bool](Get-Command $Program -CommandType Application -ErrorAction SilentlyContinue)
}

# What a program prints; $LASTEXITCODE is 127 where it is not there.
function Get-ProgramOutput([string] $Program, [string[]] $Arguments) {
    # Windows PowerShell takes a line on stderr for an error.
    $ErrorActionPreference = 'Continue'
    $global:LASTEXITCODE = 127
    if (Test-Program $Program) { & $Program @Arguments 2>$null }
}

# Runs a block in a folder, and comes back.
function Invoke-In([string] $Folder, [scriptblock] $Block) {
    Push-Location $Folder
    try { & $Block } finally { Pop-Location }
}

# Runs a program with a user's arguments as they are: on Unix `&` would expand * and ~ in them.
function Invoke-Program([string] $Program, [string[]] $Arguments) {
    if ($OnWindows) { & $Program @Arguments; return }
    $start = [Diagnostics.ProcessStartInfo]::new($Program)
    $start.WorkingDirectory = (Get-Location).ProviderPath
    foreach ($argument in $Arguments) { $start.ArgumentList.Add($argument) }
    $process = [Diagnostics.Process]::Start($start)
    $process.WaitForExit()
    $global:LASTEXITCODE = $process.ExitCode
}
