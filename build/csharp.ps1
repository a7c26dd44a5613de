# Builds csharp/, when something in it changed.

$CSharpFolder = Join-Path $Root 'csharp'
$ArtifactsFolder = Join-Path $CSharpFolder 'artifacts'
$BuiltFile = Join-Path $ArtifactsFolder 'built'

function Assert-DotNet {
    $sdks = @(Get-ProgramOutput 'dotnet' '--list-sdks')
    if (-not ($sdks -match '^[1-9]\d\.')) {
        Stop-Build "setup: expected the .NET SDK 10 or later on PATH, found $(if ($sdks) { $sdks } else { 'none' })" `
            'install it (https://dotnet.microsoft.com/download), then run this again'
    }
}

# Leaves in $LASTEXITCODE whether csharp/ is built.
function Build-CSharp {
    $state = Get-SourceState
    $global:LASTEXITCODE = 0
    if ((Test-Path $BuiltFile) -and (Get-Content $BuiltFile) -eq $state) { return }
    Remove-Item $BuiltFile -ErrorAction Ignore
    Write-Step 'setup' 'dotnet builds csharp/, new or changed (the first time NuGet brings libtorch, 130 MB)'
    Invoke-In $CSharpFolder { dotnet build BridgeSharp.slnx --configuration Release -consoleLoggerParameters:ErrorsOnly }
    if ($LASTEXITCODE -eq 0) { New-Item $BuiltFile -Value $state -Force | Out-Null }
}

# A digest of the name, size and time of every source file: one that was deleted or restored counts too.
function Get-SourceState {
    $files = @(Get-ChildItem $CSharpFolder -File) + (Get-Item (Join-Path $Root '.editorconfig') -Force) +
    (Get-ChildItem $CSharpFolder -Directory -Exclude artifacts | Get-ChildItem -Recurse -File)
    $lines = $files | ForEach-Object { "$($_.FullName) $($_.Length) $($_.LastWriteTimeUtc.Ticks)" }
    $bytes = [Text.Encoding]::UTF8.GetBytes(($lines | Sort-Object) -join "`n")
    [BitConverter]::ToString([Security.Cryptography.SHA256]::Create().ComputeHash($bytes))
}
