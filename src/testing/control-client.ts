// A client of the test control API (docs/guides/testing-with-steward.md#control-the-server), for programs that test
// against Steward.
import type { ErrorKind } from '../lib/errors.ts';

export type StewardControl = {
  /** Returns to the state after the start: data, clock, failure rules, journal. Tokens of the start stay valid. */
  reset(): Promise<void>;
  /** The whole state as one JSON document. */
  snapshot(): Promise<string>;
  /** Restores exactly the state of a snapshot. */
  restore(snapshot: string): Promise<void>;
  clock(): Promise<Clock>;
  /** Changes the clock, runs everything that becomes due, and resolves when all of it is done. */
  setClock(change: ClockChange): Promise<Clock>;
  /** Short for `setClock({ advanceMs })`. */
  advanceClock(ms: number): Promise<Clock>;
  failures(): Promise<readonly FailureRule[]>;
  addFailure(rule: NewFailureRule): Promise<FailureRule>;
  /** The rules that nothing has matched. A test that leaves one may have tested nothing. */
  unusedFailures(): Promise<readonly FailureRule[]>;
  /** Removes one rule, or all of them. */
  removeFailures(id?: string): Promise<void>;
  /** The newest requests that the server has answered, newest first. */
  requests(
    filter?: RequestFilter,
  ): Promise<{ readonly requests: readonly JournalEntry[]; readonly total: number }>;
  clearRequests(): Promise<void>;
};

export type Clock = {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly frozen: boolean;
};

export type ClockChange = {
  readonly frozen?: boolean;
  /** Not earlier than the present time of the clock. */
  readonly now?: number;
  readonly advanceMs?: number;
};

export type NewFailureRule = {
  readonly match: {
    /** A path template of the OpenAPI document, such as `/admin/services/webhooks/{id}`. */
    readonly route?: string;
    readonly method?: string;
    readonly soapOperation?: string;
    /** A container of a version in the manifest. Its update fails. */
    readonly container?: string;
    /** The id of a step of a simulated upgrade. */
    readonly step?: string;
    /** The origin of a webhook receiver, such as `https://receiver.example.com`. */
    readonly receiver?: string;
  };
  readonly respond: {
    readonly status?: number;
    /** In place of the JSON of the status, such as the page of a proxy. */
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly fault?: 'Client' | 'Server';
    readonly delayMs?: number;
    readonly disconnect?: boolean;
    readonly error?: ErrorKind;
    /** Closes the connection after so many bytes of the body. */
    readonly truncateAt?: number;
    /** The pause before each byte of the body. */
    readonly dripMs?: number;
  };
  /** How often the rule applies. Default: always. */
  readonly times?: number;
};

export type FailureRule = NewFailureRule & {
  readonly id: string;
  readonly hits: number;
  /** Which jobs have the step of the rule, unless all have it, or which methods its route has. */
  readonly note?: string;
};

export type RequestFilter = {
  readonly route?: string;
  readonly status?: number;
  readonly soapOperation?: string;
  readonly start?: number;
  readonly num?: number;
};

export type JournalEntry = {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  /** The path template of OpenAPI. Null: there is nothing at the address. */
  readonly route: string | null;
  /** Null: not answered yet, or disconnected. */
  readonly status: number | null;
  readonly soapOperation: string | null;
  /** Why a SOAP request got a fault, for people. */
  readonly fault: string | null;
  /** The element of the request that caused the fault. */
  readonly faultElement: string | null;
  readonly request: JournalMessage;
  readonly response: JournalMessage;
};

export type JournalMessage = {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
};

type ControlOptions = {
  /** The address of the server, without a path. */
  readonly address: string;
  /** TEST_CONTROL_TOKEN of the server. */
  readonly token?: string | undefined;
  /** Why there is no control. Every call then fails with this text. */
  readonly disabled?: string | undefined;
};

export function createControlClient(options: ControlOptions): StewardControl {
  const send = (method: string, path: string, body?: string) => sendRequest(options, method, path, body);
  const read = async <T>(path: string) => JSON.parse(await send('GET', path)) as T;
  const post = async <T>(path: string, value: unknown) =>
    JSON.parse(await send('POST', path, JSON.stringify(value))) as T;
  const change = async (method: string, path: string, body?: string): Promise<void> => {
    await send(method, path, body);
  };
  const failures = async () => (await read<{ rules: FailureRule[] }>('failures')).rules;
  return {
    reset: () => change('POST', 'reset', '{}'),
    snapshot: () => send('GET', 'snapshot'),
    restore: (snapshot) => change('PUT', 'snapshot', snapshot),
    clock: () => read('clock'),
    setClock: (time) => post('clock', time),
    advanceClock: (advanceMs) => post('clock', { advanceMs }),
    failures,
    unusedFailures: async () => (await failures()).filter(({ hits }) => hits === 0),
    addFailure: (rule) => post('failures', rule),
    removeFailures: (id) => change('DELETE', `failures${queryOf({ id })}`),
    requests: (filter = {}) => read(`requests${queryOf(filter)}`),
    clearRequests: () => change('DELETE', 'requests'),
  };
}

async function sendRequest(
  { address, token, disabled }: ControlOptions,
  method: string,
  path: string,
  body: string | undefined,
): Promise<string> {
  if (disabled !== undefined) throw new Error(disabled);
  const response = await fetch(`${address}/control/${path}`, {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} /control/${path}: ${response.status} ${messageOf(text)}`);
  return text;
}

/** The message and the details of an error body, or the text itself. */
function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error: { message: string; details: string[] } };
    return [error.message, ...error.details].join(' ');
  } catch {
    return text;
  }
}

function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
}
