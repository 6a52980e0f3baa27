// The client against the real server. TESTED_CODBAND is the program.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';

import {Client, CodbandError} from '../codband.js';
import {generate} from '../generate_types.mjs';

const ITEMS = [{id: 'jazz', features: {genre: 'jazz'}, tags: ['jazz']}, {id: 'rock', features: {genre: 'rock'}}];

class Server {
  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), 'codband-js-'));
    this.port = 0;
  }

  async start() {
    this.process = spawn(process.env.TESTED_CODBAND ?? 'codband',
      ['serve', '--data', this.directory, '--listen', `127.0.0.1:${this.port}`], {stdio: ['ignore', 'pipe', 'ignore']});
    let printed = '';
    for await (const chunk of this.process.stdout.iterator({destroyOnReturn: false})) {
      printed += chunk;
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(printed);
      if (found) {
        this.port = Number(found[1]);
        this.process.stdout.resume();
        return;
      }
    }
    throw new Error(`the server ended: ${printed}`);
  }

  get url() { return `http://127.0.0.1:${this.port}`; }

  async end(signal) {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
  }
}

const server = new Server();
before(() => server.start());
after(async () => {
  await server.end('SIGTERM');
  rmSync(server.directory, {recursive: true});
});

const code = wanted => error => error instanceof CodbandError && error.code === wanted;

test('a shop', async () => {
  const client = new Client({url: server.url});
  assert.equal(await client.isReady(), true);
  assert.equal(await client.putItems(ITEMS), 2);
  await client.putItem('a/b ü', {features: {genre: 'pop'}});
  assert.equal((await client.getItem('a/b ü')).id, 'a/b ü');
  await client.deleteItem('a/b ü');
  const ranked = await client.rank('ann', ['jazz', 'rock'], {explain: true, contextFeatures: {device: 'phone'}});
  assert.equal(ranked.isDefault, false);
  assert.equal(ranked.rewardActionId, ranked.ranking[0].id);
  assert.ok(ranked.explanation);
  assert.equal((await client.reward(ranked.eventId, 1)).status, 'accepted');
  assert.equal((await client.reward(ranked.eventId, 1)).status, 'duplicate');
  const young = {eventId: 'e-8', userFeatures: {age: 'young'}};
  assert.equal((await client.rank('ann', ['jazz'], young)).eventId, 'e-8');
  await assert.rejects(client.rank('ann', ['jazz'], {...young, userFeatures: {age: 'old'}}), code('Conflict'));
  const anonymous = await client.rank(null, ['jazz', 'rock']);
  assert.equal((await client.reward(anonymous.eventId, 1)).status, 'accepted');
  assert.equal((await client.chooseRank('e-7', 'ann', undefined, ['jazz'])).eventId, 'e-7');
  assert.equal((await client.reportOutcome('e-7', 0.5)).status, 'accepted');
  const deferred = await client.rank('ann', undefined, {deferActivation: true, topK: 1});
  assert.equal(deferred.ranking.length, 1);
  await client.activate(deferred.eventId);
  client.report(deferred.eventId, 1);
  await client.flush();
  assert.equal(client.failed, 0);
  assert.equal((await client.getUser('ann')).observations, 3);
  assert.ok((await client.models()).length > 0);
  assert.deepEqual(await client.changes(), []);
  const history = await client.importHistory([{userId: 'old', itemId: 'jazz', value: 1}, {userId: 'old', itemId: 'x', value: 1}]);
  assert.equal(history.accepted, 1);
  assert.equal(history.skipped[0].index, 1);
  await client.forgetUser('ann');
  await assert.rejects(client.getUser('ann'), code('NotFound'));
});

test('errors are told at once by their kind', async () => {
  const client = new Client({url: server.url, retryForMs: 60_000});
  await client.putItems(ITEMS);
  await client.rank('ann', ['jazz'], {eventId: 'once'});
  await assert.rejects(client.rank('ann', [{id: 'x', features: 7}]), error =>
    error.code === 'BadArgument' && error.field === 'actions[0].features' && error.status === 400);
  await assert.rejects(client.reward('nosuch', 1), code('NotFound'));
  await assert.rejects(client.rank('bob', ['jazz'], {eventId: 'once'}), code('Conflict'));
  await assert.rejects(client.deleteItem('nosuch'), code('NotFound'));
  await assert.rejects(client.reward('once', NaN), TypeError);
  await assert.rejects(client.rank(''), TypeError);
  assert.throws(() => client.report('once', '1'), TypeError);
  assert.throws(() => new Client({url: 'nonsense'}), TypeError);
  assert.throws(() => new Client({timeoutMs: 0}), TypeError);
  // Not taken for the default address, or left out.
  assert.throws(() => new Client('http://127.0.0.1:1'), /options/);
  assert.throws(() => new Client({timeout: 200}), /timeout: is unknown/);
  await assert.rejects(client.putItems({id: 'x'}), TypeError);
  await assert.rejects(client.importHistory('x'), TypeError);
  const told = [];
  const reporting = new Client({url: server.url, onError: (...failure) => told.push(failure)});
  reporting.report('nosuch', 1);
  await reporting.flush();
  assert.equal(reporting.failed, 1);
  assert.deepEqual(told[0].slice(0, 2), ['nosuch', 1]);
});

test('rank falls back when nobody answers', async () => {
  const sockets = [];
  const silent = createServer(socket => sockets.push(socket));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `http://127.0.0.1:${silent.address().port}`;
  const client = new Client({url, timeoutMs: 200});
  const ranked = await client.rank('ann', ['a', {id: 'b', features: [1]}, 'c'], {excludedActions: ['a'], topK: 1});
  assert.equal(ranked.isDefault, true);
  assert.equal(ranked.rewardActionId, 'b');
  assert.deepEqual(ranked.ranking.map(entry => entry.id), ['b']);
  assert.equal((await client.reward(ranked.eventId, 1)).status, 'default');
  await assert.rejects(client.rank('ann'), error => error.isUnavailable);
  assert.equal(await client.isReady(), false);
  await assert.rejects(new Client({url, timeoutMs: 200, fallback: false}).rank('ann', ['a']), code('Unavailable'));
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('kills under load neither lose nor double a reward', async () => {
  const client = new Client({url: server.url, timeoutMs: 60_000, retryForMs: 60_000, fallback: false});
  await client.putItems(ITEMS);
  const events = 300;
  let done = 0;
  const load = async part => {
    for (let i = part; i < events; i += 4) {
      const {eventId} = await client.rank(`user-${i % 5}`, ['jazz', 'rock'], {eventId: `load-${i}`});
      client.report(eventId, 1);
      ++done;
    }
  };
  const kills = async () => {
    for (const when of [80, 160]) {
      while (done < when) await new Promise(resolve => { setImmediate(resolve); });
      await server.end('SIGKILL');
      await server.start();
    }
  };
  await Promise.all([load(0), load(1), load(2), load(3), kills()]);
  await client.flush();
  assert.equal(client.failed, 0);
  let observations = 0;
  for (let user = 0; user < 5; ++user) observations += (await client.getUser(`user-${user}`)).observations;
  assert.equal(observations, events);
  assert.equal((await client.reward('load-0', 1)).status, 'duplicate');
});

test('the types are those of the server', async () => {
  const openapi = await (await fetch(`${server.url}/openapi.json`)).json();
  assert.equal(readFileSync(new URL('../api.d.ts', import.meta.url), 'utf8'), generate(openapi),
               'api.d.ts is out of date: npm run types');
  const {version} = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.match(readFileSync(new URL('../../../CMakeLists.txt', import.meta.url), 'utf8'),
               new RegExp(`^project\\(codband VERSION ${version} `, 'm'));
});
