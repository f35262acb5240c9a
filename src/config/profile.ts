// The profiles of PROFILE: what each of them means, rule by rule. Code asks for a rule, never for the name of the profile.

type ProfileRules = {
  /** JSON errors of the form API have HTTP status 200. */
  readonly errorsHaveStatus200: boolean;
  /** Without `f`, the admin directory answers with pages, whatever `Accept` prefers. */
  readonly pagesAreDefault: boolean;
  /** A token in a field that is bound to the page of an origin needs a `Referer` of that origin. */
  readonly fieldTokenNeedsReferer: boolean;
  /** Names of folders have ASCII letters, digits and `_` only. */
  readonly folderNamesAreWords: boolean;
  /** The WSDL has no `elementFormDefault`, and children of SOAP answers have no namespace. */
  readonly soapChildrenAreUnqualified: boolean;
};

export const profiles: Readonly<Record<'plain' | 'family', ProfileRules>> = {
  plain: {
    errorsHaveStatus200: false,
    pagesAreDefault: false,
    fieldTokenNeedsReferer: false,
    folderNamesAreWords: false,
    soapChildrenAreUnqualified: false,
  },
  family: {
    errorsHaveStatus200: true,
    pagesAreDefault: true,
    fieldTokenNeedsReferer: true,
    folderNamesAreWords: true,
    soapChildrenAreUnqualified: true,
  },
};
