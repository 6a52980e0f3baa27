// The code that makes the same request: with curl, and with the clients for Python and JavaScript.

export interface Request {
  userId?: string;
  contextFeatures?: unknown;
  actions?: string[];
  topK?: number;
}

const quoted = (text: string) => `'${text.replace(/'/g, `'\\''`)}'`;

function python(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object') return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${python(each)}`).join(', ')}}`;
  return JSON.stringify(value);
}

function curl(origin: string, request: Request, reward: number, key: boolean): string {
  const fields = (body: string) => `${key ? ' -H "X-API-Key: $SHOP_KEY"' : ''} \\\n  -H 'Content-Type: application/json' -d ${quoted(body)}`;
  return `curl ${quoted(`${origin}/v1/rank?explain=true`)}${fields(JSON.stringify(request))}
# with the eventId of the reply:
curl ${origin}/v1/events/EVENT_ID/reward${fields(JSON.stringify({value: reward}))}`;
}

function pythonClient(origin: string, request: Request, reward: number, key: boolean): string {
  const options = [
    request.actions && `, ${python(request.actions)}`,
    request.contextFeatures !== undefined && `, context=${python(request.contextFeatures)}`,
    request.topK !== undefined && `, top_k=${request.topK}`,
  ].filter(Boolean).join('');
  return `${key ? 'import os\n' : ''}from codband import Client

with Client(${python(origin)}${key ? ', key=os.environ["SHOP_KEY"]' : ''}) as client:
    reply = client.rank(${python(request.userId)}${options})
    print(reply.chosen)
    client.reward(reply.event_id, ${reward})`;
}

function javascriptClient(origin: string, request: Request, reward: number, key: boolean): string {
  const options = JSON.stringify({contextFeatures: request.contextFeatures, topK: request.topK});
  const more = options !== '{}' ? `, ${JSON.stringify(request.actions)}, ${options}` : request.actions ? `, ${JSON.stringify(request.actions)}` : '';
  return `import {Client} from 'codband';

const client = new Client({url: ${JSON.stringify(origin)}${key ? ', key: process.env.SHOP_KEY' : ''}});
const reply = await client.rank(${JSON.stringify(request.userId ?? null)}${more});
console.log(reply.rewardActionId);
await client.reward(reply.eventId, ${reward});`;
}

export const snippets = (origin: string, request: Request, reward: number, key: boolean) => ({
  curl: curl(origin, request, reward, key),
  Python: pythonClient(origin, request, reward, key),
  JavaScript: javascriptClient(origin, request, reward, key),
});
