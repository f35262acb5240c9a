<?php
// Lists the folders and services of the SOAP catalog with the SoapClient of PHP (php-cli and php-soap of Debian).
//
//   php client.php http://localhost:8080/services
//   STEWARD_USERNAME=admin STEWARD_PASSWORD='correct horse' php client.php http://localhost:8080/services
//
// With a user name and a password, the client gets a token first and lists what that user may see.

function connect(string $address, ?string $token = null): SoapClient
{
    // A header, because addresses end up in logs. Clients that cannot set one add ?token=… to the address.
    $header = $token === null ? '' : "Authorization: Bearer $token";
    return new SoapClient("$address?wsdl", [
        'cache_wsdl' => WSDL_CACHE_NONE,
        // Without this, a list of one entry is the entry itself.
        'features' => SOAP_SINGLE_ELEMENT_ARRAYS,
        'stream_context' => stream_context_create(['http' => ['header' => $header, 'timeout' => 10]]),
    ]);
}

function stop(string $message): never
{
    fwrite(STDERR, "$message\n");
    exit(1);
}

/** The catalog itself names the address of the token service. */
function fetchToken(string $address, string $username, string $password): string
{
    $options = [
        'method' => 'POST',
        'header' => 'Content-Type: application/x-www-form-urlencoded',
        'content' => http_build_query(['username' => $username, 'password' => $password]),
        'ignore_errors' => true,
        'timeout' => 10,
    ];
    $answer = json_decode(file_get_contents($address, false, stream_context_create(['http' => $options])), true);
    return $answer['token'] ?? stop('sign-in failed: ' . $answer['error']['message']);
}

function show(object $response): void
{
    foreach ($response->ServiceDescriptions->ServiceDescription ?? [] as $service) {
        echo "  $service->Name ($service->Type) $service->Url\n";
    }
}

[, $address] = $argv;
$username = getenv('STEWARD_USERNAME');
$catalog = connect($address);
if ($username !== false) {
    $tokenService = $catalog->GetTokenServiceURL()->TokenServiceURL;
    $catalog = connect($address, fetchToken($tokenService, $username, getenv('STEWARD_PASSWORD')));
} elseif ($catalog->RequiresTokens()->Result) {
    stop('this catalog requires a token: set STEWARD_USERNAME and STEWARD_PASSWORD');
}

try {
    echo "/\n";
    show($catalog->GetServiceDescriptionsEx(['FolderName' => '']));
    foreach ($catalog->GetFolders()->FolderNames->String ?? [] as $folder) {
        echo "$folder\n";
        show($catalog->GetServiceDescriptionsEx(['FolderName' => $folder]));
    }
} catch (SoapFault $fault) {
    stop('the catalog refused: ' . $fault->getMessage());
}
