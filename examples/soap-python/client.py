"""Lists the folders and services of the SOAP catalog with zeep (python3-zeep of Debian, or pip install zeep).

    python3 client.py http://localhost:8080/services
    STEWARD_KEY=stw_… python3 client.py http://localhost:8080/services

With a key, which a user creates in the own account, the client lists what that user may see.
"""

import os
import sys

import requests
from zeep import Client, Transport
from zeep.exceptions import Fault


def show(services):
    for service in services:
        print(f"  {service.Name} ({service.Type}) {service.Url}")


[address] = sys.argv[1:]
session = requests.Session()
catalog = Client(address + "?wsdl", transport=Transport(session=session, operation_timeout=10)).service
if "STEWARD_KEY" in os.environ:
    # A header, because addresses end up in logs. Clients that cannot set one add ?token=… to the address.
    session.headers["Authorization"] = "Bearer " + os.environ["STEWARD_KEY"]
elif catalog.RequiresTokens():
    sys.exit("this catalog requires a token: set STEWARD_KEY")

try:
    print("/")
    show(catalog.GetServiceDescriptionsEx(FolderName="") or [])
    for folder in catalog.GetFolders() or []:
        print(folder)
        show(catalog.GetServiceDescriptionsEx(FolderName=folder) or [])
except Fault as fault:
    sys.exit("the catalog refused: " + fault.message)
