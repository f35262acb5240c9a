// The expected message codes of whole jobs, written out by hand so that they do not depend on the program.
import { expect } from 'vitest';

export type Message = { readonly code: number; readonly message: string; readonly when: number };

const module = [2291, 2038, 2173];
const resumed = 2902;

/** What a patch does before and after its modules. */
const patch = {
  start: [2010, 2168, 2165, 2270, 2287, 2288, 2271],
  end: [2179, 2180, 2181, 2166, 2011, 2012],
};

export function codesOfPatch(modules: number): number[] {
  return [...patch.start, ...repeat(modules, module), ...patch.end];
}

/** What a release does before its components, between them and its modules, and in the end. */
const release = {
  start: [
    2010, 2168, 2165, 2270, 2287, 2094, 2281, 2288, 2271, 2108, 2087, 2144, 2153, 2145, 2090, 2093, 2092,
    2151, 2148, 2149, 2109,
  ],
  middle: [2187, 2188, 2179, 2180, 2181, 2178, 2185, 2191, 2192],
  end: [2166, 2011, 2012],
};

/** `components` holds the number of deployments of each component. */
export function codesOfRelease(components: readonly number[], modules = 0): number[] {
  return [
    ...release.start,
    ...components.flatMap((count) => [2134, ...repeat(count, [2101, 2038, 2103, 2175]), 2132]),
    ...release.middle,
    ...repeat(modules, module),
    ...release.end,
  ];
}

/** A patch that fails at its nth module and reverts its workloads, newest first. */
export function codesOfFailedPatch(nth: number): number[] {
  const begun = [...patch.start, ...repeat(nth - 1, module), 2291];
  return [...begun, 2901, ...repeat(nth, [2904]), 2166];
}

export function codesOfRollback(workloads: number): number[] {
  return [2072, 2168, 2165, 2270, 2271, ...repeat(workloads, [2904, 2173]), 2166, 2011, 2905];
}

function repeat(times: number, codes: readonly number[]): number[] {
  return Array.from({ length: times }, () => codes).flat();
}

/** Checks that the messages are those of one run, each once and in order. Only 2902 may occur any number of times. */
export function expectOneRun(messages: readonly Message[], codes: readonly number[]): void {
  expect(messages.map(({ code }) => code).filter((code) => code !== resumed)).toEqual(codes);
  for (const { code, message } of messages)
    if (code === resumed) expect(message).toBe('The job was resumed after a restart.');
  const whens = messages.map(({ when }) => when);
  expect(whens).toEqual(whens.toSorted((a, b) => a - b));
  const counts = messages.flatMap(({ message }) => /^(\d+) out of/.exec(message)?.slice(1).map(Number) ?? []);
  expect(counts).toEqual(counts.map((_count, index) => index + 1));
}

export const timesResumed = (messages: readonly Message[]) =>
  messages.filter(({ code }) => code === resumed).length;
