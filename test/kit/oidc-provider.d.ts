// The part of the package oidc-provider that the tests use. The package has no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  type Context = { path: string; status: number; body: unknown };
  type Grant = { addOIDCScope: (scopes: string) => void; save: () => Promise<string> };
  type Result = { login: { accountId: string } } | { error: string; error_description?: string };

  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: new (of: { accountId: string; clientId: string }) => Grant;
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: Result): Promise<void>;
    on(event: string, listener: (...values: unknown[]) => void): void;
  }
}
