// What the server tells once a second, for every part of the page that wants to know.
import {useEffect, useState} from 'preact/hooks';
import type {Live} from './api';
import {colourGroups} from './format';

type Listener = (live: Live) => void;

let source: EventSource | null = null;
let latest: Live | null = null;
const listeners = new Set<Listener>();

// The last minutes, second by second.
export interface Second {
  time: number;
  live: Live;
}
const kSeconds = 300;
export const seconds: Second[] = [];

export function startLive() {
  if (source) return;
  source = new EventSource('/v1/live');
  source.addEventListener('live', event => {
    latest = JSON.parse((event as MessageEvent<string>).data) as Live;
    colourGroups((latest.point?.groups ?? []).map(group => group.modelId).sort((a, b) => a - b));
    seconds.push({time: Date.parse(latest.time) / 1000, live: latest});
    if (seconds.length > kSeconds) seconds.shift();
    for (const listener of listeners) listener(latest);
  });
}

export function stopLive() {
  source?.close();
  source = null;
}

// Whether the server has told anything yet: colours of groups are known from then on.
export function useLiveBegun(): boolean {
  const [begun, setBegun] = useState(latest !== null);
  useEffect(() => {
    const listener = () => setBegun(true);
    listeners.add(listener);
    setBegun(latest !== null);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return begun;
}

export function useLive(): Live | null {
  const [live, setLive] = useState(latest);
  useEffect(() => {
    listeners.add(setLive);
    setLive(latest);
    return () => {
      listeners.delete(setLive);
    };
  }, []);
  return live;
}
