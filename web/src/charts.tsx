// Curves by uPlot; streams, bars and intervals as SVG.
import {useEffect, useRef, useState} from 'preact/hooks';
import uPlot from 'uplot';
import {groupColour, groupName, many, number, tickFormat} from './format';

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Changes whenever the colours of the page do.
export function useTheme(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const change = () => setTurn(before => before + 1);
    query.addEventListener('change', change);
    addEventListener('codband-theme', change);
    return () => {
      query.removeEventListener('change', change);
      removeEventListener('codband-theme', change);
    };
  }, []);
  return turn;
}

export function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(entries => setWidth(Math.floor(entries[0].contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return {box, width};
}

export interface Curve {
  label: string;
  colour: string;  // a CSS variable
  dashed?: boolean;
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}

// Seconds between ticks.
const kTimeSteps = [
  5, 10, 30, 60, 300, 600, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400,
  60 * 86400, 90 * 86400,
];

// Curves with bands over time. `summary` is what it says, for those who cannot see it.
export function Curves(props: {times: number[]; curves: Curve[]; unit: string; summary: string; height?: number}) {
  const {box, width} = useWidth();
  const theme = useTheme();
  const plot = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [props.times];
  for (const curve of props.curves) {
    (data as unknown[]).push(curve.values);
    if (curve.low) (data as unknown[]).push(curve.low, curve.high);
  }
  const shape = props.curves.map(curve => `${curve.label}${curve.low ? '±' : ''}`).join('|');
  useEffect(() => {
    if (width === 0) return;
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const curve of props.curves) {
      const colour = css(curve.colour) || curve.colour;
      series.push({
        label: curve.label,
        stroke: colour,
        width: curve.dashed ? 1.5 : 2.5,
        dash: curve.dashed ? [6, 4] : undefined,
        points: {show: (_, __, from, to) => to - from < 2, size: 6},
        value: (_, value) => number(value),
        spanGaps: true,
      });
      if (!curve.low) continue;
      const at = series.length;
      for (const end of ['low', 'high']) {
        series.push({label: `${curve.label}, ${end}`, stroke: 'transparent', width: 0, points: {show: false}, value: (_, value) => number(value), spanGaps: true});
      }
      bands.push({series: [at + 1, at], fill: colour + '26'});
    }
    const axis = (size: number): uPlot.Axis => ({
      stroke: css('--muted'),
      grid: {stroke: css('--line'), width: 1},
      ticks: {stroke: css('--line'), width: 1},
      font: '12px system-ui, sans-serif',
      size,
    });
    plot.current?.destroy();
    plot.current = new uPlot(
      {
        width,
        height: props.height ?? 260,
        series,
        bands,
        legend: {show: false},
        cursor: {drag: {x: false, y: false}},
        padding: [8, 36, 0, 0], // half of the last time
        axes: [{...axis(32), space: 90, incrs: ({data: [times]}) => kTimeSteps.filter(each => each >= Math.min(60, times[1] - times[0] || 0)), values: (self, ticks, _, __, apart) => {
          const {min = 0, max = 0} = self.scales.x;
          const clock = tickFormat(apart, max - min);
          return ticks.map(tick => clock.format(tick * 1000));
        }}, {...axis(50), values: (_, ticks) => ticks.map(tick => number(tick, 2))}],
        scales: {y: {range: (_, low, high) => {
          const room = Math.max(0.02, 0.08 * (high - low));
          return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
        }}},
      },
      data,
      box.current!,
    );
    return () => {
      plot.current?.destroy();
      plot.current = null;
    };
  }, [width, theme, shape]);
  useEffect(() => plot.current?.setData(data));
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={props.summary} class="plot" />
      <figcaption>
        {props.curves.map(curve => (
          <span class="key" key={curve.label}>
            <i class={curve.dashed ? 'dash' : 'line'} style={{borderColor: `var(${curve.colour})`}} />
            {curve.label}{' '}<b>{number(last(curve.values))}</b>
          </span>
        ))}
        <span class="unit">{props.unit}</span>
      </figcaption>
    </figure>
  );
}

const last = (values: (number | null)[]) => {
  for (let i = values.length; i-- > 0;) if (values[i] !== null && values[i] !== undefined) return values[i];
  return undefined;
};

// Sizes of groups over time, one stream for each. Labels stand at its end.
export function Stream(props: {times: number[]; groups: Map<number, number[]>; summary: string}) {
  const {box, width} = useWidth();
  const height = 240;
  const n = props.times.length;
  const wide = Math.max(0, width);
  const right = 84;
  const inner = Math.max(1, wide - right - 8);
  const ids = [...props.groups.keys()].sort((a, b) => a - b);
  const totals = props.times.map((_, i) => ids.reduce((sum, id) => sum + props.groups.get(id)![i], 0));
  const most = Math.max(1, ...totals);
  const span = Math.max(1, props.times[n - 1] - props.times[0]);
  const x = (i: number) => 8 + (n < 2 ? inner : (inner * (props.times[i] - props.times[0])) / span);
  const unit = (height - 34) / most;
  const below = props.times.map((_, i) => 4 + ((most - totals[i]) * unit) / 2);
  const layers = ids.map(id => {
    const sizes = props.groups.get(id)!;
    const top = below.slice();
    const bottom = sizes.map((size, i) => (below[i] += size * unit));
    const there = (values: number[]) => (n < 2 ? [[8, values[0]], [8 + inner, values[0]]] : values.map((y, i) => [x(i), y]));
    const path = 'M' + there(top).map(p => p.map(v => v.toFixed(1)).join(',')).join('L') + 'L' +
      there(bottom).reverse().map(p => p.map(v => v.toFixed(1)).join(',')).join('L') + 'Z';
    return {id, path, middle: (top[n - 1] + bottom[n - 1]) / 2, size: sizes[n - 1], tall: bottom[n - 1] - top[n - 1]};
  });
  const middle = props.times.findIndex(time => time >= props.times[0] + span / 2);
  const fits = n > 2 && Math.abs(x(middle) - 8 - inner / 2) < inner / 8;
  const ticks = n < 2 ? [0] : fits ? [0, middle, n - 1] : [0, n - 1];
  const clock = tickFormat(span / 2, span);
  return (
    <figure class="chart">
      <div ref={box} class="plot">
        {wide > 0 && n > 0 && (
          <svg width={wide} height={height} role="group" aria-label={props.summary}>
            {layers.map(layer => (
              <a href={`#/groups/${layer.id}`} key={layer.id} aria-label={groupName(layer.id)}>
                <path d={layer.path} fill={groupColour(layer.id)} class="stream"><title>{`${groupName(layer.id)}: ${many(layer.size, 'user')} now`}</title></path>
                {layer.tall >= 13 && <text x={8 + inner + 6} y={layer.middle + 4} class="tick">{groupName(layer.id)}</text>}
              </a>
            ))}
            {ticks.map(i => (
              <text key={i} x={x(i)} y={height - 8} class="tick" text-anchor={i === 0 ? 'start' : i === n - 1 ? 'end' : 'middle'}>{clock.format(new Date(props.times[i] * 1000))}</text>
            ))}
          </svg>
        )}
      </div>
    </figure>
  );
}

// Counts over time, as bars.
export function Bars(props: {times: number[]; values: number[]; unit: string; summary: string; colour?: string; height?: number}) {
  const {box, width} = useWidth();
  const height = props.height ?? 206;
  const n = props.times.length;
  const most = Math.max(1, ...props.values);
  const step = n > 1 ? (width - 44) / n : width - 44;
  const span = Math.max(60, props.times[n - 1] - props.times[0]);
  const clock = tickFormat(span, span);
  return (
    <figure class="chart">
      <div ref={box} class="plot">
        {width > 0 && n > 0 && (
          <svg width={width} height={height} role="img" aria-label={props.summary}>
            <line x1={40} x2={width} y1={height - 25} y2={height - 25} class="axis" />
            <text x={34} y={16} class="tick" text-anchor="end">{most}</text>
            <text x={34} y={height - 22} class="tick" text-anchor="end">0</text>
            {props.values.map((value, i) => {
              const tall = ((height - 38) * value) / most;
              return <rect key={i} x={42 + i * step} y={height - 25 - tall} width={Math.max(1, Math.min(40, step - 1.5))} height={tall} class="column" style={props.colour ? {fill: props.colour} : undefined}><title>{`${clock.format(new Date(props.times[i] * 1000))}: ${many(value, props.unit)}`}</title></rect>;
            })}
            {(n < 2 ? [0] : [0, n - 1]).map(i => (
              <text key={i} x={42 + i * step + (i === 0 ? 0 : Math.min(40, step))} y={height - 8} class="tick" text-anchor={i === 0 ? 'start' : 'end'}>{clock.format(new Date(props.times[i] * 1000))}</text>
            ))}
          </svg>
        )}
      </div>
    </figure>
  );
}

// Three to seven round numbers from low to high.
function roundTicks(low: number, high: number): number[] {
  const rough = (high - low || 1) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find(each => each * power >= rough) ?? 10);
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) ticks.push(i * step);
  return ticks;
}

export interface IntervalRow {
  label: string;
  colour: string;
  value: number;
  low?: number;
  high?: number;
}

// Estimates with their intervals. An interval that goes far beyond the others is cut with an arrow,
// so that one useless row does not flatten the rest.
export function Intervals(props: {rows: IntervalRow[]; summary: string}) {
  const {box, width} = useWidth();
  const rows = props.rows;
  const values = rows.map(row => row.value);
  const spread = Math.max(...values) - Math.min(...values) || Math.abs(values[0]) || 1;
  const ends = rows.flatMap(row => [row.low ?? row.value, row.high ?? row.value]);
  const low = Math.max(Math.min(...ends), Math.min(...values) - spread);
  const high = Math.min(Math.max(...ends), Math.max(...values) + spread);
  const left = Math.min(150, width * 0.32);
  const x = (value: number) => left + ((width - left - 20) * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1);
  const height = 34 * rows.length + 34;
  return (
    <figure class="chart">
      <div ref={box} class="plot">
        {width > 0 && rows.length > 0 && (
          <svg width={width} height={height} role="img" aria-label={props.summary}>
            {roundTicks(low, high).map(value => (
              <g key={value}><line x1={x(value)} x2={x(value)} y1={4} y2={height - 26} class="grid" /><text x={x(value)} y={height - 8} class="tick" text-anchor="middle">{number(value, 2)}</text></g>
            ))}
            {rows.map((row, i) => {
              const y = 20 + 34 * i;
              return (
                <g key={row.label}>
                  <text x={left - 10} y={y + 4} class="rowname" text-anchor="end">{row.label}</text>
                  {row.low !== undefined && <line x1={x(row.low)} x2={x(row.high!)} y1={y} y2={y} stroke={row.colour} stroke-width={6} stroke-opacity={0.45} />}
                  {row.low !== undefined && row.low < low && <path d={`M${x(low) - 8},${y}l8,-6v12z`} fill={row.colour} />}
                  {row.high !== undefined && row.high > high && <path d={`M${x(high) + 8},${y}l-8,-6v12z`} fill={row.colour} />}
                  <circle cx={x(row.value)} cy={y} r={6} fill={row.colour}><title>{number(row.value, 4)}</title></circle>
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </figure>
  );
}
