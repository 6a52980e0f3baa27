// Numbers, times and colours as people read them.

const whole = new Intl.NumberFormat('en');
export const count = (value: number) => whole.format(Math.round(value));

export function number(value: number | undefined | null, digits = 3): string {
  if (value === undefined || value === null || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1000) return count(value);
  const text = size.toFixed(size >= 100 ? 1 : digits);
  const sign = value < 0 ? '−' : '';
  if (Number(text) !== 0) return sign + text;
  return value === 0 || digits < 3 ? '0' : sign + size.toExponential(1);
}

// "1 user", "2 users".
export const many = (value: number, unit: string) => `${count(value)} ${unit}${Math.round(value) === 1 ? '' : 's'}`;

// With a sign, and always as many digits.
export function signed(value: number, digits = 3): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? '−' : '+'}${text}`;
}

export function percent(share: number, digits = 1): string {
  if (!Number.isFinite(share)) return '–';
  if (share > 0 && 100 * share < 0.5 * 10 ** -digits) return `< ${10 ** -digits} %`;
  return `${(100 * share).toFixed(digits)} %`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// In the reader's zone.
const full = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
// For ticks that are so many seconds apart, of an axis that is so many seconds long.
export const tickFormat = (apart: number, long: number) => new Intl.DateTimeFormat(undefined,
  long > 86400 ? {day: 'numeric', month: 'short', ...(apart < 86400 ? {hour: '2-digit'} : {})}
    : {hour: '2-digit', minute: '2-digit', ...(apart < 60 ? {second: '2-digit'} : {})});
export const fullTime = (time: string | number) => full.format(new Date(time));

// One colour for one group, everywhere: Okabe and Ito's, which colour-blind eyes tell apart, without
// yellow, which is too light on white, then others of different lightness. A group that is seen for
// the first time gets one that the fewest groups of today have, so that these differ while there are
// enough; a browser remembers them.
const kColours = [
  '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7a5195', '#8a8d0f', '#3f5fbf',
  '#a34a1f', '#5fbfa5', '#b0567f',
];
const kNoColour = '#8a929c';
const kStored = 'codband-groups';
const places = new Map<number, number>();
try {
  for (const [model, place] of JSON.parse(localStorage.getItem(kStored) ?? '[]')) places.set(model, place);
} catch {
  // Then they are given anew.
}
let living: number[] | undefined;
// The groups that there are now get colours.
export function colourGroups(models: number[]) {
  living = models;
  for (const model of models) groupColour(model);
}
export function groupColour(model: number | null | undefined): string {
  // Until it is known which groups live none gets a colour: else that would depend on the page that is opened first.
  if (model === null || model === undefined || !living) return kNoColour;
  let place = places.get(model);
  if (place === undefined) {
    const used = kColours.map(() => 0);
    for (const other of living) if (places.has(other)) ++used[places.get(other)! % kColours.length];
    const after = ([...places.values()].pop() ?? -1) + 1; // the last one given
    const order = kColours.map((_, i) => (after + i) % kColours.length);
    place = order.reduce((best, each) => (used[each] < used[best] ? each : best));
    places.set(model, place);
    if (places.size > 200) places.delete(places.keys().next().value!);
    try {
      localStorage.setItem(kStored, JSON.stringify([...places]));
    } catch {
      // For this visit only.
    }
  }
  return kColours[place % kColours.length];
}
export const groupName = (model: number | null | undefined) =>
  model === null || model === undefined ? 'no group' : `Group ${model}`;
