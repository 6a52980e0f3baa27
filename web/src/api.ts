// The server's API as the dashboard uses it. Requests go to the server the page came from. The types are those of the
// JavaScript client, which are made from the server's openapi.json.
import type * as api from '../../clients/js/api';

export type {
  Change, Changes, EvaluationReply, FeatureReport, ItemPage, Keys, Logs, Model, Models, ModelWithParameter, Moments,
  RankReply, Session, Settings, Stats, StoredItem, User,
} from '../../clients/js/api';
export type Point = api.Stats['points'][number];

// An event of /v1/live, which is for the dashboard alone.
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
  sinceStart: api.Activity;
  changes: (api.Change & {userId: string})[];
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
