// Bundles the dashboard and writes it as a C++ source: node build.mjs DIRECTORY
// DIRECTORY has node_modules as package-lock.json pins them; the result is DIRECTORY/web_bundle.cc.
// Prints the size of the bundle; fails if it is larger than it may be.
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';

const kMostGzipBytes = 250 * 1024;

const source = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? source);
const esbuild = createRequire(join(target, 'package.json'))('esbuild');

async function bundle(entry) {
  const result = await esbuild.build({
    entryPoints: [join(source, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    legalComments: 'none',
    target: ['es2020'],
    format: 'iife',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    nodePaths: [join(target, 'node_modules')],
    logLevel: 'warning',
  });
  return Buffer.from(result.outputFiles[0].contents);
}

function literal(bytes) {
  const lines = [];
  let line = '';
  for (let i = 0; i < bytes.length; ++i) {
    const byte = bytes[i];
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c && byte !== 0x3f;
    line += plain ? String.fromCharCode(byte) : '\\' + byte.toString(8).padStart(3, '0');
    if (line.length > 4000) {
      lines.push(`"${line}"`);
      line = '';
    }
  }
  lines.push(`"${line}"`);
  return `std::string_view(${lines.join('\n')}, ${bytes.length})`;
}

const files = {
  kWebPage: readFileSync(join(source, 'src', 'index.html')),
  kWebScript: await bundle('main.tsx'),
  kWebStyle: await bundle('style.css'),
  kWebIcon: readFileSync(join(source, 'src', 'icon.svg')),
};
let out = `// Made from web/ by the build.
#include "codband/server/api/web_bundle.h"

namespace codband::server {

`;
let gzipped = 0;
for (const [name, plain] of Object.entries(files)) {
  const gzip = gzipSync(plain, {level: 9});
  gzipped += gzip.length;
  out += `const WebFile ${name} = {\n.plain = ${literal(plain)},\n.gzip = ${literal(gzip)}};\n`;
}
writeFileSync(join(target, 'web_bundle.cc'), out + '\n}  // namespace codband::server\n');
console.log(`dashboard: ${gzipped} bytes gzipped, at most ${kMostGzipBytes}`);
if (gzipped > kMostGzipBytes) process.exit(1);
