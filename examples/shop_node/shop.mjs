// A web shop in Node: what to put first is ranked on the server side, a click is the reward.
//   node shop.mjs http://127.0.0.1:8080 [PORT] [VISITS]
// With VISITS it makes visitors of its own, half of whom like jazz and half rock, then ends.
import {createServer} from 'node:http';

import {Client} from '../../clients/js/codband.js';

const records = {
  'kind-of-blue': {title: 'Kind of Blue', features: {genre: 'jazz', year: 1959}},
  'a-love-supreme': {title: 'A Love Supreme', features: {genre: 'jazz', year: 1965}},
  'nevermind': {title: 'Nevermind', features: {genre: 'rock', year: 1991}},
  'in-utero': {title: 'In Utero', features: {genre: 'rock', year: 1993}},
};

const [server, port = '0', visits] = process.argv.slice(2);
const client = new Client({url: server, timeoutMs: 500});
await client.putItems(Object.entries(records).map(([id, {features}]) => ({id, features})));

const escape = text => text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);

const waiting = new Map();  // by visitor: the event whose outcome is not known yet

async function page(visitor) {
  // Who comes back without a click did not like the record. Of those who never come back the server
  // learns rewards.default after rewards.wait_seconds.
  if (waiting.has(visitor)) client.report(waiting.get(visitor), 0);
  // If the server does not answer in time, the records come in the order of the catalogue.
  const {eventId, ranking} = await client.rank(visitor, Object.keys(records));
  waiting.set(visitor, eventId);
  const link = escape(`/click?${new URLSearchParams({visitor, event: eventId})}`);
  const entries = ranking.map(({id}, place) => place === 0
    ? `<li><a href="${link}" data-id="${id}">${escape(records[id].title)}</a>`
    : `<li>${escape(records[id].title)}`);
  return `<h1>Records for ${escape(visitor)}</h1><ol>${entries.join('')}</ol>`;
}

const shop = createServer(async (request, response) => {
  const {pathname, searchParams} = new URL(request.url, 'http://shop');
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  try {
    if (pathname === '/') {
      response.end(await page(searchParams.get('visitor') ?? 'somebody'));
    } else if (pathname === '/click' && waiting.get(searchParams.get('visitor')) === searchParams.get('event')) {
      client.report(searchParams.get('event'), 1);
      waiting.delete(searchParams.get('visitor'));
      response.end('<p>Thank you!</p>');
    } else {
      response.writeHead(404).end();
    }
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});
await new Promise(resolve => { shop.listen(Number(port), '127.0.0.1', resolve); });
const url = `http://127.0.0.1:${shop.address().port}`;
console.log(`The shop is at ${url}/?visitor=ann`);

if (visits !== undefined) {
  const right = [];
  for (let i = 0; i < Number(visits); ++i) {
    const taste = i % 2 === 0 ? 'jazz' : 'rock';
    const text = await (await fetch(`${url}/?visitor=visitor-${i % 10}`)).text();
    right.push(records[/data-id="([^"]*)"/.exec(text)[1]].features.genre === taste);
    if (right.at(-1)) await (await fetch(url + /href="([^"]*)"/.exec(text)[1].replaceAll('&#38;', '&'))).text();
    await client.flush();
  }
  const half = Math.floor(right.length / 2);
  const count = part => part.filter(Boolean).length;
  console.log(`right record first: ${count(right.slice(0, half))} of the first ${half} visits, ` +
              `${count(right.slice(half))} of the last ${right.length - half}`);
  shop.close();
  shop.closeAllConnections?.();
}
