// How long the overview takes on a server with the demo's traffic: milliseconds from the first byte of the page until its
// numbers stand there, and until its curve is drawn. A new browser profile each time, so that nothing is cached.
//   web/tests/run.sh PROGRAM BUILD web/tests/first_view.mjs [TIMES]
import process from 'node:process';
import {openPage, sleep, startBrowser, startServer, until} from './browser.mjs';

const times = Number(process.argv[2] ?? 9);
const server = await startServer(['--demo']);
const browser = await startBrowser();
await sleep(70000); // some minutes for the curve
const all = {numbers: [], curve: []};
for (let i = 0; i < times; ++i) {
  const view = await openPage(browser, server);
  await view.page.addInitScript(() => {
    window.seen = {};
    const look = () => {
      const now = performance.now() - performance.getEntriesByType('navigation')[0].responseStart;
      if (document.querySelector('.tile dd')) window.seen.numbers ??= now;
      if (document.querySelector('.uplot canvas')) window.seen.curve ??= now;
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await view.page.goto(`${server.url}/#/?range=hour`);
  await until(() => view.page.evaluate(() => window.seen.numbers && window.seen.curve), 30000);
  const seen = await view.page.evaluate(() => window.seen);
  for (const part of Object.keys(all)) all[part].push(Math.round(seen[part]));
  await view.close();
}
for (const [part, found] of Object.entries(all)) {
  found.sort((a, b) => a - b);
  console.log(`${part}: median ${found[found.length >> 1]} ms, slowest ${found.at(-1)} ms of ${times}`);
}
await browser.close();
await server.stop();
