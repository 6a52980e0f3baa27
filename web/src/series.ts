// Curves made of the server's points.
import type {Moments, Point} from './api';

export const kRanges = {
  live: {label: 'Live', span: 300, step: 1},
  hour: {label: '1 hour', span: 3600, step: 60},
  day: {label: '24 hours', span: 86400, step: 600},
  week: {label: '7 days', span: 7 * 86400, step: 3600},
  year: {label: '1 year', span: 365 * 86400, step: 86400},
} as const;
export type Range = keyof typeof kRanges;
export const isRange = (text: string | null): text is Range => text !== null && text in kRanges;

export interface Sum {
  count: number;
  sum: number;
  squares: number;
}
const add = (a: Sum, b: Sum, sign = 1): Sum => ({
  count: a.count + sign * b.count,
  sum: a.sum + sign * b.sum,
  squares: a.squares + sign * b.squares,
});
const kZero: Sum = {count: 0, sum: 0, squares: 0};

export interface Estimate {
  mean: number;
  low: number;
  high: number;
}
// The mean with its interval of 95 %.
export function estimate(m: Sum): Estimate | null {
  if (m.count < 2) return null;
  const mean = m.sum / m.count;
  const variance = Math.max(0, (m.squares - m.count * mean * mean) / (m.count - 1));
  const half = 1.96 * Math.sqrt(variance / m.count);
  return {mean, low: mean - half, high: mean + half};
}

// At each point the mean over the points before it that are within `window` of them.
export function trailing(moments: Sum[], window: number): (Estimate | null)[] {
  let sum = kZero;
  return moments.map((moment, i) => {
    sum = add(sum, moment);
    if (i >= window) sum = add(sum, moments[i - window], -1);
    return estimate(sum);
  });
}

export const momentsOf = (points: Point[], part: 'rewards' | 'baseline' | 'uniform'): Moments[] =>
  points.map(point => point[part]);

// The differences of what is counted since the start.
export const differences = (totals: Sum[]): Sum[] =>
  totals.map((total, i) => (i === 0 ? kZero : total.count >= totals[i - 1].count ? add(total, totals[i - 1], -1) : total));

// Users of each group at each point; the largest groups by name, the others are left out.
export function groupSizes(points: Point[], most = 12): Map<number, number[]> {
  const largest = new Map<number, number>();
  for (const point of points) {
    for (const group of point.groups) largest.set(group.modelId, Math.max(largest.get(group.modelId) ?? 0, group.users));
  }
  const chosen = [...largest].sort((a, b) => b[1] - a[1]).slice(0, most);
  const sizes = new Map<number, number[]>();
  for (const [model] of chosen) {
    sizes.set(model, points.map(point => point.groups.find(group => group.modelId === model)?.users ?? 0));
  }
  return sizes;
}
