# Debian's packages, through apt: all of Python's side, or what pip cannot bring.

$DataPackage = 'dataset-fashion-mnist'
# The BLAS that torch comes with otherwise is four times slower than libopenblas0-pthread.
$DebianPackages = 'python3-torch', 'libopenblas0-pthread', 'python3-numpy', 'python3-pytest', 'python3-pytest-timeout',
'python3-hypothesis', 'python3-rich', 'python3-typer', 'python3-matplotlib', 'python3-jinja2', 'python3-psutil',
'python3-jsonschema', 'python3-mypy', $DataPackage

function Initialize-Debian {
    $script:Python = $SystemPython
    if (-not (Test-Program 'apt-get')) {
        Stop-Build 'setup: expected apt-get on PATH for BRIDGE_SETUP=system, found none' 'set BRIDGE_SETUP=pip, or BRIDGE_PYTHON'
    }
    $missing = Get-MissingPackage $DebianPackages
    if (-not $missing) { return }
    Install-DebianPackage $missing "Python's side, from Debian"
    Assert-Module ($RunModules + $DevModules) 'use Debian 12 or later, or pip (BRIDGE_SETUP=pip)'
}

# PyPI has no Fashion-MNIST; where apt has none either, the demo says how to get it.
function Initialize-DataSet {
    if ((Test-Program 'apt-get') -and (Get-MissingPackage $DataPackage)) {
        Install-DebianPackage $DataPackage 'the data that the demo trains on'
    }
}

function Get-MissingPackage([string[]] $Packages) {
    $states = Get-ProgramOutput 'dpkg-query' (@('-W', '-f', '${db:Status-Status} ${Package}\n') + $Packages)
    $Packages | Where-Object { $states -notcontains "installed $_" }
}

function Install-DebianPackage([string[]] $Packages, [string] $Why) {
    Write-Step 'setup' "apt-get installs $Packages ($Why)"
    $apt = @('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0')
    if ((id -u) -ne 0) {
        if (-not (Test-Program 'sudo')) {
            Stop-Build 'setup: expected root, or sudo on PATH, to install packages, found neither' "as root: apt-get install $Packages"
        }
        $apt = @('sudo') + $apt
    }
    $program, $apt = $apt
    & $program @apt update
    & $program @apt install -y --no-install-recommends @Packages
    if ($LASTEXITCODE -ne 0) {
        Stop-Build "setup: apt-get could not install $Packages" 'mend what it says above, or set BRIDGE_PYTHON to a Python that has the packages'
    }
}
