// What is in force and where it comes from, keys, and the API.
import {useState} from 'preact/hooks';
import {get, type Keys, type Session, type Settings as AllSettings} from './api';
import {Ago, Card, Code, Empty, Failure, Scroll, useLoad} from './ui';

function SettingTable(props: {find: string}) {
  const {value, error} = useLoad('settings', () => get<AllSettings>('/v1/settings'));
  const [text, setText] = useState(props.find);
  const shown = (value?.settings ?? []).filter(setting => setting.name.includes(text.trim()) || setting.help.toLowerCase().includes(text.trim().toLowerCase()));
  return (
    <Card title="Settings in force">
      <form class="row" onSubmit={event => event.preventDefault()}><label>Find <input type="search" value={text} onInput={event => setText(event.currentTarget.value)} /></label></form>
      {error && (error.status === 403 ? <p class="muted pad">Only a key with the role admin may see the settings.</p> : <Failure error={error} />)}
      {value && (
        <Scroll label="Settings">
          <table class="stacked">
            <thead><tr><th>Setting</th><th>Value</th><th>Set by</th><th>Meaning</th></tr></thead>
            <tbody>
              {shown.map(setting => (
                <tr key={setting.name}>
                  <td class="name">{setting.name}</td>
                  <td class={JSON.stringify(setting.value) === JSON.stringify(setting.default) ? 'value muted' : 'value'}>{setting.value === '' ? '–' : String(setting.value)}</td>
                  <td><span class="narrow muted">Set by: </span>{setting.origin}</td>
                  <td class="meaning">{setting.help.replace(/\n/g, ' ')}<span class="muted"> Allowed: {setting.allowed}. Default: {setting.default === '' ? 'none' : String(setting.default)}.</span></td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Card>
  );
}

function KeyTable() {
  const {value, error} = useLoad('keys', () => get<Keys>('/v1/keys'), 10000);
  return (
    <Card title="Keys">
      {error && (error.status === 403 ? <p class="muted pad">Only a key with the role admin may see the keys.</p> : <Failure error={error} />)}
      {value && (!value.required ? (
        <Empty title="No key is needed: only this machine can reach the server." command={'codband keys add shop --role rank --file keys.txt\ncodband serve --data my-data --set keys.file=keys.txt'} />
      ) : (
        <Scroll label="Keys">
          <table>
            <thead><tr><th>Name</th><th>Role</th><th>Last used since the start</th></tr></thead>
            <tbody>{value.keys.map(key => <tr key={key.name}><td class="id">{key.name || 'CODBAND_API_KEY'}</td><td>{key.role}</td><td>{key.lastUse ? <Ago time={key.lastUse} /> : 'never'}</td></tr>)}</tbody>
          </table>
        </Scroll>
      ))}
    </Card>
  );
}

// The few parts of OpenAPI that the server's description uses.
interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  enum?: unknown[];
  additionalProperties?: Schema | boolean;
}
interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  parameters?: ({$ref?: string} & Parameter)[];
  requestBody?: {content: Record<string, {schema?: Schema; example?: unknown}>};
  responses: Record<string, {$ref?: string; description?: string; content?: Record<string, {schema?: Schema; example?: unknown}>}>;
  'x-codband-roles'?: string[];
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}
interface Document {
  info: {title: string; version: string};
  paths: Record<string, Record<string, Operation>>;
}

function resolve<T extends {$ref?: string}>(api: Document, value: T): T {
  if (!value.$ref) return value;
  let found: unknown = api;
  for (const part of value.$ref.slice(2).split('/')) found = (found as Record<string, unknown>)[part.replace(/~1/g, '/')];
  return found as T;
}

function typeName(api: Document, schema: Schema | undefined): string {
  if (!schema) return '';
  const full = resolve(api, schema);
  const either = full.oneOf ?? full.anyOf;
  if (either) return either.map(each => typeName(api, each)).join(' or ');
  if (full.enum) return full.enum.map(each => JSON.stringify(each)).join(' | ');
  if (full.type === 'array') return `[${typeName(api, full.items)}]`;
  if (schema.$ref) return schema.$ref.split('/').pop()!;
  return Array.isArray(full.type) ? full.type.join(' or ') : full.type ?? 'any';
}

function Fields(props: {api: Document; schema: Schema | undefined; depth: number}) {
  const {api, depth} = props;
  if (!props.schema || depth > 4) return null;
  const schema = resolve(api, props.schema);
  if (schema.type === 'array') return <Fields api={api} schema={schema.items} depth={depth + 1} />;
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return <>{either.map((each, i) => <Fields key={i} api={api} schema={each} depth={depth + 1} />)}</>;
  if (!schema.properties) return null;
  return (
    <ul class="fields">
      {Object.entries(schema.properties).map(([name, field]) => (
        <li key={name}>
          <code>{name}</code> <span class="type">{typeName(api, field)}{schema.required?.includes(name) ? ', required' : ''}</span> {resolve(api, field).description}
          <Fields api={api} schema={field} depth={depth + 1} />
        </li>
      ))}
    </ul>
  );
}

function OperationView(props: {api: Document; path: string; method: string; operation: Operation; open: boolean}) {
  const {api, operation} = props;
  const parameters = (operation.parameters ?? []).map(each => resolve(api, each));
  const body = operation.requestBody && Object.entries(operation.requestBody.content)[0];
  return (
    <details class="operation" open={props.open} id={operation.operationId}>
      <summary><span class={`method ${props.method}`}>{props.method.toUpperCase()}</span> <code>{props.path}</code> <span class="muted">{operation.summary}</span></summary>
      <div class="pad">
        {operation.description && <p>{operation.description}</p>}
        <p class="hint">Role: {(operation['x-codband-roles'] ?? []).join(', ') || 'none, open to everybody'}</p>
        {parameters.length > 0 && <><h3>Parameters</h3><ul class="fields">{parameters.map(each => <li key={each.name}><code>{each.name}</code> <span class="type">{each.in}, {typeName(api, each.schema)}{each.required ? ', required' : ''}</span> {each.description}</li>)}</ul></>}
        {body && <><h3>Body: {body[0]}</h3><Fields api={api} schema={body[1].schema} depth={0} />{body[1].example !== undefined && <Code label="Example of a body" text={typeof body[1].example === 'string' ? body[1].example : JSON.stringify(body[1].example, null, 2)} />}</>}
        <h3>Replies</h3>
        <ul class="fields">{Object.entries(operation.responses).map(([status, reference]) => {
          const response = resolve(api, reference);
          const content = response.content && Object.values(response.content)[0];
          return <li key={status}><code>{status}</code> {response.description}{status.startsWith('2') && <Fields api={api} schema={content?.schema} depth={0} />}</li>;
        })}</ul>
      </div>
    </details>
  );
}

function ApiView(props: {open: string}) {
  const {value: api, error} = useLoad('openapi', () => get<Document>('/openapi.json'));
  const [text, setText] = useState('');
  if (!api) return <Failure error={error} />;
  const all = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({path, method, operation})));
  const shown = all.filter(each => `${each.path} ${each.operation.summary}`.toLowerCase().includes(text.toLowerCase()));
  return (
    <Card title="Every request" aside={<a href="/openapi.json">openapi.json</a>}>
      <form class="row" onSubmit={event => event.preventDefault()}><label>Find <input type="search" value={text} onInput={event => setText(event.currentTarget.value)} /></label></form>
      {shown.map(each => <OperationView key={each.operation.operationId} api={api} {...each} open={each.operation.operationId === props.open} />)}
    </Card>
  );
}

export function Settings(props: {query: URLSearchParams; session: Session}) {
  const {query} = props;
  const tab = query.has('api') ? 'api' : query.has('keys') ? 'keys' : 'settings';
  const link = (name: string, href: string, label: string) => <a href={href} aria-current={tab === name ? 'true' : undefined}>{label}</a>;
  return (
    <>
      <div class="title"><h1>Settings and API</h1>
        <nav class="tabs" aria-label="Parts">{link('settings', '#/settings', 'Settings')}{link('keys', '#/settings?keys', 'Keys')}{link('api', '#/settings?api', 'API')}</nav>
      </div>
      {tab === 'settings' && <SettingTable key={query.get('find') ?? ''} find={query.get('find') ?? ''} />}
      {tab === 'keys' && <KeyTable />}
      {tab === 'api' && <ApiView open={query.get('api') ?? ''} />}
    </>
  );
}
