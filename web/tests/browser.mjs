// A server and a browser for tests and screenshots.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import process from 'node:process';

// Packages are where WEB_TEST_PACKAGES says: a directory with node_modules.
export const require = createRequire(join(process.env.WEB_TEST_PACKAGES ?? '.', 'package.json'));
const {chromium} = require('playwright-core');

export const program = process.env.TESTED_CODBAND;

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// A server in a directory of its own, or in `data`. Ends with stop().
export async function startServer(args, {data, env} = {}) {
  const directory = data ?? mkdtempSync(join(tmpdir(), 'codband-web-'));
  const child = spawn(program, ['serve', '--data', join(directory, 'data'), '--listen', '127.0.0.1:0', ...args],
    {env: {...process.env, ...env}, stdio: ['ignore', 'pipe', 'pipe']});
  let output = '';
  child.stdout.on('data', piece => (output += piece));
  child.stderr.on('data', piece => (output += piece));
  const exited = new Promise(resolve => child.on('exit', resolve));
  for (let i = 0; i < 600; ++i) {
    const found = /listens on (http\S+)/.exec(output);
    if (found) {
      return {
        url: found[1],
        directory,
        async stop(signal = 'SIGTERM', keep = false) {
          child.kill(signal);
          await exited;
          if (!keep) rmSync(directory, {recursive: true, force: true});
        },
      };
    }
    if (child.exitCode !== null) break;
    await sleep(100);
  }
  child.kill('SIGKILL');
  throw new Error(`the server did not start: ${output}`);
}

export async function api(server, method, path, body, headers = {}) {
  const response = await fetch(server.url + path, {
    method,
    headers: body === undefined ? headers : {'Content-Type': 'application/json', ...headers},
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.WEB_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--force-color-profile=srgb'],
  });
}

// Waits until what the function computes is true. The page's own functions that wait compile text,
// which its Content-Security-Policy forbids.
export async function until(compute, ms) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(100)) {
    if (await compute()) return;
  }
  throw new Error(`waited ${ms} ms in vain: ${compute}`);
}

// A page that notes what must not happen: errors on the console, failures, requests elsewhere.
export async function openPage(browser, server, {width = 1280, height = 900, scheme = 'light', reducedMotion = 'reduce'} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, reducedMotion, deviceScaleFactor: 1});
  const page = await context.newPage();
  const faults = [];
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', error => faults.push(`exception: ${error.message}`));
  page.on('request', request => {
    if (new URL(request.url()).origin !== new URL(server.url).origin && !request.url().startsWith('data:')) {
      faults.push(`request to ${request.url()}`);
    }
  });
  page.on('dialog', dialog => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const go = async (hash, selector = 'main h1') => {
    await page.goto(`${server.url}/${hash}`);
    await page.waitForSelector(selector, {state: 'attached'});
  };
  return {page, faults, go, close: () => context.close()};
}
