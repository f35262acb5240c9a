// The values of rows that the audit trail shows, with the rules for secrets.

export type AuditValue = string | number | boolean | null;

export const maskedValue = '***' as const;

/** A value that the audit trail compares but does not show. */
export class Secret {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }

  get shown(): string {
    return maskedValue;
  }
}

/** A URL whose query and user information may hold a token or a password. */
export class SecretUrl extends Secret {
  override get shown(): string {
    return String(this.value)
      .replace(/^([a-z]+:\/\/)[^/?#]*@/i, `$1${maskedValue}@`)
      .replace(/[?#].*/s, `?${maskedValue}`);
  }
}

/** Names with values: the names are shown. */
export class SecretEntries extends Secret {
  override get shown(): string {
    const entries = this.value as readonly { readonly name: string }[];
    return entries.map(({ name }) => `${name}: ${maskedValue}`).join(', ');
  }
}

/** The fields of a row that the audit trail shows. */
export type AuditFields = Readonly<Record<string, AuditValue | readonly string[] | Secret>>;

/** For state that only the server itself uses. */
export const notAudited = (): AuditFields => ({});
