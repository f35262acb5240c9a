# Starts Steward once for a file of tests, as a process on a free port. Needs PowerShell 7.4 or newer and Pester 5.

$script:Password = 'correct horse'

function Start-Steward {
    param(
        [string] $Command = $env:STEWARD_COMMAND,
        [int] $LimitSeconds = 30
    )
    $start = [System.Diagnostics.ProcessStartInfo]::new($Command)
    $start.RedirectStandardError = $true
    $start.UseShellExecute = $false
    $variables = @{
        PORT = '0'; ADMIN_PASSWORD = $script:Password; LOG_LEVEL = 'silent'; TEST_CONTROL = 'true'; UPGRADE_STEP_MS = '0'
    }
    foreach ($name in $variables.Keys) { $start.Environment[$name] = $variables[$name] }
    $script:Process = [System.Diagnostics.Process]::Start($start)
    # The server accepts requests when it prints this line: "Steward listens on http://127.0.0.1:49152".
    $line = $script:Process.StandardError.ReadLineAsync()
    if (-not $line.Wait($LimitSeconds * 1000) -or $line.Result -notmatch 'listens on (\S+)') {
        Stop-Steward
        throw "Steward did not start within $LimitSeconds seconds: $($line.IsCompleted ? $line.Result : 'no output')"
    }
    $script:Url = $Matches[1]
    # Without a reader, the server would block when the pipe is full.
    $script:Rest = $script:Process.StandardError.ReadToEndAsync()
    return $script:Url
}

function Stop-Steward {
    if ($null -eq $script:Process) { return }
    if (-not $script:Process.HasExited) { $script:Process.Kill($true) }
    [void] $script:Process.WaitForExit(20000)
    $script:Process = $null
}

# The clock, failures, the journal or all of the state. Without a value it reads.
function Invoke-StewardControl {
    param([string] $Path, [object] $Value)
    $request = @{ Uri = "$script:Url/control/$Path"; TimeoutSec = 30 }
    if ($PSBoundParameters.ContainsKey('Value')) {
        $request.Method = 'Post'
        $request.ContentType = 'application/json'
        $request.Body = ConvertTo-Json $Value -Depth 10 -Compress
    }
    Invoke-RestMethod @request
}

# Returns the JSON of the answer, whatever its status is.
function Invoke-Steward {
    param([string] $Path, [hashtable] $Fields = @{})
    Invoke-RestMethod -Uri "$script:Url$Path" -Method Post -Body (@{ f = 'json' } + $Fields) -SkipHttpErrorCheck -TimeoutSec 30
}

function Get-StewardToken {
    (Invoke-Steward '/tokens/generateToken' @{ username = 'admin'; password = $script:Password }).token
}

Export-ModuleMember -Function Start-Steward, Stop-Steward, Invoke-StewardControl, Invoke-Steward, Get-StewardToken
