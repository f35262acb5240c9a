// Calls the catalog with classes that gSOAP generated from the WSDL: gsoap_client SERVICE_ADDRESS TOKEN [1.2]
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "ServiceCatalogBinding.nsmap"
#include "soapServiceCatalogBindingProxy.h"

namespace {

std::string quote(const std::string &text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string list(const std::vector<std::string> &texts) {
  std::string items;
  for (const std::string &text : texts) items += (items.empty() ? "" : ",") + quote(text);
  return '[' + items + ']';
}

std::vector<std::string> names(const ns1__ArrayOfServiceDescription *array) {
  std::vector<std::string> found;
  for (const ns1__ServiceDescription *service : array->ServiceDescription) found.push_back(service->Name);
  return found;
}

/** The generated table is for SOAP 1.1. gSOAP takes the SOAP version from its first two rows. */
std::vector<Namespace> soap12Namespaces() {
  std::vector<Namespace> table;
  for (const Namespace *row = namespaces; row->id != nullptr; ++row) table.push_back(*row);
  table[0].ns = "http://www.w3.org/2003/05/soap-envelope";
  table[1].ns = "http://www.w3.org/2003/05/soap-encoding";
  table.push_back(Namespace());
  return table;
}

class Catalog {
 public:
  Catalog(const std::string &address, bool isSoap12)
      : address_(address), namespaces12_(soap12Namespaces()), proxy_(address_.c_str(), SOAP_XML_STRICT) {
    if (isSoap12) soap_set_namespaces(proxy_.soap, namespaces12_.data());
  }

  template <typename Request, typename Response>
  Response call(int (ServiceCatalogBindingProxy::*operation)(Request *, Response &), Request request = Request()) {
    Response response;
    if ((proxy_.*operation)(&request, response) != SOAP_OK) {
      proxy_.soap_stream_fault(std::cerr);
      std::exit(1);
    }
    return response;
  }

  ns1__ArrayOfServiceDescription *services(const std::string &folder) {
    _ns1__GetServiceDescriptionsEx request;
    request.FolderName = folder;
    return call(&ServiceCatalogBindingProxy::GetServiceDescriptionsEx, request).ServiceDescriptions;
  }

  std::string fault(const std::string &folder) {
    _ns1__GetServiceDescriptionsEx request;
    request.FolderName = folder;
    _ns1__GetServiceDescriptionsExResponse response;
    const int status = proxy_.GetServiceDescriptionsEx(&request, response);
    const bool isFault = status != SOAP_OK && proxy_.soap_fault() != nullptr;
    return isFault ? proxy_.soap_fault_string() : "no fault";
  }

  soap *context() { return proxy_.soap; }

 private:
  const std::string address_;
  const std::vector<Namespace> namespaces12_;
  ServiceCatalogBindingProxy proxy_;
};

}  // namespace

int main(int count, char *values[]) {
  if (count < 3) return 2;
  const std::string address = values[1];
  const std::string token = values[2];
  const bool isSoap12 = count > 3 && std::string(values[3]) == "1.2";
  using Proxy = ServiceCatalogBindingProxy;

  Catalog catalog(address, isSoap12);
  Catalog insider(address + "?token=" + token, isSoap12);
  soap *context = catalog.context();

  const auto version = catalog.call(&Proxy::GetMessageVersion).MessageVersion;
  const auto formats = catalog.call(&Proxy::GetMessageFormats).MessageFormats;
  std::cout << "{\"GetMessageVersion\":" << quote(soap_ns1__svcProductVersion2s(context, version))
            << ",\"GetMessageFormats\":" << quote(soap_ns1__svcServiceCatalogMessageFormat2s(context, formats))
            << ",\"GetTokenServiceURL\":" << quote(catalog.call(&Proxy::GetTokenServiceURL).TokenServiceURL)
            << ",\"GetFolders\":" << list(catalog.call(&Proxy::GetFolders).FolderNames->String)
            << ",\"RequiresTokens\":" << (catalog.call(&Proxy::RequiresTokens).Result ? "true" : "false")
            << ",\"GetServiceDescriptions\":"
            << list(names(catalog.call(&Proxy::GetServiceDescriptions).ServiceDescriptions))
            << ",\"GetServiceDescriptionsEx\":" << list(names(catalog.services("Maps")))
            << ",\"root\":" << list(names(catalog.services("")))
            << ",\"withToken\":" << names(insider.call(&Proxy::GetServiceDescriptions).ServiceDescriptions).size()
            << ",\"fault\":" << quote(catalog.fault("Nowhere")) << "}\n";
}
