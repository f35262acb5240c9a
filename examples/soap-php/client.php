<?php
// Lists the folders and services of the SOAP catalog with the SoapClient of PHP (php-cli and php-soap of Debian).
//
//   php client.php http://localhost:8080/services
//   STEWARD_KEY=stw_… php client.php http://localhost:8080/services
//
// With a key, which a user creates in the own account, the client lists what that user may see.

function connect(string $address, ?string $key): SoapClient
{
    // A header, because addresses end up in logs. Clients that cannot set one add ?token=… to the address.
    $header = $key === null ? '' : "Authorization: Bearer $key";
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

function show(object $response): void
{
    foreach ($response->ServiceDescriptions->ServiceDescription ?? [] as $service) {
        echo "  $service->Name ($service->Type) $service->Url\n";
    }
}

[, $address] = $argv;
$key = getenv('STEWARD_KEY') ?: null;
$catalog = connect($address, $key);
if ($key === null && $catalog->RequiresTokens()->Result) {
    stop('this catalog requires a token: set STEWARD_KEY');
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
