// The deployment this server administers.
import type { Cell } from '../store/transaction.ts';

export type Deployment = { readonly version: string; readonly build: string };

export const deployment: Cell<Deployment> = {
  name: 'deployment',
  initial: { version: '10.9.1', build: '1234' },
};
