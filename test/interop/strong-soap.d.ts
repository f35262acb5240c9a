// Declares the parts of strong-soap that the tests use; the library has no declarations of its own.
declare module 'strong-soap' {
  export namespace soap {
    type Fields = Record<string, string>;
    type Method = (fields: Fields) => Promise<{ result: unknown; envelope: string }>;
    type Port = Record<string, Method>;
    type Client = Record<string, Record<string, Port>> & {
      describe: () => Record<string, Record<string, object>>;
      setEndpoint: (endpoint: string) => void;
    };
    type Options = { forceSoapVersion?: '1.1' | '1.2'; WSDL_CACHE?: object };

    function createClient(
      wsdl: string,
      options: Options,
      done: (error: Error | null, client: Client) => void,
    ): void;
  }
}
