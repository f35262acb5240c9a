export type PostgresServer = {
  readonly url: string;
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly replicate: () => Promise<PostgresServer>;
  readonly stop: () => Promise<void>;
};

export function createPostgresServer(directory: string, settings?: string[]): Promise<PostgresServer>;
export function createPostgresDirectory(): Promise<string>;
