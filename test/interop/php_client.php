<?php
// Calls the catalog with PHP's SoapClient: php_client.php WSDL_ADDRESS TOKEN [1.2]

[, $wsdl, $token] = $argv;
$options = [
    'soap_version' => ($argv[3] ?? '1.1') === '1.2' ? SOAP_1_2 : SOAP_1_1,
    'trace' => true,
    'exceptions' => true,
    'cache_wsdl' => WSDL_CACHE_NONE,
    'features' => SOAP_SINGLE_ELEMENT_ARRAYS,
];
$catalog = new SoapClient($wsdl, $options);

function names(object $response): array
{
    return array_map(fn (object $service) => $service->Name, $response->ServiceDescriptions->ServiceDescription);
}

function fault(callable $call): ?string
{
    try {
        $call();
    } catch (SoapFault $fault) {
        return $fault->getMessage();
    }
    return null;
}

$got = [
    'GetMessageVersion' => $catalog->GetMessageVersion()->MessageVersion,
    'GetMessageFormats' => $catalog->GetMessageFormats()->MessageFormats,
    'GetTokenServiceURL' => $catalog->GetTokenServiceURL()->TokenServiceURL,
    'GetFolders' => $catalog->GetFolders()->FolderNames->String,
    'RequiresTokens' => $catalog->RequiresTokens()->Result,
    'GetServiceDescriptions' => names($catalog->GetServiceDescriptions()),
    'GetServiceDescriptionsEx' => names($catalog->GetServiceDescriptionsEx(['FolderName' => 'Maps'])),
    'root' => names($catalog->GetServiceDescriptionsEx(['FolderName' => ''])),
    'fault' => fault(fn () => $catalog->GetServiceDescriptionsEx(['FolderName' => 'Nowhere'])),
];

preg_match('/soap:address location="([^"]+)"/', file_get_contents($wsdl), $address);
$catalog->__setLocation($address[1] . '?token=' . $token);
$got['withToken'] = count(names($catalog->GetServiceDescriptions()));

echo json_encode($got, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
