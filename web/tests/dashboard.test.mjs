// The dashboard in a real browser, on the real server with the demo's traffic.
//   TESTED_CODBAND=… WEB_TEST_PACKAGES=… node --test dashboard.test.mjs
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, describe, test} from 'node:test';
import {api, openPage, program, require, sleep, startBrowser, startServer, until} from './browser.mjs';

const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

async function seriousFindings(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  return result.violations.filter(each => each.impact === 'serious' || each.impact === 'critical')
    .map(each => `${each.id}: ${each.nodes.map(node => node.target.join(' ')).slice(0, 3).join('; ')}`);
}

// Runs the code that the page shows for a request, in all three languages, and returns what it printed.
async function runShownCode(page, env = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'codband-code-'));
  const run = (program, args) => execFileSync(program, args, {cwd: directory, encoding: 'utf8', env: {...process.env, ...env}});
  const shown = async language => {
    await page.getByRole('button', {name: language}).click();
    return page.locator('.code pre').textContent();
  };
  const printed = {};
  const [rank, reward] = (await shown('curl')).split(/# .*\n/);
  printed.curl = JSON.parse(run('sh', ['-c', rank]));
  printed.reward = JSON.parse(run('sh', ['-c', reward.replace('EVENT_ID', printed.curl.eventId)]));
  // Where the Python package was not built its code is looked at by JavaScript's side alone.
  if (process.env.PYTHONPATH) printed.python = run('/usr/bin/python3', ['-c', await shown('Python')]).trim();
  const client = new URL('../../clients/js/codband.js', import.meta.url).href;
  writeFileSync(join(directory, 'code.mjs'), (await shown('JavaScript')).replace("'codband'", `'${client}'`));
  printed.javascript = run(process.execPath, ['code.mjs']).trim();
  rmSync(directory, {recursive: true});
  return printed;
}

const kPages = [
  ['#/', 'main .tiles'],
  ['#/?range=hour', 'main .uplot'],
  ['#/groups', '.group-card'],
  ['#/groups/FIRST', 'main .tiles'],
  ['#/users', 'main table'],
  ['#/users/ada-1', '.life rect'],
  ['#/items', 'main tbody tr'],
  ['#/try', 'main form'],
  ['#/evaluate', 'main form'],
  ['#/settings', 'main tbody tr'],
  ['#/settings?keys', 'main .card'],
  ['#/settings?api=rank', '.operation[open]'],
];

describe('with the demo', () => {
  let server;
  let browser;
  before(async () => {
    browser = await startBrowser();
    server = await startServer(['--demo', '--set', 'decision_log.directory=' + '/tmp/codband-web-log-' + process.pid]);
  });
  after(async () => {
    await browser.close();
    await server.stop();
    execFileSync('rm', ['-rf', '/tmp/codband-web-log-' + process.pid]);
  });

  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 400]) {
      test(`every page is sound: ${scheme}, ${width} px`, async () => {
        const view = await openPage(browser, server, {width, scheme});
        for (const [place, selector] of kPages) {
          // Which groups there are depends on what was learned until now.
          const hash = place.replace('FIRST', (await api(server, 'GET', '/v1/models?top=1')).models[0].modelId);
          await view.go(hash, selector);
          await sleep(300);
          assert.deepEqual(await seriousFindings(view.page), [], hash);
          const wide = await view.page.evaluate(() => document.scrollingElement.scrollWidth);
          assert.ok(wide <= width, `${hash} is ${wide} px wide`);
          assert.equal(await view.page.locator('h1').count(), 1, hash);
        }
        assert.deepEqual(view.faults, []);
        await view.close();
      });
    }
  }

  test('the policy of the page allows nothing inline', async () => {
    const response = await fetch(server.url + '/');
    const policy = response.headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    const page = await response.text();
    assert.doesNotMatch(page, /<style|style=|onload=/);
  });

  test('numbers move and a change shows on the open page', async () => {
    const view = await openPage(browser, server);
    await view.go('#/', '.tile dd');
    const decisions = () => view.page.locator('.tile dd').first().textContent();
    const first = await decisions();
    await until(async () => (await decisions()) !== first, 10000);
    // The latest change that the server knows is on the page three seconds later at most.
    const seen = (await api(server, 'GET', '/v1/changes?limit=1')).changes[0]?.time;
    let change;
    for (let i = 0; i < 600 && (!change || change.time === seen); ++i) {
      await sleep(200);
      change = (await api(server, 'GET', '/v1/changes?limit=1')).changes[0];
    }
    assert.notEqual(change.time, seen);
    await view.page.waitForSelector(`time[datetime="${change.time}"]`, {timeout: 3000});
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('the hero of the story turns to another group while one looks', async () => {
    const view = await openPage(browser, server);
    await view.go('#/users/ada-1', '.life rect');
    const changes = () => view.page.locator('.life .moment').count();
    const start = await changes();
    await until(async () => (await changes()) > start, 150000);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('groups have the same colours for everybody, whatever their page shows first', async () => {
    const livingGroups = async () => new Set((await api(server, 'GET', '/v1/models?top=1')).models.map(model => model.modelId));
    await until(async () => (await livingGroups()).size >= 5, 60000);
    // Nobody remembers anything yet. Groups come and go: then those who look have to look again.
    let given;
    for (let attempt = 0; attempt < 5; ++attempt) {
      const views = await Promise.all(['#/groups', '#/'].map(async hash => {
        const view = await openPage(browser, server);
        // The list of groups, the most popular first, is there before the news that name them all.
        if (hash === '#/groups') {
          await view.page.route('**/v1/live', async route => {
            await view.page.waitForSelector('.group-card .swatch');
            await route.continue();
          });
        }
        await view.go(hash, '.swatch');
        return view;
      }));
      await until(async () => {
        given = await Promise.all(views.map(view => view.page.evaluate(() => localStorage.getItem('codband-groups'))));
        return given.every(each => each !== null);
      }, 10000);
      const living = await livingGroups();
      given = given.map(each => JSON.stringify(JSON.parse(each).filter(([model]) => living.has(model))));
      await Promise.all(views.map(view => view.close()));
      if (new Set(given).size === 1) return;
    }
    assert.fail(given.join('\n'));
  });

  test('an item is added, edited, found and deleted', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    await view.go('#/items', 'tbody tr');
    await page.getByRole('button', {name: 'Add an item'}).click();
    await page.getByLabel('Id', {exact: true}).fill('aaa night');
    await page.getByLabel('Features, as JSON').fill('{"genre": "jazz", "energy": 0.25}');
    await page.getByLabel(/Tags/).fill('new, quiet');
    await page.getByRole('button', {name: 'Add item'}).click();
    await page.waitForSelector('h1:has-text("aaa night")');
    assert.deepEqual(JSON.parse(await page.locator('pre').first().textContent()), {genre: 'jazz', energy: 0.25});
    await page.getByRole('button', {name: 'Edit'}).click();
    await page.getByLabel('Features, as JSON').fill('{"genre": ');
    await page.getByRole('button', {name: 'Save'}).click();
    await page.waitForSelector('.failure');
    await page.getByLabel('Features, as JSON').fill('{"genre": "folk"}');
    await page.getByRole('button', {name: 'Save'}).click();
    await page.waitForSelector('pre:has-text("folk")');
    assert.deepEqual((await api(server, 'GET', '/v1/items/aaa%20night')).named, [{name: 'genre=folk', value: 1}]);
    await view.go('#/items?find=aaa', 'tbody tr');
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.locator('tbody a').click();
    await page.getByRole('button', {name: /Delete this item/}).click();
    await page.getByRole('button', {name: 'Yes, delete'}).click();
    await until(() => page.evaluate(() => location.hash === '#/items'), 10000);
    await assert.rejects(api(server, 'GET', '/v1/items/aaa%20night'), /404/);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('a request is tried and its reward learned', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    await view.go('#/try', 'form');
    await page.getByLabel('User id').fill('somebody new');
    await page.getByRole('button', {name: 'Rank', exact: true}).click();
    await page.waitForSelector('tr.chosen');
    assert.ok((await page.locator('tbody tr').count()) === 8);
    await page.getByRole('button', {name: 'Send reward'}).click();
    await page.waitForSelector('[role=status]:has-text("accepted")');
    assert.equal((await api(server, 'GET', '/v1/users/somebody%20new')).observations, 1);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('the code shown for a request runs and does the same', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    const ids = (await api(server, 'GET', '/v1/items?limit=2')).items.map(item => item.id);
    await view.go(`#/try?user=it%27s%20me&actions=${ids.join('%0A')}`, 'form');
    await page.getByLabel('Context, as JSON').fill('{"quiet": true, "note": "a \'true\' story", "hour": 8}');
    const printed = await runShownCode(page);
    assert.equal(printed.curl.ranking.length, 2);
    assert.equal(printed.reward.status, 'accepted');
    assert.ok(ids.includes(printed.javascript), printed.javascript);
    if (printed.python !== undefined) assert.ok(ids.includes(printed.python), printed.python);
    // Rewards are learned a moment later.
    await until(async () => (await api(server, 'GET', '/v1/users/it\'s%20me')).observations === (printed.python === undefined ? 2 : 3), 10000);
    // An anonymous visitor, the whole catalogue, no context.
    await view.go('#/try', 'form');
    assert.equal((await runShownCode(page)).curl.ranking.length, 8);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('a user is erased, after a question', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    const {eventId} = await api(server, 'POST', '/v1/rank', {userId: 'leaves soon'});
    await api(server, 'POST', `/v1/events/${eventId}/reward`, {value: 1});
    await view.go('#/users/leaves%20soon', '.life rect');
    await page.getByRole('button', {name: /Erase this user/}).click();
    await page.getByRole('button', {name: 'No'}).click();
    await api(server, 'GET', '/v1/users/leaves%20soon');
    await page.getByRole('button', {name: /Erase this user/}).click();
    await page.getByRole('button', {name: 'Yes, erase'}).click();
    await page.waitForSelector('text=Erased.');
    await assert.rejects(api(server, 'GET', '/v1/users/leaves%20soon'), /404/);
    assert.deepEqual(view.faults.filter(fault => !fault.includes('404')), []);
    await view.close();
  });

  test('policies are compared on the decision log, the verdict first', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    await view.go('#/evaluate', 'select option:nth-child(2)');
    await page.getByLabel('Policies').fill('logged,uniform');
    await page.getByRole('button', {name: 'Evaluate', exact: true}).click();
    await page.waitForSelector('.verdict.big', {timeout: 120000});
    assert.match(await page.locator('.verdict.big').textContent(), /logged|uniform/);
    assert.ok((await page.locator('tbody tr').count()) >= 3);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('it can be used with the keyboard', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    await view.go('#/', '.tile dd');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
    await page.getByRole('link', {name: 'Try it'}).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('h1:has-text("Try it")');
    await view.close();
  });
});

describe('on an empty server', () => {
  let server;
  let browser;
  before(async () => {
    browser = await startBrowser();
    server = await startServer([]);
  });
  after(async () => {
    await browser.close();
    await server.stop();
  });

  test('every page says what to do first', async () => {
    const view = await openPage(browser, server);
    await view.go('#/', '.empty pre');
    assert.match(await view.page.locator('.empty pre').first().textContent(), /curl -X PUT/);
    await view.go('#/groups', '.empty');
    await view.go('#/items', '.empty pre');
    await view.go('#/evaluate', '.empty pre');
    assert.match(await view.page.locator('.empty pre').textContent(), /decision_log.directory/);
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('whatever people call things appears as text', async () => {
    const view = await openPage(browser, server);
    const {page} = view;
    const evil = '<script>window.pwned=1</script>"\'`&<img src=x onerror=window.pwned=1>\u202e\u2067abc';
    const enc = encodeURIComponent;
    await api(server, 'PUT', `/v1/items/${enc(evil)}`, {features: {[evil]: 1, [`${evil}b`]: evil}, tags: [evil]});
    await api(server, 'PUT', '/v1/items/other', {features: {x: 1}, tags: ['plain']});
    for (let i = 0; i < 30; ++i) {
      const reply = await api(server, 'POST', '/v1/rank', {userId: evil, contextFeatures: {[evil]: evil, long: 'x'.repeat(200)}, actions: [{id: evil}, {id: 'other'}]});
      await api(server, 'POST', `/v1/events/${reply.eventId}/reward`, {value: reply.rewardActionId === evil ? 1 : 0});
    }
    const shown = async (hash, selector) => {
      await view.go(hash, selector);
      await sleep(300);
      const text = await page.evaluate(() => document.querySelector('main').innerText);
      assert.ok(text.includes('<script>window.pwned=1'), `${hash}: ${text.slice(0, 400)}`);
    };
    await shown(`#/users/${enc(evil)}`, '.life rect');
    await page.waitForSelector('tr.chosen');
    await shown('#/items', 'tbody tr');
    await shown(`#/items/${enc(evil)}`, 'pre');
    await shown('#/groups', '.group-card');
    await shown('#/groups/0', '.tiles');
    const long = '<b>' + 'y'.repeat(10000);
    await shown(`#/try?user=${enc(evil)}&actions=${enc(evil)}`, 'form').catch(() => undefined);
    await page.getByLabel('Context, as JSON').fill(JSON.stringify({[evil]: evil}));
    await page.getByRole('button', {name: 'Rank', exact: true}).click();
    await page.waitForSelector('tr.chosen');
    await page.getByLabel('Context, as JSON').fill(JSON.stringify({long}));
    await page.getByRole('button', {name: 'Rank', exact: true}).click();
    await sleep(500);
    await view.go(`#/users/${enc(long)}`, '.failure, .empty');
    assert.ok((await page.evaluate(() => document.scrollingElement.scrollWidth)) <= 1280);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator('main script, main img[src=x], main b:has-text("yyyy")').count(), 0);
    // Refusals of what is too long are errors of the request, not of the page.
    assert.deepEqual(view.faults.filter(fault => !/status of 4\d\d/.test(fault)), []);
    await view.close();
  });
});

test('nothing is learned of a try without a reward', async () => {
  const server = await startServer(['--set', 'rewards.wait_seconds=1']);
  const browser = await startBrowser();
  await api(server, 'PUT', '/v1/items/a', {features: {x: 1}});
  const view = await openPage(browser, server);
  await view.go('#/try?user=only%20looks', 'form');
  await view.page.getByRole('button', {name: 'Rank', exact: true}).click();
  await view.page.waitForSelector('tr.chosen');
  // Of a decision that was shown the default reward is learned, once its wait is over.
  await api(server, 'POST', '/v1/rank', {userId: 'was shown'});
  await until(() => api(server, 'GET', '/v1/users/was%20shown').then(() => true, () => false), 20000);
  await assert.rejects(api(server, 'GET', '/v1/users/only%20looks'), /404/);
  await browser.close();
  await server.stop();
});

test('curves after kill -9 are those before', async () => {
  const first = await startServer([]);
  for (let i = 0; i < 20; ++i) {
    await api(first, 'PUT', `/v1/items/i${i}`, {features: {x: i / 20}});
  }
  for (let i = 0; i < 40; ++i) {
    const {eventId} = await api(first, 'POST', '/v1/rank', {userId: `u${i % 4}`});
    await api(first, 'POST', `/v1/events/${eventId}/reward`, {value: i % 2});
  }
  const from = Math.floor(Date.now() / 1000) - 600;
  const to = Math.floor(Date.now() / 1000) + 600;
  const path = `/v1/stats?from=${from - (from % 60)}&to=${to}&step=60`;
  const before = await api(first, 'GET', path);
  assert.equal(before.total.decisions, 40);
  assert.equal(before.total.rewards.sum, 20);
  await first.stop('SIGKILL', true);
  const second = await startServer([], {data: first.directory});
  const after = await api(second, 'GET', path);
  // The sizes of groups of the minute that goes on are those of now, the same as well.
  assert.deepEqual(after.points, before.points);
  assert.deepEqual(after.total, before.total);
  await second.stop();
});

describe('with keys', () => {
  let server;
  let browser;
  const keys = {};
  before(async () => {
    browser = await startBrowser();
    const directory = '/tmp/codband-web-keys-' + process.pid;
    execFileSync('mkdir', ['-p', directory]);
    const file = join(directory, 'keys.txt');
    for (const role of ['read', 'admin', 'rank']) {
      const output = execFileSync(program, ['keys', 'add', `a-${role}`, '--role', role, '--file', file], {encoding: 'utf8'});
      keys[role] = /cb_\S+/.exec(output)[0];
    }
    server = await startServer(['--set', `keys.file=${file}`]);
    server.keyFile = file;
  });
  after(async () => {
    await browser.close();
    await server.stop();
    execFileSync('rm', ['-rf', '/tmp/codband-web-keys-' + process.pid]);
  });

  async function login(view, key) {
    await view.page.goto(server.url);
    await view.page.getByLabel('Key').fill(key);
    await view.page.getByRole('button', {name: 'Log in'}).click();
  }

  test('nothing is told without a key, and a wrong one is refused', async () => {
    await assert.rejects(api(server, 'GET', '/v1/stats'), /401/);
    await assert.rejects(api(server, 'GET', '/v1/live'), /401/);
    const view = await openPage(browser, server);
    await login(view, 'cb_nobody_wrong');
    await view.page.waitForSelector('.failure:has-text("wrong")');
    assert.equal((await view.page.context().cookies()).length, 0);
    assert.deepEqual(view.faults.filter(fault => !fault.includes('401')), []);
    await view.close();
  });

  test('a reader looks and changes nothing', async () => {
    const view = await openPage(browser, server);
    await login(view, keys.read);
    await view.page.waitForSelector('.tiles');
    const [cookie] = await view.page.context().cookies();
    assert.equal(cookie.name, 'codband_session');
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, 'Strict');
    assert.ok(!keys.read.includes(cookie.value) && cookie.value.length >= 64);
    await view.go('#/settings', '.card');
    await view.page.waitForSelector('text=Only a key with the role admin may see the settings.');
    const headers = {Cookie: `codband_session=${cookie.value}`};
    assert.ok((await api(server, 'GET', '/v1/stats', undefined, headers)).points);
    const {csrfToken} = await api(server, 'GET', '/v1/session', undefined, headers);
    await assert.rejects(api(server, 'DELETE', '/v1/users/ada', undefined, {...headers, 'X-CSRF-Token': csrfToken}), /403/);
    await view.page.getByRole('button', {name: /Log out/}).click();
    await view.page.waitForSelector('input[type=password]');
    await assert.rejects(api(server, 'GET', '/v1/stats', undefined, headers), /401/);
    await view.close();
  });

  test('an administrator changes things, with the token of the session alone', async () => {
    const view = await openPage(browser, server);
    await login(view, keys.admin);
    await view.page.waitForSelector('.tiles');
    const [cookie] = await view.page.context().cookies();
    const headers = {Cookie: `codband_session=${cookie.value}`};
    await assert.rejects(api(server, 'PUT', '/v1/items/x', {features: {a: 1}}, headers), /X-CSRF-Token/);
    await view.go('#/items', '.empty');
    await view.page.getByRole('button', {name: 'Add an item'}).click();
    await view.page.getByLabel('Id', {exact: true}).fill('jazz night');
    await view.page.getByRole('button', {name: 'Add item'}).click();
    await view.page.waitForSelector('h1:has-text("jazz night")');
    await view.go('#/try', 'form');
    assert.equal((await runShownCode(view.page, {SHOP_KEY: keys.admin})).javascript, 'jazz night');
    await view.go('#/settings?keys', 'tbody tr');
    const text = await view.page.evaluate(() => document.querySelector('main').innerText);
    assert.match(text, /a-read\s+read/);
    for (const key of Object.values(keys)) assert.ok(!text.includes(key));
    assert.deepEqual(view.faults, []);
    await view.close();
  });

  test('a session ends with its key', async () => {
    execFileSync(program, ['keys', 'add', 'brief', '--role', 'read', '--file', server.keyFile]);
    execFileSync(program, ['keys', 'remove', 'brief', '--file', server.keyFile]);
    const output = execFileSync(program, ['keys', 'add', 'brief', '--role', 'read', '--file', server.keyFile], {encoding: 'utf8'});
    const key = /cb_\S+/.exec(output)[0];
    let cookie;
    for (let i = 0; i < 50 && !cookie; ++i) {
      const response = await fetch(server.url + '/v1/session', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({key})});
      if (response.ok) cookie = response.headers.get('set-cookie').split(';')[0];
      else await sleep(500);
    }
    await api(server, 'GET', '/v1/stats', undefined, {Cookie: cookie});
    execFileSync(program, ['keys', 'remove', 'brief', '--file', server.keyFile]);
    for (let i = 0; i < 50; ++i) {
      const response = await fetch(server.url + '/v1/stats', {headers: {Cookie: cookie}});
      if (response.status === 401) return;
      await sleep(500);
    }
    assert.fail('the session goes on without its key');
  });

  test('a key that cannot read is told so', async () => {
    const view = await openPage(browser, server);
    await login(view, keys.rank);
    await view.page.waitForSelector('text=cannot see the dashboard');
    await view.close();
  });
});
