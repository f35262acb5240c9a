"""Calls the catalog with zeep: zeep_client.py WSDL_ADDRESS TOKEN"""

import json
import sys

from zeep import Client
from zeep.exceptions import Fault

wsdl, token = sys.argv[1:]
client = Client(wsdl)
catalog = client.service
port = client.wsdl.services["Catalog"].ports["ServiceCatalogPort"]
insider = client.create_service(
    port.binding.name, port.binding_options["address"] + "?token=" + token
)


def names(services):
    return [service.Name for service in services]


def fault(call):
    try:
        call()
    except Fault as error:
        return error.message
    return None


print(
    json.dumps(
        {
            "GetMessageVersion": catalog.GetMessageVersion(),
            "GetMessageFormats": catalog.GetMessageFormats(),
            "GetTokenServiceURL": catalog.GetTokenServiceURL(),
            "GetFolders": catalog.GetFolders(),
            "RequiresTokens": catalog.RequiresTokens(),
            "GetServiceDescriptions": names(catalog.GetServiceDescriptions()),
            "GetServiceDescriptionsEx": names(catalog.GetServiceDescriptionsEx(FolderName="Maps")),
            "root": names(catalog.GetServiceDescriptionsEx(FolderName="")),
            "withToken": len(names(insider.GetServiceDescriptions())),
            "fault": fault(lambda: catalog.GetServiceDescriptionsEx(FolderName="Nowhere")),
        }
    )
)
