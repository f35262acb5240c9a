// The frame that all pages share: which navigation, session, banner and breadcrumb a caller sees.
import type { PublicUrls } from '../http/urls.ts';
import { type Access, type Caller, type Identity, mayCall } from '../lib/caller.ts';
import type { RefusedRequest } from '../rest/request.ts';
import type { NoticeLink } from '../rest/outcome.ts';
import type { Resource } from '../rest/resource.ts';
import type { AssetHrefs, Banner, Crumb, Layout, NavigationLink, PageLink } from './layout.ts';

export type NavigationEntry = {
  readonly name: string;
  readonly path: readonly string[];
  readonly access: Access;
  /** Pages at or beneath this path belong to it too. */
  readonly also?: readonly string[];
  /** The heading that it stands under. */
  readonly group?: string;
  /** How many things beneath it need attention. */
  readonly count?: () => number | Promise<number>;
};

/** Why the system is read-only now. */
export type ReadOnlyState = {
  readonly text: string;
  /** What explains it. */
  readonly link: { readonly path: readonly string[]; readonly access: Access };
  /** Ends the mode. */
  readonly action?: NoticeLink & {
    readonly access: Access;
    readonly fields: Readonly<Record<string, string>>;
  };
};

type FrameOptions = {
  /** Of this installation. */
  readonly name: string;
  readonly version: string;
  readonly urls: PublicUrls;
  /** Of the tree that the navigation leads to. */
  readonly prefix: string;
  readonly assets: () => AssetHrefs;
  readonly navigation: readonly NavigationEntry[];
  readonly readOnly: () => ReadOnlyState | undefined;
  readonly unavailableSince: () => number | undefined;
  /** Test control is on: a permanent notice leads to it. */
  readonly isControlled: boolean;
  readonly now: () => number;
  /** The text of the button that leads to the identity provider. Undefined: no provider is configured. */
  readonly providerLabel: string | undefined;
  /** Whether the sign-in page has a form for passwords. */
  readonly localSignIn: boolean;
};

/** The ways to sign in. */
export type SignInWays = {
  /** Where the form leads. */
  readonly action: string;
  readonly hasForm: boolean;
  readonly provider: PageLink | undefined;
  /** Leads to the form, for the first administrator. */
  readonly formHref: string | undefined;
};

/** A page: `path` is its path in the tree of the navigation, `requested` the address to return to after signing in. */
type FramedPage = {
  readonly title: string;
  readonly identity: Identity | undefined;
  readonly crumbs?: readonly PlacedCrumb[];
  readonly path?: readonly string[] | undefined;
  readonly requested?: string;
};

export class Frame {
  readonly #options: FrameOptions;

  constructor(options: FrameOptions) {
    this.#options = options;
  }

  get isReadOnly(): boolean {
    return this.#options.readOnly() !== undefined;
  }

  get now(): number {
    return this.#options.now();
  }

  async layout({ title, identity, crumbs = [], path, requested }: FramedPage): Promise<Layout> {
    const { urls, isControlled, navigation } = this.#options;
    const here = requested ?? urls.homePath;
    const current = path && findCurrent(navigation, path);
    const start = current?.path.length ?? 0;
    return {
      ...this.bareLayout(title),
      navigation: await this.#navigation(identity?.caller, path, current),
      // What the navigation leads to lies beneath the home page, whatever its address is.
      crumbs: crumbs.filter(({ depth }) => depth === 0 || depth >= start),
      controlHref:
        isControlled && mayCall(identity?.caller, 'administrator') ? `${urls.linkBase}/control` : undefined,
      banner: this.#banner(identity, here),
      session: {
        caller: identity?.caller,
        formToken: identity?.formToken ?? '',
        here,
        accountHref: this.#href(['security', 'self']),
        signInHref: `${urls.tokensPath('generateToken')}?f=html&next=${encodeURIComponent(here)}`,
        signOutAction: urls.tokensPath('revokeToken'),
        themeAction: this.#href(['assets', 'theme']),
      },
    };
  }

  /** Without local sign-in, only a page that asks for it has the form. */
  signIn(next: string | undefined, { asksForForm = false } = {}): SignInWays {
    const { urls, providerLabel, localSignIn } = this.#options;
    const action = urls.tokensPath('generateToken');
    const kept = next === undefined ? {} : { next };
    // The host of the callback is that of PUBLIC_URL, and the cookie of the attempt must reach it.
    const start = new URL(urls.tokensPath('oidc/start'), urls.base);
    start.search = new URLSearchParams(kept).toString();
    const hasForm = localSignIn || asksForForm;
    return {
      action,
      hasForm,
      provider: providerLabel === undefined ? undefined : { name: providerLabel, href: start.href },
      formHref: hasForm
        ? undefined
        : `${action}?${new URLSearchParams({ f: 'html', username: '', ...kept }).toString()}`,
    };
  }

  /** Without navigation and session. */
  bareLayout(title: string): Layout {
    const { name, version, urls, assets, now, unavailableSince } = this.#options;
    const fixed = { name, version, assets: assets(), homeHref: urls.homePath };
    return { ...fixed, title, now: now(), unavailableSince: unavailableSince(), navigation: [], crumbs: [] };
  }

  #href(path: readonly string[]): string {
    return this.#options.urls.path(this.#options.prefix, path);
  }

  #navigation(
    caller: Caller,
    path: readonly string[] | undefined,
    current: NavigationEntry | undefined,
  ): Promise<NavigationLink[]> {
    const shown = this.#options.navigation.filter(({ access }) => mayCall(caller, access));
    return Promise.all(
      shown.map(async (entry) => ({
        name: entry.name,
        group: entry.group,
        href: this.#href(entry.path),
        count: (await entry.count?.()) ?? 0,
        current: entry !== current ? undefined : entry.path.length === path?.length ? 'page' : 'true',
      })),
    );
  }

  #banner(identity: Identity | undefined, here: string): Banner | undefined {
    const state = identity?.caller && this.#options.readOnly();
    if (!state) return undefined;
    const { text, link, action } = state;
    const { caller, formToken } = identity;
    return {
      text,
      href: mayCall(caller, link.access) ? this.#href(link.path) : undefined,
      action:
        action && formToken !== '' && mayCall(caller, action.access)
          ? {
              label: action.name,
              action: this.#href(action.path),
              fields: action.fields,
              formToken,
              next: here,
            }
          : undefined,
    };
  }
}

/** The entry with the longest path that the page lies at or beneath. */
function findCurrent(
  navigation: readonly NavigationEntry[],
  path: readonly string[],
): NavigationEntry | undefined {
  const isAbove = (known: readonly string[]) => known.every((segment, index) => path[index] === segment);
  // Every page lies beneath the home page.
  return navigation
    .filter(
      ({ path: own, also }) =>
        (also && isAbove(also)) || (isAbove(own) && (own.length > 0 || path.length === 0)),
    )
    .toSorted((one, other) => other.path.length - one.path.length)[0];
}

/** A resource at or above a page. */
type Place = { readonly resource: Resource; readonly subject: unknown; readonly depth: number };

/** Ends before an item that was not found. */
function* placesOf(root: Resource, { entry, subjects: found = [] }: RefusedRequest): Generator<Place> {
  const subjects = found.values();
  let place: Place = { resource: root, subject: undefined, depth: 0 };
  yield place;
  for (const segment of entry.route.split('/')) {
    const { resource, depth } = place;
    const item = resource.items.find(({ param }) => segment === `{${param}}`);
    const subject = item && subjects.next();
    const next = item ? item.resource : resource.resources[segment];
    if (!next || subject?.done) return;
    place = { resource: next, subject: subject?.value, depth: depth + 1 };
    yield place;
  }
}

/** The path of the page that readers use instead of the one that they have asked for. */
export function movedTo(root: Resource, request: RefusedRequest): readonly string[] | undefined {
  const { segments, identity } = request;
  for (const { resource, subject, depth } of placesOf(root, request)) {
    const path = resource.page(subject, segments.slice(depth), identity?.caller);
    if (path) return path;
  }
  return undefined;
}

type CrumbOptions = {
  readonly rootName: string;
  readonly caller: Caller;
  readonly href: (segments: readonly string[]) => string;
};

/** A crumb with the length of its path. */
type PlacedCrumb = Crumb & { readonly depth: number };

/** The resources above the page that have a page, and the operation. */
export function crumbsOf(
  root: Resource,
  request: RefusedRequest | null,
  { rootName, caller, href }: CrumbOptions,
): PlacedCrumb[] {
  if (!request) return [{ name: rootName, depth: 0, href: href([]) }];
  const { entry, segments } = request;
  const { operation, resource: own } = entry;
  const crumbs = [...placesOf(root, request)]
    .filter(({ resource, subject }) => resource.page(subject, [], caller) === undefined)
    .map(({ resource, subject, depth }) => ({
      name: depth === 0 ? rootName : subject === undefined ? resource.title : resource.titleOf(subject),
      depth,
      ...(mayCall(caller, resource.access) && { href: href(segments.slice(0, depth)) }),
    }));
  const hasCrumb = operation !== undefined && operation !== own.onPost;
  return hasCrumb ? [...crumbs, { name: operation.title, depth: segments.length }] : crumbs;
}
