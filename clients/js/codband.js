// A client for the codband server: no dependencies, Node 18 or later and browsers.
// The types and the contract are in codband.d.ts.

/** @typedef {import('./codband.js').ClientOptions} ClientOptions */

const RETRIED = new Set([408, 429, 500, 502, 503, 504]);
const MOST_DEFAULTS = 100_000;

export class CodbandError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: string, field?: string, cause?: unknown}} [details]
   */
  constructor(message, details = {}) {
    super(message, {cause: details.cause});
    this.name = 'CodbandError';
    this.status = details.status ?? 0;
    this.code = details.code ?? 'Unavailable';
    this.field = details.field;
  }

  get isUnavailable() {
    return this.status === 0 || RETRIED.has(this.status);
  }
}

/** @returns {string} 128 random bits */
function newEventId() {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto?.getRandomValues) {
    globalThis.crypto.getRandomValues(bytes);
  } else {
    // Node 18 without a global crypto. Ids must be unique, not secret.
    for (let i = 0; i < bytes.length; ++i) bytes[i] = Math.floor(Math.random() * 256);
  }
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {number} ms */
const sleep = ms => new Promise(resolve => { setTimeout(resolve, ms); });

/** @param {string} name @param {unknown} value */
function requireText(name, value) {
  if (typeof value !== 'string' || value === '') {
    throw new TypeError(`${name}: is ${JSON.stringify(value) ?? value}, expected a text that is not empty`);
  }
}

/** @param {string} name @param {unknown} value */
function requireArray(name, value) {
  if (!Array.isArray(value)) throw new TypeError(`${name}: is of type ${typeof value}, expected an array`);
}

/** @param {unknown} value */
function requireNumber(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new TypeError(`value: is ${value}, expected a finite number`);
  }
}

/** @param {Response} response @param {string} text */
function errorOf(response, text) {
  try {
    const {code, message, field} = JSON.parse(text).error;
    return new CodbandError(field ? `${field}: ${message}` : message, {status: response.status, code, field});
  } catch {
    return new CodbandError(text.slice(0, 200) || `HTTP status ${response.status}`,
                            {status: response.status, code: String(response.status)});
  }
}

export class Client {
  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    if (typeof options !== 'object' || options === null) {
      throw new TypeError(`options: are ${JSON.stringify(options)}, expected an object such as {url: 'http://127.0.0.1:8080'}`);
    }
    const {url = 'http://127.0.0.1:8080', key, timeoutMs = 2000, retryForMs = 30_000, fallback = true,
           concurrency = 8, onError, ...others} = options;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      throw new TypeError(`${unknown}: is unknown, expected one of url, key, timeoutMs, retryForMs, fallback, concurrency, onError`);
    }
    if (!/^https?:\/\/[^/?#]+/.test(url)) {
      throw new TypeError(`url: is '${url}', expected such as http://127.0.0.1:8080`);
    }
    for (const [name, value] of Object.entries({timeoutMs, retryForMs, concurrency})) {
      if (!(value > 0)) throw new TypeError(`${name}: is ${value}, expected more than 0`);
    }
    this.failed = 0;
    this._url = url.replace(/\/+$/, '');
    this._key = key;
    this._timeoutMs = timeoutMs;
    this._retryForMs = retryForMs;
    this._fallback = fallback;
    this._concurrency = concurrency;
    this._onError = onError;
    /** @type {Set<string>} events that were answered without the server: their rewards are not sent */
    this._defaults = new Set();
    /** @type {Array<{eventId: string, value: number}>} */
    this._queue = [];
    this._sending = 0;
    /** @type {Array<() => void>} */
    this._flushed = [];
  }

  /** @type {import('./codband.js').Client['rank']} */
  async rank(userId, actions, options = {}) {
    if (userId !== null) requireText('userId', userId);
    const {eventId = newEventId(), explain = false, timeoutMs = this._timeoutMs, ...rest} = options;
    const body = {...(userId === null ? {} : {userId}), eventId, ...(actions ? {actions} : {}), ...rest};
    try {
      const reply = await this._call('POST', explain ? '/v1/rank?explain=true' : '/v1/rank', {body, forMs: timeoutMs});
      return {...reply, isDefault: false};
    } catch (error) {
      const unavailable = error instanceof CodbandError && error.isUnavailable;
      if (!unavailable || !this._fallback || !actions?.length) throw error;
    }
    return this._defaultReply(eventId, actions, rest);
  }

  /** @type {import('./codband.js').Client['reward']} */
  async reward(eventId, value) {
    requireText('eventId', eventId);
    requireNumber(value);
    if (this._defaults.has(eventId)) return {eventId, status: 'default', sequence: 0};
    return this._call('POST', `/v1/events/${encodeURIComponent(eventId)}/reward`, {body: {value}});
  }

  /** @type {import('./codband.js').Client['report']} */
  report(eventId, value) {
    requireText('eventId', eventId);
    requireNumber(value);
    this._queue.push({eventId, value});
    void this._sendQueued();
  }

  /** @returns {Promise<void>} */
  flush() {
    if (this._queue.length === 0 && this._sending === 0) return Promise.resolve();
    return new Promise(resolve => { this._flushed.push(resolve); });
  }

  /** @type {import('./codband.js').Client['activate']} */
  async activate(eventId) {
    requireText('eventId', eventId);
    if (!this._defaults.has(eventId)) await this._call('POST', `/v1/events/${encodeURIComponent(eventId)}/activate`);
  }

  /** @type {import('./codband.js').Client['chooseRank']} */
  chooseRank(eventId, userId, contextFeatures, actions) {
    return this.rank(userId, actions, {eventId, ...(contextFeatures === undefined ? {} : {contextFeatures})});
  }

  /** @type {import('./codband.js').Client['reportOutcome']} */
  reportOutcome(eventId, value) {
    return this.reward(eventId, value);
  }

  /** @type {import('./codband.js').Client['putItem']} */
  async putItem(id, item) {
    await this._call('PUT', `/v1/items/${encodeURIComponent(id)}`, {body: item});
  }

  /** @type {import('./codband.js').Client['putItems']} */
  async putItems(items) {
    requireArray('items', items);
    const text = items.map(item => JSON.stringify(item) + '\n').join('');
    return (await this._call('POST', '/v1/items', {text, type: 'application/x-ndjson'})).accepted;
  }

  /** @type {import('./codband.js').Client['importHistory']} */
  async importHistory(events) {
    requireArray('events', events);
    /** @type {{accepted: number, duplicates: number, skipped: {index: number, reason: string}[]}} */
    const report = {accepted: 0, duplicates: 0, skipped: []};
    for (let first = 0; first < events.length; first += 500) {
      const reply = await this._call('POST', '/v1/history', {body: {events: events.slice(first, first + 500)}});
      report.accepted += reply.accepted;
      report.duplicates += reply.duplicates;
      for (const {index, reason} of reply.skipped) report.skipped.push({index: first + index, reason});
    }
    return report;
  }

  /** @param {string} id */
  getItem(id) { return this._call('GET', `/v1/items/${encodeURIComponent(id)}`); }

  /** @param {string} id */
  async deleteItem(id) { await this._call('DELETE', `/v1/items/${encodeURIComponent(id)}`, {goneIsDone: true}); }

  /** @param {string} userId */
  getUser(userId) { return this._call('GET', `/v1/users/${encodeURIComponent(userId)}`); }

  /** @param {string} userId */
  async forgetUser(userId) { await this._call('DELETE', `/v1/users/${encodeURIComponent(userId)}`, {goneIsDone: true}); }

  async models(top = 10) { return (await this._call('GET', `/v1/models?top=${top}`)).models; }

  async changes(limit = 100) { return (await this._call('GET', `/v1/changes?limit=${limit}`)).changes; }

  async isReady() {
    try {
      await this._call('GET', '/v1/health/ready', {forMs: this._timeoutMs, once: true});
      return true;
    } catch (error) {
      if (error instanceof CodbandError && error.isUnavailable) return false;
      throw error;
    }
  }

  /**
   * Sends a request until it is answered, for so long, or once. All requests may be repeated.
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, text?: string, type?: string, forMs?: number, once?: boolean, goneIsDone?: boolean}} [options]
   * @returns {Promise<any>}
   */
  async _call(method, path, options = {}) {
    const {body, type = 'application/json', forMs = this._retryForMs, once = false, goneIsDone = false} = options;
    const text = body === undefined ? options.text : JSON.stringify(body);
    /** @type {Record<string, string>} */
    const headers = {Accept: 'application/json'};
    if (text !== undefined) headers['Content-Type'] = type;
    if (this._key !== undefined) headers['X-API-Key'] = this._key;
    const end = Date.now() + forMs;
    for (let attempt = 0;; ++attempt) {
      /** @type {CodbandError} */
      let failure;
      let waitMs = Math.min(1000, 20 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2);
      try {
        const limit = Math.min(Math.max(end - Date.now(), 1), Math.max(this._timeoutMs, 1000));
        const {response, reply} = await this._send(method, path, {headers, text, limit});
        if (response.ok) return reply === '' ? undefined : JSON.parse(reply);
        if (response.status === 404 && goneIsDone && attempt > 0) return undefined;
        failure = errorOf(response, reply);
        if (!RETRIED.has(response.status)) throw failure;
        waitMs = Math.max(waitMs, 1000 * (Number(response.headers.get('Retry-After')) || 0));
      } catch (error) {
        if (error instanceof CodbandError) {
          if (!error.isUnavailable) throw error;
          failure = error;
        } else {
          failure = new CodbandError(`${this._url}: ${/** @type {Error} */ (error).message}`, {cause: error});
        }
      }
      if (once || Date.now() + waitMs >= end) throw failure;
      await sleep(waitMs);
    }
  }

  /**
   * One attempt: the reply with its whole text, within `limit` milliseconds.
   * @param {string} method
   * @param {string} path
   * @param {{headers: Record<string, string>, text: string | undefined, limit: number}} options
   */
  async _send(method, path, {headers, text, limit}) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), limit);
    try {
      const response = await fetch(this._url + path, {
        method, headers, signal: controller.signal, ...(text === undefined ? {} : {body: text}),
      });
      return {response, reply: await response.text()};
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The actions as they were given: what the product would show without a recommender.
   * @param {string} eventId
   * @param {import('./codband.js').Action[]} actions
   * @param {{excludedActions?: string[], topK?: number}} options
   */
  _defaultReply(eventId, actions, {excludedActions = [], topK}) {
    const excluded = new Set(excludedActions);
    const ids = actions.map(action => typeof action === 'string' ? action : action.id).filter(id => !excluded.has(id));
    const [first] = ids;
    if (first === undefined) throw new TypeError('actions: all are excluded');
    this._defaults.add(eventId);
    if (this._defaults.size > MOST_DEFAULTS) {
      for (const oldest of this._defaults) {
        this._defaults.delete(oldest);
        break;
      }
    }
    const ranking = ids.slice(0, topK).map((id, place) =>
      ({id, probability: place === 0 ? 1 : 0, score: 0, mean: 0, width: 0}));
    return {eventId, rewardActionId: first, ranking, modelId: null, isDefault: true};
  }

  async _sendQueued() {
    if (this._sending >= this._concurrency) return;
    ++this._sending;
    try {
      for (let next = this._queue.shift(); next; next = this._queue.shift()) {
        try {
          await this.reward(next.eventId, next.value);
        } catch (error) {
          ++this.failed;
          this._onError?.(next.eventId, next.value, error);
        }
      }
    } finally {
      --this._sending;
      if (this._sending === 0 && this._queue.length === 0) {
        for (const resolve of this._flushed.splice(0)) resolve();
      }
    }
  }
}
