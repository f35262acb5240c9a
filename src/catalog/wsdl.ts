// Builds every name that contains VENDOR_PREFIX or PRODUCT_NAME, and fills them into the WSDL template.

export type CatalogNames = {
  readonly versionType: string;
  readonly version: string;
  readonly messageFormatType: string;
  readonly messageFormat: string;
};

export function catalogNames(vendorPrefix: string, productName: string): CatalogNames {
  const versionType = `${vendorPrefix}${productName}Version`;
  const messageFormatType = `${vendorPrefix}ServiceCatalogMessageFormat`;
  return {
    versionType,
    version: `${versionType}10`,
    messageFormatType,
    messageFormat: `${messageFormatType}Soap`,
  };
}

type WsdlValues = {
  readonly namespace: string;
  readonly baseUrl: string;
  readonly names: CatalogNames;
};

export function fillWsdl(template: string, { namespace, baseUrl, names }: WsdlValues): string {
  const values = {
    '{catalog_namespace}': namespace,
    '{base_url}': baseUrl,
    '{version_type}': names.versionType,
    '{message_format_type}': names.messageFormatType,
  };
  const lines = template.split('\n').filter((line) => !line.startsWith('<!--'));
  return Object.entries(values).reduce(
    (filled, [placeholder, value]) => filled.replaceAll(placeholder, () => escapeAttribute(value)),
    lines.join('\n'),
  );
}

/** The values are URIs and names, which contain no < or >. */
function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}
