// The one place that builds names from the neutral words of the spec, `svc` and `Product` (contract 1).

export type CatalogNames = {
  readonly messageFormatType: string;
  readonly messageFormats: { readonly soap: string; readonly bin: string; readonly soapOrBin: string };
  readonly versionType: string;
  /** Oldest first; the last one is what we speak. */
  readonly versions: readonly [string, string, string, string, string];
};

export function catalogNames(vendorPrefix: string, productName: string): CatalogNames {
  const messageFormatType = `${vendorPrefix}ServiceCatalogMessageFormat`;
  const versionType = `${vendorPrefix}${productName}Version`;
  return {
    messageFormatType,
    messageFormats: {
      soap: `${messageFormatType}Soap`,
      bin: `${messageFormatType}Bin`,
      soapOrBin: `${messageFormatType}SoapOrBin`,
    },
    versionType,
    versions: [
      `${versionType}83`,
      `${versionType}90`,
      `${versionType}92`,
      `${versionType}93`,
      `${versionType}10`,
    ],
  };
}

/** Fills in the WSDL of this folder's service. */
export function fillWsdl(
  template: string,
  values: { namespace: string; baseUrl: string; vendorPrefix: string; productName: string },
): string {
  const filled: Record<string, string> = {
    '{catalog_namespace}': values.namespace,
    '{base_url}': values.baseUrl,
    '{svc}': values.vendorPrefix,
    '{Product}': values.productName,
  };
  return template
    .replace(/<!--.*?-->\n/s, '')
    .replace(/\{\w+\}/g, (mark) => (filled[mark] ?? mark).replaceAll('&', '&amp;').replaceAll('"', '&quot;'));
}
