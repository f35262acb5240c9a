# Tests against Steward with Pester 5: STEWARD_COMMAND=./steward-0.2.0-linux-x64 pwsh -c 'Invoke-Pester examples/pester'

BeforeAll {
    Import-Module (Join-Path $PSScriptRoot 'Steward.psm1') -Force
    Start-Steward | Out-Null
}

AfterAll {
    Stop-Steward
}

Describe 'a program' {
    BeforeEach {
        Invoke-StewardControl 'reset' @{} | Out-Null
    }

    It 'publishes a folder' {
        $token = Get-StewardToken
        $created = Invoke-Steward '/admin/services/createFolder' @{ token = $token; folderName = 'Harbour' }
        $created.status | Should -Be 'success'
        (Invoke-Steward '/admin/services' @{ token = $token }).folders | Should -Contain 'Harbour'
    }

    It 'starts from the same state' {
        (Invoke-Steward '/admin/services' @{ token = Get-StewardToken }).folders | Should -Not -Contain 'Harbour'
    }

    It 'is told that a token has expired after two hours' {
        $token = Get-StewardToken
        Invoke-StewardControl 'clock' @{ advanceMs = 7200000 } | Out-Null
        (Invoke-Steward '/admin/mode' @{ token = $token }).error.code | Should -Be 498
    }

    It 'is seen in the journal' {
        $rule = @{ match = @{ route = '/rest/info' }; respond = @{ error = 'unavailable' }; times = 1 }
        Invoke-StewardControl 'failures' $rule | Out-Null
        1..2 | ForEach-Object { Invoke-Steward '/rest/info' | Out-Null }
        # The newest is the first.
        (Invoke-StewardControl 'requests?route=/rest/info').requests.status | Should -Be @(200, 503)
    }
}
