// The profiles of PROFILE: what each of them means, rule by rule. Code asks for a rule, never for the name of the profile.

const family = {
  /** JSON errors of the form API have HTTP status 200. */
  errorsHaveStatus200: true,
  /** Without `f`, the admin directory answers with pages, whatever `Accept` prefers. */
  pagesAreDefault: true,
  /** A token in a field that is bound to the page of an origin needs a `Referer` of that origin. */
  fieldTokenNeedsReferer: true,
  /** Names of folders have ASCII letters, digits and `_` only. */
  folderNamesAreWords: true,
  /** The WSDL has no `elementFormDefault`, and children of SOAP answers have no namespace. */
  soapChildrenAreUnqualified: true,
};

type ProfileRules = { readonly [Rule in keyof typeof family]: boolean };

const plain = Object.fromEntries(Object.keys(family).map((rule) => [rule, false])) as ProfileRules;

export const profiles: Readonly<Record<'plain' | 'family', ProfileRules>> = { plain, family };
