// Writes api.d.ts: the types of every schema of the server's OpenAPI description.
//   node generate_types.mjs OPENAPI.json > api.d.ts
import {readFileSync} from 'node:fs';

const known = new Set([
  '$ref', 'additionalProperties', 'allOf', 'default', 'description', 'enum', 'example', 'format', 'items',
  'maxItems', 'maxLength', 'maximum', 'minItems', 'minLength', 'minimum', 'nullable', 'oneOf', 'pattern',
  'properties', 'required', 'type', 'uniqueItems',
]);

function comment(schema, indent) {
  return schema.description ? `${indent}/** ${schema.description.replaceAll('*/', '* /')} */\n` : '';
}

function objectType(schema, indent) {
  const inner = indent + '  ';
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, value]) =>
    `${comment(value, inner)}${inner}${name}${required.has(name) ? '' : '?'}: ${typeOf(value, inner)};\n`);
  if (lines.length === 0 && schema.additionalProperties !== undefined && schema.additionalProperties !== false) {
    const value = schema.additionalProperties === true ? 'unknown' : typeOf(schema.additionalProperties, inner);
    return `{[name: string]: ${value}}`;
  }
  return lines.length === 0 ? '{[name: string]: unknown}' : `{\n${lines.join('')}${indent}}`;
}

function typeOf(schema, indent) {
  for (const key of Object.keys(schema)) {
    if (!known.has(key)) throw new Error(`a schema has '${key}', which the generator does not know`);
  }
  const orNull = schema.nullable ? ' | null' : '';
  if (schema.$ref) return schema.$ref.split('/').pop() + orNull;
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ') + orNull;
  if (schema.oneOf) return schema.oneOf.map(one => typeOf(one, indent)).join(' | ') + orNull;
  if (schema.allOf) return schema.allOf.map(one => typeOf(one, indent)).join(' & ') + orNull;
  switch (schema.type) {
    case 'array': {
      const item = typeOf(schema.items, indent);
      return (/[|&]/.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`) + orNull;
    }
    case 'integer':
    case 'number': return 'number' + orNull;
    case 'boolean': return 'boolean' + orNull;
    case 'string': return 'string' + orNull;
    case 'object': return objectType(schema, indent) + orNull;
    case undefined: return 'unknown';
    default: throw new Error(`a schema has the type '${schema.type}', which the generator does not know`);
  }
}

export function generate(openapi) {
  let text = '// Made from the server\'s openapi.json by generate_types.mjs; do not edit.\n';
  for (const [name, schema] of Object.entries(openapi.components.schemas)) {
    text += `\n${comment(schema, '')}export type ${name} = ${typeOf(schema, '')};\n`;
  }
  return text;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  process.stdout.write(generate(JSON.parse(readFileSync(process.argv[2], 'utf8'))));
}
