// Compiled, not run: the types let through what is right and refuse what is wrong.
import {Client, type Ranked} from '../codband.js';

export async function shop(): Promise<string> {
  const client = new Client({url: 'http://127.0.0.1:8080', timeoutMs: 200});
  const ranked: Ranked = await client.rank('ann', ['a', {id: 'b', features: {genre: 'jazz', year: 0.5}}], {topK: 2});
  const model: number | null = ranked.modelId;
  const {status} = await client.reward(ranked.eventId, 1);
  // @ts-expect-error a user is a text
  await client.rank(7);
  // @ts-expect-error a reward is a number
  await client.reward('e', '1');
  // @ts-expect-error there is no such field
  await client.rank('ann', ['a'], {colour: 'red'});
  // @ts-expect-error an item has features
  await client.putItem('a', {tags: ['x']});
  return `${status} ${model} ${ranked.ranking[0]?.mean}`;
}
