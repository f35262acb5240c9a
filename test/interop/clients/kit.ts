// Requests as programs of this family send them: a server with the variables of examples/family.env, and a client that
// notes which kinds of requests were answered as the program needs it.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { password } from '../../kit/server.ts';
import { listen } from '../../kit/steward.ts';

const file = readFileSync(new URL('../../../examples/family.env', import.meta.url), 'utf8');

export type Json = Record<string, unknown>;
export type Fields = Readonly<Record<string, string>>;
type Sent = {
  query?: Fields;
  body?: Fields;
  parts?: Readonly<Record<string, string | File>>;
  headers?: Fields;
};

export const user = { username: 'admin', password };

export async function startFamily(PROFILE: string) {
  const env = { ...parseEnv(file), PROFILE, UPGRADE_STEP_MS: '0' } as Record<string, string>;
  const { port, close } = await listen(env);
  onTestFinished(close);
  const base = `http://localhost:${port}`;

  /** A body of fields is urlencoded. Without one the request has neither body nor content type. */
  async function send(method: 'GET' | 'POST', path: string, { query, body, parts, headers }: Sent = {}) {
    const url = new URL(path, base);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.append(name, value);
    const form = parts && new FormData();
    for (const [name, value] of Object.entries(parts ?? {})) form?.set(name, value);
    const sent = form ?? (body && new URLSearchParams(body));
    const response = await fetch(url, {
      method,
      headers: { ...headers },
      redirect: 'manual',
      ...(sent && { body: sent }),
    });
    return { status: response.status, text: await response.text() };
  }

  /** Expects what all of these programs expect: HTTP 200 and an answer without an error. */
  async function ask<T = Json>(method: 'GET' | 'POST', path: string, sent?: Sent): Promise<T> {
    const { status, text } = await send(method, path, sent);
    expect(status, `${path}: ${text}`).toBe(200);
    const json = JSON.parse(text) as T;
    expect(json, path).not.toHaveProperty('error');
    expect(json, path).not.toHaveProperty('status', 'error');
    return json;
  }

  return { base, send, ask };
}

/** The kinds of requests that must be answered, by program. G are receivers: receivers.test.ts. */
export const kinds: Readonly<Record<string, readonly number[]>> = {
  A: [1, 2, 12],
  B: [1, 2, 3, 4, 5, 6, 7, 8, 9],
  C: [1, 2],
  D: [1, 3, 4, 5, 7, 9],
  E: [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
  F: [1, 2, 3, 4, 5, 6, 7, 8, 17, 19, 21, 22],
  G: [1, 2, 3, 4, 5, 6, 7],
  I: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 19],
  J: [1],
  K: [1, 2, 3],
};

/** Notes the answered kinds of one program, and expects all of them at its end. */
export function journal(program: string) {
  const answered = new Set<number>();
  return {
    answered: (kind: number) => void answered.add(kind),
    expectAll: () => expect([...answered].sort((a, b) => a - b)).toEqual(kinds[program]),
  };
}
