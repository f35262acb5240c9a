"""Lists the folders and services of the SOAP catalog with zeep (python3-zeep of Debian, or pip install zeep).

    python3 client.py http://localhost:8080/services
    STEWARD_USERNAME=admin STEWARD_PASSWORD='correct horse' python3 client.py http://localhost:8080/services

With a user name and a password, the client gets a token first and lists what that user may see.
"""

import os
import sys

import requests
from zeep import Client, Transport
from zeep.exceptions import Fault


def fetch_token(address):
    """The catalog itself names the address of the token service."""
    credentials = {
        "username": os.environ["STEWARD_USERNAME"],
        "password": os.environ["STEWARD_PASSWORD"],
    }
    response = requests.post(address, data=credentials, timeout=10)
    answer = response.json()
    if "token" not in answer:
        sys.exit("sign-in failed: " + answer["error"]["message"])
    return answer["token"]


def show(services):
    for service in services:
        print(f"  {service.Name} ({service.Type}) {service.Url}")


[address] = sys.argv[1:]
session = requests.Session()
catalog = Client(address + "?wsdl", transport=Transport(session=session, operation_timeout=10)).service
if "STEWARD_USERNAME" in os.environ:
    # A header, because addresses end up in logs. Clients that cannot set one add ?token=… to the address.
    session.headers["Authorization"] = "Bearer " + fetch_token(catalog.GetTokenServiceURL())
elif catalog.RequiresTokens():
    sys.exit("this catalog requires a token: set STEWARD_USERNAME and STEWARD_PASSWORD")

try:
    print("/")
    show(catalog.GetServiceDescriptionsEx(FolderName="") or [])
    for folder in catalog.GetFolders() or []:
        print(folder)
        show(catalog.GetServiceDescriptionsEx(FolderName=folder) or [])
except Fault as fault:
    sys.exit("the catalog refused: " + fault.message)
