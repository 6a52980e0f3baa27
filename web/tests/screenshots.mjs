// Pictures of every page, light and dark: node screenshots.mjs DIRECTORY [URL]
// With a URL of a demo that runs already these are of it; else a demo is started and given some minutes.
// WEB_TEST_ONLY=user,items makes only these; WEB_TEST_WIDTH=400 makes all as a phone shows them, whole.
import {join} from 'node:path';
import process from 'node:process';
import {openPage, sleep, startBrowser, startServer} from './browser.mjs';

const [directory, url] = process.argv.slice(2);
const minutes = Number(process.env.WEB_TEST_MINUTES ?? 6);
const width = Number(process.env.WEB_TEST_WIDTH ?? 1280);
const log = '/tmp/codband-screenshots-' + process.pid;

const server = url ? {url, stop: async () => undefined} : await startServer(['--demo', '--set', `decision_log.directory=${log}`]);
if (!url) await sleep(minutes * 60e3);

const kPages = [
  ['overview', '#/?range=hour', '.uplot'],
  ['groups', '#/groups', '.group-card svg text'],
  ['group', '#/groups/BIGGEST', '.cloud svg text'],
  ['user', '#/users/ada-1', 'tr.chosen'],
  ['items', '#/items', 'tbody tr'],
  ['item', '#/items/FIRST', 'tbody tr'],
  ['try', '#/try?user=ada-1', 'form', async page => {
    await page.getByRole('button', {name: 'Rank', exact: true}).click();
    await page.waitForSelector('tr.chosen');
  }],
  ['evaluate', '#/evaluate', 'select option:nth-child(2)', async page => {
    const last = await page.locator('select option').last().getAttribute('value');
    await page.getByLabel('Decision log of this server').selectOption(last);
    await page.getByRole('button', {name: 'Evaluate', exact: true}).click();
    await page.waitForSelector('.verdict.big', {timeout: 300000});
  }],
  ['settings', '#/settings', 'tbody tr'],
  ['api', '#/settings?api=rank', '.operation[open]'],
];
const models = (await (await fetch(server.url + '/v1/models?top=1')).json()).models;
const items = (await (await fetch(server.url + '/v1/items?limit=300&learned=true')).json()).items;
const biggest = models.sort((a, b) => b.users - a.users)[0].modelId;
const first = items.sort((a, b) => (b.learned?.shown ?? 0) - (a.learned?.shown ?? 0))[0].id;

const browser = await startBrowser();
const only = process.env.WEB_TEST_ONLY ? process.env.WEB_TEST_ONLY.split(',') : undefined;
for (const scheme of ['light', 'dark']) {
  for (const [name, hash, selector, prepare] of kPages) {
    if (only && !only.includes(name)) continue;
    const view = await openPage(browser, server, {width, height: 900, scheme});
    await view.go(hash.replace('BIGGEST', biggest).replace('FIRST', encodeURIComponent(first)), selector);
    if (prepare) await prepare(view.page);
    await sleep(1500);
    const tall = Math.min(width < 1280 ? 4000 : 1500, await view.page.evaluate(() => document.scrollingElement.scrollHeight));
    await view.page.setViewportSize({width, height: Math.max(700, tall)});
    await sleep(700);
    await view.page.screenshot({path: join(directory, `dashboard-${name}-${scheme}.png`)});
    if (view.faults.length > 0) console.error(name, view.faults);
    await view.close();
  }
}
if (!only || only.includes('phone')) {
  for (const [name, hash, selector] of [['phone', '#/?range=hour', '.uplot'], ['phone-user', '#/users/ada-1', '.life rect']]) {
    const view = await openPage(browser, server, {width: 400, height: 1500});
    await view.go(hash, selector);
    await sleep(2500);
    await view.page.screenshot({path: join(directory, `dashboard-${name}.png`)});
    await view.close();
  }
}
await browser.close();
await server.stop();
