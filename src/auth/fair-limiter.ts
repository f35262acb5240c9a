// Limits how much work runs at once and how many calls wait for it.
//
// Client networks take turns. Where no place is left to wait, a call of a network with few waiting calls displaces
// the newest call of the network with the most. Within one network, subnets displace each other in the same way. So
// neither a network nor guesses for one user name can use up the places of others.
import { groupBy } from '../lib/collections.ts';
import { ServiceError } from '../lib/errors.ts';

type FairLimits = {
  readonly running: number;
  readonly waiting: number;
  readonly waitingPerUser: number;
  readonly waitingPerNetwork: number;
};

export type Claimant = { readonly username: string; readonly subnet: string; readonly network: string };

type WaitingCall = Claimant & {
  readonly start: () => void;
  readonly refuse: (error: ServiceError) => void;
};

export class FairLimiter {
  readonly #limits: FairLimits;
  /** The first network in the map is next. */
  readonly #queues = new Map<string, WaitingCall[]>();
  #running = 0;

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  async run<T>(claimant: Claimant, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.running) this.#running += 1;
    else await this.#wait(claimant);
    try {
      return await work();
    } finally {
      this.#startNext();
    }
  }

  #wait(claimant: Claimant): Promise<void> {
    this.#makeRoom(claimant);
    const { username, subnet, network } = claimant;
    const queue = this.#queues.get(network) ?? [];
    this.#queues.set(network, queue);
    return new Promise((start, refuse) => queue.push({ username, subnet, network, start, refuse }));
  }

  /** Refuses the call, or another one in its place, where a limit is reached. */
  #makeRoom({ username, subnet, network }: Claimant): void {
    const { waiting, waitingPerUser, waitingPerNetwork } = this.#limits;
    const all = [...this.#queues.values()].flat();
    const isOfUser = (call: WaitingCall) => call.username === username;
    const isOfNetwork = (call: WaitingCall) => call.network === network;
    const isUserFull = all.filter(isOfUser).length >= waitingPerUser;
    const isNetworkFull = all.filter(isOfNetwork).length >= waitingPerNetwork;
    if (all.length < waiting && !isUserFull && !isNetworkFull) return;
    // A call that leaves makes room only if it counts for every limit that is reached.
    const replaceable = all.filter(
      (call) => (!isUserFull || isOfUser(call)) && (!isNetworkFull || isOfNetwork(call)),
    );
    const groups = groupBy(replaceable, (call) => (isNetworkFull ? call.subnet : call.network));
    const own = groups.get(isNetworkFull ? subnet : network)?.length ?? 0;
    const largest = [...groups.values()].reduce((a, b) => (b.length > a.length ? b : a), []);
    const displaced = largest.at(-1);
    if (displaced === undefined || largest.length <= own + 1) throw tooManyPasswords();
    this.#remove(displaced);
    displaced.refuse(tooManyPasswords());
  }

  #remove(call: WaitingCall): void {
    const remaining = (this.#queues.get(call.network) ?? []).filter((other) => other !== call);
    if (remaining.length > 0) this.#queues.set(call.network, remaining);
    else this.#queues.delete(call.network);
  }

  #startNext(): void {
    const [first] = this.#queues;
    if (first === undefined) {
      this.#running -= 1;
      return;
    }
    const [network, queue] = first;
    const next = queue.shift();
    this.#queues.delete(network);
    if (queue.length > 0) this.#queues.set(network, queue);
    next?.start();
  }
}

function tooManyPasswords(): ServiceError {
  return new ServiceError('too-many-requests', 'Too many passwords are being processed.', {
    retryAfterSeconds: 5,
  });
}
