// The server's API as the dashboard uses it. Requests go to the server the page came from.

export interface Moments {
  count: number;
  sum: number;
  squares: number;
  mean?: number;
  low?: number;
  high?: number;
}
export interface GroupSize {
  modelId: number;
  users: number;
}
export interface Activity {
  decisions: number;
  rewards: Moments;
  rewardsBy: {mode: string; source: string; count: number; sum: number}[];
  defaulted: number;
  duplicate: number;
  late: number;
  unknown: number;
  baseline: Moments;
  uniform: Moments;
  compared: number;
  agreed: number;
  delaySeconds: Moments;
  changes: number;
  users: number;
  groups: GroupSize[];
}
export interface Point extends Activity {
  time: string;
}
export interface Series {
  from: string;
  to: string;
  stepSeconds: number;
  points: Point[];
  total: Activity;
}
export interface Evidence {
  rewards: number;
  expected: number;
  got: number;
  before: number;
}
export interface Change {
  time: string;
  userId: string;
  fromModelId: number | null;
  toModelId: number | null;
  evidence?: Evidence;
}
export interface Live {
  time: string;
  start: string;
  version: string;
  mode: string;
  stats: Record<string, number> & {policy: string; lastError: string};
  decisionLogLost: number;
  connections: number;
  connectionsLimit: number;
  point: Point | null;
  sinceStart: Activity;
  changes: Change[];
}
export interface Session {
  keyRequired: boolean;
  role: string | null;
  name?: string;
  csrfToken?: string;
}
export interface Model {
  modelId: number;
  popularity: number;
  users: number;
  periods: number;
  observations: number;
  topItems: {id: string; mean: number}[];
  bottomItems: {id: string; mean: number}[];
  topTags: {tag: string; count: number; lift: number}[];
  parameter?: number[];
}
export interface User {
  userId: string;
  modelId: number | null;
  modelChance: number;
  firstSeen: string;
  since: string;
  observations: number;
  periodObservations: number;
  changes: Omit<Change, 'userId'>[];
  lastRewards: {time: string; reward: number; expected: number}[];
}
export interface Item {
  id: string;
  features: number[];
  named?: {name: string; value: number}[];
  tags: string[];
  learned?: {
    shown: number;
    reward: number;
    effect: number;
    width: number;
    groups: {modelId: number | null; users: number; effect: number; width: number}[];
  };
}
export interface RankReply {
  eventId: string;
  rewardActionId: string;
  modelId: number | null;
  ranking: {id: string; probability: number; score: number; mean: number; width: number}[];
  explanation?: {
    contributions: {feature: string; value: number}[];
    intercept: number;
    item: number;
    groupUsers: number;
    groupObservations: number;
    lastChange: string | null;
  };
}
export interface Column {
  name: string;
  kind: string;
  count: number;
  min: number;
  max: number;
  importance: number;
}
export interface Setting {
  name: string;
  value: unknown;
  default: unknown;
  origin: string;
  allowed: string;
  help: string;
}
export interface Estimate {
  estimator: string;
  value?: number;
  low?: number;
  high?: number;
  guaranteedLow?: number;
  guaranteedHigh?: number;
  headline: boolean;
}
export interface Evaluation {
  verdict: string;
  events: number;
  users: number;
  actions: number;
  skippedLines: number;
  firstProblem: string;
  confidence: number;
  warnings: string[];
  policies: {
    name: string;
    logged: boolean;
    effectiveEvents: number;
    warnings: string[];
    estimates: Estimate[];
  }[];
}

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

let csrf = '';
export function setCsrf(token: string | undefined) {
  csrf = token ?? '';
}

async function send(method: string, path: string, body?: BodyInit, type = 'application/json') {
  const headers: Record<string, string> = {};
  if (method !== 'GET') {
    headers['Content-Type'] = type;
    if (csrf) headers['X-CSRF-Token'] = csrf;
  }
  let response: Response;
  try {
    response = await fetch(path, {method, headers, body, credentials: 'same-origin'});
  } catch {
    throw new ApiError(0, 'The server cannot be reached.');
  }
  const text = await response.text();
  if (!response.ok) {
    let message = `${response.status} ${response.statusText}`;
    try {
      const error = JSON.parse(text).error;
      message = error.field ? `${error.field}: ${error.message}` : error.message;
    } catch {
      // Not the server's own words.
    }
    throw new ApiError(response.status, message);
  }
  return text === '' ? undefined : JSON.parse(text);
}

export const get = <T>(path: string): Promise<T> => send('GET', path);
export const post = <T>(path: string, body: unknown): Promise<T> =>
  send('POST', path, JSON.stringify(body));
export const put = (path: string, body: unknown): Promise<void> =>
  send('PUT', path, JSON.stringify(body));
export const remove = (path: string): Promise<void> => send('DELETE', path);
export const upload = <T>(path: string, file: Blob): Promise<T> =>
  send('POST', path, file, 'application/x-ndjson');
export const id = encodeURIComponent;
