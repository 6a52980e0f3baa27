import type {Action, Change, HistoryReply, HistoryRequest, Item, Model, RankReply, RankRequest, RewardReply, StoredItem, User} from './api.js';

export type * from './api.js';

export interface ClientOptions {
  /** Where the server is; http://127.0.0.1:8080 by default. */
  url?: string;
  /** The key, for a server that has keys. Do not give one to a page: everybody can read it there. */
  key?: string;
  /** How long rank may take in all, 2000 by default. */
  timeoutMs?: number;
  /** How long everything else is repeated, 30000 by default. */
  retryForMs?: number;
  /** Whether rank returns the actions in the order given when the server does not answer; true by default. */
  fallback?: boolean;
  /** How many queued rewards are on their way at a time, 8 by default. */
  concurrency?: number;
  /** Told of rewards of report() that could not be delivered. */
  onError?: (eventId: string, value: number, error: unknown) => void;
}

export interface RankOptions extends Omit<RankRequest, 'userId' | 'actions'> {
  /** Also explain the choice. */
  explain?: boolean;
  /** Instead of the client's. */
  timeoutMs?: number;
}

/** isDefault: the server did not answer in time, and the actions are in the order in which they were given. */
export type Ranked = RankReply & {isDefault: boolean};

/** status default: the event was ranked without the server, and nothing was sent. */
export type Rewarded = RewardReply | {eventId: string, status: 'default', sequence: number};

/** An error of the server, or that it cannot be reached (status 0). */
export class CodbandError extends Error {
  constructor(message: string, details?: {status?: number, code?: string, field?: string, cause?: unknown});
  readonly status: number;
  /** As in the server's replies: BadArgument, NotFound, Conflict, Late, …; Unavailable without a reply. */
  readonly code: string;
  readonly field: string | undefined;
  /** Whether the same request may work later. */
  readonly isUnavailable: boolean;
}

/**
 * Asks a server what to show, and tells it what came of it.
 *
 * Requests that fail for a moment are repeated. Every one carries an id, so that nothing happens twice.
 */
export class Client {
  constructor(options?: ClientOptions);
  /** Rewards of report() that could not be delivered. */
  failed: number;
  /**
   * Ranks actions for a user and chooses one: rewardActionId. Without actions the whole catalogue is ranked; without a
   * user (null) the visitor is anonymous.
   */
  rank(userId: string | null, actions?: Action[] | undefined, options?: RankOptions): Promise<Ranked>;
  /** Tells what an event brought and waits until the server has it on disk. */
  reward(eventId: string, value: number): Promise<Rewarded>;
  /** Queues a reward and returns at once. */
  report(eventId: string, value: number): void;
  /** Waits until every reward of report() was delivered or given up. */
  flush(): Promise<void>;
  /** Tells that a deferred choice was shown. */
  activate(eventId: string): Promise<void>;
  /** rank in the words of Microsoft's reinforcement_learning client. */
  chooseRank(eventId: string, userId: string | null, contextFeatures?: RankRequest['contextFeatures'],
             actions?: Action[]): Promise<Ranked>;
  /** reward in the words of Microsoft's reinforcement_learning client. */
  reportOutcome(eventId: string, value: number): Promise<Rewarded>;
  putItem(id: string, item: Item): Promise<void>;
  /** Adds or replaces many items; how many there were. */
  putItems(items: Array<Item & {id: string}>): Promise<number>;
  /** Lets the server learn what happened before. */
  importHistory(events: HistoryRequest['events']): Promise<Omit<HistoryReply, 'status'>>;
  getItem(id: string): Promise<StoredItem>;
  deleteItem(id: string): Promise<void>;
  getUser(userId: string): Promise<User>;
  forgetUser(userId: string): Promise<void>;
  models(top?: number): Promise<Model[]>;
  changes(limit?: number): Promise<Change[]>;
  /** Whether the server can be used now; asks once. */
  isReady(): Promise<boolean>;
}
